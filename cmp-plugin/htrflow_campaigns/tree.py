"""Which files of a campaigns repo are read, from a folder or from a git revision, and how."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import stat
import typing as t

from htrflow_campaigns import limits
from htrflow_campaigns.problems import Position, Problem, Words
from htrflow_campaigns.rules import files as rules

ENDINGS = (".yaml", ".yml")
FOLDERS = {"campaigns": "the campaign", "pipelines": "the pipeline"}


class Entry(t.NamedTuple):
    """A file of the user's: its path from the top of the repo, and the name that it gives to what it holds."""

    path: str
    name: str


@dataclasses.dataclass(frozen=True)
class Tree:
    """The files of a campaigns repo in the order of their names, and what is wrong with their names.

    ``read`` gives a file's bytes, or the problem that keeps them from being read.
    """

    converter: Entry | None
    campaigns: t.Sequence[Entry]
    pipelines: t.Sequence[Entry]
    problems: t.Sequence[Problem]
    read: t.Callable[[str], bytes | Problem]


def arrange(paths: t.Iterable[str], read: t.Callable[[str], bytes | Problem]) -> Tree:
    """A tree of the files at ``paths``, which are relative to the top of the repo and use ``/``."""
    problems: list[Problem] = []
    found: dict[str, dict[str, Entry]] = {"": {}, **{folder: {} for folder in FOLDERS}}
    for path in sorted(paths):
        folder, _, file = path.rpartition("/")
        stem, ending = pathlib.PurePath(file).stem, pathlib.PurePath(file).suffix
        if not path.isprintable():
            problems.append(rules.FILE_NAME.at(Position(show_path(path))))
        elif reason := _not_read(folder, stem, ending):
            problems.append(rules.NOT_READ.at(Position(path), reason=Words(reason[0]), instead=Words(reason[1])))
        elif folder in found and ending in ENDINGS and (folder or stem == "converter"):
            other = found[folder].setdefault(stem, Entry(path, stem))
            if other.path != path:
                name = Words(f'{FOLDERS[folder]} "{stem}"' if folder else "the settings of this repo")
                problems.append(rules.SAME_STEM.at(Position(path), other=Words(other.path), name=name))
    converter = found[""].get("converter")
    misnamed = any(problem.rule is rules.NOT_READ and "/" not in problem.position.path for problem in problems)
    if converter is None and not misnamed:
        problems.append(rules.CONVERTER_MISSING.at(Position("converter.yaml")))
    by_name = {folder: [entries[name] for name in sorted(entries)] for folder, entries in found.items()}
    return Tree(converter, by_name["campaigns"], by_name["pipelines"], problems, read)


def _not_read(folder: str, stem: str, ending: str) -> tuple[str, str] | None:
    """Why a file that looks like one of a campaigns repo is none, and what to do; None when all is well."""
    top, _, below = folder.partition("/")
    if folder in FOLDERS and (ending == ".json" or (not ending and not stem.isupper())):
        return f"its name does not end in {ENDINGS[0]}", f"rename it to end in {ENDINGS[0]}"
    if folder in FOLDERS and ending == ".txt" and stem.lower().endswith(ENDINGS):
        return "its ending is .txt", f"rename it to {stem}"
    if ending.lower() not in ENDINGS:
        return None
    if not folder and stem.lower() == "converter" and stem + ending not in ("converter.yaml", "converter.yml"):
        return "upper-case letters make it another name", "rename it to converter.yaml"
    if top in FOLDERS and below:
        return f"only files directly in {top}/ are", f"move it to {top}/"
    if top in FOLDERS and ending not in ENDINGS:
        return f"its ending is {ending}", f"rename it to end in {ending.lower()}"
    meant = next((name for name in FOLDERS if top.lower().rstrip("s") == name.rstrip("s") and top != name), None)
    if meant:
        return f"it lies in {top}/ and not in {meant}/", f"move it to {meant}/"
    return None


def show_path(path: str) -> str:
    """``path`` with what cannot be printed, or is not UTF-8, written as ``?``."""
    return "".join(c if c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF else "?" for c in path)


def from_folder(top: pathlib.Path) -> Tree:
    """The files below the folder ``top``. Nothing outside of it is ever read.

    Raises :class:`OSError` when ``top`` itself cannot be listed.
    """
    root = top.resolve()
    found = arrange(_walk(root), lambda path: _read(root, path))
    return dataclasses.replace(found, problems=[*found.problems, *_check_folders(root)])


def _walk(root: pathlib.Path) -> t.Iterator[str]:
    for entry in os.scandir(root):
        name = entry.name
        if name.lower().rstrip("s") in ("campaign", "pipeline") and entry.is_dir(follow_symlinks=False):
            for folder, folders, files in os.walk(entry.path):
                folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
                here = pathlib.PurePath(folder).relative_to(root).as_posix()
                # A folder that is called like a YAML file is listed too, so that something is said about it.
                files += [folder for folder in folders if folder.lower().endswith(ENDINGS)]
                yield from (f"{here}/{file}" for file in files if not file.startswith("."))
        else:
            yield name


def _check_folders(root: pathlib.Path) -> t.Iterator[Problem]:
    """A folder that is something else would leave out everything in it without a word."""
    for name in FOLDERS:
        folder, position = root / name, Position(name)
        if folder.is_symlink():
            yield rules.LINK.at(position, reason=Words("stands where a folder belongs"))
        elif folder.exists() and not folder.is_dir():
            instead = Words(f"make it a folder with the .yaml files of the {name}")
            yield rules.NOT_A_FOLDER.at(position, instead=instead)
        elif folder.is_dir():
            for entry in folder.iterdir():
                if entry.is_symlink() and entry.is_dir() and not entry.name.endswith(ENDINGS):
                    below = Position(show_path(f"{name}/{entry.name}"))
                    yield rules.LINK.at(below, reason=Words("leads to a folder, and only files are read"))


def _read(root: pathlib.Path, path: str) -> bytes | Problem:
    file, position = root / path, Position(path)
    try:
        if file.is_symlink() and (problem := _check_link(root, file, position)):
            return problem
        # O_NONBLOCK: a named pipe would wait for a writer for ever.
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = Words("a folder" if stat.S_ISDIR(mode) else "a special file")
            return rules.NOT_A_FILE.at(position, kind=kind, instead=Words("remove or rename it"))
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            return stream.read(limits.FILE_BYTES + 1)
    except OSError as error:
        return rules.UNREADABLE.at(position, reason=Words((error.strerror or "unknown error").lower()))


def _check_link(root: pathlib.Path, file: pathlib.Path, position: Position) -> Problem | None:
    """A link is fine as long as it ends inside the repo.

    An absolute one may: Argo CD's plugin server writes every link so when it unpacks a repo, and has by then refused
    repos in whose git a link is absolute.
    """
    try:
        inside = file.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return rules.LINK.at(position, reason=Words("leads nowhere"))
    if inside:
        return None
    if file.readlink().is_absolute():
        return rules.LINK.at(position, reason=Words("names an absolute path, which is another file on every machine"))
    return rules.LINK.at(position, reason=Words("leaves the repo"))
