"""PAGE: what is repaired, what fails a page, and that the file says what was recognised."""

from __future__ import annotations

import dataclasses
import html
import time
import typing as t

import hypothesis
import pytest
from hypothesis import strategies as st
from lxml import etree

from htrflow_batch import xsd
from htrflow_batch.errors import PageError
from htrflow_batch.pagexml import blank_page, check_page
from htrflow_batch.provenance import NAME, stamp_page
from htrflow_batch.xml_text import PageText, clean
from tests.wrapper.recognised import LINES, NOTHING, PROVENANCE, REGIONS, TEXT, WORDS, sample

NAMESPACE = "http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"
NS = {"p": NAMESPACE}
BLANK = blank_page("p0001.jpg", 1000, 1400, "Riksarkivet", "2026-11-29T12:00:00Z")


def contents(content: bytes) -> list[list[str]]:
    """The words or whole text of each line, in the order of the file."""
    lines = etree.fromstring(content).iterfind(".//p:TextLine", NS)
    return [[unicode.text or "" for unicode in line.iterfind(".//p:Unicode", NS)] for line in lines]


def assert_valid(content: bytes) -> None:
    assert xsd.fault(etree.fromstring(content), "pagecontent.xsd") is None


def draw(
    lines: t.Sequence[t.Sequence[str]], escape: t.Callable[[str], str] = html.escape, stem: str = "p0001"
) -> bytes:
    """A PAGE file as htrflow writes it: a line of one part as one text, of several as words."""
    coords = '<Coords points="1,2 3,4 5,6" />'
    references, written = [], []
    for number, parts in enumerate(lines):
        name = f"{stem}_region{number}"
        references.append(f'<RegionRefIndexed regionRef="{name}" index="{number}"/>')
        texts = [f'<TextEquiv conf="0.5"><Unicode>{escape(part)}</Unicode></TextEquiv>' for part in parts]
        if len(parts) > 1:
            texts = [f'<Word id="{name}_r{i}">{coords}{text}</Word>' for i, text in enumerate(texts)]
        written.append(f'<TextLine id="{name}">{coords}{"".join(texts)}</TextLine>')
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><PcGts xmlns="{NAMESPACE}"><Metadata><Creator>a</Creator>'
        "<Created>2026-11-29T12:00:00</Created><LastChange>2026-11-29T12:00:00</LastChange></Metadata>"
        f'<Page imageFilename="{stem}.jpg" imageWidth="1000" imageHeight="1400">'
        f"<ReadingOrder><OrderedGroup id='ro'>{''.join(references)}</OrderedGroup></ReadingOrder>"
        f'<TextRegion id="{stem}">{coords}{"".join(written)}</TextRegion></Page></PcGts>'
    ).encode()


@pytest.mark.parametrize(
    ("content", "expected", "lines", "words", "confidence", "state"),
    [
        (sample("page-regions").encode(), REGIONS, 3, 10, 0.9, "text"),
        (sample("page-words").encode(), WORDS, 1, 3, 0.8, "text"),
        (BLANK, NOTHING, 0, 0, None, "no text"),
    ],
    ids=["regions", "words", "blank"],
)
def test_a_good_file_is_counted_and_needs_no_repair(
    content: bytes, expected: PageText, lines: int, words: int, confidence: float | None, state: str
) -> None:
    checked = check_page(content, expected)
    assert (checked.lines, checked.words, checked.state, checked.notes) == (lines, words, state, ())
    assert checked.mean_confidence == (None if confidence is None else pytest.approx(confidence))
    canonical = etree.tostring(etree.fromstring(checked.content), method="c14n")
    assert canonical == etree.tostring(etree.fromstring(content), method="c14n")
    assert check_page(checked.content, expected) == checked


