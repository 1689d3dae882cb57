"""``htrflow-campaigns local``: from the arguments to an exit code."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import pathlib
import signal
import time
import types
import typing as t
import urllib.parse

from htrflow_batch import redact
from htrflow_batch.errors import AttemptError
from htrflow_batch.folder_store import FolderStore
from htrflow_batch.s3_client import S3Settings
from htrflow_batch.s3_store import S3Store
from htrflow_campaigns.local import overview, repo
from htrflow_campaigns.local.data import Data, DataError, sentence
from htrflow_campaigns.local.job import Job
from htrflow_campaigns.local.overview import Campaign, Reader
from htrflow_campaigns.local.repo import Wanted
from htrflow_campaigns.local.runner import Runner, Settings
from htrflow_campaigns.local.site import Site
from htrflow_campaigns.local.table import Table
from htrflow_campaigns.reports import Outcome, text

_TICK, _SHOW, _LOOK = 0.1, 0.5, 1.0


class LocalError(Exception):
    """It cannot run. The message is one sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The arguments. ``s3`` is the address of a bucket: the endpoint, a slash and the bucket's name."""

    repo: pathlib.Path
    data: pathlib.Path
    port: int
    slots: int
    watch: bool
    once: bool
    s3: str | None = None
    credentials: pathlib.Path | None = None


class _Stop:
    """Set when somebody wants the end; ``at_once`` when they say so again."""

    def __init__(self) -> None:
        self.asked = self.at_once = False

    def __call__(self, number: int, frame: types.FrameType | None) -> None:
        self.asked, self.at_once = True, self.asked


