"""Makes the plan of a pull request, in a process of its own: ``python -m htrflow_action.planning``.

It prints one JSON object: the plan as Markdown, and what is wrong with the manifests that were read.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

from htrflow_action import program
from htrflow_action.kyverno import plain
from htrflow_campaigns.problems import Position, Problem, Rule

_SECONDS = 900
_FETCHED = "HTR8"


class PlanError(Exception):
    """There is no plan. The message is one sentence."""


class Planned(t.NamedTuple):
    """The plan as Markdown, and what reading the manifests has brought up."""

    markdown: str
    problems: list[Problem]


def plan(folder: pathlib.Path, base: str, fetch: bool) -> Planned:
    """The plan of the change from ``base``. Raises :class:`PlanError`."""
    # Nothing is imported from the folder that this runs in, which is anybody's.
    command = [sys.executable, "-P", "-s", "-m", "htrflow_action.planning", str(folder), base, str(fetch).lower()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ACTIONS_"))}
    environment["PYTHONPATH"] = str(pathlib.Path(__file__).parent.parent)
    try:
        done = program.run(command, environment, _SECONDS)
    except subprocess.TimeoutExpired:
        raise PlanError(f"the plan took more than {_SECONDS} seconds") from None
    if done.returncode:
        said = plain((done.stderr.strip().splitlines() or ["not a word"])[-1])
        raise PlanError(f"there is no plan: {said}")
    data = json.loads(done.stdout)
    return Planned(data["markdown"], [_problem(entry) for entry in data["problems"]])


def _problem(entry: t.Mapping[str, t.Any]) -> Problem:
    rule = Rule(entry["rule"], entry["name"], "", "", "", entry["level"])
    position = Position(entry["path"], entry["line"], entry["column"])
    return Problem(rule, position, entry["what"], entry["instead"])


def _main(folder: str, base: str, fetch: str) -> int:
    from htrflow_campaigns import tree
    from htrflow_campaigns.plan import as_json, command, markdown

    repo = pathlib.Path(folder)
    try:
        options = command.Options(repo=repo, base=base, fetch=fetch == "true")
        made = command.make(options, tree.from_folder(repo), os.environ)
    except command.PlanError as error:
        print(error, file=sys.stderr)
        return 2
    found = [entry for entry in json.loads(as_json.report(made))["problems"] if entry["rule"].startswith(_FETCHED)]
    print(json.dumps({"markdown": markdown.report(made), "problems": found}))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
