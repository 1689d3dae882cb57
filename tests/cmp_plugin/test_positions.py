"""Line and column of a message are those that an editor shows for the value or key at fault."""

from __future__ import annotations

import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_campaigns import yamldoc
from htrflow_campaigns.document import Path
from htrflow_campaigns.problems import Position
from htrflow_campaigns.rules import RULES
from tests.cmp_plugin.rule_cases import BAD, BAD_CASES, BUILT, set_up

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

#: Rules about a file as a whole or its name, and a key that is missing at the top of a file.
OF_THE_WHOLE_FILE = {
    *("HTR001", "HTR008", "HTR011", "HTR012", "HTR013", "HTR014", "HTR015", "HTR016", "HTR018", "HTR019", "HTR020"),
    *("HTR102", "HTR301", "HTR302", "HTR303", "HTR401", "HTR413"),
}
MESSAGE = re.compile(r"(.+?):(\d+):(\d+): .* \[(HTR\d{3})\]", re.DOTALL)


def lines(text: str) -> list[str]:
    """The lines of a file, as editors count them."""
    return re.split("\r\n|\r|\n", text)


def messages(case: str) -> list[tuple[Position, str]]:
    said = (BAD / case / "expected.txt").read_text("utf-8").splitlines()
    found = [match for line in said if (match := MESSAGE.fullmatch(line))]
    return [(Position(match[1], int(match[2]), int(match[3])), match[4]) for match in found]


@pytest.mark.parametrize("case", sorted(case for case in {*BAD_CASES, *BUILT} if not case.startswith("HTR6")))
def test_every_message_points_into_its_file(case: str, repo: Repo) -> None:
    found = messages(case)
    assert found
    set_up(case, repo)
    for (path, line, column), rule in found:
        assert rule in RULES
        if (line, column) == (1, 1) and rule in OF_THE_WHOLE_FILE:
            continue
        text = lines((repo.path / path).read_bytes().decode("utf-8-sig", "surrogateescape"))[line - 1]
        assert column <= len(text) + 1
        # A value that is not there is missed behind its ':' or dash; all else is at a sign that can be seen.
        seen = text[column - 1 : column].strip()
        assert seen or text[column - 2] in ":-" or rule in ("HTR002", "HTR003", "HTR004", "HTR001")


def test_a_fault_in_a_file_is_never_put_at_the_files_start_unless_it_is_there() -> None:
    at_start = {
        (case, rule)
        for case in {*BAD_CASES} - {*BUILT}
        for position, rule in messages(case)
        if position[1:] == (1, 1) and rule not in OF_THE_WHOLE_FILE and not case.startswith("HTR6")
    }
    first_words = {}
    for case, rule in at_start:
        [path] = {position.path for position, found in messages(case) if found == rule and position[1:] == (1, 1)}
        file = BAD / case / path
        first_words[case, rule] = file.read_text("utf-8").split()[0] if file.is_file() else ""
    assert first_words == {
        ("HTR003-tab-indentation/on-the-first-line", "HTR003"): "pipeline:",
        ("HTR004-yaml-syntax/key-without-colon", "HTR004"): "pipeline",
        ("HTR004-yaml-syntax/key-without-space", "HTR004"): "pipeline:demo-v1",
        ("HTR004-yaml-syntax/percent-line", "HTR004"): "%demo",
        ("HTR004-yaml-syntax/yaml-version-directive", "HTR004"): "%YAML",
        ("HTR101-unknown-key/in-converter", "HTR101"): "name_space:",
        ("HTR101-unknown-key/misspelled", "HTR101"): "pipelne:",
        ("HTR101-unknown-key/upper-case", "HTR101"): "Pipeline:",
        ("HTR103-wrong-type/campaign-as-list", "HTR103"): "-",
        ("HTR103-wrong-type/campaign-as-number", "HTR103"): "30002056",
        ("HTR103-wrong-type/campaign-as-text", "HTR103"): "R0001203",
        ("HTR103-wrong-type/converter-as-list", "HTR103"): "-",
        ("HTR503-recipe-changed/all-three", "HTR503"): "image:",
        ("HTR503-recipe-changed/image", "HTR503"): "image:",
        ("HTR503-recipe-changed/many-campaigns", "HTR503"): "image:",
        # The campaign has no window any more: no line of it is at fault.
        ("HTR504-window-changed/window-deleted", "HTR504"): "pipeline:",
        # Of keys that are not there.
        ("HTR508-priority-removed/removed", "HTR508"): "pipeline:",
        ("HTR701-chart-differs/many", "HTR701"): "namespace:",
    }


WORDS = st.text(st.characters(codec="utf-8", categories=("Ll", "Lu", "Lo", "So", "Nd")), min_size=1, max_size=8)
#: Lines that say nothing, between those that do.
NOTHING = st.lists(st.one_of(st.just(""), st.just("   "), WORDS.map("# {}".format)), max_size=3)


@given(
    ids=st.lists(WORDS.map("v{}".format), min_size=1, max_size=8, unique=True),
    gaps=st.lists(NOTHING, min_size=9, max_size=9),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.booleans(),
    named=st.booleans(),
    indent=st.integers(0, 4),
)
def test_the_place_of_a_value_is_where_an_editor_shows_it(
    ids: list[str], gaps: list[list[str]], end: str, mark: bool, named: bool, indent: int
) -> None:
    rows = ["volumes:"]
    for id_, gap in zip(ids, gaps, strict=False):
        rows += [*gap, f"{' ' * indent}- {{note: 📜, id: {id_}}}" if named else f"{' ' * indent}- {id_} # {id_}"]
    text = end.join([*gaps[-1], *rows, ""])
    document, problems = yamldoc.parse("campaigns/letters.yaml", text.encode("utf-8-sig" if mark else "utf-8"))
    assert document is not None
    assert {problem.rule.id for problem in problems} == ({"HTR012"} if mark else set())
    for index, id_ in enumerate(ids):
        path: Path = ("volumes", index, "id") if named else ("volumes", index)
        position = document.at(path)
        assert lines(text)[position.line - 1][position.column - 1 :].startswith(id_)
        if named:
            position = document.at(path, key=True)
            assert lines(text)[position.line - 1][position.column - 1 :].startswith(f"id: {id_}")
