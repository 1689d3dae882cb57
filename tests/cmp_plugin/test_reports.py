"""The formats of ``validate --format``."""

from __future__ import annotations

import dataclasses
import html
import json
import pathlib
import re
import subprocess
import typing as t
import urllib.parse

import cmarkgfm  # type: ignore[import-untyped]
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htrflow_campaigns import __version__, limits, rules, schemas, validate
from htrflow_campaigns.problems import Position, Problem, Rule
from htrflow_campaigns.reports import Outcome, as_json, github, sarif, text
from htrflow_campaigns.reports.formats import FORMATS, below, from_the_top
from htrflow_campaigns.tree import from_folder

if t.TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from tests.cmp_plugin.conftest import Repo

SARIF_SCHEMA = pathlib.Path(__file__).parent.parent / "fixtures/sarif/sarif-2.1.0-rtm.5.json"
SHARED = [f"R{number:07d}" for number in range(1, 13)]
ODD = r"""# Volymer från landsarkivet
pipeline: demo-v1
volumes:
  - "100%"
  - "::error file=converter.yaml::det här är inget kommando"
  - "##[error]inte det här heller"
  - "a,b"
  - "rad ett\nrad två"
  - "%0A::warning::escaped"
  - "|cell|<b>&amp;</b> [link](https://example.org) `code` @name"
  - 0012345
  - SE/RA/310187/1
  - id: brev
    manifest: "ftp://example.org/100%,x"
  - id: brev
    images: []
"""


@pytest.fixture
def many(repo: Repo) -> Repo:
    """A repo with more than ten problems and more than ten warnings, in text that each format has to escape."""
    repo.write("campaigns/räkenskaper, 50%.yaml", ODD)
    shared = "".join(f"  - {id_}\n" for id_ in SHARED)
    repo.write("campaigns/first.yaml", f"pipeline: demo-v1\nvolumes:\n{shared}")
    repo.write("campaigns/second.yaml", f"pipeline: demo-v1\nwindow: 200\nvolumes:\n{shared}")
    return repo


BAD: dict[str, dict[str, str | bytes]] = {
    "not UTF-8": {"campaigns/letters.yaml": b"pipeline: demo-v1\nvolumes: [\xe5]\n"},
    "a mark and a control character": {"campaigns/letters.yaml": b"\xef\xbb\xbfpipeline: \x07\n"},
    "a tab": {"campaigns/letters.yaml": "pipeline: demo-v1\nvolumes:\n\t- R0001203\n"},
    "broken YAML": {"pipelines/demo-v1.yaml": "image: [\n", "campaigns/letters.yaml": "a: b: c\n"},
    "an empty file": {"campaigns/letters.yaml": ""},
    "keys": {"converter.yaml": "namespace: A\nnamespace: b\nqueues: c\nwindow: '20'\nmax_seconds: -1\n"},
    "sizes": {"converter.yaml": "sizes: {big: {flavor: x, gpu: 1, cpu: lots, memory: 1Gi, workdir: 9Gi}}\n"},
    "tolerations": {"converter.yaml": "tolerations: [{operator: Exists}, {key: a, effect: NoSchedule, value: å}]\n"},
    "names": {"campaigns/htr-warmup-x.yaml": "pipeline: demo\nvolumes: [1.10]\n", "campaigns/deep/a.yaml": ""},
    "steps": {"pipelines/demo-v1.yaml": "image: a:latest\nsteps:\n- step: Export\n- {step: TextRecognition}\n"},
    "no converter": {"converter.yml": "", "pipelines/Ä.yaml": "steps: 1\n"},
    "addresses": {"campaigns/letters.yaml": "pipeline: demo-v1\nvolumes: [{id: a, images: ['http://[', 7, null]}]\n"},
}


def outcome_of(repo: Repo) -> Outcome:
    return validate.validate(from_folder(repo.path))


