"""YAML text to plain data that knows where each of its parts stands.

libyaml does the parsing; this module builds dicts and lists from its events. It keeps one character offset a value and
not libyaml's own tree, which takes several times the memory and time, and it refuses what YAML allows but a file
written by a person never needs: two equal keys, tags, aliases that blow up, deep nesting.
"""

from __future__ import annotations

import array
import bisect
import re
import typing as t

from yaml import events as ev
from yaml._yaml import CParser
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.error import MarkedYAMLError
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from htrflow_campaigns import limits, yaml_errors
from htrflow_campaigns.problems import Position, Problem, Words
from htrflow_campaigns.rules import files as rules
from htrflow_campaigns.rules import structure

Key = str | int
Path = tuple[Key, ...]

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "map", "seq")}


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
        self._starts: list[int] | None = None

    def position(self, offset: int) -> Position:
        if self._starts is None:
            self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", self.text))]
        line = bisect.bisect_right(self._starts, offset)
        return Position(self.path, line, offset - self._starts[line - 1] + 1)


class Document(Text):
    """One file's data.

    ``root`` is made of :class:`Mapping`, :class:`Sequence`, str, int, float, bool and None. What YAML reads as one of
    the last four, or as a date, and what was written for it stands in ``sources`` of the mapping or list around it.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.root: t.Any = None
        self.root_source: str | None = None

    def at(self, path: Path, *, key: bool = False) -> Position:
        """Where the value at ``path`` stands, or with ``key`` the key that leads to it."""
        container: t.Any = self.root
        offset = container.offset if isinstance(container, Mapping | Sequence) else 0
        for step in path:
            if isinstance(container, Mapping) and step in container:
                index = 2 * list(container).index(t.cast(str, step)) + (0 if key and step == path[-1] else 1)
            elif isinstance(container, Sequence) and isinstance(step, int) and step < len(container):
                index = step
            else:
                break
            offset = container.offsets[index]
            container = container[step]
        return self.position(offset)

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
        found, limit = (Words(f"{size / limits.MIB:.0f} MiB") for size in (len(content), limits.FILE_BYTES))
        return "", [rules.FILE_TOO_LARGE.at(Position(path), found=found, limit=limit)]
    problems = []
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
        problems.append(rules.BYTE_ORDER_MARK.at(Position(path)))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = Text(path, content[: error.start].decode("utf-8"))
        bad = Words("the byte 0x" + content[error.start : error.start + 1].hex())
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            bad = Words("it is UTF-16, and its first byte")
        return "", [*problems, rules.NOT_UTF8.at(before.position(len(before.text)), bytes=bad)]
    if control := _CONTROL.search(text):
        position = Text(path, text).position(control.start())
        character = Words(f"U+{ord(control.group()):04X}")
        return "", [*problems, rules.CONTROL_CHARACTER.at(position, character=character)]
    return text, problems


def parse(path: str, content: bytes) -> tuple[Document | None, list[Problem]]:
    """The data of one file, or None when there is none to work with, and the problems of its text and YAML."""
    text, problems = decode(path, content)
    if any(problem.rule.level == "problem" for problem in problems):
        return None, problems
    document = Document(path, text)
    builder = _Builder(document, problems)
    try:
        builder.build()
    except MarkedYAMLError as error:
        problems.append(yaml_errors.explain(document, error))
        return None, problems
    except _StopReadingError:
        return None, problems
    return document, problems


#: Stands for a key that is refused; its value is read and dropped.
_NO_KEY = object()


class _StopReadingError(Exception):
    """The rest of a file is not worth reading; the reason is among the problems."""


class _Builder:
    """Builds a document from libyaml's events, without recursion."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems
        self.anchors: dict[str, tuple[t.Any, str | None]] = {}
        self.open: set[int] = set()
        self.values = 0

    def build(self) -> None:
        parser = CParser(self.document.text)
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
        while (event := next_event()) is not None:
            kind = type(event)
            source = None
            if kind is ev.ScalarEvent:
                self.values += 1
                if self.values > limits.FILE_VALUES:
                    self.refuse_size()
                value = event.value
                offset = event.start_mark.index
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
                    self.odd_entry(container, key, value, key_offset)
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

    def refuse_size(self) -> t.NoReturn:
        found, limit = Words(f"more than {limits.FILE_VALUES} values"), Words(f"{limits.FILE_VALUES} values")
        self.refuse(rules.FILE_TOO_LARGE.at(Position(self.document.path), found=found, limit=limit))

    def check_tag(self, event: t.Any) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS and event.tag != "!":
            tag = event.tag.replace(_TAG, "!!", 1)
            self.problems.append(rules.TAG.at(self.place(event), tag=tag))

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
            reason = Words(f"the alias *{event.anchor} names nothing: there is no &{event.anchor} before it")
            self.refuse(rules.ALIAS.at(self.place(event), reason=reason))
        value, source = self.anchors[event.anchor]
        if id(value) in self.open:
            self.refuse(rules.ALIAS.at(self.place(event), reason=Words(f"the alias *{event.anchor} holds itself")))
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
        self.problems.append(structure.KEY_NOT_TEXT.at(position, source=shown, read=Words(describe(value))))
        return _NO_KEY

    def odd_entry(self, mapping: Mapping, name: str, value: t.Any, offset: int) -> None:
        """An entry whose key is there already, or which merges another mapping."""
        if name in mapping:
            first = self.document.position(mapping.offsets[2 * list(mapping).index(name)]).line
            self.problems.append(rules.DUPLICATE_KEY.at(self.document.position(offset), key=name, first=first))
            return
        for other in value if isinstance(value, Sequence) else [value]:
            if not isinstance(other, Mapping):
                reason = Words("<< takes a mapping, or a list of mappings")
                self.problems.append(rules.ALIAS.at(self.document.position(offset), reason=reason))
                continue
            for index, merged in enumerate(other):
                if merged not in mapping:
                    mapping[merged] = other[merged]
                    mapping.offsets.extend(other.offsets[2 * index : 2 * index + 2])
                    if merged in other.sources:
                        keep_source(mapping, merged, other.sources[merged])


def keep_source(container: Mapping | Sequence, key: Key, source: str) -> None:
    # Most containers hold nothing but text, so all of those share one empty mapping.
    if container.sources is _NO_SOURCES:
        container.sources = {}
    t.cast("dict[Key, str]", container.sources)[key] = source


_RESOLVERS = Resolver.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()


def read_plain(text: str) -> tuple[t.Any, str | None]:
    """What YAML 1.1 makes of an unquoted scalar, and the text itself when that is not a text.

    A number or date that looks like one and is none (``2024-13-45``, ``1:99``) is a text, and its source is kept.
    """
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
        text = str(value)
        return f"the number {text if len(text) <= 24 else text[:24] + '…'}"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the date {value}"
