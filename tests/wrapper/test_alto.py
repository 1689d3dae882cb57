"""ALTO: what is repaired, what fails a page, and that the file says what was recognised."""

from __future__ import annotations

import dataclasses
import html
import itertools
import os
import re
import subprocess
import sys
import threading
import time
import typing as t
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from lxml import etree

from htrflow_batch import xsd
from htrflow_batch.alto import check_alto, text_of
from htrflow_batch.errors import PageError
from htrflow_batch.provenance import NAME, stamp_alto
from htrflow_batch.xml_text import MOST_BYTES, PageText, clean, safe_stem
from tests.wrapper.recognised import LINES, NOTHING, PROVENANCE, REGIONS, RESULTS, TEXT, WORDS, sample

NS = {"a": "http://www.loc.gov/standards/alto/ns-v4#"}


def contents(content: bytes) -> list[list[str]]:
    """The words or whole text of each line, in the order of the file."""
    lines = etree.fromstring(content).iterfind(".//a:TextLine", NS)
    return [[str(string.get("CONTENT")) for string in line.iterfind("a:String", NS)] for line in lines]


def assert_valid(content: bytes) -> None:
    assert xsd.fault(etree.fromstring(content), "alto-4-4.xsd") is None


def draw(
    lines: t.Sequence[t.Sequence[str]], escape: t.Callable[[str], str] = html.escape, stem: str = "p0001"
) -> bytes:
    """An ALTO file as htrflow writes it: a line of one part as one String with WC, of several as words."""
    references, blocks = [], []
    for number, parts in enumerate(lines):
        name = f"{stem}_region{number}"
        references.append(f'<ElementRef ID="ro_{name}" REF="{name}" />')
        box = 'HPOS="1" VPOS="2" HEIGHT="3" WIDTH="4"'
        if len(parts) == 1:
            strings = f'<String {box} CONTENT="{escape(parts[0])}" WC="0.5"/>'
        else:
            words = enumerate(parts)
            strings = "\n".join(f'<String ID="{name}_r{i}"  {box} CONTENT="{escape(word)}" />' for i, word in words)
        blocks.append(f'<TextLine ID="{name}"  {box}>\n{strings}\n</TextLine>')
    order = f'<ReadingOrder><OrderedGroup ID="ro">{"".join(references)}</OrderedGroup></ReadingOrder>'
    block = f'<TextBlock ID="{stem}" HPOS="0" VPOS="0" HEIGHT="9" WIDTH="9">{"".join(blocks)}</TextBlock>'
    before, after = sample("alto-no-text").split("<Layout>")
    after = after.replace("<PrintSpace />", f"<PrintSpace>{block}</PrintSpace>").replace("_p0001", f"_{stem}")
    return f"{before}{order}<Layout>{after}".encode()


@pytest.mark.parametrize(
    ("name", "expected", "lines", "words", "confidence", "state"),
    [
        ("alto-regions", REGIONS, 3, 10, 0.9, "text"),
        ("alto-words", WORDS, 1, 3, None, "text"),
        ("alto-no-text", NOTHING, 0, 0, None, "no text"),
    ],
)
def test_a_good_file_is_counted_and_needs_no_repair(
    name: str, expected: PageText, lines: int, words: int, confidence: float | None, state: str
) -> None:
    checked = check_alto(sample(name).encode(), expected)
    assert (checked.lines, checked.words, checked.state, checked.notes) == (lines, words, state, ())
    assert checked.mean_confidence == (None if confidence is None else pytest.approx(confidence))
    canonical = etree.tostring(etree.fromstring(checked.content), method="c14n")
    assert canonical == etree.tostring(etree.fromstring(sample(name).encode()), method="c14n")
    assert check_alto(checked.content, expected) == checked


