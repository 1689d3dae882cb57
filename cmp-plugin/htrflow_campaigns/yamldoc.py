"""YAML text to plain data that knows where each of its parts stands.

libyaml does the parsing; this module builds dicts and lists from its events. It keeps one character offset a value and
not libyaml's own tree, which takes several times the memory and time, and it refuses what YAML allows but a file
written by a person never needs: two equal keys, tags, aliases that blow up, deep nesting.
"""

from __future__ import annotations

import re
import typing as t

from yaml import events as ev
from yaml._yaml import CParser
from yaml.error import MarkedYAMLError

from htrflow_campaigns import limits, yaml_errors
from htrflow_campaigns.document import Document, Mapping, Sequence, Text, keep_source
from htrflow_campaigns.problems import Found, Position, Problem, Words, show
from htrflow_campaigns.rules import files as rules
from htrflow_campaigns.rules import structure
from htrflow_campaigns.scalars import RESOLVERS, describe, read_plain

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "map", "seq")}
#: libyaml holds every %TAG line against all those before it.
_TAG_LINES = re.compile("(?:^|[\r\n\x85\u2028\u2029])%TAG")
_MOST_TAG_LINES = 100
#: Characters of one key or value. A ConfigMap holds no more; matching a longer one takes memory in proportion.
_TEXT_CHARACTERS = limits.CONFIG_MAP_BYTES


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
                elif value[:1] in RESOLVERS and not event.style and event.implicit[0]:
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
