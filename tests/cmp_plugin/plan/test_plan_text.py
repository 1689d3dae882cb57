"""What comes from a repo is shown in the plan and does nothing there, and the plan is never too long for GitHub."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import typing as t

import cmarkgfm  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_campaigns.plan import differences
from htrflow_campaigns.plan.text import block, code
from tests.cmp_plugin.conftest import CAMPAIGN, CONVERTER, PIPELINE
from tests.cmp_plugin.plan.planned import commit, run, run_json

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

HOSTILE = [
    "</code></pre></details><script>alert(1)</script>",
    "@riksarkivet/alla #1 GH-2 owner/repo#3 anna@example.org www.example.org https://example.org",
    "`` ` ``` ~~~",
    "| a | b |\\| ![bild](https://example.org/x.png) [länk](javascript:alert(1))",
    "&lt;img src=x&gt; &#64;alla <img src=x onerror=alert(1)>",
    "rad ett\n\n## rad två\r\n- rad tre",
    "\u202egnp.exe \u200b\u2028 \x1b[31m",
    "0123456789abcdef0123456789abcdef01234567",
    "<!-- --> :tada: $x^2$ ***fet*** ~~struken~~",
    "räkenskaper för Södermanland",
]
#: What no address may hold.
_UNFIT = re.compile(r"[\s<>\\\x1b\u200b\u202e]")
#: All that a plan is made of.
TAGS = {"h2", "h3", "h4", "p", "ul", "li", "strong", "code", "pre", "details", "summary"}


class Page(html.parser.HTMLParser):
    """The tags of a page, the text outside of code, and the pieces of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.outside = ""
        self.code: list[str] = []
        self._depth = 0
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
        assert self._depth == 0

    def handle_starttag(self, tag: str, attrs: t.Any) -> None:
        self.tags.add(tag)
        if tag == "code":
            self._depth += 1
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "code"

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.code[-1] += data
        else:
            self.outside += data


def shown(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign == "\t" else "\N{REPLACEMENT CHARACTER}" for sign in text)


@given(st.one_of(st.text(), st.sampled_from(HOSTILE), st.text("`<>&|\\ @#*_~[]()!a\n")))
def test_any_text_is_code_and_nothing_but_code(value: str) -> None:
    page = Page(f"- before {code(value, 1000)} after\n")
    if shown(value).strip():
        assert page.code == [shown(value)]
        assert page.outside.split() == ["before", "after"]
    else:
        assert page.code == []
    assert page.tags <= {"ul", "li", "code"}


@given(st.lists(st.one_of(st.text(), st.sampled_from(HOSTILE), st.text("`~ \n<")), min_size=1))
def test_any_lines_are_one_block_of_code(lines: list[str]) -> None:
    page = Page(f"before\n\n{block(lines, 'text')}\n\nafter\n")
    assert page.code == ["".join(f"{shown(line)}\n" for line in lines)]
    assert page.outside.split() == ["before", "after"]
    assert page.tags == {"p", "pre", "code"}


@pytest.fixture
def hostile(repo: Repo) -> Repo:
    """A repo in git, changed in every place where text of any kind may stand."""
    commit(repo.path)
    models = "".join(
        "  - step: Segmentation\n    settings:\n      model: yolo\n"
        f"      model_settings: {{model: {json.dumps(text)}, revision: {json.dumps(text)}}}\n"
        for text in HOSTILE
    )
    image = PIPELINE.partition("steps:")[0]
    repo.write("pipelines/odd-v1.yaml", f"{image}steps:\n{models}")
    addresses = [f"https://example.org/{_UNFIT.sub('', text)}" for text in HOSTILE]
    rows = "".join(f"  - id: v{at}\n    manifest: {json.dumps(text)}\n" for at, text in enumerate(addresses))
    repo.write("campaigns/odd.yaml", f"pipeline: odd-v1\nvolumes:\n{rows}")
    broken = "".join(f"  - {json.dumps(text)}\n" for text in HOSTILE)
    repo.write("campaigns/broken.yaml", f"pipeline: demo-v1\nvolumes:\n{broken}")
    repo.write("campaigns/@alla #1 `<b>`.yaml", "pipeline: [\n")
    repo.write("campaigns/letters.yaml", CAMPAIGN.replace("R0001203", "R0001204"))
    classes = json.dumps([f"htr-{'x' * 20}", "htr-bulk"])
    repo.write("converter.yaml", f"{CONVERTER}priority_classes: {classes}\nnode_selector: {{a: b}}\n")
    return repo


