"""How ``validate`` says what it found: for people, for GitHub, and for programs."""

from __future__ import annotations

import typing as t

from htrflow_campaigns.problems import Problem


class Outcome(t.NamedTuple):
    """What a validation found. ``problems`` holds warnings too and is in the order in which a person reads the repo."""

    problems: t.Sequence[Problem]
    files: int

    def count(self, level: str) -> int:
        return sum(problem.rule.level == level for problem in self.problems)


class Report(t.Protocol):
    """A format. Gives the whole text to print."""

    def __call__(self, outcome: Outcome) -> str: ...


def plural(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def summary(outcome: Outcome) -> str:
    """``2 problems in 3 files``, and the warnings when there are any."""
    text = f"{plural(outcome.count('problem'), 'problem')} in {plural(outcome.files, 'file')}"
    warnings = outcome.count("warning")
    return f"{text}, {plural(warnings, 'warning')}" if warnings else text
