"""What ALTO and PAGE share: reading XML safely, repairing it before and after it parses, and holding it to a schema.

A result is published only when it is whole, so whatever is not certain raises :class:`~htrflow_batch.errors.PageError`.
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing as t

from lxml import etree

from htrflow_batch import redact, xsd
from htrflow_batch.errors import PageError

#: Bytes of one result. A page of 10 000 words with boxes and outlines takes about 5 MiB.
MOST_BYTES = 16 * 1024 * 1024

# https://www.w3.org/TR/xml/#charsets
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAK = re.compile("\r\n|[\t\n\r\x85\u2028\u2029]")
_DECLARATION = re.compile(r"\ufeff?\s*<\?xml\b[^>]{0,200}\?>")
_REFERENCE = r"(?:amp|lt|gt|quot|apos|#[0-9]{1,8}|#x[0-9a-fA-F]{1,8});"
_BARE_AMPERSAND = re.compile(f"&(?!{_REFERENCE})")
_CHARACTER_REFERENCE = re.compile("&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_.\-À-ÖØ-öø-ÿ]")
_ID = re.compile(r"[A-Za-z_À-ÖØ-öø-ÿ][A-Za-z0-9_.\-À-ÖØ-öø-ÿ]*")

Element: t.TypeAlias = etree._Element


@dataclasses.dataclass(frozen=True, slots=True)
class PageText:
    """What a result must say: the image's size in pixels, and the text of each line in reading order."""

    width: int
    height: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """A result that may be published.

    ``notes`` says what was repaired. ``mean_confidence`` is the mean over the lines, from 0 to 1, or None where the
    file states none.
    """

    content: bytes
    notes: tuple[str, ...]
    words: int
    lines: int
    mean_confidence: float | None

    @property
    def state(self) -> t.Literal["text", "no text"]:
        return "text" if self.lines else "no text"


class Notes:
    """Counts repairs by kind; a kind is a sentence with ``{}`` for the number."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, kind: str, count: int = 1) -> None:
        if count:
            self._counts[kind] = self._counts.get(kind, 0) + count

    def sentences(self) -> tuple[str, ...]:
        return tuple(kind.format(count) for kind, count in self._counts.items())


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line of a result. ``pieces`` is the number of parts that its text was joined from."""

    element: Element
    text: str
    pieces: int
    confidence: float | None


def clean(text: str) -> str:
    """``text`` as a result can hold it: without characters that XML forbids, on one line, without blanks around it."""
    return _BREAK.sub(" ", _ILLEGAL.sub("", text)).strip()


def safe_stem(name: str) -> str:
    """``name`` as an XML name without a colon. The library builds every id of a page on the stem of its image file."""
    stem = _NOT_IN_ID.sub("_", name)
    return stem if _ID.fullmatch(stem) else f"_{stem}"


def tag(element: Element) -> str:
    """The name of ``element`` without its namespace."""
    return etree.QName(element).localname


def decode(name: str, content: bytes, notes: Notes) -> str:
    """The characters of a file, without its XML declaration and what XML forbids. ``name`` is ``ALTO`` or ``PAGE``."""
    if len(content) > MOST_BYTES:
        raise PageError(f"The {name} file has {len(content)} bytes, more than the {MOST_BYTES} that are read.")
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise PageError(f"The {name} file is not UTF-8: its byte {error.start} cannot be read.") from None
    text, removed = _ILLEGAL.subn("", text)
    removed_references = 0

    def drop_illegal(match: re.Match[str]) -> str:
        nonlocal removed_references
        number = int(match[1], 16) if match[1] else int(match[2])
        if number <= 0x10FFFF and not _ILLEGAL.match(chr(number)):
            return match[0]
        removed_references += 1
        return ""

    text = _CHARACTER_REFERENCE.sub(drop_illegal, text)
    notes.add("removed {} characters that XML does not allow", removed + removed_references)
    text = _DECLARATION.sub("", text, count=1) if _DECLARATION.match(text) else text.removeprefix("\ufeff")
    # Asked of the text that the parser gets, since a character that is removed may have stood inside the word.
    if "<!DOCTYPE" in text:
        raise PageError(f"The {name} file declares a document type, which a result never needs.")
    return text


def parse(name: str, text: str, root: str) -> Element:
    """The tree of ``text``, whose root must be ``root`` in Clark notation. Raises ``etree.XMLSyntaxError``."""
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    tree = etree.fromstring(text.encode("utf-8"), parser)
    if tree.tag != root:
        raise PageError(f"The {name} file starts with {short(str(tree.tag))!r} and not with {root!r}.")
    return tree


def syntax_error(name: str, error: etree.XMLSyntaxError) -> PageError:
    """The sentence for a file that cannot be parsed."""
    return PageError(f"The {name} file is not well-formed XML: {short(str(error))}.")


def escape_ampersands(text: str) -> tuple[str, int]:
    """``text`` with each ``&`` escaped that starts no reference, and how many there were."""
    return _BARE_AMPERSAND.subn("&amp;", text)