def run(options: Options) -> int:
    """Runs the repo. 0: all came out; 1: something did not, or the repo has problems; 130: stopped before the end.

    Raises :class:`LocalError`.
    """
    wanted = _wanted(options.repo)
    if wanted is None:
        return 1
    stop = _Stop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    # Under nohup it is to outlive its terminal.
    numbers += [signal.SIGHUP] * (signal.getsignal(signal.SIGHUP) != signal.SIG_IGN)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        with contextlib.ExitStack() as stack:
            data = Data(options.data)
            stack.callback(data.close)
            # Whatever goes wrong, nothing of it goes on in the background.
            stack.callback(data.end_processes)
            bucket = _bucket(options)
            store: FolderStore | S3Store = S3Store(bucket) if bucket else FolderStore(data.results)
            stack.callback(store.close)
            results = bucket or data.results
            site = Site(options.port, data.folder, results, wanted.namespace, options.slots)
            stack.enter_context(site)
            settings = _settings(options, wanted, data, bucket, site.url)
            table = stack.enter_context(Table())
            stack.enter_context(_log_to(table))
            runner = Runner(data, settings)
            return _Session(options, runner, data, Reader(store, f"{wanted.namespace}/"), table, site).run(wanted, stop)
    except (DataError, AttemptError) as error:
        raise LocalError(str(error)) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LocalError(sentence(options.data, error)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Session:
    """From the first Job to the last word."""

    def __init__(self, options: Options, runner: Runner, data: Data, reader: Reader, table: Table, site: Site) -> None:
        self._options, self._runner, self._data = options, runner, data
        self._reader, self._table, self._site = reader, table, site
        self._lines: dict[str, list[str]] = {}
        self._said: dict[tuple[str, str], dict[int, str]] = {}
        self._fixed: tuple[str, ...] = ()

    def run(self, wanted: Wanted, stop: _Stop) -> int:
        self._fixed = _fixed(wanted)
        self._want(wanted)
        self._table.say(f"results and state are in {self._data.folder}, and at {self._site.url}")
        seen, looked, shown, idle = repo.digest(self._options.repo), time.monotonic(), 0.0, False
        while not stop.asked:
            changed = self._runner.step()
            now = time.monotonic()
            if now - shown > _SHOW:
                shown = now
                self._table.show(self.campaigns())
            if self._options.watch and now - looked > _LOOK:
                looked = now
                seen = self._look(seen)
            if self._runner.idle != idle:
                idle = not idle
                if idle and self._options.once:
                    break
                if idle:
                    self._sum_up()
                    self._table.say("nothing is left to do; Ctrl-C ends this")
            if not changed:
                time.sleep(_TICK)
        if stop.asked and not self._runner.idle:
            self._table.say("ending what runs; Ctrl-C again ends it at once")
        self._runner.stop(lambda: stop.at_once)
        found = self._sum_up() if not idle or self._options.once else self.campaigns()
        if stop.asked and not self._runner.idle:
            self._table.say("stopped; the same command goes on from here")
            return 130
        return 0 if all(campaign.state in ("succeeded", "partially succeeded", "paused") for campaign in found) else 1

    def _sum_up(self) -> list[Campaign]:
        found = self.campaigns()
        self._table.show(found)
        where = redact.url(self._options.s3) if self._options.s3 else str(self._data.results)
        self._table.summary(found, where, f"{self._site.url}/results")
        return found

    def campaigns(self) -> list[Campaign]:
        """The overview."""
        found = []
        for job in overview.campaigns(self._runner.jobs.values()):
            if job.name not in self._lines:
                files = self._data.config_maps(job.name).values()
                self._lines[job.name] = next(
                    (one["volumes.txt"] for one in files if "volumes.txt" in one), ""
                ).splitlines()
            found.append(
                self._reader.campaign(
                    job,
                    self._lines[job.name],
                    slots=self._options.slots,
                    paused=job.name in self._runner.paused,
                    words=self._words(job) if job.failed else {},
                )
            )
        return found

    def _words(self, job: Job) -> dict[int, str]:
        """The last words of the last pod of each index."""
        known = (job.object["metadata"]["uid"], job.status["failedIndexes"])
        if known in self._said:
            return self._said[known]
        found = self._said[known] = {}
        for pod in self._data.pods(job.name):
            statuses = [*pod["status"].get("initContainerStatuses", []), *pod["status"].get("containerStatuses", [])]
            for status in statuses:
                ended = status["state"]["terminated"]
                if ended["exitCode"]:
                    index = int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
                    found[index] = overview.sentence(ended["message"]) or f"exit code {ended['exitCode']}"
        return found

    def _want(self, wanted: Wanted) -> None:
        for refusal in self._runner.want(wanted):
            self._table.say(refusal, "red")
        self._lines.clear()
        for name in self._runner.never():
            self._table.say(f"{name} never starts: its window is more than the {self._options.slots} slots", "yellow")

    def _look(self, seen: str) -> str:
        """Takes up what changed in the repo, if anything did."""
        now = repo.digest(self._options.repo)
        if now != seen:
            try:
                wanted = _wanted(self._options.repo, self._table)
            except LocalError as error:
                self._table.say(str(error), "red")
                wanted = None
            if wanted is not None and _fixed(wanted) != self._fixed:
                self._table.say(
                    "converter.yaml: namespace, s3_secret and hf_token_secret are read at the start — stop this, and"
                    " start it again",
                    "red",
                )
                wanted = None
            if wanted is None:
                self._table.say("everything goes on as it was before the change", "yellow")
            else:
                self._want(wanted)
        return now


def _fixed(wanted: Wanted) -> tuple[str, ...]:
    """What cannot change while it runs."""
    return wanted.namespace, wanted.s3_secret, wanted.hf_token_secret


def _wanted(folder: pathlib.Path, table: Table | None = None) -> Wanted | None:
    try:
        wanted, problems, files = repo.read(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LocalError(f"{folder} cannot be read ({reason}) — name the folder of a campaigns repo") from None
    if problems:
        report = text.report(Outcome(problems, files))
        (table.say if table else lambda said: print(said, end=""))(report)
    return wanted


def _bucket(options: Options) -> S3Settings | None:
    if options.s3 is None:
        return None
    parts = urllib.parse.urlsplit(options.s3)
    bucket = parts.path.strip("/")
    if parts.scheme not in ("http", "https") or not parts.netloc or not bucket or "/" in bucket:
        raise LocalError(
            f"{redact.url(options.s3)} names no bucket — write its endpoint, a slash and its name, such as"
            " https://s3.example.org/results"
        )
    credentials = options.credentials or pathlib.Path(
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or pathlib.Path.home() / ".aws/credentials"
    )
    try:
        credentials.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise LocalError(f"the credentials {credentials} cannot be read — name their file with --credentials") from None
    return S3Settings(bucket, credentials, f"{parts.scheme}://{parts.netloc}")


def _settings(options: Options, wanted: Wanted, data: Data, bucket: S3Settings | None, url: str) -> Settings:
    secrets: dict[str, dict[str, str]] = {}
    extra = {"RESULTS_URL": f"{url}/results"}
    if bucket is None:
        secrets[wanted.s3_secret] = {"S3_BUCKET": "results"}
        extra["RESULTS_FOLDER"] = str(data.results)
    else:
        credentials = bucket.credentials.read_text(encoding="utf-8")
        found = {"S3_BUCKET": bucket.bucket, "S3_ENDPOINT": bucket.endpoint or "", "credentials": credentials}
        secrets[wanted.s3_secret] = found
    if wanted.hf_token_secret:
        # Without one, models that everybody may have are still to be had.
        secrets.setdefault(wanted.hf_token_secret, {})["token"] = os.environ.get("HF_TOKEN", "")
    return Settings(options.slots, secrets, extra)


@contextlib.contextmanager
def _log_to(table: Table) -> t.Iterator[None]:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            table.say(record.getMessage(), "yellow" if record.levelno > logging.INFO else "dim")

    logger, handler = logging.getLogger("htrflow_campaigns.local"), Handler()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