def test_nothing_from_a_hostile_repo_gets_out_of_code(hostile: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    code_, said = run(hostile, capsys, "--base=HEAD", "--seconds-per-page=3")
    page = Page(said)
    assert code_ == 1
    assert page.tags <= TAGS
    assert not re.search(r"[@#<>`|~*\[\]]|://|www\.|0123456789", page.outside)
    assert not re.search("alert|javascript|alla|tada|Södermanland", page.outside)
    whole = "\n".join(page.code)
    assert "@riksarkivet/alla #1 GH-2" in whole
    assert "räkenskaper för Södermanland" in whole
    assert len(said.splitlines()) == len(said.split("\n")) - 1


def test_a_base_that_is_called_like_markup_is_code(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    commit(repo.path)
    subprocess.run(["git", "-C", str(repo.path), "tag", "@alla-#1-`<b>`"], check=True)
    _, said = run(repo, capsys, "--base=@alla-#1-`<b>`")
    assert Page(said).code[0] == "@alla-#1-`<b>`"


# Size


def test_a_plan_of_very_many_campaigns_fits_into_a_comment_and_says_what_it_leaves_out(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repo.path)
    for number in range(1500):
        repo.write(f"campaigns/diary-{number:04d}.yaml", f"pipeline: demo-v1\nvolumes: [D{number:07d}]\n")
    code_, said = run(repo, capsys, "--base=HEAD")
    assert code_ == 0
    assert 50_000 < len(said) <= 65_000
    assert "Campaigns: 1500 new, 1 as before." in said
    last = said.splitlines()[-1]
    assert re.fullmatch(r"Left out, since there is no room for it here: .*\d+ campaigns.*\. `--format json` .*", last)
    assert Page(said).tags <= TAGS


def test_very_many_problems_fit_into_a_comment(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"  - {'å' * 79}{number}\n" for number in range(2000))
    repo.write("campaigns/diaries.yaml", f"pipeline: demo-v1\nvolumes:\n{rows}")
    code_, said = run(repo, capsys)
    assert code_ == 1
    assert len(said) <= 65_000
    assert "and 951 more\n" in said


def test_a_large_campaign_is_planned_in_parts_and_its_list_is_cut_in_the_difference(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(repo.path)
    rows = "".join(f"  - D{number:07d}\n" for number in range(25_000))
    repo.write("campaigns/diaries.yaml", f"pipeline: demo-v1\nvolumes:\n{rows}")
    _, said = run(repo, capsys, "--base=HEAD")
    assert "- 25000 volumes, in 3 parts that queue each by itself; 20 at a time\n" in said
    assert "- 20 GPUs at a time for each part; a pod has 1 GPU" in said
    assert said.count("**created**") == 6
    _, data = run_json(repo, capsys, "--base=HEAD")
    assert data["campaigns"][0]["asks_for"]["parts"] == 3
    assert [each["diff"]["left_out"] > 0 for each in data["objects"]] == [True] * 6
    assert max(len(each["diff"]["lines"]) for each in data["objects"]) == 80


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.lists(st.sampled_from("abcdef"), max_size=30))
def test_a_difference_holds_every_line_that_is_added_or_removed(before: list[str], after: list[str]) -> None:
    found = differences.diff("\n".join(before), "\n".join(after))
    added = [line[1:] for line in found.lines if line.startswith("+")]
    removed = [line[1:] for line in found.lines if line.startswith("-")]
    assert len(after) - len(before) == len(added) - len(removed)
    assert found.left_out == 0
    if before == after:
        assert found.lines == []
    assert all(line[:1] in " -+" or line == "@@" for line in found.lines)


def test_a_difference_of_long_texts_is_bounded_in_lines_and_in_time() -> None:
    found = differences.diff(
        "\n".join(f"a{number}" for number in range(50_000)), "\n".join(f"b{number % 7}" for number in range(50_000))
    )
    assert len(found.lines) == 80
    assert found.left_out == 100_000 - 80
