"""``python -m htrflow_batch.warmup``: brings the models of one recipe into its folder of the cache.

Three steps: load every model of every step, which downloads what is missing; load them all again in a new process that
has no network, as the campaign's pods will; write the marker that those pods wait for.
"""

from __future__ import annotations

import datetime
import logging
import os
import pathlib
import queue
import re
import signal
import sys
import typing as t

from htrflow_batch import config, documents, messages, redact, termination
from htrflow_batch.errors import AttemptError, ExitCode, PermanentError, TransientError
from htrflow_batch.model import Model, Said
from htrflow_batch.run import Recipe
from htrflow_batch.variables import Variables

_LOG = logging.getLogger(__name__)
_STAGE = "warmup"
#: Seconds for all downloads. The Job's own limit is an hour.
_DOWNLOAD_SECONDS, _LOAD_SECONDS = 3300.0, 900.0
_TICK = 1.0

_LACKS = "the model lacks a file that its loader reads — check that it is a model of this kind"
#: What the Hub and the loaders say when asking again would not help, and what to do.
_FOR_GOOD = {
    r"\bRepositoryNotFoundError\b": "there is no such model, or it is private — check its name, or set hf_token_secret",
    r"\bGatedRepoError\b": "the model is only for those who asked for it — ask on its page, and set hf_token_secret",
    r"\bRevisionNotFoundError\b": "the model has no such revision — write one of its commits into the pipeline",
    r"\bHfHubHTTPError: 40[13] ": "the Hub refuses it — give the token of hf_token_secret the right to read the model",
    r"\b(Remote)?EntryNotFoundError\b": _LACKS,
    r"\bdoes not appear to have a file named\b": _LACKS,
    r"\bCan't load (image processor|feature extractor|processor|tokenizer) for\b": _LACKS,
    r"\bCould not find any file\b": "the model has no file of its kind — check that it is a model for this step",
    r"\bHFValidationError\b": "that is no name of a model — write it as owner/name",
}


def warm_up(recipe: Recipe, engine: str, home: pathlib.Path, workdir: pathlib.Path) -> pathlib.Path:
    """Fills the cache below ``home`` (``HF_HOME``) and gives the path of the marker.

    Raises:
        PermanentError: the pipeline is wrong, or names a model that is not to be had.
        TransientError: the Hub is not to be had, or the cache has no room.
    """
    _LOG.info("loading the models of %s, and downloading what is missing", recipe.pipeline_id)
    _load(recipe, engine, workdir, {"HF_HUB_OFFLINE": "0"}, _DOWNLOAD_SECONDS)
    _LOG.info("loading them again without a network")
    found = _load(recipe, engine, workdir, {"HF_HUB_OFFLINE": "1"}, _LOAD_SECONDS)
    marker = home.parent / "warmup" / f"{recipe.pipeline_id}.done"
    said = {
        "version": documents.VERSION,
        "pipeline": recipe.pipeline_id,
        "recipe_sha256": recipe.sha256,
        "engine": found.engine,
        "models": [{"name": name, "revision": revision or None} for name, revision in found.models],
        "finished": documents.utc(datetime.datetime.now(datetime.UTC)),
    }
    try:
        _write(marker, documents.to_bytes(said))
    except OSError as error:
        raise TransientError(
            f"the marker {marker} cannot be written: {error.strerror} — see the claim that data_pvc names"
        ) from error
    return marker


def main(environ: t.Mapping[str, str] = os.environ) -> ExitCode:
    """Warms up what the environment describes, and says how it ended."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        reader = Variables(environ, config.SETTER)
        recipe = config.read_recipe(environ, reader)
        home = pathlib.Path(reader.text("HF_HOME"))
        workdir = pathlib.Path(reader.text("WORKDIR_PATH", "/work"))
        reader.finish()
        marker = warm_up(recipe, environ.get("ENGINE", "").strip() or config.ENGINE, home, workdir)
    except AttemptError as error:
        permanent = error.exit_code == ExitCode.PERMANENT
        _LOG.error("%s", redact.url(str(error)))
        termination.write(config.termination_log(environ), _STAGE, permanent, str(error))
        return error.exit_code
    except _Terminated:
        termination.write(config.termination_log(environ), _STAGE, False, "the pod was asked to end")
        return ExitCode.TERMINATED
    except Exception as error:
        _LOG.exception("this is a fault of the program")
        said = f"a fault of the program: {type(error).__name__}: {error}"
        termination.write(config.termination_log(environ), _STAGE, False, said)
        return ExitCode.TRANSIENT
    _LOG.info("the models are there: %s", marker)
    return ExitCode.FINE


class _Terminated(BaseException):
    pass


def _terminate(number: int, frame: object) -> None:
    raise _Terminated


def _load(
    recipe: Recipe, engine: str, workdir: pathlib.Path, variables: t.Mapping[str, str], seconds: float
) -> messages.Loaded:
    """Loads every model in a process of its own: the libraries read their variables when they are imported."""
    events: queue.SimpleQueue[Said] = queue.SimpleQueue()
    model = Model(engine, recipe.yaml, workdir, events, page_seconds=seconds, load_seconds=seconds, variables=variables)
    model.start()
    try:
        while (late := model.overdue()) is None:
            try:
                message = events.get(timeout=_TICK).message
            except queue.Empty:
                continue
            match message:
                case messages.Loaded():
                    return message
                case messages.Refused(error=error, permanent=permanent):
                    raise _refused(error, permanent)
                case None:
                    raise TransientError(f"the process that loads the models was gone: {model.end(gone=True)}")
        raise TransientError(f"{late} — see how fast the network and the disk are")
    finally:
        model.end()


def _refused(error: str, permanent: bool) -> AttemptError:
    said = redact.url(error)
    for words, advice in _FOR_GOOD.items():
        if re.search(words, said):
            return PermanentError(f"{said.partition(': ')[0]}: {advice}")
    return PermanentError(said) if permanent else TransientError(said)


def _write(path: pathlib.Path, content: bytes) -> None:
    """Under another name first: whoever finds the marker finds all that it stands for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
