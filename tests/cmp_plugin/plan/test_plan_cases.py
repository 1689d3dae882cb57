"""The plan of each kind of change, word for word, as Markdown and as JSON.

``UPDATE_EXPECTED=1`` writes what is said into ``expected.md`` and ``expected.json``.
"""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest

from tests.cmp_plugin.plan.planned import CASES, run, run_json, set_up

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

#: Cases whose head must not be merged.
BAD = {
    "volumes-changed",
    "volumes-changed-apply",
    "pipeline-of-a-campaign",
    "pipeline-in-use-changed",
    "pipeline-in-use-changed-apply",
    "source-template",
    "problems",
}


def as_expected(file: pathlib.Path, said: str) -> str:
    """The expected output, after writing it when that is asked for."""
    if os.environ.get("UPDATE_EXPECTED"):
        file.write_text(said, "utf-8", newline="\n")
    return file.read_text("utf-8")


@pytest.mark.parametrize("case", sorted(folder.name for folder in CASES.iterdir()))
def test_the_plan_of_a_change_is_as_expected(case: str, repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = set_up(case, repo)
    code, said = run(repo, capsys, *arguments)
    assert said == as_expected(CASES / case / "expected.md", said)
    json_code, data = run_json(repo, capsys, *arguments)
    data["tool"]["version"] = "VERSION"
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    assert text == as_expected(CASES / case / "expected.json", text)
    assert code == json_code == (1 if case in BAD else 0)