EMPTY_GROUP = '<OrderedGroupIndexed id="e" index="2"></OrderedGroupIndexed></OrderedGroup>\n        </ReadingOrder>'
REPAIRS = [
    ("page-words", ">och<", ">&<", ("Bergh & Son",), "escaped 1 characters that XML reserves"),
    ("page-words", ">och<", "><och<", ("Bergh <och Son",), "escaped 1 characters that XML reserves"),
    ("page-words", "och", "o\x1bch", ("Bergh o\x1bch Son",), "removed 1 characters that XML does not allow"),
    ("page-words", "och", "och&#x1b;", ("Bergh och Son",), "removed 1 characters that XML does not allow"),
    ("page-words", "och", "o\n\nch", ("Bergh o\n\nch Son",), None),
    ("page-words", ">och<", "><", ("Bergh  Son",), "removed 1 words without text"),
    ("page-regions", "i häradet", "", (LINES[0], "", LINES[2]), "removed 1 lines without text"),
    ("page-regions", "N:o 4", "", LINES[:2], "removed 1 regions without text"),
    ("page-regions", "N:o 4", "", LINES[:2], "removed 1 empty groups of the reading order"),
    ("page-regions", "</OrderedGroup>\n        </ReadingOrder>", EMPTY_GROUP, LINES, "removed 1 empty groups"),
    ("page-regions", 'regionRef="p0001_region1_region0"', 'regionRef="gone"', LINES, "that lead nowhere"),
    ("page-regions", 'conf="0.8"', 'conf="nan"', LINES, "removed 1 confidences that are not a number from 0 to 1"),
    ("page-regions", 'conf="0.8"', 'conf="1.0000001"', LINES, "set 1 confidences a little above 1 to 1"),
    ("page-regions", '"20,300 ', '"-3,300 ', LINES, "moved 2 coordinates from outside the image to its edge"),
    ("page-regions", "p0001_region", "1 Main & text", LINES, "ids that are not XML names"),
]


@pytest.mark.parametrize(("name", "good", "bad", "lines", "note"), REPAIRS)
def test_what_is_certain_is_repaired(name: str, good: str, bad: str, lines: tuple[str, ...], note: str | None) -> None:
    broken = sample(name).replace(good, bad)
    assert broken != sample(name)
    expected = PageText(1000, 1400, lines)
    checked = check_page(broken.encode(), expected)
    assert any(note in said for said in checked.notes) if note else checked.notes == ()
    assert_valid(checked.content)
    assert [" ".join(line).split() for line in contents(checked.content)] == [
        clean(line).split() for line in lines if clean(line)
    ]
    again = check_page(checked.content, expected)
    assert again == dataclasses.replace(checked, notes=())


def test_a_region_whose_only_text_is_in_the_regions_inside_it_is_kept() -> None:
    outer = '<TextRegion id="outer"><Coords points="1,2 3,4 5,6" /><TextRegion id="p0001_region1">'
    nested = sample("page-regions").replace('<TextRegion id="p0001_region1">', outer)
    nested = nested.replace("</TextRegion>\n    </Page>", "</TextRegion></TextRegion>\n    </Page>")
    checked = check_page(nested.encode(), REGIONS)
    assert b'id="outer"' in checked.content
    assert checked.notes == ()


def test_a_page_on_which_every_line_is_empty_is_a_page_without_text() -> None:
    checked = check_page(draw([[""], [" "]]), PageText(1000, 1400, ("", " ")))
    assert checked.state == "no text"
    assert b"ReadingOrder" not in checked.content
    assert_valid(checked.content)


