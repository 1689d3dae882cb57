"""For people: ``path:line:col: what is wrong — what to write instead``, one line a problem."""

from __future__ import annotations

from htrflow_campaigns.problems import Problem
from htrflow_campaigns.reports import Outcome, summary


def line(problem: Problem) -> str:
    """One problem as one line."""
    path, row, column = problem.position
    level = "warning: " if problem.rule.level == "warning" else ""
    return f"{path}:{row}:{column}: {level}{problem.message} [{problem.rule.id}]"


def report(outcome: Outcome) -> str:
    return "\n".join([*map(line, outcome.problems), summary(outcome)]) + "\n"
