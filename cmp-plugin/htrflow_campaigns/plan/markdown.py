"""The plan for people, as Markdown for a comment on a pull request or the summary of a job on GitHub."""

from __future__ import annotations

import collections
import json
import re
import typing as t

from htrflow_campaigns.plan import effects, sections
from htrflow_campaigns.plan.plan import Plan
from htrflow_campaigns.plan.text import block, code
from htrflow_campaigns.reports import plural, summary, text

#: GitHub refuses a comment of more than 65 536 characters, of which it counts some twice.
CHARACTERS = 65_000
#: Room for the lines that say what was left out.
_TAIL = 600
#: The first is always shown. Of the others, what comes first in the order has room before what comes later.
_HEAD, _PROBLEM, _LINE, _OBJECT, _DIFF = range(5)
_PROBLEM_LINES = 50
#: Campaigns that have a paragraph, and objects that have a line; of more, a line says less.
_WHOLE = 40
_NAMES = 5


class _Block(t.NamedTuple):
    """A piece of the text, and what is said to be left out when there is no room for it."""

    rank: int
    text: str
    what: str = ""


def report(plan: Plan) -> str:
    """The whole plan in at most :data:`CHARACTERS` characters; its end says what was left out."""
    blocks = [*_blocks(plan)]
    room = CHARACTERS - _TAIL
    kept: set[int] = set()
    left_out: collections.Counter[str] = collections.Counter()
    for index, piece in sorted(enumerate(blocks), key=lambda each: each[1].rank):
        size = _size(piece.text) + 1
        if piece.rank == _HEAD or size <= room:
            room -= size
            kept.add(index)
        else:
            left_out[piece.what] += 1
    lines = [piece.text for index, piece in enumerate(blocks) if index in kept]
    if left_out:
        said = ", ".join(plural(count, what) for what, count in left_out.items())
        lines.append(f"\nLeft out, since there is no room for it here: {said}. `--format json` has all of it.")
    # No line of a block of code is empty: a difference has a sign on each.
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).rstrip()) + "\n"


