"""Writes a new campaigns repo, one that validates and renders as it is."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import tempfile
import textwrap
import typing as t

from htrflow_campaigns import __version__, schemas, yaml_writer

#: The files of a new repo. ``dot-`` at the start of a name stands for a dot, so that neither git nor a packager takes
#: them for its own.
_EXAMPLE = pathlib.Path(__file__).parent / "example"
_DOT = "dot-"
_GITHUB = ".github/"
_KINDS: tuple[schemas.Kind, ...] = ("converter", "campaign", "pipeline")
_WIDTH = 100

_CONVERTER_HEAD = """\
# yaml-language-server: $schema=.schemas/converter.schema.json
#
# The settings of this campaigns repo. One that starts with '#' and no space is off: delete the '#' of its lines to
# turn it on. The others have their default value here, but for source_template: it has none, and the example
# campaign needs it.
"""
#: Settings that are on although their default is off: the example campaign needs them.
_ON = ("source_template",)
_CANNOT_WRITE = "{} cannot be written ({}) — name a folder that you may write to"


class InitError(Exception):
    """The repo cannot be written. The message is one sentence; nothing has changed."""


def write(folder: pathlib.Path, *, ci: t.Literal["github", "none"] = "github", force: bool = False) -> list[str]:
    """Writes a campaigns repo into ``folder`` and gives the paths of its files, relative to it.

    Nothing is written when a file is in the way (unless ``force``) or when one cannot be written. Files that do not
    belong to a new repo are never touched.
    """
    files = {path: text for path, text in _contents() if ci == "github" or not path.startswith(_GITHUB)}
    # What to take away again when the disk turns out to be full.
    new = None
    try:
        _check_room(folder, files, force)
        new = next((parent for parent in [*reversed(folder.parents), folder] if not parent.exists()), None)
        folder.mkdir(parents=True, exist_ok=True)
        # Inside the folder, so that each file is moved to its place and never copied.
        with tempfile.TemporaryDirectory(prefix=".init-", dir=folder) as staging_name:
            staging = pathlib.Path(staging_name)
            for path, text in files.items():
                _put(staging / path, text)
            for path in files:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (staging / path).replace(folder / path)
    except OSError as error:
        if new is not None:
            shutil.rmtree(new, ignore_errors=True)
        reason = (error.strerror or str(error)).lower()
        raise InitError(_CANNOT_WRITE.format(folder, reason)) from None
    return sorted(files)


def _put(file: pathlib.Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def _check_room(folder: pathlib.Path, paths: t.Iterable[str], force: bool) -> None:
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise InitError(f"{place} is a file — name a folder")
    taken = []
    for path in sorted(paths):
        *above, file = _steps(folder, path)
        for place in above:
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                kind = "a link" if place.is_symlink() else "a file"
                raise InitError(f"{place} is {kind}, and a folder belongs there — move it, or name another folder")
        for place in (folder, *above):
            if place.exists() and not os.access(place, os.W_OK | os.X_OK):
                raise InitError(_CANNOT_WRITE.format(place, "permission denied"))
        if file.is_dir() and not file.is_symlink():
            raise InitError(f"{file} is a folder, and a file belongs there — move it, or name another folder")
        if file.exists() or file.is_symlink():
            taken.append(path)
    if taken and not force:
        raise InitError(f"{folder} already has {_list(taken)} — name another folder, or write over them with --force")


def _steps(folder: pathlib.Path, path: str) -> list[pathlib.Path]:
    """``folder/a``, ``folder/a/b``, … up to ``folder/path``."""
    parts = path.split("/")
    return [folder.joinpath(*parts[: end + 1]) for end in range(len(parts))]


def _list(words: t.Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _contents() -> t.Iterator[tuple[str, str]]:
    """The path and text of every file of a new repo."""
    yield "converter.yaml", converter()
    for kind in _KINDS:
        yield f".schemas/{kind}.schema.json", schemas.path(kind).read_text(encoding="utf-8")
    for file in sorted(_EXAMPLE.rglob("*")):
        if file.is_file():
            parts = file.relative_to(_EXAMPLE).parts
            path = "/".join(f".{part.removeprefix(_DOT)}" if part.startswith(_DOT) else part for part in parts)
            yield path, file.read_text(encoding="utf-8").replace("{version}", __version__)


def converter() -> str:
    """A ``converter.yaml`` with every key of its schema: what it is for, and its default or, when that is to have
    none, an example that is commented out."""
    return "\n".join([_CONVERTER_HEAD, *map(_setting, schemas.load("converter")["properties"].items())])


def _setting(item: tuple[str, schemas.Schema]) -> str:
    key, schema = item
    default = schema.get("default")
    on = bool(default) or key in _ON
    value = default if default else _whole_example(schema)
    comment = textwrap.fill(schema["description"], _WIDTH, initial_indent="# ", subsequent_indent="# ")
    lines = _explained(yaml_writer.dump({key: value}).splitlines(), _nested(schema))
    return "\n".join([comment, *(line if on else f"#{line}" for line in lines)]) + "\n"


def _nested(schema: schemas.Schema) -> schemas.Schema:
    """The schema of the mappings inside a list or a mapping of any names."""
    inner = schema.get("items") or schema.get("additionalProperties") or {}
    return inner if isinstance(inner, dict) and "properties" in inner else {"properties": {}}


def _whole_example(schema: schemas.Schema) -> t.Any:
    """The schema's first example. Mappings under a name also show the keys that they leave at their default."""
    example = schema["examples"][0]
    if not isinstance(example, dict):
        return example
    rest = {key: inner["default"] for key, inner in _nested(schema)["properties"].items() if "default" in inner}
    return {name: {**value, **rest} if isinstance(value, dict) else value for name, value in example.items()}


def _explained(lines: t.Sequence[str], schema: schemas.Schema) -> list[str]:
    """``lines`` of YAML with what each key of ``schema`` is for behind it."""
    keys = [re.match(r"\s+(?:- )?(\w+):|- (\w+):", line) for line in lines]
    found = [schema["properties"].get(key[1] or key[2]) if key else None for key in keys]
    width = max((len(line) for line, inner in zip(lines, found, strict=True) if inner), default=0)
    return [
        f"{line:{width}} # {inner['description']}" if inner else line for line, inner in zip(lines, found, strict=True)
    ]


def describe(folder: pathlib.Path, written: t.Sequence[str]) -> str:
    """What was written, and what to do next."""
    here = shlex.quote(str(folder))
    rendered = shlex.quote(str(folder / "rendered"))
    return "\n".join(
        [
            f"wrote {len(written)} files into {folder}:",
            *(f"  {path}" for path in written),
            "",
            "It validates and renders as it is:",
            f"  htrflow-campaigns validate {here}",
            f"  htrflow-campaigns render {here} --out {rendered}",
            "",
            "Before the first run, set converter.yaml to what your cluster has, and image in pipelines/demo-v1.yaml to",
            "the image that your platform team has tested. README.md tells how to ask for a run.",
            "",
        ]
    )
