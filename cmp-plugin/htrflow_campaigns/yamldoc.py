"""YAML text to plain data that knows where each of its parts stands.

libyaml does the parsing; this module builds dicts and lists from its events. It keeps one character offset a value and
not libyaml's own tree, which takes several times the memory and time, and it refuses what YAML allows but a file
written by a person never needs: two equal keys, tags, aliases that blow up, deep nesting.
"""

from __future__ import annotations

import array
import bisect
import io
import itertools
import math
import re
import typing as t

from yaml import events as ev
from yaml._yaml import CParser
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.error import MarkedYAMLError
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from htrflow_campaigns import limits, yaml_errors
from htrflow_campaigns.problems import Found, Position, Problem, Words, show
from htrflow_campaigns.rules import files as rules
from htrflow_campaigns.rules import structure

Key = str | int
Path = tuple[Key, ...]

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "map", "seq")}
_SMALL_MAPPING = 32
#: io.StringIO takes four bytes a character, so a text goes through it in pieces.
_PIECE_CHARACTERS = 1 << 20
#: No number and no date is longer. Beyond this many characters, reading one takes time that grows with the square.
_NUMBER_CHARACTERS = 100
#: libyaml holds every %TAG line against all those before it.
_TAG_LINES = re.compile("(?:^|[\r\n\x85\u2028\u2029])%TAG")
_MOST_TAG_LINES = 100
#: Characters of one key or value. A ConfigMap holds no more; matching a longer one takes memory in proportion.
_TEXT_CHARACTERS = limits.CONFIG_MAP_BYTES

_NO_SOURCES: t.Mapping[Key, str] = {}


class Mapping(dict[str, t.Any]):
    """A mapping. ``offsets`` holds a key's and its value's place in turn, in the order of the keys."""

    __slots__ = ("offset", "offsets", "size", "sources")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.offsets = array.array("L")
        self.sources = _NO_SOURCES
        self.size = 0


class Sequence(list[t.Any]):
    """A list. ``offsets`` holds the place of each item."""

    __slots__ = ("offset", "offsets", "size", "sources")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.offsets = array.array("L")
        self.sources = _NO_SOURCES
        self.size = 0


class Text:
    """A file's text, and the way from an offset in it to a line and column."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._starts: array.array[int] | None = None

    def position(self, offset: int) -> Position:
        if self._starts is None:
            self._starts = _line_starts(self.text)
        line = bisect.bisect_right(self._starts, offset)
        return Position(self.path, line, offset - self._starts[line - 1] + 1)

    def character(self, position: Position) -> str:
        """What stands at a position that :meth:`position` gave, or nothing at the end."""
        assert self._starts is not None
        offset = self._starts[position.line - 1] + position.column - 1
        return self.text[offset : offset + 1]


def _line_starts(text: str) -> array.array[int]:
    """The offsets at which lines start. Ten million empty lines take a second and four bytes each."""
    starts, start = array.array("I", [0]), 0
    while start < len(text):
        stop = start + _PIECE_CHARACTERS
        stop += text[stop - 1 : stop + 1] == "\r\n"
        lines = io.StringIO(text[start:stop], newline="")
        starts.extend(itertools.islice(itertools.accumulate(map(len, lines), initial=start), 1, None))
        if text[min(stop, len(text)) - 1] not in "\r\n":
            starts.pop()
        start = stop
    return starts


class Document(Text):
    """One file's data.

    ``root`` is made of :class:`Mapping`, :class:`Sequence`, str, int, float, bool and None. What YAML reads as one of
    the last four, or as a date, and what was written for it stands in ``sources`` of the mapping or list around it.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.root: t.Any = None
        self.root_source: str | None = None
        self._orders: dict[int, dict[str, int]] = {}

    def at(self, path: Path, *, key: bool = False) -> Position:
        """Where the value at ``path`` stands, or with ``key`` the key that leads to it."""
        container: t.Any = self.root
        offset = container.offset if isinstance(container, Mapping | Sequence) else 0
        for step in path:
            if isinstance(container, Mapping) and step in container:
                index = 2 * self.index(container, t.cast(str, step)) + (0 if key and step == path[-1] else 1)
            elif isinstance(container, Sequence) and isinstance(step, int) and step < len(container):
                index = step
            else:
                break
            offset = container.offsets[index]
            container = container[step]
        return self.position(offset)

    def index(self, mapping: Mapping, key: str) -> int:
        """The place of ``key`` among the keys of ``mapping``, counted from 0."""
        order = self._orders.get(id(mapping))
        if order is None:
            order = {known: number for number, known in enumerate(mapping)}
            # Small ones are not worth keeping; a large one would be gone through again for each of its problems.
            if len(mapping) > _SMALL_MAPPING:
                self._orders[id(mapping)] = order
        return order[key]

    def source(self, path: Path) -> str | None:
        """What is written at ``path``, when YAML read it as something other than text."""
        if not path:
            return self.root_source
        container: t.Any = self.root
        for step in path[:-1]:
            container = container[step]
        return t.cast("str | None", container.sources.get(path[-1]))


