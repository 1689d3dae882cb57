"""Checks and repairs PAGE 2019-07-15 as htrflow writes it."""

from __future__ import annotations

import re
import typing as t

from lxml import etree

from htrflow_batch import xml_text
from htrflow_batch.errors import PageError
from htrflow_batch.xml_text import Checked, Element, Line, Notes, PageText

NAMESPACE = "http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"
_NS = f"{{{NAMESPACE}}}"
_ROOT = f"{_NS}PcGts"
_SCHEMA = "pagecontent.xsd"
_OPENING = "<Unicode>"
_CLOSING = re.compile("</Unicode>")
_NEGATIVE = re.compile(r"(?<![0-9.])-[0-9]+")
_REFERENCES = (f"{_NS}RegionRefIndexed", f"{_NS}RegionRef")
_GROUPS = tuple(f"{_NS}{order}Group{indexed}" for order in ("Ordered", "Unordered") for indexed in ("", "Indexed"))


def check_page(content: bytes, expected: PageText) -> Checked:
    """``content`` as it may be published.

    Raises :class:`~htrflow_batch.errors.PageError` when it cannot be read, is not valid, or states another text or
    another size than ``expected``.
    """
    notes = Notes()
    tree = _read(content, notes)
    pages = list(tree.iter(f"{_NS}Page"))
    if len(pages) != 1:
        raise PageError(f"The PAGE file holds {len(pages)} pages and not one.")
    xml_text.check_size("PAGE", pages[0], ("imageWidth", "imageHeight"), expected)
    xml_text.repair_ids(tree, "id", ("regionRef",), notes)
    _clean_text(tree)
    _drop_empty(tree, notes)
    for coords in tree.iter(f"{_NS}Coords"):
        # What lies left of the image or above it is not in the image.
        points, count = _NEGATIVE.subn("0", coords.get("points", ""))
        if count:
            coords.set("points", points)
            notes.add("moved {} coordinates from outside the image to its edge", count)
    found = [_line(line, notes) for line in _in_reading_order(tree)]
    xml_text.compare("PAGE", found, expected)
    return xml_text.finish("PAGE", tree, _SCHEMA, found, notes)


def blank_page(image_name: str, width: int, height: int, creator: str, created: str) -> bytes:
    """The PAGE file of a page without text, for which htrflow writes none. ``created`` is an ISO 8601 time in UTC."""
    root = etree.Element(_ROOT, nsmap={None: NAMESPACE})  # type: ignore[dict-item,unused-ignore]
    metadata = etree.SubElement(root, f"{_NS}Metadata")
    for name, text in (("Creator", creator), ("Created", created), ("LastChange", created)):
        etree.SubElement(metadata, f"{_NS}{name}").text = xml_text.clean(text)
    page = etree.SubElement(root, f"{_NS}Page")
    page.set("imageFilename", xml_text.clean(image_name))
    page.set("imageWidth", str(width))
    page.set("imageHeight", str(height))
    etree.indent(root, "    ")
    return xml_text.serialize(root)


def _read(content: bytes, notes: Notes) -> Element:
    text = xml_text.decode("PAGE", content, notes)
    try:
        return xml_text.parse("PAGE", text, _ROOT)
    except etree.XMLSyntaxError as error:
        refusal = xml_text.syntax_error("PAGE", error)
    text, count = xml_text.escape_values(text, _OPENING, _CLOSING, all_ampersands=False)
    text, others = xml_text.escape_ampersands(text)
    notes.add("escaped {} characters that XML reserves", count + others)
    try:
        return xml_text.parse("PAGE", text, _ROOT)
    except etree.XMLSyntaxError:
        raise refusal from None


def _clean_text(tree: Element) -> None:
    for unicode in tree.iter(f"{_NS}Unicode"):
        unicode.text = xml_text.clean(unicode.text or "")


def _drop_empty(tree: Element, notes: Notes) -> None:
    for line in list(tree.iter(f"{_NS}TextLine")):
        words = list(line.iterfind(f"{_NS}Word"))
        empty = [word for word in words if not _own_text(word)]
        if not _own_text(line) and len(empty) == len(words):
            xml_text.drop("PAGE", line)
            notes.add("removed {} lines without text")
            continue
        for word in empty:
            xml_text.drop("PAGE", word)
        notes.add("removed {} words without text", len(empty))
    for region in reversed(list(tree.iter(f"{_NS}TextRegion"))):
        holds_regions = any(xml_text.tag(child).endswith("Region") for child in region)
        if region.find(f"{_NS}TextLine") is None and not holds_regions and not _own_text(region):
            xml_text.drop("PAGE", region)
            notes.add("removed {} regions without text")
    ids = {element.get("id") for element in tree.iter() if "id" in element.attrib}
    for order in list(tree.iter(f"{_NS}ReadingOrder")):
        _drop_dangling(ids, order, notes)


def _drop_dangling(ids: t.Collection[str | bytes | None], order: Element, notes: Notes) -> None:
    for reference in list(order.iter(*_REFERENCES)):
        if reference.get("regionRef") not in ids:
            xml_text.drop("PAGE", reference)
            notes.add("removed {} entries of the reading order that lead nowhere")
    for group in reversed(list(order.iter(*_GROUPS))):
        if not any(child.tag in _REFERENCES or child.tag in _GROUPS for child in group):
            xml_text.drop("PAGE", group)
            notes.add("removed {} empty groups of the reading order")
    if len(order) == 0:
        xml_text.drop("PAGE", order)


def _own_text(element: Element) -> str:
    equivalent = _main_text(element)
    unicode = equivalent.find(f"{_NS}Unicode") if equivalent is not None else None
    return (unicode.text or "") if unicode is not None else ""


def _main_text(element: Element) -> Element | None:
    """The text with the lowest index, which is the main one; one without an index comes first."""
    equivalents = list(element.iterfind(f"{_NS}TextEquiv"))
    return min(equivalents, key=_index, default=None)


def _index(element: Element) -> int:
    stated = element.get("index", "")
    return int(stated) if re.fullmatch("-?[0-9]{1,9}", stated) else -1


def _in_reading_order(tree: Element) -> list[Element]:
    """The lines as ``ReadingOrder`` has them; those that it leaves out follow in the order of the file."""
    by_id = {element.get("id"): element for element in tree.iter() if "id" in element.attrib}
    lines: dict[Element, None] = {}
    waiting = list(tree.iterfind(f"{_NS}Page/{_NS}ReadingOrder/*"))
    while waiting:
        entry = waiting.pop()
        if entry.tag in _GROUPS:
            waiting += sorted(entry, key=_index, reverse=True)
        elif entry.tag in _REFERENCES and (element := by_id.pop(entry.get("regionRef"), None)) is not None:
            lines.update(dict.fromkeys(element.iter(f"{_NS}TextLine")))
    lines.update(dict.fromkeys(tree.iter(f"{_NS}TextLine")))
    return list(lines)


def _line(line: Element, notes: Notes) -> Line:
    words = list(line.iterfind(f"{_NS}Word"))
    text = _own_text(line)
    holders = [line] if text else words
    stated = []
    for holder in holders:
        equivalent = _main_text(holder)
        if equivalent is not None and (value := xml_text.confidence(equivalent, "conf", notes)) is not None:
            stated.append(value)
    pieces = 1 if text else len(words)
    return Line(line, text or " ".join(map(_own_text, words)), pieces, sum(stated) / len(stated) if stated else None)
