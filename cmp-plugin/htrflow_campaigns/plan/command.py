"""``htrflow-campaigns plan``: from the arguments to a text and an exit code."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import typing as t

from htrflow_campaigns import git, progress
from htrflow_campaigns.plan import as_json, change, hours, markdown, plan
from htrflow_campaigns.plan.change import Change
from htrflow_campaigns.plan.plan import Looked, Plan
from htrflow_campaigns.tree import Tree

FORMATS: dict[str, t.Callable[[Plan], str]] = {"markdown": markdown.report, "json": as_json.report}

#: The extra that holds what asks servers.
_EXTRA = "plan"


class PlanError(Exception):
    """No plan can be made. The message is one sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The arguments. ``results`` is the address of the results site; ``fetch_seconds`` bound the asking of servers."""

    repo: pathlib.Path
    base: str | None = None
    format: str = "markdown"
    delivery: str = "argocd"
    fetch: bool = False
    fetch_private: bool = False
    fetch_seconds: float = 120.0
    seconds_per_page: float | None = None
    results: str | None = None


def run(options: Options, tree: Tree, environment: t.Mapping[str, str]) -> tuple[str, bool]:
    """The text to print, and whether the repo is without problems. Raises :class:`PlanError`."""
    made = make(options, tree, environment)
    return FORMATS[options.format](made), not made.outcome.count("problem")


def make(options: Options, tree: Tree, environment: t.Mapping[str, str]) -> Plan:
    """The plan, whatever its format. Raises :class:`PlanError`."""
    with contextlib.ExitStack() as stack:
        advance = stack.enter_context(progress.bar("reading", "campaigns"))
        try:
            base = None if options.base is None else stack.enter_context(git.revision(options.repo, options.base))
            found = change.compare(tree, base, advance)
        except git.GitError as error:
            raise PlanError(str(error)) from None
    return plan.assemble(found, options.delivery, options.base, _looked(options, found, environment))


def _looked(options: Options, found: Change, environment: t.Mapping[str, str]) -> Looked:
    new = [each for each in found.campaigns if each.kind == "added" and each.after is not None]
    pipelines = {each.campaign.pipeline for each in new}
    looked = Looked()
    if options.fetch:
        looked = _pages(options, found)
    if options.seconds_per_page is not None:
        rate = hours.given(options.seconds_per_page)
        return dataclasses.replace(looked, rates=dict.fromkeys(pipelines, (rate, "")))
    if options.results is not None:
        return dataclasses.replace(looked, rates=_rates(options, found, sorted(pipelines), environment))
    return looked


def _pages(options: Options, found: Change) -> Looked:
    try:
        from htrflow_campaigns.plan import pages
    except ModuleNotFoundError as error:
        raise PlanError(_missing(error, "--fetch")) from None
    new = [
        pages.volumes_of(each.after, each.document)
        for each in found.campaigns
        if each.kind == "added" and each.after is not None and each.document is not None
    ]
    if found.head.converter is None or not any(new):
        return Looked(fetched=True)
    volumes, others = pages.chosen(new)
    # Whoever opens a pull request may write any limit into it.
    limit = min(found.head.converter.manifest_max_bytes, pages.MOST_BYTES)
    reader = pages.Reader(options.fetch_seconds, private=options.fetch_private, limit_bytes=limit)
    with progress.bar("reading", "manifests") as advance:
        counted = reader.count(volumes, advance)
    notes = [*counted.notes]
    if others:
        notes.append(f"{len(volumes)} manifests were read, and {others} others are taken to be like them")
    return Looked(True, counted.pages, {}, counted.problems, notes)


def _rates(
    options: Options, found: Change, pipelines: t.Sequence[str], environment: t.Mapping[str, str]
) -> dict[str, tuple[hours.Rate | None, str]]:
    try:
        from htrflow_campaigns.plan import results
    except ModuleNotFoundError as error:
        raise PlanError(_missing(error, "--results")) from None
    assert options.results is not None
    converter = found.head.converter
    known = {id_: found.head.pipelines[id_] for id_ in pipelines if id_ in found.head.pipelines}
    if converter is None or not known:
        return {}
    try:
        site = results.Results(options.results, environment, options.fetch_seconds)
    except results.ResultsError as error:
        raise PlanError(str(error)) from None
    with contextlib.closing(site):
        return {
            id_: site.rate(pipeline, converter.namespace, found.known.get(id_, [])) for id_, pipeline in known.items()
        }


def _missing(error: ModuleNotFoundError, option: str) -> str:
    return (
        f"{error.name} is not installed, which {option} needs — install htrflow-campaigns with its extra {_EXTRA}: pip"
        f" install 'htrflow-campaigns[{_EXTRA}]'"
    )