REPAIRS = [
    ("alto-words", 'CONTENT="och"', 'CONTENT="&"', ("Bergh & Son",), "escaped 1 characters that XML reserves"),
    ("alto-words", 'CONTENT="och"', 'CONTENT="<och"', ("Bergh <och Son",), "escaped 1 characters that XML reserves"),
    ("alto-words", 'CONTENT="och"', 'CONTENT=""och""', ('Bergh "och" Son',), "escaped 2 characters that XML reserves"),
    ("alto-words", 'CONTENT="och"', 'CONTENT="&amp;<"', ("Bergh &< Son",), "escaped 1 characters that XML reserves"),
    ("alto-words", 'CONTENT="och"', 'CONTENT="&amp;"', ("Bergh &amp; Son",), "escaped 1 characters that XML reserves"),
    ("alto-words", "och", "o\x1bch", ("Bergh o\x1bch Son",), "removed 1 characters that XML does not allow"),
    ("alto-words", "och", "och&#0;", ("Bergh och Son",), "removed 1 characters that XML does not allow"),
    ("alto-words", "och", "o\tch", ("Bergh o\nch Son",), None),
    ("alto-words", '"och"', '""', ("Bergh  Son",), "removed 1 words without text"),
    ("alto-regions", "i häradet", " ", (LINES[0], " ", LINES[2]), "removed 1 lines without text"),
    ("alto-regions", "N:o 4", "", LINES[:2], "removed 1 regions without text"),
    ("alto-regions", "N:o 4", "", LINES[:2], "removed 1 empty groups of the reading order"),
    (
        "alto-regions",
        "        </OrderedGroup>\n    </R",
        '<OrderedGroup ID="e"><OrderedGroup ID="f"/></OrderedGroup></OrderedGroup>\n</R',
        LINES,
        "removed 2 empty groups of the reading order",
    ),
    (
        "alto-regions",
        'REF="p0001_region1_region0"',
        'REF="gone"',
        LINES,
        "entries of the reading order that lead nowhere",
    ),
    ("alto-regions", 'WC="0.8"', 'WC="nan"', LINES, "removed 1 confidences that are not a number from 0 to 1"),
    ("alto-regions", 'WC="0.8"', 'WC="1.0000001"', LINES, "set 1 confidences a little above 1 to 1"),
    ("alto-regions", "p0001_region", "1 Main & text", LINES, "ids that are not XML names"),
]


@pytest.mark.parametrize(("name", "good", "bad", "lines", "note"), REPAIRS)
def test_what_is_certain_is_repaired(name: str, good: str, bad: str, lines: tuple[str, ...], note: str | None) -> None:
    broken = sample(name).replace(good, bad)
    assert broken != sample(name)
    expected = PageText(1000, 1400, lines)
    checked = check_alto(broken.encode(), expected)
    assert any(note in said for said in checked.notes) if note else checked.notes == ()
    assert_valid(checked.content)
    assert sorted(" ".join(line) for line in contents(checked.content)) == sorted(
        re.sub(" +", " ", clean(line)) for line in lines if clean(line)
    )
    again = check_alto(checked.content, expected)
    assert again == dataclasses.replace(checked, notes=())


REFUSED = [
    ("alto-regions", 'WIDTH="1000"', 'WIDTH="999"', "an image of 999 x 1400 pixels, but it has 1000 x 1400"),
    ("alto-regions", 'WIDTH="1000"', "", "an image of nothing x 1400 pixels"),
    ("alto-regions", "i häradet", "i häradetx", "Line 2 of the ALTO file reads 'i häradetx', but 'i häradet' was"),
    ("alto-regions", "N:o 4", "", "holds 2 lines of text, but 3 were recognised"),
    ("alto-regions", "i häradet", LINES[0].replace('"', "&quot;").replace("& ", "&amp; "), "Line 2 of the ALTO file"),
    (
        "alto-regions",
        'REF="p0001_region0_region1"',
        'REF="p0001_region1_region0"',
        "the same lines are there in another",
    ),
    ("alto-regions", 'ID="p0001_region1"', 'ID="p0001_region0"', "does not hold to its schema"),
    ("alto-regions", ' CS="false"', ' CS="perhaps"', "does not hold to its schema"),
    ("alto-regions", "<RightMargin />", "<Margin />", "does not hold to its schema"),
    ("alto-regions", "</Layout>", "", "is not well-formed XML"),
    ("alto-regions", "ns-v4#", "ns-v3#", "starts with"),
    ("alto-words", 'CONTENT="och"', 'CONTENT="och" WC="1', "Line 1|not well-formed|schema"),
]


