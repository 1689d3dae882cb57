"""The command: from the campaigns repo to the exit code."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import signal
import sys
import types
import typing as t

from htrflow_campaigns import load
from htrflow_campaigns.apply import cluster as clusters
from htrflow_campaigns.apply import decide, live, wanted
from htrflow_campaigns.apply.cluster import Cluster, RefusedError, UnreachableError
from htrflow_campaigns.apply.deliver import Delivery
from htrflow_campaigns.apply.lease import Lease, TakenError, identity
from htrflow_campaigns.apply.report import Report
from htrflow_campaigns.apply.wanted import Wanted
from htrflow_campaigns.problems import ordered
from htrflow_campaigns.reports import Outcome, text
from htrflow_campaigns.tree import Tree

_STOPPED = 1
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class ApplyError(Exception):
    """It cannot do what it was called for. The message is one sentence."""


class _SignalledError(BaseException):
    """A signal asks for the end."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The arguments. ``pause_wait`` is in seconds."""

    prune: bool = False
    allow_empty: bool = False
    namespace: str | None = None
    pause_wait: float = 10.0
    dry_run: bool = False
    kubeconfig: pathlib.Path | None = None


def read(tree: Tree) -> Wanted | None:
    """What a repo asks for, or None, when all problems have been said."""
    loaded = load.load(tree)
    found = wanted.read(loaded)
    if found is None:
        sys.stderr.write(text.report(Outcome(ordered(loaded.problems), loaded.files)))
    return found


def run(options: Options, asked: Wanted) -> int:
    """Applies what is asked for. Returns 0: all of it, 1: stopped or a pause is not enforced, 3: something was left.

    Raises :class:`ApplyError`.
    """
    if refusal := _refusal(options, asked):
        print(f"htrflow-campaigns apply: {refusal}", file=sys.stderr)
        return _STOPPED
    if options.dry_run:
        _show(options, asked)
        return 0
    try:
        api = clusters.configured(options.kubeconfig)
    except clusters.ConfigurationError as error:
        raise ApplyError(str(error)) from None
    with contextlib.closing(api), _signals():
        return _run(options, asked, Cluster(api, asked.namespace))


def _refusal(options: Options, asked: Wanted) -> str:
    if options.namespace not in (None, asked.namespace):
        return (
            f"converter.yaml says namespace: {asked.namespace}, and --namespace {options.namespace} — write the same"
            " into both"
        )
    if options.prune and not options.allow_empty and not asked.pipelines and not asked.campaigns:
        return (
            "the repo has no campaigns and no pipelines, so --prune would delete everything — add --allow-empty if that"
            " is meant"
        )
    return ""


def _show(options: Options, asked: Wanted) -> None:
    for pipeline in asked.pipelines:
        for item in (pipeline.config_map, pipeline.warmup):
            print(f"would apply {item['kind']}/{item['metadata']['name']}")
    for part in asked.parts:
        for item in (part.config_map, part.job):
            print(f"would apply {item['kind']}/{item['metadata']['name']}")
    for part in asked.parts:
        if part.suspend:
            print(f"would pause Job/{part.name}")
    if options.prune:
        print(f"would prune every other Job and ConfigMap of ours in the namespace {asked.namespace}")


def _run(options: Options, asked: Wanted, cluster: Cluster) -> int:
    report, lease = Report(), Lease(cluster, identity())
    delivery: Delivery | None = None
    try:
        with _held(lease, report):
            found = live.read(cluster, asked, lease.keep)
            if stops := decide.stops(asked, found):
                for sentence in stops:
                    report.say(sentence)
                report.say("nothing was sent")
                return _STOPPED
            delivery = Delivery(cluster, lease, report, asked, found)
            delivery.carry_out(pause_wait=options.pause_wait, prune=options.prune)
            return report.end()
    except live.UnreadableError as error:
        report.say(f"{error}\nnothing was sent")
    except RefusedError as error:
        report.say(f"the Lease of the namespace {cluster.namespace} cannot be had: {error}\nnothing was sent")
    except (TakenError, UnreachableError, _SignalledError, KeyboardInterrupt) as error:
        _stopped(report, cluster, delivery, error)
        if isinstance(error, KeyboardInterrupt):
            raise
    return _STOPPED


def _stopped(report: Report, cluster: Cluster, delivery: Delivery | None, error: BaseException) -> None:
    reason = str(error) or "it was interrupted"
    if isinstance(error, UnreachableError):
        reason = f"{cluster.host} does not answer as it should: {reason}"
    report.say(reason)
    if delivery is None:
        report.say("nothing was sent")
    else:
        report.say(f"stopped at {delivery.at} — run apply again, and it goes on from there")


@contextlib.contextmanager
def _held(lease: Lease, report: Report) -> t.Iterator[None]:
    try:
        lease.acquire()
        yield
    finally:
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (*_SIGNALS, signal.SIGINT)}
        try:
            lease.release()
        except (RefusedError, UnreachableError) as error:
            report.say(f"the Lease could not be given back, and is free in ten minutes: {error}")
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _signals() -> t.Iterator[None]:
    def stop(number: int, frame: types.FrameType | None) -> None:
        raise _SignalledError(f"it was asked to end by {signal.Signals(number).name}")

    # Under nohup it is to outlive its terminal.
    heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
