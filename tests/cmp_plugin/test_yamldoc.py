"""YAML to data with positions: where each part stands, what was written, and that the data is YAML's."""

from __future__ import annotations

import typing as t

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from htrflow_campaigns import yamldoc
from htrflow_campaigns.document import Document, Mapping, Path, Sequence, Text


def parse(content: str | bytes) -> Document:
    """The document of a file in which nothing is wrong."""
    document, problems = yamldoc.parse("a.yaml", content.encode() if isinstance(content, str) else content)
    assert [problem for problem in problems if problem.rule.level == "problem"] == []
    assert document is not None
    return document


def problems(content: str | bytes) -> list[tuple[str, int, int, str]]:
    """Rule, line, column and message of everything that is wrong with a file's YAML."""
    _, found = yamldoc.parse("a.yaml", content.encode() if isinstance(content, str) else content)
    return [(problem.rule.name, *problem.position[1:], problem.message) for problem in found]


BLOCK = """\
# A comment.
pipeline: demo-v1
volumes:
  - R0001203
  - id: "a"
    images:
    - https://example.org/1
    -   https://example.org/2
"""
FLOW = "{pipeline: demo-v1, volumes: [R0001203, {id: 'a', images: [x,\n  y]}]}"


@pytest.mark.parametrize(
    ("content", "path", "value", "key"),
    [
        (BLOCK, (), (2, 1), None),
        (BLOCK, ("pipeline",), (2, 11), (2, 1)),
        (BLOCK, ("volumes",), (4, 3), (3, 1)),
        (BLOCK, ("volumes", 0), (4, 5), None),
        (BLOCK, ("volumes", 1), (5, 5), None),
        (BLOCK, ("volumes", 1, "id"), (5, 9), (5, 5)),
        (BLOCK, ("volumes", 1, "images", 1), (8, 9), None),
        (BLOCK.replace("\n", "\r\n"), ("volumes", 1, "images", 1), (8, 9), None),
        (BLOCK.replace("\n", "\r"), ("volumes", 1, "images", 1), (8, 9), None),
        ("\ufeff" + BLOCK, ("pipeline",), (2, 11), (2, 1)),
        ("\ufeffpipeline: demo-v1", ("pipeline",), (1, 11), (1, 1)),
        (FLOW, ("pipeline",), (1, 12), (1, 2)),
        (FLOW, ("volumes", 1, "id"), (1, 46), (1, 42)),
        (FLOW, ("volumes", 1, "images", 1), (2, 3), None),
        ("å: ö\n😀: 😀 # 😀\nb: [😀, c]\n", ("b", 1), (3, 8), None),
        ("å: ö\n😀: 😀 # 😀\nb: [😀, c]\n", ("😀",), (2, 4), (2, 1)),
        ("a: |\n  b\n  c\nd: >-\n  e\n", ("a",), (1, 4), (1, 1)),
        ("a: |\n  b\n  c\nd: >-\n  e\n", ("d",), (4, 4), (4, 1)),
        ("? a\n: b\n", ("a",), (2, 3), (1, 3)),
        ("a:\nb: c\n", ("a",), (1, 3), (1, 1)),
        ("--- {a: b}", ("a",), (1, 9), (1, 6)),
    ],
)
def test_a_value_and_its_key_stand_where_the_file_has_them(
    content: str, path: Path, value: tuple[int, int], key: tuple[int, int] | None
) -> None:
    document = parse(content)
    assert document.at(path)[1:] == value
    if key is not None:
        assert document.at(path, key=True)[1:] == key


def test_line_breaks_that_editors_do_not_count_do_not_count() -> None:
    document = parse("a: 'x\x85y\u2028z\u2029'\nb: c\n")
    assert document.at(("b",))[1:] == (2, 4)
    assert document.at(("a",))[1:] == (1, 4)


def test_a_line_break_of_two_characters_on_the_border_of_a_piece_counts_once() -> None:
    filler = "#" * ((1 << 20) - 1)
    assert parse(f"{filler}\r\na: b").at(("a",))[1:] == (2, 4)
    assert parse(f"{filler}#\r\na: b\r\n").at(("a",))[1:] == (2, 4)
    assert parse(f"{filler}{filler}\n\na: b").at(("a",))[1:] == (3, 4)