def decode(path: str, content: bytes) -> tuple[str, list[Problem]]:
    """``content`` as text, without a byte-order mark, and what is wrong with its characters."""
    if len(content) > limits.FILE_BYTES:
        limit = Words(f"{limits.FILE_BYTES // limits.MIB} MiB")
        return "", [rules.FILE_TOO_LARGE.at(Position(path), found=Words(f"more than {limit}"), limit=limit)]
    problems: list[Problem] = []
    if content.startswith(_BYTE_ORDER_MARK):
        content = content[3:]
        problems.append(rules.BYTE_ORDER_MARK.at(Position(path)))
    # Latin letters in UTF-16 have a NUL in every other byte.
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or content.count(0) > len(content) // 3:
        return "", [*problems, rules.NOT_UTF8.at(Position(path), reason=Words("it is UTF-16"))]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = Text(path, content[: error.start].decode("utf-8"))
        reason = Words(f"the byte 0x{content[error.start]:02x} cannot be read")
        return "", [*problems, rules.NOT_UTF8.at(before.position(len(before.text)), reason=reason)]
    if control := _CONTROL.search(text):
        position = Text(path, text).position(control.start())
        character = Words(f"U+{ord(control.group()):04X}")
        return "", [*problems, rules.CONTROL_CHARACTER.at(position, character=character)]
    return text, problems


def parse(path: str, content: bytes) -> tuple[Document | None, list[Problem]]:
    """The data of one file, or None when there is none to work with, and the problems of its text and YAML."""
    text, found = decode(path, content)
    problems = Found(found)
    if any(problem.rule.level == "problem" for problem in problems):
        return None, problems
    document = Document(path, text)
    builder = _Builder(document, problems)
    try:
        # libyaml takes UTF-8: given text, it would make a copy. A mark at the start it would skip, and miscount.
        builder.build(text if content.startswith(_BYTE_ORDER_MARK) else content)
    except MarkedYAMLError as error:
        problems.append(yaml_errors.explain(document, error))
        return None, problems
    except _StopReadingError:
        return None, problems
    finally:
        builder.say_duplicates()
    return document, problems


#: Stands for a key that is refused; its value is read and dropped.
_NO_KEY = object()


class _StopReadingError(Exception):
    """The rest of a file is not worth reading; the reason is among the problems."""


