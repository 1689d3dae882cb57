"""The job's summary: a table of everything that was found, what was checked, and the plan."""

from __future__ import annotations

import re
import typing as t

from htrflow_campaigns import limits
from htrflow_campaigns.reports import Outcome, github

#: GitHub refuses more than 1 MiB for one step; the table takes at most half of that.
PLAN_BYTES = 400 * limits.KIB
_MARKUP = re.compile(r"[&<>|\\`*_\[\]~@#$:]")


def markdown(outcome: Outcome, notes: t.Sequence[str], plan: str, path: str) -> str:
    """The summary. ``notes`` are sentences of plain text, ``plan`` is Markdown, ``path`` is of the campaigns repo."""
    place = "" if path == "." else f"## {escape(path)}\n\n"
    said = "".join(f"- {escape(note)}\n" for note in notes)
    shown, is_whole = cut(plan, PLAN_BYTES)
    rest = "" if is_whole else "\nThe plan goes on: the output plan names a file with all of it.\n"
    return f"{place}{github.summary_markdown(outcome)}{said}\n{shown}{rest}\n"


def escape(text: str) -> str:
    """``text`` as it is, whatever Markdown or HTML would make of it."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", " ".join(text.split()))


def cut(text: str, size: int) -> tuple[str, bool]:
    """The longest start of ``text`` that has at most ``size`` bytes and leaves nothing open, and whether it is all."""
    if len(text.encode()) <= size:
        return text, True
    room, kept, end, depth = size, 0, 0, 0
    fence = ""
    for line in text.splitlines(keepends=True):
        room -= len(line.encode())
        if room < 0:
            break
        end += len(line)
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        else:
            depth += line.count("<details") - line.count("</details>")
        if not fence and depth <= 0:
            kept = end
    return text[:kept], False
