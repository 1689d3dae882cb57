"""What the policies refuse, as problems on the lines of the user's files, and none of them said twice."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from htrflow_action.kyverno import plain
from htrflow_action.made import Sources
from htrflow_action.places import Place, Places
from htrflow_action.policies import Policy
from htrflow_action.report import Identity, Row
from htrflow_campaigns.problems import Level, Problem, Rule
from htrflow_campaigns.reports import plural

#: The rules of the validator that say the same as a policy of the chart. Where both find it, the validator's sentence
#: stays, since it knows the file.
SAME: t.Mapping[str, frozenset[str]] = {
    "htr-image-digests": frozenset({"HTR402"}),
    "htr-model-classes": frozenset({"HTR410", "HTR411"}),
    "htr-model-settings": frozenset({"HTR407"}),
    "htr-models-pinned": frozenset({"HTR408", "HTR409", "HTR414"}),
    "htr-processors-pinned": frozenset({"HTR408", "HTR409"}),
}


class _Refusal(t.NamedTuple):
    """What a policy says of a place, and of which objects."""

    row: Row
    place: Place
    objects: list[Identity]


def merged(
    problems: t.Sequence[Problem],
    rows: t.Iterable[Row],
    policies: t.Iterable[Policy],
    sources: t.Mapping[Identity, Sources],
    places: Places,
) -> list[Problem]:
    """``problems`` of the validator and what ``rows`` refuse. A warning that a policy refuses becomes a problem."""
    denying = {policy.name: policy.denies for policy in policies}
    refusals = _by_place((row for row in rows if row.result not in ("pass", "skip")), sources, places)
    refusing: dict[Problem, list[str]] = {}
    more: list[Problem] = []
    for group in _by_text(refusals):
        row = group[0].row
        level: Level = "problem" if row.result != "warn" and denying.get(row.policy, True) else "warning"
        same = [
            problem
            for problem in problems
            if problem.rule.id in SAME.get(row.policy, ())
            and any(_is_at(problem, each.place, places) for each in group)
        ]
        if not same:
            more += [_problem(each, level) for each in group]
        elif level == "problem":
            for problem in same:
                refusing.setdefault(problem, []).append(row.policy)
    return [*(_refused(each, refusing[each]) if each in refusing else each for each in problems), *more]


def _by_place(rows: t.Iterable[Row], sources: t.Mapping[Identity, Sources], places: Places) -> list[_Refusal]:
    """One refusal a policy and place, whatever the number of objects: a pipeline's image is in all of its campaigns."""
    found: dict[tuple[str, Place], _Refusal] = {}
    for row in rows:
        for place in places.find(row.policy, sources[row.of], row.message):
            refusal = found.setdefault((row.policy, place), _Refusal(row, place, []))
            refusal.objects.append(row.of)
    return [*found.values()]


def _by_text(refusals: t.Iterable[_Refusal]) -> list[list[_Refusal]]:
    """Refusals that a message does not tell apart: it names a model, and two steps run it."""
    groups: dict[tuple[str, str, str, object], list[_Refusal]] = {}
    for each in refusals:
        place = each.place
        key = (each.row.policy, place.position.path, place.text, None if place.text else place.position)
        groups.setdefault(key, []).append(each)
    return [*groups.values()]


def _is_at(problem: Problem, place: Place, places: Places) -> bool:
    if problem.position.path != place.position.path:
        return False
    if place.step is None:
        return problem.position == place.position
    return places.step_at(problem.position) == place.step


def _refused(problem: Problem, policies: t.Iterable[str]) -> Problem:
    names = sorted({*policies})
    said = f"the {'policy' if len(names) == 1 else 'policies'} {' and '.join(names)} refuse{'s' * (len(names) == 1)} it"
    rule = dataclasses.replace(problem.rule, level="problem")
    return dataclasses.replace(problem, rule=rule, what=f"{problem.what}; {said}")


def _problem(refusal: _Refusal, level: Level) -> Problem:
    row = refusal.row
    what, dash, instead = plain(row.message).partition(" — ")
    if row.result == "error":
        what = f"the policy could not be evaluated: {what}"
    first, others = refusal.objects[0], len({*refusal.objects}) - 1
    also = f" and {plural(others, 'other object')}" if others else ""
    what = f"{what or 'this is refused'} ({first.kind} {first.name}{also})"
    rule = Rule(_id(row.policy), "(Kyverno)", row.policy, "", "", level)
    return Problem(rule, refusal.place.position, what, instead if dash else f"see the policy {_id(row.policy)}")


def _id(policy: str) -> str:
    return re.sub(r"[^\w./-]", "?", policy)