def escape_values(text: str, opening: str, closing: re.Pattern[str], *, all_ampersands: bool) -> tuple[str, int]:
    """``text`` with the values between ``opening`` and ``closing`` escaped, and the number of characters escaped.

    A value ends at the first ``closing``. Each character is looked at once, however odd the file is.
    """
    ampersand = re.compile("&") if all_ampersands else _BARE_AMPERSAND
    first, *pieces = text.split(opening)
    parts, total = [first], 0
    for piece in pieces:
        end = closing.search(piece)
        value, rest = (piece[: end.start()], piece[end.start() :]) if end else (piece, "")
        value, count = ampersand.subn("&amp;", value)
        total += count + value.count("<") + value.count('"')
        parts += [opening, value.replace("<", "&lt;").replace('"', "&quot;"), rest]
    return "".join(parts), total


def repair_ids(tree: Element, attribute: str, references: t.Iterable[str], notes: Notes) -> None:
    """Makes each id an XML name, and what refers to it follow."""
    holders = [element for element in tree.iter() if attribute in element.attrib]
    taken = {element.get(attribute, "") for element in holders}
    renamed: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for element in holders:
        old = element.get(attribute, "")
        if _ID.fullmatch(old):
            continue
        # An id that stands twice keeps standing twice: which of the two is meant is for the schema to refuse.
        if old not in renamed:
            stem = new = safe_stem(old)
            while new in taken:
                numbers[stem] = number = numbers.get(stem, 1) + 1
                new = f"{stem}_{number}"
            taken.add(new)
            renamed[old] = new
        element.set(attribute, renamed[old])
    if renamed:
        for element in tree.iter():
            for reference in references:
                if (new_id := renamed.get(element.get(reference, ""))) is not None:
                    element.set(reference, new_id)
    notes.add("renamed {} ids that are not XML names", len(renamed))


def confidence(element: Element, attribute: str, notes: Notes) -> float | None:
    """The confidence that ``element`` states, from 0 to 1. A statement that is none is removed."""
    stated = element.get(attribute)
    if stated is None:
        return None
    try:
        value = float(stated)
    except ValueError:
        value = math.nan
    if 0 <= value <= 1:
        return value
    # Sums of probabilities in single precision come out a little above 1.
    if 1 < value < 1.001:
        element.set(attribute, "1.0")
        notes.add("set {} confidences a little above 1 to 1")
        return 1.0
    del element.attrib[attribute]
    notes.add("removed {} confidences that are not a number from 0 to 1")
    return None


def drop(name: str, element: Element) -> None:
    """Removes ``element`` with what it holds and the white space behind it."""
    parent = element.getparent()
    assert parent is not None
    if element.tail and element.tail.strip():
        raise PageError(f"The {name} file has text between its elements: {short(element.tail, 60)!r}.")
    parent.remove(element)


def compare(name: str, found: t.Sequence[Line], expected: PageText) -> None:
    """Raises when the lines of a file are not the lines that were recognised."""
    wanted = [text for text in map(clean, expected.lines) if text]
    have = [line.text for line in found]
    for number, (line, text) in enumerate(zip(found, wanted, strict=False), 1):
        if line.text != text and (line.pieces == 1 or line.text.split() != text.split()):
            order = ", though the same lines are there in another order" if sorted(have) == sorted(wanted) else ""
            raise PageError(
                f"Line {number} of the {name} file reads {short(line.text, 60)!r}, "
                f"but {short(text, 60)!r} was recognised{order}."
            )
    if len(have) != len(wanted):
        raise PageError(f"The {name} file holds {len(have)} lines of text, but {len(wanted)} were recognised.")


def check_size(name: str, page: Element, attributes: tuple[str, str], expected: PageText) -> None:
    """Raises unless the page states the image's width and height, in this order of ``attributes``."""
    stated = [page.get(attribute, "") for attribute in attributes]
    try:
        right = [float(value) for value in stated] == [expected.width, expected.height]
    except ValueError:
        right = False
    if not right:
        size = " x ".join(short(value, 20) or "nothing" for value in stated)
        raise PageError(
            f"The {name} file states an image of {size} pixels, but it has {expected.width} x {expected.height}."
        )


def finish(name: str, tree: Element, schema: str, found: t.Sequence[Line], notes: Notes) -> Checked:
    """The file as it is published, once it holds to ``schema``."""
    if (fault := xsd.fault(tree, schema)) is not None:
        raise PageError(f"The {name} file does not hold to its schema: {short(fault)}.")
    stated = [line.confidence for line in found if line.confidence is not None]
    return Checked(
        content=serialize(tree),
        notes=notes.sentences(),
        words=sum(len(line.text.split()) for line in found),
        lines=len(found),
        mean_confidence=math.fsum(stated) / len(stated) if stated else None,
    )


def serialize(tree: Element) -> bytes:
    return etree.tostring(tree, encoding="UTF-8", xml_declaration=True)


def short(text: str, most: int = 240) -> str:
    """``text`` for a message: on one line, without secrets, and cut after ``most`` characters."""
    text = redact.url(clean(text[: 4 * most]))
    return text if len(text) <= most else text[: most - 1] + "…"
