"""Reads what Kyverno's command line prints with ``--policy-report --output-format json``.

It prints a report of JSON for all policies of the whole cluster, and after a line ``---`` one more for each policy of a
namespace; before them there may be text. The order of the rows changes from run to run.
"""

from __future__ import annotations

import json
import re
import typing as t

Result = t.Literal["pass", "fail", "warn", "error", "skip"]

_RESULTS = t.get_args(Result)
_START = re.compile(r"^\{", re.MULTILINE)


class ReportError(Exception):
    """What was printed is not whole, or no report. The message is a clause."""


class Identity(t.NamedTuple):
    """An object of Kubernetes. Kyverno takes one without a namespace to be in ``default``."""

    kind: str
    namespace: str
    name: str


class Row(t.NamedTuple):
    """What one policy says of one object."""

    policy: str
    of: Identity
    result: Result
    message: str


def rows(printed: str) -> list[Row]:
    """The rows of all reports, sorted. Raises :class:`ReportError` when there is none, or part of one is missing."""
    found: list[Row] = []
    reports, end = 0, 0
    for start in _START.finditer(printed):
        if start.start() < end:
            continue
        try:
            report, end = json.JSONDecoder().raw_decode(printed, start.start())
        except ValueError:
            line = printed.count("\n", 0, start.start()) + 1
            raise ReportError(f"its report on line {line} of what it printed is cut off, or no JSON") from None
        reports += 1
        found += _of_report(report)
    if not reports:
        raise ReportError("it printed no report")
    return sorted(found)


def _of_report(report: t.Any) -> list[Row]:
    try:
        made = [
            Row(_text(row["policy"]), _identity(of), _result(row["result"]), _text(row.get("message") or ""))
            for row in report.get("results") or ()
            for of in row["resources"]
        ]
        counts = {name: sum(row.result == name for row in made) for name in _RESULTS}
        counted = {name: int((report.get("summary") or counts).get(name) or 0) for name in _RESULTS}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReportError(f"its report has another shape than that of Kyverno 1.19 ({error!r})") from None
    if counts != counted:
        raise ReportError(f"its report counts {counted} and holds {counts}")
    return made


def _identity(of: t.Any) -> Identity:
    return Identity(_text(of["kind"]), _text(of.get("namespace") or "default"), _text(of["name"]))


def _result(value: t.Any) -> Result:
    if value not in _RESULTS:
        raise ValueError(f"result {value!r}")
    return t.cast(Result, value)


def _text(value: t.Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
