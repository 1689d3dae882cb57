"""Settings that a program reads from its environment."""

from __future__ import annotations

import math
import re
import typing as t

from htrflow_batch.errors import PermanentError


class Variables:
    """Reads variables and remembers what is wrong with them, so that all of it is said at once.

    ``whose`` says who sets them, and ends the sentence about one that is missing.
    """

    def __init__(self, environ: t.Mapping[str, str], whose: str) -> None:
        self._environ, self._whose = environ, whose
        self._faults: list[str] = []

    def fault(self, sentence: str) -> None:
        self._faults.append(sentence)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environ.get(name, "").strip()
        if not value and default is None:
            self.fault(f"the variable {name} is missing — {self._whose}")
        return value or default or ""

    def whole(self, name: str, default: int, least: int = 1, most: int = 2**53) -> int:
        value = self._environ.get(name, "").strip()
        if not value:
            return default
        if not re.fullmatch("[0-9]{1,16}", value) or not least <= int(value) <= most:
            self.fault(f"the variable {name} is {value[:40]!r} — write a whole number from {least} to {most}")
            return default
        return int(value)

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value = self._environ.get(name, "").strip()
        if not value:
            return default
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            self.fault(f"the variable {name} is {value[:40]!r} — write a number from {least:g} to {most:g}")
            return default
        return found

    def flag(self, name: str, default: bool) -> bool:
        value = self._environ.get(name, "").strip().lower()
        if value not in ("", "true", "false"):
            self.fault(f"the variable {name} is {value[:40]!r} — write true or false")
        return value == "true" if value else default

    def finish(self) -> None:
        """Raises :class:`PermanentError` when anything was wrong: the next attempt would find the same."""
        if self._faults:
            raise PermanentError("; ".join(dict.fromkeys(self._faults)))
