"""Checks and repairs ALTO 4.4 as htrflow writes it, and reads its text and where it stands."""

from __future__ import annotations

import dataclasses
import itertools
import re
import typing as t

from lxml import etree

from htrflow_batch import alto_boxes, xml_text
from htrflow_batch.errors import PageError
from htrflow_batch.xml_text import Checked, Element, Line, Notes, PageText

NAMESPACE = "http://www.loc.gov/standards/alto/ns-v4#"
_NS = f"{{{NAMESPACE}}}"
_ROOT = f"{_NS}alto"
_SCHEMA = "alto-4-4.xsd"
_OPENING = ' CONTENT="'
#: The quotation mark that ends a value: the element ends after it, or another attribute starts.
_CLOSING = re.compile(r'"(?=\s*/?>|\s+[A-Z_]+=")')


@dataclasses.dataclass(frozen=True, slots=True)
class TextLine:
    """A line and where it stands, in pixels from the upper left corner of the page.

    ``text`` is one line and not empty; a divided word stands as it is written. The box is that of the line, or of what
    the line is in where the file states none nearer. ``confidence`` is the mean over its words, 0 to 1, or None where
    there is none. ``points`` are (x, y) of its outline, and empty where there is none.
    """

    text: str
    x: int
    y: int
    width: int
    height: int
    confidence: float | None = None
    points: tuple[tuple[int, int], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """A page's size in pixels, both at least 1, and its lines in reading order."""

    width: int
    height: int
    lines: tuple[TextLine, ...]


def check_alto(content: bytes, expected: PageText) -> Checked:
    """``content`` as it may be published.

    Raises :class:`~htrflow_batch.errors.PageError` when it cannot be read, is not valid, or states another text or
    another size than ``expected``.
    """
    failure: PageError | None = None
    for tree, notes in _readings(content):
        try:
            return _check(tree, notes, expected)
        except PageError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def text_of(content: bytes) -> str:
    """The text of an ALTO file in reading order, each line ended by a line feed.

    A word that is divided between two lines stands whole in the first of them where the file gives it
    (``SUBS_CONTENT`` of both parts); otherwise each part stays on its line, with the hyphen as the file has it.
    """
    tree = _tree(content)
    lines = [list(line.iter(f"{_NS}String", f"{_NS}HYP")) for line in _in_reading_order(tree)]
    strings = [part for parts in lines for part in parts if part.tag == f"{_NS}String"]
    whole, left_out = set(), set()
    for first, second in itertools.pairwise(strings):
        word = first.get("SUBS_CONTENT")
        halves = (first.get("SUBS_TYPE"), second.get("SUBS_TYPE")) == ("HypPart1", "HypPart2")
        if halves and word and word == second.get("SUBS_CONTENT"):
            whole.add(first)
            left_out.add(second)
    written = []
    for parts in lines:
        words: list[str] = []
        previous: Element | None = None
        for part in parts:
            if part.tag == f"{_NS}HYP":
                if words and previous not in whole:
                    words[-1] += xml_text.clean(part.get("CONTENT", ""))
                continue
            previous = part
            if part not in left_out:
                words.append(xml_text.clean(part.get("SUBS_CONTENT" if part in whole else "CONTENT", "")))
        if line := " ".join(filter(None, words)):
            written.append(f"{line}\n")
    return "".join(written)


def lines_of(content: bytes) -> tuple[TextLine, ...]:
    """The lines with text of an ALTO file, in reading order.

    Raises :class:`~htrflow_batch.errors.PageError` when it cannot be read.
    """
    return layout_of(content).lines


def layout_of(content: bytes) -> Layout:
    """The size of the page of an ALTO file, and its lines with text.

    A file that states no size is as large as its lines reach. Raises :class:`~htrflow_batch.errors.PageError` when it
    cannot be read.
    """
    tree = _tree(content)
    page = tree.find(f".//{_NS}Page")
    width, height = (None if page is None else alto_boxes.length(page, name) for name in ("WIDTH", "HEIGHT"))
    lines = []
    for element in _in_reading_order(tree):
        line = _line(element, Notes())
        if text := xml_text.clean(line.text):
            left, top, right, bottom = alto_boxes.around(element) or (0, 0, width or 1, height or 1)
            points = alto_boxes.points(element)
            lines.append(TextLine(text, left, top, right - left, bottom - top, line.confidence, points))
    return Layout(
        width or max([1, *(line.x + line.width for line in lines)]),
        height or max([1, *(line.y + line.height for line in lines)]),
        tuple(lines),
    )


def _tree(content: bytes) -> Element:
    try:
        return xml_text.parse("ALTO", xml_text.decode("ALTO", content, Notes()), _ROOT)
    except etree.XMLSyntaxError as error:
        raise xml_text.syntax_error("ALTO", error) from None


def _readings(content: bytes) -> t.Iterator[tuple[Element, Notes]]:
    """What the file may mean, the most likely first. The text that was recognised decides between them."""
    notes = Notes()
    text = xml_text.decode("ALTO", content, notes)
    refusal: PageError | None = None
    try:
        yield xml_text.parse("ALTO", text, _ROOT), notes
    except etree.XMLSyntaxError as error:
        refusal = xml_text.syntax_error("ALTO", error)
    readable = False
    # Where words are written unescaped, "&amp;" in a word may be a character or the five that were read.
    for all_ampersands in (False, True):
        notes = Notes()
        text = xml_text.decode("ALTO", content, notes)
        text, count = xml_text.escape_values(text, _OPENING, _CLOSING, all_ampersands=all_ampersands)
        text, others = xml_text.escape_ampersands(text)
        notes.add("escaped {} characters that XML reserves", count + others)
        if not count + others:
            continue
        try:
            tree = xml_text.parse("ALTO", text, _ROOT)
        except etree.XMLSyntaxError:
            continue
        readable = True
        yield tree, notes
    if refusal is not None and not readable:
        raise refusal


def _check(tree: Element, notes: Notes, expected: PageText) -> Checked:
    pages = list(tree.iter(f"{_NS}Page"))
    if len(pages) != 1:
        raise PageError(f"The ALTO file holds {len(pages)} pages and not one.")
    xml_text.check_size("ALTO", pages[0], ("WIDTH", "HEIGHT"), expected)
    xml_text.repair_ids(tree, "ID", ("REF", "IDNEXT"), notes)
    _drop_empty(tree, notes)
    xml_text.confidence(pages[0], "PC", notes)
    found = [_line(line, notes) for line in _in_reading_order(tree)]
    xml_text.compare("ALTO", found, expected)
    return xml_text.finish("ALTO", tree, _SCHEMA, found, notes)


def _drop_empty(tree: Element, notes: Notes) -> None:
    for line in list(tree.iter(f"{_NS}TextLine")):
        empty = []
        strings = list(line.iterfind(f"{_NS}String"))
        for string in strings:
            stated = string.get("CONTENT", "")
            if (text := xml_text.clean(stated)) != stated:
                string.set("CONTENT", text)
            if not text:
                empty.append(string)
        if len(empty) == len(strings):
            xml_text.drop("ALTO", line)
            notes.add("removed {} lines without text")
            continue
        for string in empty:
            after = string.getnext()
            if after is not None and after.tag == f"{_NS}SP":
                xml_text.drop("ALTO", after)
            xml_text.drop("ALTO", string)
        notes.add("removed {} words without text", len(empty))
    for block in list(tree.iter(f"{_NS}TextBlock")):
        if block.find(f"{_NS}TextLine") is None:
            xml_text.drop("ALTO", block)
            notes.add("removed {} regions without text")
    ids = {element.get("ID") for element in tree.iter() if "ID" in element.attrib}
    for order in list(tree.iter(f"{_NS}ReadingOrder")):
        _drop_dangling(ids, order, notes)


def _drop_dangling(ids: t.Collection[str | bytes | None], order: Element, notes: Notes) -> None:
    for reference in list(order.iter(f"{_NS}ElementRef")):
        named = reference.get("REF", "").split()
        there = [name for name in named if name in ids]
        if there == named and named:
            continue
        if there:
            reference.set("REF", " ".join(there))
        else:
            xml_text.drop("ALTO", reference)
        notes.add("removed {} entries of the reading order that lead nowhere")
    # A group that holds only empty groups is itself empty: the innermost come first.
    for group in reversed(list(order.iter(f"{_NS}OrderedGroup", f"{_NS}UnorderedGroup"))):
        if len(group) == 0:
            xml_text.drop("ALTO", group)
            notes.add("removed {} empty groups of the reading order")
    if len(order) == 0:
        xml_text.drop("ALTO", order)


def _in_reading_order(tree: Element) -> list[Element]:
    """The lines as ``ReadingOrder`` has them; those that it leaves out follow in the order of the file."""
    by_id = {element.get("ID"): element for element in tree.iter() if "ID" in element.attrib}
    lines: dict[Element, None] = {}
    for reference in tree.iterfind(f"{_NS}ReadingOrder//{_NS}ElementRef"):
        for name in reference.get("REF", "").split():
            if (element := by_id.pop(name, None)) is not None:
                lines.update(dict.fromkeys(element.iter(f"{_NS}TextLine")))
    lines.update(dict.fromkeys(tree.iter(f"{_NS}TextLine")))
    return list(lines)


def _line(line: Element, notes: Notes) -> Line:
    strings = list(line.iterfind(f"{_NS}String"))
    hyphen = line.find(f"{_NS}HYP")
    text = " ".join(string.get("CONTENT", "") for string in strings)
    if hyphen is not None:
        text += hyphen.get("CONTENT", "")
    stated = [value for string in strings if (value := xml_text.confidence(string, "WC", notes)) is not None]
    return Line(line, text, len(strings), sum(stated) / len(stated) if stated else None)
