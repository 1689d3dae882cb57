"""One attempt at one volume, stage by stage, and how it ends: what ``python -m htrflow_batch`` does."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import logging
import os
import queue
import shutil
import signal
import types
import typing as t

from htrflow_batch import (
    config,
    documents,
    download,
    facts,
    manifest,
    presentation,
    progress,
    resume,
    stores,
    termination,
    verification,
    volume,
)
from htrflow_batch.config import Config
from htrflow_batch.errors import AttemptError, ExitCode, PermanentError, TransientError
from htrflow_batch.fetch import Fetcher
from htrflow_batch.hosts import Hosts
from htrflow_batch.ledger import Failure, Ledger
from htrflow_batch.publisher import Publisher
from htrflow_batch.run import Run
from htrflow_batch.run_log import RunLog, Shipper
from htrflow_batch.store import Store
from htrflow_batch.stream import Stop, Stream, Terminated

_LOG = logging.getLogger(__name__)
#: Pages between two versions of iiif.json.
_IIIF_PAGES = 10
#: Seconds for the last version of the run log. A pod has 120 to end.
_LOG_SECONDS = 90.0
#: The same where the store was just not there, or refused what it was asked.
_LOG_SECONDS_AWAY, _LOG_SECONDS_REFUSED = 10.0, 1.0


class Attempt:
    """What is known of the attempt as it goes on."""

    def __init__(self, log: RunLog) -> None:
        self.stage: progress.Stage = "config"
        self.config: Config | None = None
        self._log = log
        self._started = self._advanced = datetime.datetime.now(datetime.UTC)
        self._place: tuple[progress.Stage, int] | None = None
        # Unlike other queues, it can be put into by a signal's handler while it is read.
        self._events: queue.SimpleQueue[t.Any] = queue.SimpleQueue()
        self._ledger: Ledger | None = None
        self._run: Run | None = None
        self._publisher: Publisher | None = None
        self._shipper: Shipper | None = None
        self._resumed = 0
        self._suspects: tuple[int, ...] = ()
        self._iiif_at = 0
        self._flushed: set[int] = set()
        self._origins: dict[int, facts.Origin] = {}
        #: The signal that asked the attempt to end.
        self.asked_to_end: signal.Signals | None = None
        self._stream: Stream | None = None

    def interrupt(self, number: int, frame: types.FrameType | None) -> None:
        """Ends the attempt at the next good moment. What is being published at the end is published to its end.

        It runs in the middle of anything, so it takes no lock and writes nothing: the interrupted code may be doing so.
        """
        first, self.asked_to_end = self.asked_to_end is None, signal.Signals(number)
        self._events.put(Stop())
        if first and self.stage in ("config", "setup", "resume"):
            raise Terminated

    def run(self, environ: t.Mapping[str, str]) -> None:
        """Reads the volume. Raises :class:`AttemptError` or :class:`Terminated` when it does not come to its end."""
        self.config = config.read(environ)
        self._enter("setup")
        store = self._set_up(self.config)
        self._shipper = Shipper(self._log, store, self.config.keys.run_log)
        self._publisher = Publisher(store, self._shipper)
        fetching = self.config.fetching
        fetcher = Fetcher(fetching.contact, fetching.headers, limits=Hosts(fetching.connections))
        self._enter("resume")
        there = self._resume(self.config, fetcher, store)
        assert self._ledger is not None
        assert self._run is not None
        self._enter("load")
        stream = self._stream = Stream(
            self.config,
            self._run,
            self._ledger,
            there,
            self._suspects,
            store,
            fetcher,
            self._events,
            self._changed,
        )
        stream.run()
        self._log_timing(stream)
        self._enter("verify")
        self._run = verification.verify(self.config, self._run, self._ledger, self._origins, store)
        self._enter("publish")
        self._publish(self.config, store)

    def _enter(self, stage: progress.Stage) -> None:
        self.stage = self._log.stage = stage
        _LOG.info("the stage begins")

    def _set_up(self, config: Config) -> Store:
        shutil.rmtree(config.workdir / "pages", ignore_errors=True)
        try:
            (config.workdir / "pages").mkdir(parents=True)
            # Steps of the library write below the folder that they run in.
            os.chdir(config.workdir)
        except OSError as error:
            raise TransientError(
                f"the work directory {config.workdir} cannot be used: {error.strerror} — see WORKDIR_PATH and its mount"
            ) from error
        return stores.opened(config.store)

    def _resume(self, config: Config, fetcher: Fetcher, store: Store) -> t.Any:
        source = volume.source(config, fetcher, store)
        for note in source.notes:
            _LOG.warning("%s", note)
        self._ledger = Ledger(source, config.low_confidence)
        self._run = Run(
            config.volume,
            config.campaign,
            config.recipe,
            config.results_url,
            volume.address_of(config),
            importlib.metadata.version("htrflow-campaigns"),
        )
        self._origins = {
            page.number: facts.Origin(config.recipe.sha256, download.identity(page, config.fetching))
            for page in source.usable
        }
        left = resume.find(store, config.keys, self._origins)
        for outcome in left.done:
            self._ledger.came_out(outcome)
        self._resumed, self._suspects = len(left.done), left.suspects
        self._iiif_at = self._resumed
        _LOG.info(
            "%s pages: %s are done, %s have no image, %s are left",
            len(source.pages),
            len(left.done),
            len(source.failed),
            len(self._ledger.waiting),
        )
        if config.attempt.last and config.attempt.failures and len(left.ended_on) == 1:
            reason = "Earlier attempts ended without a word while the model had this page, the last with it alone."
            self._ledger.failed(Failure(left.ended_on[0], "model", reason))
        return left.there

    def _changed(self, stream: Stream) -> None:
        """Shows how far it is, from time to time."""
        assert self.config is not None
        assert self._publisher is not None
        self._run = stream.run_facts
        if self.stage == "load" and stream.reading.loaded:
            self._enter("stream")
        keys = self.config.keys
        risky = set(stream.reading.active) & set(self._suspects) - self._flushed
        if risky or self._publisher.wants(keys.progress):
            self._publisher.publish(keys.progress, self._progress("running"))
        if risky:
            # If this page ends the pod, the next attempt is to know which it was.
            self._flushed |= risky
            self._publisher.flush()
        done = len(stream.ledger.outcomes)
        # It is large for a large volume, and then it is made as seldom as it is written.
        if done // _IIIF_PAGES > self._iiif_at // _IIIF_PAGES and self._publisher.wants(keys.iiif):
            self._iiif_at = done
            if (document := presentation.manifest(stream.ledger, self._run, keys)) is not None:
                self._publisher.publish(keys.iiif, documents.to_bytes(document))

    def _progress(self, condition: progress.Condition, error: str | None = None) -> bytes:
        assert self.config is not None
        assert self._ledger is not None
        assert self._run is not None
        now = datetime.datetime.now(datetime.UTC)
        standing = progress.Standing(
            condition,
            self.stage,
            self._started,
            self._advanced_by(now),
            now,
            self.config.attempt,
            resumed=self._resumed,
            active=self._stream.reading.active if self._stream and condition == "running" else (),
            deferred=self._stream.fetching.deferred if self._stream else (),
            error=error,
        )
        return documents.to_bytes(progress.document(self._ledger, self._run, standing))

    def _advanced_by(self, now: datetime.datetime) -> datetime.datetime:
        """When the attempt last came to another stage, or a page came out or failed."""
        assert self._ledger is not None
        place = (self.stage, len(self._ledger.waiting))
        if place != self._place:
            self._place, self._advanced = place, now
        return self._advanced

    def _log_timing(self, stream: Stream) -> None:
        busy, idle = stream.reading.busy, stream.reading.idle
        if busy:
            share = 100 * idle / (busy + idle)
            _LOG.info("the model worked for %.1f s and waited for %.1f s (%.1f %%)", busy, idle, share)

    def _publish(self, config: Config, store: Store) -> None:
        assert self._ledger is not None
        assert self._run is not None
        assert self._publisher is not None
        self._publisher.end()
        keys = config.keys
        document = presentation.manifest(self._ledger, self._run, keys)
        assert document is not None
        _write(store, keys.iiif, documents.to_bytes(document), "application/json")
        _write(store, keys.pipeline_yaml, config.recipe.yaml, "application/yaml")
        _write(store, keys.progress, self._progress("finished"), "application/json")
        finished = datetime.datetime.now(datetime.UTC)
        done = manifest.document(self._ledger, self._run, finished, self._started)
        _write(store, keys.manifest, documents.to_bytes(done), "application/json")
        counts = ", ".join(f"{number} {state}" for state, number in self._ledger.counts().items() if number)
        _LOG.info("the volume is done: %s", counts)

    def end(self, error: str | None, condition: progress.Condition) -> None:
        """The last things to be written, on whatever way the attempt ended. Nothing that fails here changes its end."""
        if self._publisher is not None:
            self._publisher.end()
        if self.config is None or self._shipper is None:
            return
        keys = self.config.keys
        with contextlib.suppress(AttemptError):
            store = stores.opened(self.config.store, hurried=True)
            seconds = _LOG_SECONDS
            try:
                if error is not None and self._ledger is not None:
                    store.put(keys.progress, self._progress(condition, error), "application/json")
                elif error is not None:
                    store.head(keys.progress)
            except PermanentError:
                seconds = _LOG_SECONDS_REFUSED
            except TransientError:
                seconds = _LOG_SECONDS_AWAY
            self._shipper.finish(seconds, store)


def main(environ: t.Mapping[str, str] = os.environ) -> ExitCode:
    """Runs an attempt and says how it ended, for the Job's ``podFailurePolicy``."""
    log = RunLog()
    logging.basicConfig(level=logging.INFO, handlers=[log])
    logging.getLogger("botocore").setLevel(logging.WARNING)
    attempt = Attempt(log)
    signal.signal(signal.SIGTERM, attempt.interrupt)
    signal.signal(signal.SIGINT, attempt.interrupt)
    error, code, condition = _ending(attempt, environ)
    if attempt.asked_to_end is not None:
        _LOG.warning("asked to end by %s", attempt.asked_to_end.name)
    if code:
        _LOG.error("%s", error)
        permanent = code == ExitCode.PERMANENT
        termination.write(config.termination_log(environ), attempt.stage, permanent, error or "")
    attempt.end(error, condition)
    return code


def _ending(attempt: Attempt, environ: t.Mapping[str, str]) -> tuple[str | None, ExitCode, progress.Condition]:
    try:
        attempt.run(environ)
        return None, ExitCode.FINE, "finished"
    except AttemptError as error:
        return str(error), error.exit_code, "failed"
    except Terminated:
        return "the pod was asked to end; the next attempt goes on from here", ExitCode.TERMINATED, "stopped"
    except Exception as error:
        _LOG.exception("this is a fault of the program")
        return f"a fault of the program: {type(error).__name__}: {error}", ExitCode.TRANSIENT, "failed"


def _write(store: Store, key: str, content: bytes, content_type: str) -> None:
    stores.patiently(key, lambda: store.put(key, content, content_type))