def _size(text: str) -> int:
    """The characters of ``text``, those outside of the basic plane twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _blocks(plan: Plan) -> t.Iterator[_Block]:
    yield _Block(_HEAD, _head(plan))
    yield from _problems(plan)
    yield from _campaigns(plan)
    yield from _pipelines(plan)
    yield from _settings(plan)
    yield from _objects(plan)


def _head(plan: Plan) -> str:
    since = f" since {code(plan.base)}" if plan.base is not None else ""
    lines = [f"## Plan of the change{since}", ""]
    if problems := plan.outcome.count("problem"):
        gone = "it is" if problems == 1 else "they are"
        lines += [
            f"**{summary(plan.outcome)}.** Do not merge before {gone} gone. What follows is the plan of what is good.",
            "",
        ]
        if plan.left_out:
            are = "is" if plan.left_out == 1 else "are"
            lines += [
                f"{plural(plan.left_out, 'campaign')} {are} left out, with a problem of its own or its pipeline's.",
                "",
            ]
    kinds = collections.Counter(sections.KINDS[each.kind] for each in plan.change.campaigns)
    counts = [f"{count} {kind}" for kind, count in kinds.items()]
    counts += [f"{len(plan.change.same)} as before"] if plan.change.same else []
    lines.append(f"Campaigns: {', '.join(counts) or 'none'}.")
    if total := sections.total(plan):
        lines.append(f"New campaigns take {total}.")
    lines += ["", *(f"- Note: {_sentence(note)}" for note in plan.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _sentence(note: str) -> str:
    """A note with the names that a server or a file has a part in as code."""
    head, colon, names = note.partition(": ")
    return f"{head}{colon}{', '.join(map(code, names.split(', ')))}" if colon else head


def _problems(plan: Plan) -> t.Iterator[_Block]:
    found = sorted(plan.outcome.problems, key=lambda problem: problem.rule.level != "problem")
    shown = [text.line(problem) for problem in found[:_PROBLEM_LINES]]
    if len(found) > len(shown):
        shown.append(f"and {len(found) - len(shown)} more")
    if shown:
        yield _Block(_PROBLEM, f"{block(shown, 'text')}\n", "list of problems")


def _campaigns(plan: Plan) -> t.Iterator[_Block]:
    if not plan.change.campaigns:
        return
    yield _Block(_HEAD, "\n### Campaigns\n")
    for each in plan.change.campaigns[:_WHOLE]:
        yield _Block(_LINE, sections.campaign(plan, each), "campaign")
    for each in plan.change.campaigns[_WHOLE:]:
        yield _Block(_LINE, sections.campaign_line(plan, each), "campaign")


def _pipelines(plan: Plan) -> t.Iterator[_Block]:
    if not plan.change.pipelines and not plan.rewarmed:
        return
    yield _Block(_HEAD, "\n### Pipelines\n")
    for each in plan.change.pipelines:
        yield _Block(_LINE, sections.pipeline(plan, each), "pipeline")
    for id_ in plan.rewarmed:
        yield _Block(_LINE, f"- {code(id_)}: as before; its warm-up runs again", "pipeline")


def _settings(plan: Plan) -> t.Iterator[_Block]:
    if not plan.change.settings:
        return
    yield _Block(_HEAD, "\n### converter.yaml\n")
    for key, before, after in plan.change.settings:
        was, is_ = (code(json.dumps(value, ensure_ascii=False, default=_plain)) for value in (before, after))
        line = f"- {code(key)}: {was} becomes {is_} — {effects.effect(key, plan.delivery)}"
        yield _Block(_LINE, line, "setting")


def _plain(size: t.Any) -> str:
    return f"{size.gpu} GPU, {size.cpu} CPU, {size.memory}, workdir {size.workdir}, flavor {size.flavor or 'none'}"


def _objects(plan: Plan) -> t.Iterator[_Block]:
    deeds = plan.outlook.deeds
    counts = collections.Counter(deed.action for deed in deeds)
    counts["keep"] += plan.outlook.kept
    said = [f"{count} {sections.ACTIONS[action]}" for action, count in counts.items() if count]
    how = {"argocd": "Argo CD", "apply": "`htrflow-campaigns apply`"}[plan.delivery]
    yield _Block(
        _HEAD, f"\n### What Kubernetes would do\n\nDelivered by {how}, objects: {', '.join(said) or 'none'}.\n"
    )
    for deed in deeds[:_WHOLE]:
        reason = f" — {deed.reason}" if deed.reason else ""
        line = (
            f"- **{sections.ACTIONS[deed.action]}**: {deed.kind} {code(deed.name)} in {code(deed.namespace)}{reason}\n"
        )
        yield _Block(_OBJECT, line, "object")
        if deed.diff is not None and deed.diff.lines:
            lines = [*deed.diff.lines]
            if deed.diff.left_out:
                lines.append(f"… {plural(deed.diff.left_out, 'more line')}")
            # Names of objects hold nothing but letters, digits, dashes and dots.
            folded = f"<details><summary>{deed.kind} <code>{deed.name}</code></summary>"
            yield _Block(_DIFF, f"{folded}\n\n{block(lines, 'diff')}\n\n</details>\n", "difference")
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for deed in deeds[_WHOLE:]:
        grouped.setdefault((sections.ACTIONS[deed.action], deed.kind, deed.reason), []).append(deed.name)
    for (action, kind, why), names in grouped.items():
        shown = ", ".join(map(code, names[:_NAMES])) + (", …" if len(names) > _NAMES else "")
        reason = f" — {why}" if why else ""
        yield _Block(_OBJECT, f"- **{action}**: {plural(len(names), f'more {kind}')} ({shown}){reason}", "object")
