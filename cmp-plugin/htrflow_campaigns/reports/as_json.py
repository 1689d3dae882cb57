"""For programs: one JSON object, which ``schemas/problems.schema.json`` describes."""

from __future__ import annotations

import json
import typing as t

from htrflow_campaigns import __version__
from htrflow_campaigns.problems import Problem
from htrflow_campaigns.reports import Outcome

#: Goes up when a key is taken away or means something else, not when one is added.
VERSION: t.Final = 1


def report(outcome: Outcome) -> str:
    """The whole outcome, in ASCII, so that it reads the same whatever the encoding of the output."""
    data = {
        "version": VERSION,
        "tool": {"name": "htrflow-campaigns", "version": __version__},
        "counts": {
            "problems": outcome.count("problem"),
            "warnings": outcome.count("warning"),
            "files": outcome.files,
        },
        "problems": [entry(problem) for problem in outcome.problems],
    }
    return json.dumps(data, indent=2) + "\n"


def docs(rule_id: str) -> str:
    """Where the documentation speaks of a rule, from the top of this project."""
    return f"docs/rules.md#{rule_id.lower()}"


def entry(problem: Problem) -> dict[str, t.Any]:
    """One problem, as ``$defs/problem`` of the schema describes it."""
    rule, position = problem.rule, problem.position
    return {
        "rule": rule.id,
        "name": rule.name,
        "level": rule.level,
        "path": position.path,
        "line": position.line,
        "column": position.column,
        "what": problem.what,
        "instead": problem.instead,
        "message": problem.message,
        "fixable": rule.fixable,
        "docs": docs(rule.id),
    }