@pytest.mark.parametrize(("name", "good", "bad", "sentence"), REFUSED)
def test_what_is_not_certain_fails_the_page(name: str, good: str, bad: str, sentence: str) -> None:
    broken = sample(name).replace(good, bad)
    assert broken != sample(name)
    expected = REGIONS if name == "alto-regions" else PageText(1000, 1400, ('Bergh och" WC="1 Son',))
    with pytest.raises(PageError, match=sentence):
        check_alto(broken.encode(), expected)


def test_text_that_the_file_has_not_fails_the_page_also_where_it_has_none() -> None:
    with pytest.raises(PageError, match="holds 0 lines of text, but 1 were recognised"):
        check_alto(sample("alto-no-text").encode(), PageText(1000, 1400, ("hej",)))
    with pytest.raises(PageError, match="holds 1 lines of text, but 0 were recognised"):
        check_alto(sample("alto-words").encode(), NOTHING)


def test_an_image_named_by_a_number_gets_ids_that_are_xml_names() -> None:
    checked = check_alto(draw([["hej"]], stem="0001"), PageText(1000, 1400, ("hej",)))
    tree = etree.fromstring(checked.content)
    ids = [str(element.get("ID")) for element in tree.iter() if "ID" in element.attrib]
    assert len(set(ids)) == len(ids)
    reference, line = tree.find(".//a:ElementRef", NS), tree.find(".//a:TextLine", NS)
    assert reference is not None
    assert line is not None
    assert reference.get("REF") == line.get("ID") == "_0001_region0"
    assert_valid(checked.content)


@pytest.mark.parametrize("name", ["p0001", "0001", "å ä:ö", "", "-a", "ªb", "a/b&c", "é"])
def test_a_safe_stem_begins_an_id_that_the_schema_takes(name: str) -> None:
    stem = safe_stem(name)
    assert_valid(draw([["hej"]], stem=stem))
    assert safe_stem(stem) == stem


BOMB = '<!DOCTYPE alto [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise("abcdefghijkl")
)
PAGE = '<Page WIDTH="1000" HEIGHT="1400">'
HOSTILE = {
    "entities that multiply": f'{BOMB}]><alto xmlns="{NS["a"]}">&l;</alto>',
    "a file as an entity": '<!DOCTYPE alto [<!ENTITY x SYSTEM "file:///etc/passwd">]><alto>&x;</alto>',
    "a document type": f'<!DOCTYPE alto SYSTEM "http://127.0.0.1:9/a.dtd"><alto xmlns="{NS["a"]}"/>',
    "a document type behind a forbidden character": f'<!DOC\x00TYPE alto><alto xmlns="{NS["a"]}"/>',
    "deep nesting": f'<alto xmlns="{NS["a"]}">' + "<a>" * 100_000,
    "an attribute of 12 MB": f'<alto xmlns="{NS["a"]}" b="{"x" * 12_000_000}"/>',
    "an attribute of 100 MB": f'<alto xmlns="{NS["a"]}" b="{"x" * 100_000_000}"/>',
    "values that do not end": f'<alto xmlns="{NS["a"]}">' + ' CONTENT="' * 1_000_000,
    "quotation marks": f'<alto xmlns="{NS["a"]}"><String CONTENT="' + '" ' * 3_000_000,
    "ids that all become one": f'<alto xmlns="{NS["a"]}">'
    + "".join(f'<a ID="{chr(0x4E00 + n % 20000)}{"-" * (n // 20000)}"/>' for n in range(100_000)),
    "reading orders": f'<alto xmlns="{NS["a"]}">{PAGE}{"<ReadingOrder/>" * 200_000}</Page></alto>',
    "lines without text": f'<alto xmlns="{NS["a"]}">{PAGE}{"<TextLine/>" * 200_000}</Page></alto>',
    "another encoding": '<?xml version="1.0" encoding="UTF-7"?>+ADw-alto/+AD4-',
    "nothing": "",
    "a web page": "<html><body>Log in</body></html>",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_quickly_and_in_few_words(case: str) -> None:
    content = HOSTILE[case].encode()
    before = time.process_time()
    with pytest.raises(PageError) as refused:
        check_alto(content, NOTHING)
    assert time.process_time() - before < 5
    assert len(str(refused.value)) < 400
    assert "root:" not in str(refused.value)


@pytest.mark.parametrize("word", ["<!DOCTYPE alto>", "<!DOC\x00TYPE alto>", "<!-- <alto> --><!DOCTYPE alto []>"])
def test_a_good_file_with_a_document_type_is_refused(word: str) -> None:
    with pytest.raises(PageError, match="declares a document type"):
        check_alto(sample("alto-words").replace("<alto", f"{word}<alto").encode(), WORDS)


def test_bytes_that_are_not_utf_8_and_too_many_bytes_fail_the_page() -> None:
    with pytest.raises(PageError, match="not UTF-8: its byte 0"):
        check_alto(sample("alto-words").encode("utf-16"), WORDS)
    with pytest.raises(PageError, match=f"more than the {MOST_BYTES}"):
        check_alto(b" " * (MOST_BYTES + 1), WORDS)


def test_half_a_surrogate_pair_is_removed() -> None:
    broken = sample("alto-words").replace("och", "o\ud800ch").encode("utf-8", "surrogatepass")
    assert contents(check_alto(broken, WORDS).content) == [["Bergh", "och", "Son"]]


CHECK_ONE = """
import pathlib, sys
from htrflow_batch import alto, errors, xml_text
content = pathlib.Path(sys.argv[1]).read_bytes()
try:
    alto.check_alto(content, xml_text.PageText(1000, 1400, ()))
except errors.PermanentError as error:
    print(error)
print("htrflow" in sys.modules)
"""


def test_checking_does_not_import_htrflow() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CHECK_ONE, str(RESULTS / "alto-no-text.xml")], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"


