"""What is said about a repo that breaks a rule, word for word, and that nothing is said about a good one.

``UPDATE_EXPECTED=1`` writes what is said into each ``expected.txt``.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import pathlib
import re
import tempfile
import typing as t

import pytest

from htrflow_campaigns import cli, delivery, generate, load, settings, tree
from htrflow_campaigns.problems import Rule
from htrflow_campaigns.rules import MODULES, RULES
from tests.cmp_plugin.rule_cases import (
    BAD,
    BAD_CASES,
    BUILT,
    BUILT_GOOD,
    GOOD,
    GOOD_CASES,
    LETTERS,
    lay_over,
    run,
    set_up,
    validate,
)

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo


def as_expected(file: pathlib.Path, said: str) -> str:
    """The expected output, after writing it when that is asked for."""
    if os.environ.get("UPDATE_EXPECTED"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(said, "utf-8", newline="\n")
    return file.read_text("utf-8")


@pytest.mark.parametrize("case", sorted({*BAD_CASES, *BUILT}))
def test_what_is_wrong_is_said_as_expected(case: str, repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(case, repo, capsys, set_up(case, repo))
    assert said == as_expected(BAD / case / "expected.txt", said)
    rule = RULES[case[:6]]
    assert f"[{rule.id}]" in said
    has_problem = any(f"[{rule.id}]" in said for rule in RULES.values() if rule.level == "problem")
    assert code == (1 if has_problem else 0)


@pytest.mark.parametrize("case", sorted({*GOOD_CASES, *BUILT_GOOD}))
def test_a_good_repo_is_called_good(case: str, repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    lay_over(GOOD / case, repo.path)
    if case in BUILT_GOOD:
        BUILT_GOOD[case](repo.path)
    code, said = validate(repo, capsys, "--strict")
    assert (code, len(said.splitlines())) == (0, 1), said
    assert said.startswith("no problems in ")


def test_a_file_that_nobody_may_read_is_said_to_be_unreadable(capsys: pytest.CaptureFixture[str]) -> None:
    # The user root may read everything, and the folder of a test is closed to others: hence another user and folder.
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        top.chmod(0o755)
        (top / "campaigns").mkdir()
        (top / "converter.yaml").write_text("source_template: https://iiif.example.org/{ref}/manifest\n")
        (top / "campaigns/letters.yaml").write_text(LETTERS)
        (top / "campaigns/letters.yaml").chmod(0)
        user = os.geteuid()
        cli.main(["validate", name])
        capsys.readouterr()
        try:
            if user == 0:
                os.seteuid(65534)
            assert cli.main(["validate", name]) == 1
        finally:
            os.seteuid(user)
            gc.enable()
    assert capsys.readouterr().out.startswith(
        "campaigns/letters.yaml:1:1: the file cannot be read (permission denied) — make it readable [HTR017]\n"
    )


def test_two_files_that_make_the_same_object_are_refused(repo: Repo) -> None:
    # No two files of a folder do, so the tree says that two files have one name.
    repo.write("campaigns/more-letters.yaml", "pipeline: demo-v1\nvolumes:\n  - R0001204\n")
    found = tree.from_folder(repo.path)
    twins = [entry._replace(name="letters") for entry in found.campaigns]
    loaded = load.load(dataclasses.replace(found, campaigns=twins))
    generate.generate(loaded, delivery.ArgoCD(), settings.Settings())
    said = [f"{problem.position.path}: {problem.message} [{problem.rule.id}]" for problem in loaded.problems]
    assert said == [
        f"campaigns/more-letters.yaml: {thing} is also made by campaigns/letters.yaml, and only one of the two would"
        " exist — rename the file [HTR604]"
        for thing in ("ConfigMap campaign-letters", "Job letters")
    ]


def test_of_a_file_with_more_problems_the_first_thousand_are_said(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = "".join(f"  - -R{number:04}\n" for number in range(1500))
    repo.write("campaigns/letters.yaml", f"pipeline: demo-v1\nvolumes:\n{ids}")
    code, said = validate(repo, capsys)
    *problems, last, count = said.splitlines()
    assert (code, len(problems), count) == (1, 1000, "1001 problems in 3 files")
    assert all(f":{line}:5: " in problem for line, problem in enumerate(problems, 3))
    assert last == (
        "campaigns/letters.yaml:1003:5: there are more problems from here on, and only the first 1000 of a file are"
        " said — correct those above first, then validate again [HTR099]"
    )


# The rules as a whole

#: Shown by a test of their own.
WITHOUT_CASES = {"HTR017", "HTR099", "HTR604"}


def test_every_rule_is_shown_by_a_case() -> None:
    folders = {f"{rule.id}-{rule.name}" for rule in RULES.values()}
    shown = {case.partition("/")[0] for case in {*BAD_CASES, *BUILT}}
    assert shown == {folder for folder in folders if folder[:6] not in WITHOUT_CASES}


def test_every_case_has_its_expected_output() -> None:
    assert {case for case in BAD_CASES if (BAD / case / "expected.txt").is_file()} == {*BAD_CASES, *BUILT}


def test_ids_and_names_of_rules_are_unique_and_well_formed() -> None:
    every = [value for module in MODULES for value in vars(module).values() if isinstance(value, Rule)]
    assert len({rule.id for rule in every}) == len({rule.name for rule in every}) == len(every) == len(RULES)
    assert [*RULES] == sorted(RULES)
    for rule in every:
        assert re.fullmatch(r"HTR[0-7]\d\d", rule.id)
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", rule.name)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_message_is_one_sentence_in_two_halves(rule: Rule) -> None:
    for half in (rule.what, rule.instead):
        assert half == half.strip()
        assert not half.endswith(".")
        assert "—" not in half
    keys = ("source_template", "results_url", "default_size", "campaigns", "converter.yaml")
    assert rule.title[0].isupper() or rule.title.split()[0] in keys
