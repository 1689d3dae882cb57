"""``docs/rules.md`` speaks of every rule, and what it writes under *After* repairs what it writes under *Before*."""

from __future__ import annotations

import pathlib
import re
import textwrap
import typing as t

import pytest

from htrflow_campaigns.plan import rules as plan_rules
from htrflow_campaigns.problems import Rule
from htrflow_campaigns.rules import RULES
from tests.cmp_plugin.rule_cases import BAD, BAD_CASES, run, set_up

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

PAGE = (pathlib.Path(__file__).parents[2] / "docs/rules.md").read_text("utf-8")
SECTION = re.compile(
    r'<a id="(?P<anchor>htr\d{3})"></a>\n### (?P<id>HTR\d{3}) (?P<name>\S+)\n\n'
    r"(?P<text>.*?)(?=\n<a id=|\n## |\Z)",
    re.DOTALL,
)
EXAMPLE = re.compile(
    r"\*\*Before\*\* \(`(?P<path>[^`]+)`\)\n\n```yaml\n(?P<before>.*?)\n```\n\n"
    r"\*\*After\*\* \(`(?P=path)`\)\n\n```yaml\n(?P<after>.*?)\n```\n",
    re.DOTALL,
)
SECTIONS = {match["id"]: match for match in SECTION.finditer(PAGE)}
#: Rules about what the network says.
OF_PLAN = {rule.id: rule for rule in vars(plan_rules).values() if isinstance(rule, Rule)}
#: Rules about a file as a whole, its name or its bytes, which no part of a YAML file shows, and those of ``plan``.
IN_WORDS_ALONE = {
    *("HTR001", "HTR002", "HTR008", "HTR009", "HTR012", "HTR013", "HTR014", "HTR015", "HTR016", "HTR017", "HTR018"),
    *(
        "HTR019",
        "HTR020",
        "HTR099",
        "HTR301",
        "HTR302",
        "HTR303",
        "HTR309",
        "HTR314",
        "HTR401",
        "HTR412",
        "HTR413",
        "HTR601",
        "HTR603",
        "HTR604",
    ),
    *OF_PLAN,
}
#: In the order of the page.
ALL = {**RULES, **OF_PLAN}


def test_the_page_has_a_section_for_every_rule_in_order() -> None:
    assert len(OF_PLAN) == 4
    assert [*SECTIONS] == [*ALL]
    for rule in ALL.values():
        section = SECTIONS[rule.id]
        fix = " `validate --fix` repairs it." if rule.fixable else ""
        assert section["anchor"] == rule.id.lower()
        assert section["name"] == rule.name
        assert section["text"].startswith(f"{rule.title}. Level: {rule.level}.{fix}\n\n")


def test_the_pages_table_of_contents_lists_every_rule() -> None:
    rows = re.findall(r"^\| \[(HTR\d{3})\]\(#(htr\d{3})\) \| (\S+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(rule.id, rule.id.lower(), rule.name, rule.title) for rule in ALL.values()]


def test_the_pages_first_example_is_what_is_said() -> None:
    assert f"```text\n{(BAD / 'HTR307-volume-twice/bare/expected.txt').read_text('utf-8')}```" in PAGE


def test_every_rule_that_a_file_can_show_has_a_before_and_an_after() -> None:
    assert {id_ for id_, section in SECTIONS.items() if not EXAMPLE.search(section["text"])} == IN_WORDS_ALONE


def replace(text: str, before: str, after: str) -> str | None:
    """``text`` with the lines of one fragment, wherever it is indented to, replaced by those of another."""
    for indent in {re.match(" *", line)[0] for line in text.splitlines()}:  # type: ignore[index]
        first, second = (textwrap.indent(fragment, indent) + "\n" for fragment in (before, after))
        if f"\n{first}" in f"\n{text}":
            return f"\n{text}".replace(f"\n{first}", f"\n{second}", 1)[1:]
    return None


@pytest.mark.parametrize("id_", sorted({*RULES} - IN_WORDS_ALONE))
def test_what_the_page_writes_after_repairs_what_it_writes_before(
    id_: str, repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    example = EXAMPLE.search(SECTIONS[id_]["text"])
    assert example is not None
    path, before, after = example["path"], example["before"], example["after"]
    files = {case: BAD / case / path for case in BAD_CASES if case.startswith(id_)}
    texts = {case: file.read_text("utf-8") for case, file in files.items() if file.is_file()}
    repaired = {case: text for case, old in texts.items() if (text := replace(old, before, after)) is not None}
    assert repaired, "no case of the rule holds what is written before"
    case = min(repaired)
    options = set_up(case, repo)
    _, said = run(case, repo, capsys, options)
    assert f"[{id_}]" in said
    repo.write(path, repaired[case])
    code, said = run(case, repo, capsys, options)
    assert code == 0, said
    assert f"[{id_}]" not in said
