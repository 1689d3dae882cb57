"""Repairs what has exactly one repair: a byte-order mark, a tab that indents, a misread text without quotes.

The text is edited at the places at fault, and all else stays byte for byte. ruamel.yaml keeps comments when it writes a
file, but sets indentation, spaces, line ends and long lines anew; so it only reads here, and shows that every comment
is still where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import stat
import tempfile
import typing as t

import yaml

from htrflow_campaigns import load, yamldoc
from htrflow_campaigns.problems import Position, Problem, show
from htrflow_campaigns.rules import files as rules
from htrflow_campaigns.tree import Tree

_BOM = b"\xef\xbb\xbf"
#: A tab may stand for any of these. When all that can be read give the same file, it does not matter which was meant.
_TAB_WIDTHS = (2, 4, 8)
#: Lines with a tab that are repaired one by one, each after reading the file up to it; then all others go at once.
_SINGLE_LINES = 20
_INDENT = re.compile(r"[ \t]*")
#: What stands before a key that shares its line with the dash of its list item is indentation too.
_DASHES = re.compile(r"[ \t]*(?:-[ \t]+)*")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")

_Repair = tuple[int, str]


def fix(folder: pathlib.Path, tree: Tree) -> dict[str, list[str]]:
    """Repairs the files of ``tree``, which was read from ``folder``.

    Gives what was done, in words, by the path of each changed file. A file that would still not be YAML afterwards is
    left alone, and so is a symbolic link. Raises :class:`OSError` when a file cannot be written.
    """
    contents: dict[str, bytes] = {}
    repairs: dict[str, set[_Repair]] = {}
    given_up = {entry for entry in _paths(tree) if not _is_own_file(folder, entry)}
    overlay = dataclasses.replace(tree, read=lambda path: contents[path] if path in contents else tree.read(path))
    # A byte-order mark or a tab can hide what else is wrong with a file, hence the rounds.
    while found := {path: problems for path, problems in _fixable(overlay).items() if path not in given_up}:
        for path, problems in found.items():
            before = overlay.read(path)
            assert isinstance(before, bytes)
            after, done = _repair(path, before, problems)
            if after == before:
                given_up.add(path)
            else:
                contents[path] = after
                repairs.setdefault(path, set()).update(done)
    said = {}
    for path in sorted(contents):
        if yamldoc.parse(path, contents[path])[0] is not None:
            _write(folder / path, contents[path])
            said[path] = [f"line {line}: {words}" for line, words in sorted(repairs[path])]
    return said


def _paths(tree: Tree) -> t.Iterator[str]:
    for entry in (tree.converter, *tree.pipelines, *tree.campaigns):
        if entry is not None:
            yield entry.path


def _fixable(tree: Tree) -> dict[str, list[Problem]]:
    """The problems of ``tree`` that have a repair, by path."""
    loaded = load.load(tree)
    for _ in loaded.campaigns():
        pass
    found: dict[str, list[Problem]] = {}
    for problem in loaded.problems:
        if problem.rule.fixable:
            found.setdefault(problem.position.path, []).append(problem)
    return found


def _repair(path: str, content: bytes, problems: t.Sequence[Problem]) -> tuple[bytes, list[_Repair]]:
    """``content`` with the first kind of its problems repaired, and what was done."""
    broken = {problem.rule for problem in problems}
    if rules.BYTE_ORDER_MARK in broken:
        return content.removeprefix(_BOM), [(1, "removed the byte-order mark")]
    text = content.decode()
    if rules.TAB_INDENTATION in broken:
        text, done = _replace_tabs(path, text)
    else:
        # Every other repair is a pair of quotes.
        text, done = _quote(text, {problem.position for problem in problems})
    return text.encode(), done


def _replace_tabs(path: str, text: str) -> tuple[str, list[_Repair]]:
    versions = [_with_spaces(path, text, " " * width) for width in _TAB_WIDTHS]
    readable = [version for version in versions if yamldoc.parse(path, version[0].encode())[0] is not None]
    if not readable:
        return text, []
    (first, lines), *others = readable
    for other, its_lines in others:
        if its_lines != lines or not _same_events(first, other) or _comments(first) != _comments(other):
            return text, []
    return first, [(line, "replaced a tab with spaces") for line in sorted(lines)]


def _with_spaces(path: str, text: str, spaces: str) -> tuple[str, set[int]]:
    """``text`` with ``spaces`` for every tab that keeps it from being read, and the lines that had one."""
    lines = _LINE_BREAK.split(text)
    breaks = [*_LINE_BREAK.findall(text), ""]
    done: set[int] = set()
    while True:
        text = "".join(itertools.chain.from_iterable(zip(lines, breaks, strict=True)))
        _, problems = yamldoc.parse(path, text.encode())
        tab = next((problem for problem in problems if problem.rule is rules.TAB_INDENTATION), None)
        if tab is None:
            return text, done
        last = tab.position.line if len(done) < _SINGLE_LINES else len(lines)
        changed = set()
        for number in range(tab.position.line, last + 1):
            pattern, line = _DASHES if number == tab.position.line else _INDENT, lines[number - 1]
            end = len(line) - len(pattern.sub("", line, count=1))
            if "\t" in line[:end]:
                lines[number - 1] = line[:end].replace("\t", spaces) + line[end:]
                changed.add(number)
        if not changed:
            return text, done
        done |= changed


def _quote(text: str, positions: t.Collection[Position]) -> tuple[str, list[_Repair]]:
    """``text`` with quotes around the values at ``positions``.

    A value with an anchor, or one that an alias names, is left alone: whoever wrote it may mean the other place.
    """
    starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]
    lines = {starts[position.line - 1] + position.column - 1: position.line for position in positions}
    pieces, done, end, quoted = [], [], 0, set()
    for index, event in enumerate(_parse(text)):
        first, last = event.start_mark.index, event.end_mark.index
        # An anchor, an alias, quotes or a line break make the text differ from the value.
        if first in lines and isinstance(event, yaml.ScalarEvent) and text[first:last] == event.value:
            pieces += [text[end:first], f'"{event.value}"']
            end = last
            quoted.add(index)
            done.append((lines[first], f"put {show(event.value)[1:-1]} in quotes"))
    after = "".join([*pieces, text[end:]])
    if _same_events(text, after, quoted) and _comments(text) == _comments(after):
        return after, done
    return text, []


def _same_events(before: str, after: str, quoted: t.Collection[int] = ()) -> bool:
    """Whether two texts are the same YAML but for the style of the values that are ``quoted`` in the second."""
    pairs = itertools.zip_longest(_parse(before), _parse(after))
    try:
        return all(
            type(one) is type(other)
            and all(getattr(one, name, None) == getattr(other, name, None) for name in ("anchor", "tag", "value"))
            and (getattr(one, "style", None) == getattr(other, "style", None) or index in quoted)
            for index, (one, other) in enumerate(pairs)
        )
    except yaml.YAMLError:
        return False


def _parse(text: str) -> t.Iterator[t.Any]:
    return yaml.parse(text, yaml.CSafeLoader)


def _comments(text: str) -> list[t.Any] | None:
    """Every comment of ``text``, by the place in its structure; None when ruamel.yaml cannot read it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return [_plain(event.comment) for event in YAML(typ="rt").parse(text)]
    except YAMLError:
        return None


def _plain(comment: t.Any) -> t.Any:
    if isinstance(comment, list | tuple):
        return [_plain(part) for part in comment]
    return getattr(comment, "value", comment)


def _is_own_file(folder: pathlib.Path, path: str) -> bool:
    """Whether ``path`` is a file of its own and no part of the way to it is a symbolic link."""
    file = folder.resolve() / path
    try:
        return stat.S_ISREG(file.lstat().st_mode) and file.parent.resolve() == file.parent
    except OSError:
        return False


def _write(file: pathlib.Path, content: bytes) -> None:
    """Puts ``content`` in the place of a file at once, with the file's mode and, if allowed, its owner."""
    status = file.lstat()
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=".htrflow-campaigns-")
    try:
        with open(descriptor, "wb") as stream:
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
            stream.write(content)
        pathlib.Path(name).replace(file)
    except BaseException:
        pathlib.Path(name).unlink(missing_ok=True)
        raise