REFUSED = [
    ('imageWidth="1000"', 'imageWidth="1001"', "an image of 1001 x 1400 pixels, but it has 1000 x 1400"),
    ('imageHeight="1400"', 'imageHeight="tall"', "an image of 1000 x tall pixels"),
    ("i häradet", "i häradetx", "Line 2 of the PAGE file reads 'i häradetx', but 'i häradet' was recognised"),
    ("N:o 4", "", "holds 2 lines of text, but 3 were recognised"),
    ('region1" index="1"', 'region1" index="-1"', "the same lines are there in another order"),
    ('id="p0001_region1"', 'id="p0001_region0"', "does not hold to its schema"),
    ('points="20,300 100,300 100,360 20,360"', 'points=""', "does not hold to its schema"),
    ("<LastChange>", "<Odd/><LastChange>", "does not hold to its schema"),
    ("</Metadata>", "", "is not well-formed XML"),
    ("2019-07-15", "2013-07-15", "starts with"),
]


@pytest.mark.parametrize(("good", "bad", "sentence"), REFUSED)
def test_what_is_not_certain_fails_the_page(good: str, bad: str, sentence: str) -> None:
    broken = sample("page-regions").replace(good, bad)
    assert broken != sample("page-regions")
    with pytest.raises(PageError, match=sentence):
        check_page(broken.encode(), REGIONS)


HOSTILE = {
    "entities": f'<!DOCTYPE PcGts [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><PcGts xmlns="{NAMESPACE}">&b;</PcGts>',
    "a file as an entity": '<!DOCTYPE PcGts [<!ENTITY x SYSTEM "file:///etc/passwd">]><PcGts>&x;</PcGts>',
    "deep nesting": f'<PcGts xmlns="{NAMESPACE}">' + "<a>" * 100_000,
    "an attribute of 100 MB": f'<PcGts xmlns="{NAMESPACE}" b="{"x" * 100_000_000}"/>',
    "texts that do not end": f'<PcGts xmlns="{NAMESPACE}">' + "<Unicode>" * 1_000_000,
    "nothing": "",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_quickly_and_in_few_words(case: str) -> None:
    content = HOSTILE[case].encode()
    before = time.process_time()
    with pytest.raises(PageError) as refused:
        check_page(content, NOTHING)
    assert time.process_time() - before < 5
    assert len(str(refused.value)) < 400
    assert "root:" not in str(refused.value)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(TEXT, max_size=6))
def test_a_file_says_the_lines_that_were_recognised_whatever_they_are(lines: list[str]) -> None:
    checked = check_page(draw([[line] for line in lines]), PageText(1000, 1400, tuple(lines)))
    assert contents(checked.content) == [[text] for text in map(clean, lines) if text]
    assert_valid(checked.content)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(st.lists(TEXT.filter(clean), min_size=2, max_size=4), min_size=1, max_size=4))
def test_a_file_says_the_words_that_were_recognised(lines: list[list[str]]) -> None:
    checked = check_page(draw(lines), PageText(1000, 1400, tuple(" ".join(words) for words in lines)))
    assert contents(checked.content) == [[clean(word) for word in words] for words in lines]
    assert_valid(checked.content)


def test_provenance_stands_in_the_file_once_and_without_secrets() -> None:
    checked = check_page(sample("page-regions").encode(), REGIONS).content
    once = stamp_page(checked, PROVENANCE)
    assert stamp_page(once, PROVENANCE) == once
    assert_valid(once)
    assert b"secret" not in once
    [item] = [item for item in etree.fromstring(once).iterfind(".//p:MetadataItem", NS) if item.get("name") == NAME]
    assert [(label.get("type"), label.get("value")) for label in item.iterfind(".//p:Label", NS)] == list(
        PROVENANCE.settings()
    )
    assert (item.get("value"), item.get("date")) == ("0.1.0", "2026-11-29T12:00:00Z")
    other = stamp_page(once, dataclasses.replace(PROVENANCE, recipe="f" * 64))
    assert b"c" * 64 not in other
    assert stamp_page(other, PROVENANCE) == once
    assert check_page(once, REGIONS).content == once


def test_provenance_can_be_added_to_a_blank_page() -> None:
    stamped = stamp_page(BLANK, PROVENANCE)
    assert_valid(stamped)
    assert check_page(stamped, NOTHING).state == "no text"
