"""Other people's text in Markdown as GitHub renders it, so that it is shown and does nothing.

GitHub makes links of addresses, of ``@names``, ``#1`` and commit ids anywhere but in code, also where their signs are
written as character references. So every text that is not ours is code.
"""

from __future__ import annotations

import re
import typing as t

_SHOWN = 200
_BACKTICKS = re.compile("`+")


def code(value: str, most: int = _SHOWN) -> str:
    """``value`` as code in a line, without line breaks and marks of direction, at most so many characters of it."""
    line = _printable(value[:most]) + ("…" if len(value) > most else "")
    if not line.strip():
        return "white space" if line else "nothing"
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(line)), default=0) + 1)
    # One space at each end is taken away again.
    space = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{space}{line}{space}{fence}"


def block(lines: t.Sequence[str], language: str) -> str:
    """``lines`` as a block of code, whose fence is longer than any that they hold."""
    shown = [_printable(line) for line in lines]
    longest = max((len(run) for line in shown for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *shown, fence])


def _printable(text: str) -> str:
    """Line breaks would end a line, and marks of direction turn the text around them."""
    return "".join(sign if sign.isprintable() or sign == "\t" else "\N{REPLACEMENT CHARACTER}" for sign in text)