@hypothesis.settings(derandomize=True, max_examples=150, deadline=None)
@hypothesis.given(st.text("a\r\n\x85\u2028å😀", max_size=30))
def test_a_position_counts_the_line_breaks_before_it(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = Text("a.yaml", text).position(len(text))
    assert end[1:] == (len(lines), len(lines[-1]) + 1)


def test_what_is_not_there_is_placed_at_what_would_hold_it() -> None:
    document = parse(BLOCK)
    assert document.at(("volumes", 1, "manifest"))[1:] == (5, 5)
    assert document.at(("volumes", 7))[1:] == (4, 3)


def test_an_alias_stands_where_it_is_written_and_its_inside_where_the_anchor_is() -> None:
    document = parse("a: &x {b: c}\nd: *x\n")
    assert document.root["d"] == {"b": "c"}
    assert document.at(("d",))[1:] == (2, 4)
    assert document.at(("d", "b"))[1:] == (1, 11)


def test_a_merged_key_stands_where_it_came_from() -> None:
    document = parse("a: &x {b: 1, c: 2}\nd:\n  e: f\n  <<: *x\n")
    assert document.root["d"] == {"e": "f", "b": 1, "c": 2}
    assert document.at(("d", "c"))[1:] == (1, 17)
    assert document.at(("d", "c"), key=True)[1:] == (1, 14)
    assert document.source(("d", "c")) == "2"


@pytest.mark.parametrize("written", ["{<<: *x, b: 3}", "{b: 3, <<: *x}"])
def test_a_written_key_comes_before_a_merged_one_on_either_side_of_it(written: str) -> None:
    document = parse(f"a: &x {{b: 1, c: 2}}\nd: {written}\n")
    assert document.root["d"] == {"b": 3, "c": 2}
    assert document.at(("d", "b"))[1:] == (2, 1 + f"d: {written}".index("3"))
    assert document.source(("d", "b")) == "3"
    assert document.root["a"] == {"b": 1, "c": 2}


def test_a_text_that_replaces_a_merged_number_has_no_source() -> None:
    assert parse("a: &x {b: 1}\nd: {<<: *x, b: 'c'}\n").source(("d", "b")) is None


def test_a_key_that_is_merged_and_then_written_twice_is_written_twice() -> None:
    assert problems("a: &x {b: 1}\nd:\n  <<: *x\n  b: 2\n  b: 3\n") == [
        ("duplicate-key", 5, 3, '"b" is written twice, on line 4 and here — keep one of the two')
    ]


def test_the_first_of_several_merged_mappings_wins() -> None:
    document = parse("a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}\n")
    assert document.root["e"] == {"b": 1, "d": 3}


def test_each_duplicate_names_the_first_line() -> None:
    assert [found[1:3] for found in problems("a: 1\nb: 2\na: 3\nb: 4\na: 5\n")] == [(3, 1), (4, 1), (5, 1)]
    assert "on line 1" in problems("a: 1\nb: 2\na: 3\nb: 4\na: 5\n")[2][3]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0012345", 5349),
        ("30002056", 30002056),
        ("1:20", 80),
        ("1.10", 1.1),
        ("yes", True),
        ("~", None),
        ("0x1F", 31),
        ("1_000", 1000),
    ],
)
def test_what_yaml_reads_as_something_else_keeps_its_source(written: str, value: object) -> None:
    document = parse(f"a: {written}\nb: [{written}]\n")
    assert document.root == {"a": value, "b": [value]}
    assert document.source(("a",)) == written
    assert document.source(("b", 0)) == written
    assert parse(written).source(()) == written


@pytest.mark.parametrize("written", ["R0001203", "'0012345'", '"yes"', "2024-13-45", "1:99", "1e3", "0x" + "f" * 200])
def test_text_has_no_source(written: str) -> None:
    document = parse(f"a: {written}\n")
    assert type(document.root["a"]) is str
    assert document.source(("a",)) is None


@pytest.mark.parametrize(
    ("content", "name", "line", "column"),
    [
        (b"a: b\n\xe4", "not-utf8", 2, 1),
        (b"\xff\xfea\0", "not-utf8", 1, 1),
        (b"a: b\x00", "control-character", 1, 5),
        ("a: b\n\tc: d\n", "tab-indentation", 2, 1),
        ("a:\n  - b\n  \t- c\n", "tab-indentation", 3, 3),
        ("\t\t\t", "tab-indentation", 1, 1),
        ("a: *b\n", "alias", 1, 4),
        ("a: *" + "b" * 5_000, "alias", 1, 4),
        ("a: &b [*b]\n", "alias", 1, 8),
        ("[" * 41, "nesting", 1, 41),
        ("[" * 5_000, "nesting", 1, 1001),
        ("a: !b c\n", "yaml-tag", 1, 4),
        ("a: b\n---\nc: d\n", "several-documents", 2, 1),
        ("a: " + "b" * 1_048_577, "file-too-large", 1, 4),
        ("#\n" + "%TAG !a! b\n" * 101 + "---\n", "yaml-syntax", 2, 1),
        ("1: b\n", "key-not-text", 1, 1),
        ("<<: b\n", "alias", 1, 5),
    ],
)
def test_what_is_refused_is_refused_at_its_place(content: str | bytes, name: str, line: int, column: int) -> None:
    found = problems(content)
    assert [problem[:3] for problem in found] == [(name, line, column)]
    assert all(len(message) < 400 and message.isprintable() for *_, message in found)


def test_a_hundred_tag_lines_are_a_matter_of_yaml() -> None:
    assert parse("".join(f"%TAG !a{n}! b\n" for n in range(100)) + "--- c\n").root == "c"


_KEYS = st.text("abR01_-.é😀 :#'\"\n", min_size=1, max_size=6)
_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from(["0123", "1:20", "yes", "~", "2024-01-31", "a\n b\n", " a", "a: b", "- a", "\x85", "\u2028"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@hypothesis.settings(derandomize=True, max_examples=150, deadline=None)
@hypothesis.given(_PLAIN, st.booleans(), st.sampled_from([None, True, False]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_data_is_what_pyyaml_reads(data: t.Any, unicode: bool, flow: bool | None, line_break: str) -> None:
    content = yaml.safe_dump(data, allow_unicode=unicode, default_flow_style=flow, line_break=line_break)
    document = parse(content.encode())
    expected = yaml.safe_load(content)
    assert document.root == expected
    assert repr(_plain(document.root)) == repr(expected)
    for path in _paths(document.root):
        position = document.at(path)
        start = Text("a.yaml", content)
        lines = [start.position(offset) for offset in range(len(content) + 1)]
        assert position in lines


def _plain(data: t.Any) -> t.Any:
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    return [_plain(item) for item in data] if isinstance(data, Sequence) else data


def _paths(data: t.Any, path: Path = ()) -> t.Iterator[Path]:
    yield path
    for key, value in data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ():
        yield from _paths(value, (*path, key))