class _Builder:
    """Builds a document from libyaml's events, without recursion."""

    def __init__(self, document: Document, problems: Found) -> None:
        self.document = document
        self.problems = problems
        self.anchors: dict[str, tuple[t.Any, str | None]] = {}
        self.open: set[int] = set()
        #: Of each open mapping, the keys that came by ``<<``, with the offsets of those that are then written.
        self.merged: dict[int, dict[str, tuple[int, int] | None]] = {}
        self.twice: list[tuple[Mapping, str, int]] = []
        self.values = 0

    def build(self, content: str | bytes) -> None:
        text = self.document.text
        if text.count("%TAG") > _MOST_TAG_LINES and len(lines := _TAG_LINES.findall(text)) > _MOST_TAG_LINES:
            offset = text.index(lines[0]) + len(lines[0]) - len("%TAG")
            reason, remedy = Words("a line that starts with '%' is an instruction to YAML"), Words("delete it")
            self.refuse(rules.YAML_SYNTAX.at(self.document.position(offset), reason=reason, remedy=remedy))
        parser = CParser(content)
        try:
            self.read(parser.get_event)
        finally:
            parser.dispose()

    def read(self, next_event: t.Callable[[], t.Any]) -> None:
        # The one hot loop of the converter: a million passes for 1 000 campaigns, hence the names held locally.
        top = Sequence(0)
        container: t.Any = top
        in_list, key, key_offset = True, None, 0
        stack: list[tuple[t.Any, bool, t.Any, int]] = []
        documents = 0
        large = len(self.document.text) > _TEXT_CHARACTERS
        while (event := next_event()) is not None:
            kind = type(event)
            source = None
            if kind is ev.ScalarEvent:
                self.values += 1
                if self.values > limits.FILE_VALUES:
                    self.refuse_size()
                value = event.value
                offset = event.start_mark.index
                if large and len(value) > _TEXT_CHARACTERS:
                    self.refuse_text(event)
                if event.tag is not None:
                    self.check_tag(event)
                elif value[:1] in _RESOLVERS and not event.style and event.implicit[0]:
                    value, source = read_plain(value)
                if event.anchor is not None:
                    self.anchors[event.anchor] = (value, source)
            elif kind is ev.MappingStartEvent or kind is ev.SequenceStartEvent:
                opened = self.start(event, len(stack))
                stack.append((container, in_list, key, key_offset))
                container, in_list, key = opened, kind is ev.SequenceStartEvent, None
                continue
            elif kind is ev.MappingEndEvent or kind is ev.SequenceEndEvent:
                value, offset = container, container.offset
                value.size += self.values
                self.open.discard(id(value))
                if self.merged:
                    self.place_merged(value)
                container, in_list, key, key_offset = stack.pop()
            elif kind is ev.AliasEvent:
                value, source = self.alias(event)
                offset = event.start_mark.index
            else:
                documents += kind is ev.DocumentStartEvent
                if documents > 1:
                    self.refuse(rules.SEVERAL_DOCUMENTS.at(self.place(event)))
                continue

            if in_list:
                if source is not None:
                    keep_source(container, len(container), source)
                container.append(value)
                container.offsets.append(offset)
            elif key is None:
                key, key_offset = self.key(value, source, offset), offset
            else:
                if key is _NO_KEY:
                    pass
                elif key in container or key == "<<":
                    self.odd_entry(container, key, value, source, key_offset, offset)
                else:
                    container[key] = value
                    container.offsets.append(key_offset)
                    container.offsets.append(offset)
                    if source is not None:
                        keep_source(container, key, source)
                key = None
        if top:
            self.document.root, self.document.root_source = top[0], top.sources.get(0)

    def place(self, event: t.Any) -> Position:
        return self.document.position(event.start_mark.index)

    def refuse(self, problem: Problem) -> t.NoReturn:
        self.problems.append(problem)
        raise _StopReadingError

    def note(self, problem: Problem) -> None:
        self.problems.append(problem)
        if self.problems.is_full:
            raise _StopReadingError

    def refuse_size(self) -> t.NoReturn:
        found, limit = Words(f"more than {limits.FILE_VALUES} values"), Words(f"{limits.FILE_VALUES} values")
        self.refuse(rules.FILE_TOO_LARGE.at(Position(self.document.path), found=found, limit=limit))

    def refuse_text(self, event: t.Any) -> t.NoReturn:
        found = Words(f"a text of {len(event.value)} characters")
        limit = Words(f"{_TEXT_CHARACTERS} characters of one text")
        self.refuse(rules.FILE_TOO_LARGE.at(self.place(event), found=found, limit=limit))

    def check_tag(self, event: t.Any) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS and event.tag != "!":
            tag = event.tag.replace(_TAG, "!!", 1)
            self.note(rules.TAG.at(self.place(event), tag=tag))

    def start(self, event: t.Any, depth: int) -> Mapping | Sequence:
        if depth >= limits.FILE_DEPTH:
            self.refuse(rules.NESTING.at(self.place(event), limit=limits.FILE_DEPTH))
        kind = Sequence if type(event) is ev.SequenceStartEvent else Mapping
        container = kind(event.start_mark.index)
        container.size = -self.values
        self.values += 1
        if event.tag is not None:
            self.check_tag(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = (container, None)
            self.open.add(id(container))
        return container

    def alias(self, event: t.Any) -> tuple[t.Any, str | None]:
        if event.anchor not in self.anchors:
            name = show(event.anchor)[1:-1]
            reason = Words(f"the alias *{name} names nothing: there is no &{name} before it")
            self.refuse(rules.ALIAS.at(self.place(event), reason=reason))
        value, source = self.anchors[event.anchor]
        if id(value) in self.open:
            reason = Words(f"the alias *{show(event.anchor)[1:-1]} holds itself")
            self.refuse(rules.ALIAS.at(self.place(event), reason=reason))
        self.values += value.size if isinstance(value, Mapping | Sequence) else 1
        if self.values > limits.FILE_VALUES:
            reason = Words(f"with this alias the file stands for more than {limits.FILE_VALUES} values")
            self.refuse(rules.ALIAS.at(self.place(event), reason=reason))
        return value, source

    def key(self, value: t.Any, source: str | None, offset: int) -> t.Any:
        if isinstance(value, str):
            return value
        shown = source if source is not None else "{…}" if isinstance(value, Mapping) else "[…]"
        position = self.document.position(offset)
        self.note(structure.KEY_NOT_TEXT.at(position, source=shown, read=Words(describe(value))))
        return _NO_KEY

    def odd_entry(
        self, mapping: Mapping, name: str, value: t.Any, source: str | None, key_offset: int, offset: int
    ) -> None:
        """An entry whose key is there already, or which merges other mappings. A written key replaces a merged one."""
        merged = self.merged.get(id(mapping), {})
        if name in merged and merged[name] is None:
            merged[name] = key_offset, offset
            mapping[name] = value
            if source is not None or name in mapping.sources:
                keep_source(mapping, name, source)
            return
        if name in mapping:
            self.twice.append((mapping, name, key_offset))
            if len(self.twice) > limits.FILE_PROBLEMS:
                raise _StopReadingError
            return
        merged = self.merged.setdefault(id(mapping), {})
        for other in value if isinstance(value, Sequence) else [value]:
            if not isinstance(other, Mapping):
                reason = Words("<< takes a mapping, or a list of mappings")
                self.note(rules.ALIAS.at(self.document.position(offset), reason=reason))
                continue
            for index, key in enumerate(other):
                if key not in mapping:
                    merged[key] = None
                    mapping[key] = other[key]
                    mapping.offsets.extend(other.offsets[2 * index : 2 * index + 2])
                    if key in other.sources:
                        keep_source(mapping, key, other.sources[key])

    def place_merged(self, mapping: Mapping | Sequence) -> None:
        merged = self.merged.pop(id(mapping), None)
        for index, key in enumerate(mapping if merged else ()):
            if offsets := merged and merged.get(key):
                mapping.offsets[2 * index], mapping.offsets[2 * index + 1] = offsets

    def say_duplicates(self) -> None:
        """Looks for the first place of each key that stands twice only when all is read, once for each mapping."""
        for mapping, name, offset in self.twice:
            first = self.document.position(mapping.offsets[2 * self.document.index(mapping, name)]).line
            self.problems.append(rules.DUPLICATE_KEY.at(self.document.position(offset), key=name, first=first))


def keep_source(container: Mapping | Sequence, key: Key, source: str | None) -> None:
    # Most containers hold nothing but text, so all of those share one empty mapping.
    if container.sources is _NO_SOURCES:
        container.sources = {}
    sources = t.cast("dict[Key, str]", container.sources)
    if source is None:
        del sources[key]
    else:
        sources[key] = source


_RESOLVERS = Resolver.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()


def read_plain(text: str) -> tuple[t.Any, str | None]:
    """What YAML 1.1 makes of an unquoted scalar, and the text itself when that is not a text.

    A number or date that looks like one and is none (``2024-13-45``, ``1:99``) is a text, and its source is kept.
    """
    if len(text) > _NUMBER_CHARACTERS:
        return text, None
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if not pattern.match(text):
            continue
        kind = tag.removeprefix(_TAG)
        if kind in ("merge", "value"):
            return text, None
        try:
            return _CONSTRUCTOR.construct_object(ScalarNode(tag, text), deep=True), text
        except (ValueError, OverflowError, ConstructorError):
            return text, None
    return text, None


def describe(value: object) -> str:
    """A value of YAML's, in words: ``the number 5349``, ``true``, ``nothing``, ``a list``."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            return "something that is not a number" if math.isnan(value) else "infinity"
        text = str(value)
        return f"the number {text if len(text) <= 24 else text[:24] + '…'}"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the date {value}"
