"""The site's texts in two languages, from one catalogue, and how numbers and times are written in each."""

from __future__ import annotations

import datetime
import functools
import pathlib
import typing as t
import zoneinfo

import yaml

Language = t.Literal["sv", "en"]
LANGUAGES: t.Final[tuple[Language, ...]] = ("sv", "en")
COOKIE = "language"
#: Between thousands: a space that does not break.
_THIN = "\u00a0"
_ZONE = zoneinfo.ZoneInfo("Europe/Stockholm")


@functools.cache
def catalogue() -> dict[str, dict[str, str | dict[str, str]]]:
    """Every text by its key and language."""
    text = pathlib.Path(__file__).with_name("words.yaml").read_text(encoding="utf-8")
    return t.cast("dict[str, dict[str, str | dict[str, str]]]", yaml.safe_load(text))


class Words:
    """The texts of one language. A key that is not in the catalogue is a ``KeyError``: a fault of ours."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def __call__(self, key: str, **facts: object) -> str:
        """A text with its facts."""
        found = catalogue()[key][self.language]
        if isinstance(found, dict):
            found = found["one" if facts.get("n") == 1 else "other"]
        return found.format(**{name: self._shown(fact) for name, fact in facts.items()})

    def has(self, key: str) -> bool:
        return key in catalogue()

    def number(self, value: float, digits: int = 0) -> str:
        """A number as the language writes it: ``1 914`` and ``0,5``, or ``1,914`` and ``0.5``."""
        text = f"{value:,.{digits}f}"
        if self.language == "en":
            return text
        return text.replace(",", _THIN).replace(".", ",")

    def moment(self, at: datetime.datetime | str | None) -> str:
        """A time in Sweden, ``2026-09-14 13:05`` in both languages. Text is as :func:`views.moment` gives it."""
        if not at:
            return ""
        found = datetime.datetime.fromisoformat(at) if isinstance(at, str) else at
        return found.astimezone(_ZONE).strftime("%Y-%m-%d %H:%M")

    def span(self, seconds: float) -> str:
        """A time span in its largest unit."""
        for unit, length in (("days", 86_400), ("hours", 3600)):
            if seconds >= 1.5 * length:
                return self(f"time.{unit}", n=round(seconds / length))
        return self("time.minutes", n=max(1, round(seconds / 60)))

    def _shown(self, fact: object) -> object:
        return self.number(fact) if isinstance(fact, int) and not isinstance(fact, bool) else fact


def choose(query: str | None, cookie: str | None, accept: str | None) -> Language:
    """The language asked for in the address, or chosen before, or preferred by the browser. Swedish otherwise."""
    for wish in (query, cookie):
        if wish in LANGUAGES:
            return wish
    weighed = []
    for place, part in enumerate((accept or "").split(",")[:20]):
        name, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            weight = 0.0
        weighed.append((-weight, place, name.strip().lower().partition("-")[0]))
    for weight, _, name in sorted(weighed):
        if weight < 0 and name in LANGUAGES:
            return name
    return "sv"