@pytest.fixture(params=BAD, ids=[name.replace(" ", "-") for name in BAD])
def bad(request: pytest.FixtureRequest, repo: Repo) -> Outcome:
    for name, content in BAD[request.param].items():
        repo.write(name, content)
    outcome = outcome_of(repo)
    assert outcome.problems
    return outcome


def outcomes() -> st.SearchStrategy[Outcome]:
    """Any problems, with any text in their paths and messages."""
    odd = st.text() | st.sampled_from(["::error::x", "\n::error::x", "\r::stop-commands::x", "##[error]x", " ::x::"])
    words = st.lists(odd, min_size=1, max_size=3).map("".join)
    count = st.integers(1, 2**31)
    position = st.builds(Position, words, count, count)
    rule = st.sampled_from([rules.RULES["HTR305"], rules.RULES["HTR313"]])
    return st.builds(Outcome, st.lists(st.builds(Problem, rule, position, words, words), max_size=25), count)


# --- all formats


@pytest.mark.parametrize("name", ["text", "github", "json"])
def test_a_report_of_many_kinds_of_problems(name: str, many: Repo, snapshot: SnapshotAssertion) -> None:
    done = many.run("validate", "--format", name)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.replace(f'"{__version__}"', '"<version>"') == snapshot


@pytest.mark.parametrize("name", FORMATS)
def test_a_good_repo_has_no_problems_in_any_format(name: str, repo: Repo, snapshot: SnapshotAssertion) -> None:
    done = repo.run("validate", "--format", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search("(?m)^::", done.stdout)
    if name != "sarif":
        assert done.stdout.replace(f'"{__version__}"', '"<version>"') == snapshot
    else:
        assert json.loads(done.stdout)["runs"][0]["results"] == []


def test_the_command_offers_the_formats_that_there_are(repo: Repo) -> None:
    said = repo.run("validate", "--help").stdout
    assert "{" + ",".join(FORMATS) + "}" in said


def test_paths_are_from_the_top_of_the_checkout_for_readers_that_start_there(many: Repo) -> None:
    subprocess.run(["git", "init", "-q", str(many.path.parent)], check=True)
    here = outcome_of(many)
    there = from_the_top(here, many.path)
    assert [f"repo/{problem.position.path}" for problem in here.problems] == [
        problem.position.path for problem in there.problems
    ]
    assert [problem.message for problem in here.problems] == [problem.message for problem in there.problems]


def test_paths_stay_as_they_are_at_the_top_of_a_checkout_and_outside_of_any(many: Repo) -> None:
    here = outcome_of(many)
    assert from_the_top(here, many.path) == here
    subprocess.run(["git", "init", "-q", str(many.path)], check=True)
    assert from_the_top(here, many.path) == here


# --- github


class Command(t.NamedTuple):
    name: str
    properties: dict[str, str]
    data: str


def run_commands(output: str) -> tuple[list[Command], list[str]]:
    """What GitHub's runner makes of ``output``: the commands it obeys, and the lines it only logs.

    It trims a line's start, takes ``::name key=value,key=value::data``, and a stopped runner obeys its token alone. The
    older form ``##[name]`` may stand anywhere in a line.
    """
    names = {"error", "warning", "notice", "debug", "group", "endgroup", "stop-commands", "add-mask", "set-output"}
    commands, logged, token = [], [], None
    for line in re.split("\r\n|\r|\n", output):
        match = re.match(r"\s*::([^ ]+?)(?: (.*?))?::(.*)", line)
        name = match[1] if match else None
        if token is not None and name == token:
            token = None
        elif token is None and match and name in names:
            pairs = [pair.split("=", 1) for pair in (match[2] or "").strip().split(",") if pair]
            properties = {key: decode(value, ":", ",") for key, value in pairs}
            commands.append(Command(match[1], properties, decode(match[3])))
            token = match[3] if name == "stop-commands" else None
        else:
            assert token is not None or "##[" not in line, "an older command would start here"
            logged.append(line)
    assert token is None, "commands stay stopped after the report"
    return commands, logged


def decode(value: str, *more: str) -> str:
    for character in ("\r", "\n", *more, "%"):
        value = value.replace(f"%{ord(character):02X}", character)
    return value


def annotated(output: str, name: str) -> list[Command]:
    return [command for command in run_commands(output)[0] if command.name == name]


def test_github_reads_back_what_an_annotation_says_of_a_problem(bad: Outcome) -> None:
    for problem in bad.problems:
        commands, _ = run_commands(github.report(Outcome([problem], 1)))
        path, line, column = problem.position
        title = f"{problem.rule.id} {problem.rule.name}"
        properties = {"file": path, "line": str(line), "col": str(column), "title": title}
        assert commands[0] == Command(
            "error" if problem.rule.level == "problem" else "warning", properties, problem.message
        )


def test_github_gets_at_most_ten_annotations_of_a_level_and_the_tenth_says_how_many_more(many: Repo) -> None:
    outcome = outcome_of(many)
    report = github.report(outcome)
    for name, level in (("error", "problem"), ("warning", "warning")):
        found, count = annotated(report, name), outcome.count(level)
        assert count > limits.GITHUB_ANNOTATIONS == len(found)
        more = count - limits.GITHUB_ANNOTATIONS
        assert re.search(rf"\n\nThere (is|are) {more} more {level}s?; the log lists all\.$", found[-1].data)
        assert not any("more" in command.data.partition("\n\n")[2] for command in found[:-1])


def test_github_gets_no_word_of_more_when_ten_are_all(many: Repo) -> None:
    problems = [problem for problem in outcome_of(many).problems if problem.rule.level == "problem"]
    report = github.report(Outcome(problems[:10], 1))
    assert [command.data for command in annotated(report, "error")] == [p.message for p in problems[:10]]


def test_the_tenth_annotation_tells_of_a_single_one_more(many: Repo) -> None:
    problems = [problem for problem in outcome_of(many).problems if problem.rule.level == "problem"]
    said = annotated(github.report(Outcome(problems[:11], 1)), "error")[-1].data
    assert said == f"{problems[9].message}\n\nThere is 1 more problem; the log lists all."


def test_github_gets_problems_before_warnings(many: Repo) -> None:
    names = [command.name for command in run_commands(github.report(outcome_of(many)))[0]]
    assert names == ["error"] * 10 + ["warning"] * 10 + ["group", "stop-commands", "endgroup"]


def test_the_log_holds_every_line_of_the_text_format(many: Repo) -> None:
    outcome = outcome_of(many)
    _, logged = run_commands(github.report(outcome))
    assert "\n".join(logged) == text.report(outcome)


@settings(deadline=None)
@given(outcomes())
def test_no_text_of_a_user_starts_a_command(outcome: Outcome) -> None:
    report = github.report(outcome)
    commands, logged = run_commands(report)
    counts = [min(outcome.count(level), limits.GITHUB_ANNOTATIONS) for level in ("problem", "warning")]
    frame = ["group", "stop-commands", "endgroup"] if outcome.problems else []
    assert [command.name for command in commands] == ["error"] * counts[0] + ["warning"] * counts[1] + frame
    assert not [line for line in logged if line.lstrip().startswith("::")]


@settings(deadline=None)
@given(outcomes())
def test_a_report_is_the_same_every_time(outcome: Outcome) -> None:
    copy = Outcome([dataclasses.replace(problem) for problem in outcome.problems], outcome.files)
    assert [report(outcome) for report in FORMATS.values()] == [report(copy) for report in FORMATS.values()]


def cells(markdown: str) -> list[list[str]]:
    """The table of a job's summary as GitHub's own Markdown renderer shows it."""
    page = cmarkgfm.github_flavored_markdown_to_html(markdown)
    rows = page.partition("<tbody>")[2].split("</tr>")[:-1]
    return [[html.unescape(cell) for cell in re.findall("<td>(.*?)</td>", row, re.DOTALL)] for row in rows]


def test_the_summary_shows_every_problem_in_a_table_problems_first(many: Repo) -> None:
    outcome = outcome_of(many)
    rows = cells(github.summary_markdown(outcome))
    expected = [
        [
            ":".join(map(str, problem.position)),
            ("warning: " if problem.rule.level == "warning" else "") + problem.what,
            problem.instead,
            f"{problem.rule.id} {problem.rule.name}",
        ]
        for problem in sorted(outcome.problems, key=lambda problem: problem.rule.level)
    ]
    assert rows == expected


def test_the_summary_of_many_kinds_of_problems(many: Repo, snapshot: SnapshotAssertion) -> None:
    assert github.summary_markdown(outcome_of(many)) == snapshot


def test_the_summary_of_a_good_repo_is_one_line(repo: Repo) -> None:
    assert github.summary_markdown(outcome_of(repo)) == "### no problems in 3 files\n\n"


@settings(deadline=None)
@given(outcomes().filter(lambda outcome: outcome.problems))
def test_no_text_of_a_user_is_markup_in_the_summary(outcome: Outcome) -> None:
    page = cmarkgfm.github_flavored_markdown_to_html(github.summary_markdown(outcome))
    tags = set(re.findall("<([a-z0-9]+)", page))
    assert tags <= {"h3", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.count("<tr>") == len(outcome.problems) + 1


def test_a_summary_that_github_would_refuse_for_its_size_is_cut_and_says_so() -> None:
    problem = Problem(rules.RULES["HTR305"], Position("campaigns/å.yaml"), "å" * 500, "b")
    written = github.summary_markdown(Outcome([problem] * 2000, 1))
    assert len(written.encode()) < limits.MIB / 2 + 1000
    shown = written.count("HTR305")
    assert written.endswith(f"\n{2000 - shown} more rows: the log of the step lists all.\n\n")


# --- json


def test_json_has_the_shape_that_its_schema_describes(bad: Outcome) -> None:
    data = json.loads(as_json.report(bad))
    jsonschema.Draft202012Validator(schemas.load("problems")).validate(data)
    assert data["counts"] == {
        "problems": bad.count("problem"),
        "warnings": bad.count("warning"),
        "files": bad.files,
    }
    lines = [text.line(problem) for problem in bad.problems]
    for entry, line in zip(data["problems"], lines, strict=True):
        level = "warning: " if entry["level"] == "warning" else ""
        place = f"{entry['path']}:{entry['line']}:{entry['column']}"
        assert line == f"{place}: {level}{entry['what']} — {entry['instead']} [{entry['rule']}]"


def test_the_json_schema_is_one_and_describes_every_key() -> None:
    schema = json.loads(schemas.path("problems").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    objects = [schema, schema["$defs"]["problem"], *(schema["properties"][key] for key in ("tool", "counts"))]
    for node in objects:
        assert sorted(node["required"]) == sorted(node["properties"])
        assert all(value["description"].endswith(".") for value in node["properties"].values())


def test_the_json_schema_knows_every_key_that_is_written(many: Repo) -> None:
    data, schema = json.loads(as_json.report(outcome_of(many))), schemas.load("problems")
    assert [*data] == [*schema["properties"]]
    entry = schema["properties"]["problems"]["items"]
    assert [*data["problems"][0]] == [*entry["properties"]]
    assert [*data["counts"]] == [*schema["properties"]["counts"]["properties"]]


@settings(deadline=None)
@given(outcomes())
def test_json_and_sarif_are_ascii(outcome: Outcome) -> None:
    assert as_json.report(outcome).isascii()
    assert sarif.report(outcome).isascii()


# --- sarif


def sarif_run(outcome: Outcome) -> dict[str, t.Any]:
    log = json.loads(sarif.report(outcome))
    schema = json.loads(SARIF_SCHEMA.read_text(encoding="utf-8"))
    checker = jsonschema.Draft4Validator.FORMAT_CHECKER
    jsonschema.Draft4Validator(schema, format_checker=checker).validate(log)
    return t.cast("dict[str, t.Any]", log["runs"][0])


def test_sarif_has_the_shape_of_the_standard(bad: Outcome) -> None:
    assert len(sarif_run(bad)["results"]) == len(bad.problems)


def test_sarif_results_of_many_kinds_of_problems(many: Repo, snapshot: SnapshotAssertion) -> None:
    done = many.run("validate", "--format", "sarif")
    assert (done.returncode, done.stderr) == (1, "")
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    assert log["runs"][0]["results"] == snapshot


def test_sarif_describes_every_rule_and_each_result_points_at_its_own(many: Repo) -> None:
    run = sarif_run(outcome_of(many))
    described = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in described] == [*rules.RULES]
    levels = {"problem": "error", "warning": "warning"}
    for rule, own in zip(described, rules.RULES.values(), strict=True):
        assert rule["defaultConfiguration"]["level"] == levels[own.level]
        assert re.fullmatch("([A-Z0-9][a-z0-9]*)+", rule["name"])
        assert f"docs/rules.md#{own.id.lower()}" in rule["help"]["text"]
        assert not re.search(r"\{(?!ref)", rule["fullDescription"]["text"]), "a blank of the sentence is left open"
    for result in run["results"]:
        assert described[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] == described[result["ruleIndex"]]["defaultConfiguration"]["level"]


def test_sarif_leads_to_the_file_and_the_place(many: Repo) -> None:
    outcome = outcome_of(many)
    for problem, result in zip(outcome.problems, sarif_run(outcome)["results"], strict=True):
        place = result["locations"][0]["physicalLocation"]
        uri = urllib.parse.urlsplit(place["artifactLocation"]["uri"])
        assert (uri.scheme, uri.netloc, uri.query, uri.fragment) == ("", "", "", "")
        assert urllib.parse.unquote(uri.path, errors="strict") == problem.position.path
        assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
        assert place["region"] == {"startLine": problem.position.line, "startColumn": problem.position.column}


def test_sarif_counts_columns_in_code_points(repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", 'pipeline: demo-v1\nvolumes: ["R1", "𝔄𝔄", "SE/RA"]\n')
    results = sarif_run(outcome_of(repo))["results"]
    assert [result["locations"][0]["physicalLocation"]["region"]["startColumn"] for result in results] == [17, 23]


def fingerprints(outcome: Outcome) -> list[str]:
    return [result["partialFingerprints"]["problem/v1"] for result in sarif_run(outcome)["results"]]


def test_sarif_fingerprints_stay_when_lines_move_and_differ_between_problems(many: Repo) -> None:
    before = fingerprints(outcome_of(many))
    assert len(set(before)) == len(before) > 20
    for name in ("first", "second", "räkenskaper, 50%"):
        file = many.path / f"campaigns/{name}.yaml"
        file.write_text("# one\n# more\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    moved = outcome_of(many)
    assert min(problem.position.line for problem in moved.problems if problem.rule.id == "HTR313") > 5
    assert fingerprints(moved) == before


def test_sarif_fingerprints_follow_the_path_the_rule_and_the_words() -> None:
    problem = rules.RULES["HTR305"].at(Position("campaigns/a.yaml", 3, 5), id="å", reason="x")
    others = [
        dataclasses.replace(problem, position=Position("campaigns/b.yaml", 3, 5)),
        dataclasses.replace(problem, rule=rules.RULES["HTR306"]),
        dataclasses.replace(problem, what="something else"),
    ]
    assert len(set(fingerprints(Outcome([problem, problem, *others], 1)))) == 5


def test_sarif_makes_no_link_of_a_users_text() -> None:
    rule: Rule = rules.RULES["HTR305"]
    outcome = Outcome([Problem(rule, Position("campaigns/a.yaml"), '"[here](https://example.org)" is no id', "b")], 1)
    assert "](" not in sarif_run(outcome)["results"][0]["message"]["text"]


def test_a_prefix_is_put_before_every_path(many: Repo) -> None:
    outcome = below(outcome_of(many), "arkiv/två")
    uris = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in sarif_run(outcome)["results"]
    }
    assert uris
    assert all(uri.startswith("arkiv/tv%C3%A5/campaigns/") for uri in uris)
