"""For GitHub: annotations on the lines at fault, the whole list in the log, and a table for the job's summary.

An annotation is a *workflow command*, a line of output that starts with ``::``. The runner's grammar is in the GitHub
documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import hashlib
import re
import typing as t

from htrflow_campaigns import limits
from htrflow_campaigns.problems import Problem
from htrflow_campaigns.reports import Outcome, plural, summary, text

_COMMANDS = {"problem": "error", "warning": "warning"}
#: GitHub refuses a summary of more than 1 MiB for one step, and other commands of the step may write to it too.
_SUMMARY_BYTES = 512 * limits.KIB
#: What Markdown or HTML could take for markup, a table's border, a link, a mention or an emoji.
_MARKUP = re.compile(r"[&<>|\\`*_\[\]~@#$:]")
_BREAK = re.compile(r"\r\n|[\x00-\x1f\x7f\x85\u2028\u2029]")


def report(outcome: Outcome) -> str:
    """Annotations, problems before warnings, then every line of the text format in a group of the log."""
    if not outcome.problems:
        return f"{summary(outcome)}\n"
    lines = [line for level in _COMMANDS for line in _annotations(outcome, level)]
    return "\n".join([*lines, *_log(outcome), summary(outcome)]) + "\n"


def _annotations(outcome: Outcome, level: str) -> t.Iterator[str]:
    problems = [problem for problem in outcome.problems if problem.rule.level == level]
    # GitHub shows this many and drops the rest without a word.
    shown, more = problems[: limits.GITHUB_ANNOTATIONS], len(problems) - limits.GITHUB_ANNOTATIONS
    for number, problem in enumerate(shown, 1):
        message = problem.message
        if more > 0 and number == len(shown):
            message += f"\n\nThere {'is' if more == 1 else 'are'} {plural(more, f'more {level}')}; the log lists all."
        yield _annotation(problem, message)


def _annotation(problem: Problem, message: str) -> str:
    rule, (path, line, column) = problem.rule, problem.position
    values = {"file": path, "line": line, "col": column, "title": f"{rule.id} {rule.name}"}
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in values.items())
    return f"::{_COMMANDS[rule.level]} {properties}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def _log(outcome: Outcome) -> list[str]:
    lines = [_log_line(text.line(problem)) for problem in outcome.problems]
    # The runner takes no command until it reads this word again. No text can hold its own digest.
    token = hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
    return [f"::group::{summary(outcome)}", f"::stop-commands::{token}", *lines, f"::{token}::", "::endgroup::"]


def _log_line(line: str) -> str:
    line = _BREAK.sub(" ", line)
    # A path that starts with a colon stays a path this way, and no command starts even where commands are not stopped.
    return f"./{line}" if line.lstrip().startswith(":") else line


def summary_markdown(outcome: Outcome) -> str:
    """Every problem as a row of a Markdown table, for the file that ``GITHUB_STEP_SUMMARY`` names.

    A list that GitHub would refuse for its size is cut, and the last line says so.
    """
    head = f"### {summary(outcome)}\n\n"
    if not outcome.problems:
        return head
    head += "| Where | What is wrong | What to write instead | Rule |\n| --- | --- | --- | --- |\n"
    rows: list[str] = []
    room = _SUMMARY_BYTES - len(head)
    for level in _COMMANDS:
        for problem in outcome.problems:
            if problem.rule.level != level:
                continue
            row = _row(problem)
            room -= len(row.encode("utf-8", "surrogatepass"))
            if room < 0:
                more = plural(len(outcome.problems) - len(rows), "more row")
                return head + "".join(rows) + f"\n{more}: the log of the step lists all.\n\n"
            rows.append(row)
    return head + "".join(rows) + "\n"


def _row(problem: Problem) -> str:
    rule, (path, line, column) = problem.rule, problem.position
    what = f"warning: {problem.what}" if rule.level == "warning" else problem.what
    cells = (f"{path}:{line}:{column}", what, problem.instead, f"{rule.id} {rule.name}")
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _cell(value: str) -> str:
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", _BREAK.sub(" ", value))
