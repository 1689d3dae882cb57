"""What is wrong with a campaigns repo, as values that are collected along the way."""

from __future__ import annotations

import dataclasses
import itertools
import typing as t
import unicodedata

from htrflow_campaigns import limits

Level = t.Literal["problem", "warning"]


class Position(t.NamedTuple):
    """A place in a user's file. ``line`` and ``column`` count from 1; ``path`` is relative to the repo."""

    path: str
    line: int = 1
    column: int = 1


class Words(str):
    """Text of ours in a message. Any other string is a user's and is shown in quotes, escaped and shortened."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a campaigns repo must hold.

    ``what`` and ``instead`` are the two halves of the sentence, as templates for :meth:`str.format`.
    A rule is ``fixable`` when ``validate --fix`` can repair what breaks it.
    """

    id: str
    name: str
    title: str
    what: str
    instead: str
    level: Level = "problem"
    fixable: bool = False

    def at(self, position: Position, /, **values: object) -> Problem:
        shown = {key: show(value) for key, value in values.items()}
        return Problem(self, position, self.what.format(**shown), self.instead.format(**shown))


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A rule that a file breaks, and where. Sorts by file, then by place."""

    rule: Rule
    position: Position
    what: str
    instead: str

    @property
    def message(self) -> str:
        return f"{self.what} — {self.instead}"

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        return (*self.position, self.rule.id, self.what)


class Found(list[Problem]):
    """The problems of one file. ``+=`` takes from a generator only as many as a report has room for, and one more."""

    @property
    def is_full(self) -> bool:
        return len(self) > limits.FILE_PROBLEMS

    def __iadd__(self, more: t.Iterable[Problem]) -> t.Self:  # type: ignore[override, misc]
        self.extend(itertools.islice(more, max(0, limits.FILE_PROBLEMS + 1 - len(self))))
        return self


def show(value: object) -> str:
    """``value`` as a message shows it: one line, printable, at most 80 characters of it."""
    if isinstance(value, Words) or not isinstance(value, str):
        return str(value)
    cut = value[: limits.SHOWN_CHARACTERS]
    text = "".join(c if _is_printable(c) else _escape(c) for c in cut)
    return f'"{text}…"' if len(cut) < len(value) else f'"{text}"'


def _is_printable(character: str) -> bool:
    # Zl and Zp end a line for some readers; Cf holds the marks that turn the direction of text around.
    return character == " " or unicodedata.category(character) not in {
        "Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs",
    }  # fmt: skip


def _escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"\\u{{{ord(character):x}}}")


def ordered(problems: t.Iterable[Problem]) -> list[Problem]:
    """Each problem once, in the order in which a person reads the repo."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.sort_key)