def test_a_library_without_schemas_ends_the_attempt_for_good(tmp_path: Path) -> None:
    (tmp_path / "htrflow").mkdir()
    (tmp_path / "htrflow" / "__init__.py").write_text("")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONUTF8": "1"}
    run = subprocess.run(
        [sys.executable, "-c", CHECK_ONE, str(RESULTS / "alto-no-text.xml")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    message = "The schema alto-4-4.xsd of htrflow is not installed — use an image with htrflow 0.2.6."
    assert run.stdout == f"{message}\nFalse\n"


def test_a_schema_that_the_file_names_is_not_opened(tmp_path: Path) -> None:
    # Whoever opens a pipe waits for its other end.
    os.mkfifo(tmp_path / "named.xsd")
    hint = f"http://www.loc.gov/standards/alto/ns-v4# {(tmp_path / 'named.xsd').as_uri()}"
    named = tmp_path / "named.xml"
    attribute = f'xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:schemaLocation="{hint}"'
    content = sample("alto-no-text").replace("<alto ", f"<alto {attribute} ")
    named.write_text(content.replace("<PrintSpace />", f"<PrintSpace {attribute.replace('ns-v4#', 'other')} />"))
    command = [sys.executable, "-c", CHECK_ONE, str(named)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "False\n"


def test_several_threads_get_the_fault_of_their_own_file() -> None:
    wrong: list[str] = []

    def check(number: int) -> None:
        for _ in range(50):
            try:
                check_alto(sample("alto-no-text").replace("<RightMargin />", f"<Odd{number} />").encode(), NOTHING)
            except PageError as error:
                if f"'Odd{number}'" not in str(error):
                    wrong.append(str(error))
            else:
                wrong.append("no error")

    threads = [threading.Thread(target=check, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(TEXT, max_size=6))
def test_a_file_says_the_lines_that_were_recognised_whatever_they_are(lines: list[str]) -> None:
    checked = check_alto(draw([[line] for line in lines]), PageText(1000, 1400, tuple(lines)))
    cleaned = [text for text in map(clean, lines) if text]
    assert contents(checked.content) == [[text] for text in cleaned]
    assert text_of(checked.content) == "".join(f"{text}\n" for text in cleaned)
    assert_valid(checked.content)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(st.lists(TEXT.filter(clean), min_size=2, max_size=4), min_size=1, max_size=4))
def test_words_that_were_not_escaped_are_read_rightly_or_the_page_fails(lines: list[list[str]]) -> None:
    expected = PageText(1000, 1400, tuple(" ".join(words) for words in lines))
    try:
        checked = check_alto(draw(lines, escape=str), expected)
    except PageError:
        # Text that itself looks like markup cannot be told from markup.
        assert re.search('[&<"]', "".join(map("".join, lines)))
        return
    assert [" ".join(words).split() for words in contents(checked.content)] == [
        [part for word in words for part in clean(word).split()] for words in lines
    ]
    assert_valid(checked.content)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(st.text("åbc&<;> '", min_size=1).filter(str.strip), min_size=2, max_size=5))
def test_words_with_ampersands_and_angles_are_always_repaired(words: list[str]) -> None:
    checked = check_alto(draw([words], escape=str), PageText(1000, 1400, (" ".join(words),)))
    assert contents(checked.content) == [[clean(word) for word in words]]


def test_provenance_stands_in_the_file_once_and_without_secrets() -> None:
    checked = check_alto(sample("alto-regions").encode(), REGIONS).content
    once = stamp_alto(checked, PROVENANCE)
    assert stamp_alto(once, PROVENANCE) == once
    assert_valid(once)
    assert b"secret" not in once
    [step] = [step for step in etree.fromstring(once).iterfind(".//a:Processing", NS) if step.get("ID") == NAME]
    assert (step.findtext("a:processingStepSettings", namespaces=NS) or "").splitlines() == [
        f"{key}: {value}" for key, value in PROVENANCE.settings()
    ]
    assert "campaign: domböcker <1712>" in once.decode().replace("&lt;", "<").replace("&gt;", ">")
    for fact in ("a" * 64, "b" * 64, "c" * 64, "d" * 40, "e" * 40, "0.1.0", "https://…@iiif.example.org/a/full/max/"):
        assert fact in once.decode()
    other = stamp_alto(once, dataclasses.replace(PROVENANCE, recipe="f" * 64))
    assert b"c" * 64 not in other
    assert stamp_alto(other, PROVENANCE) == once
    assert check_alto(once, REGIONS).content == once


def test_provenance_can_be_added_to_a_file_without_a_description() -> None:
    stamped = stamp_alto(sample("alto-hyphens").encode(), PROVENANCE)
    assert_valid(stamped)
    assert stamp_alto(stamped, PROVENANCE) == stamped


def test_the_text_of_a_page_follows_the_reading_order() -> None:
    assert text_of(sample("alto-regions").encode()) == "".join(f"{line}\n" for line in LINES)
    assert text_of(sample("alto-no-text").encode()) == ""


def test_a_divided_word_is_written_once_and_whole_where_the_file_gives_both_its_parts() -> None:
    text = "Domaren häradshövding\nBergh\nutan för¬\nklaring fort-\n"
    assert text_of(sample("alto-hyphens").encode()) == text


def test_a_line_that_held_only_the_rest_of_a_word_leaves_no_empty_line() -> None:
    shorter = sample("alto-hyphens").replace('<String CONTENT="Bergh"/>', "")
    assert text_of(shorter.encode()) == "Domaren häradshövding\nutan för¬\nklaring fort-\n"


def test_two_parts_that_name_different_words_stay_as_they_are() -> None:
    other = sample("alto-hyphens").replace(
        '"HypPart2" SUBS_CONTENT="häradshövding"', '"HypPart2" SUBS_CONTENT="hövding"'
    )
    assert text_of(other.encode()).startswith("Domaren härads-\nhövding Bergh\n")


def test_schemas_can_be_asked_for_by_many_threads_at_once() -> None:
    # In a new process, since a schema is read once.
    program = (
        "import concurrent.futures, threading\n"
        "from lxml import etree\n"
        "from htrflow_batch import xsd\n"
        "barrier = threading.Barrier(8)\n"
        "def ask(number):\n"
        "    barrier.wait()\n"
        "    return xsd.fault(etree.Element('other'), ('alto-4-4.xsd', 'pagecontent.xsd')[number % 2])\n"
        "with concurrent.futures.ThreadPoolExecutor(8) as pool:\n"
        "    print([fault is None for fault in pool.map(ask, range(8))])\n"
    )

    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == str([False] * 8), done.stderr
