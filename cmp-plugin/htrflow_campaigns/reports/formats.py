"""The formats of ``validate --format``, and the paths that each of them shows."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

from htrflow_campaigns.reports import Outcome, Report, as_json, github, sarif, text

FORMATS: dict[str, Report] = {
    "text": text.report,
    "github": github.report,
    "json": as_json.report,
    "sarif": sarif.report,
}

#: Their readers look files up from the top of the checkout, and a campaigns repo may lie in a folder below it.
FROM_THE_TOP: t.Final = frozenset({"github", "sarif"})


def from_the_top(outcome: Outcome, folder: pathlib.Path) -> Outcome:
    """``outcome`` of the campaigns repo at ``folder``, with paths from the top of the git checkout around it.

    Unchanged when ``folder`` is that top, or lies in no checkout.
    """
    folder = folder.resolve()
    top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
    return below(outcome, folder.relative_to(top).as_posix()) if folder != top else outcome


def below(outcome: Outcome, prefix: str) -> Outcome:
    """``outcome`` with every path put below ``prefix``, which is relative and uses ``/``."""
    return outcome._replace(
        problems=[
            dataclasses.replace(problem, position=problem.position._replace(path=f"{prefix}/{problem.position.path}"))
            for problem in outcome.problems
        ]
    )
