"""Writes the objects of a campaigns repo into a folder, one file for each of the user's files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import shutil
import tempfile
import typing as t

from htrflow_campaigns import names, yaml_writer
from htrflow_campaigns.delivery import Delivery
from htrflow_campaigns.load import Loaded

FOLDERS = ("campaigns", "pipelines")

#: A file below the output folder is ours when it says so near its start.
_OURS = re.compile(rf"^ +{re.escape(names.MANAGED_BY_LABEL)}: {names.MANAGED_BY}$", re.MULTILINE)
_HEAD_CHARACTERS = 2000
_STAGING = ".rendering-"


class Written(t.NamedTuple):
    """What a render did, as paths relative to the output folder."""

    written: list[str]
    unchanged: list[str]
    removed: list[str]


def files(loaded: Loaded, delivery: Delivery) -> t.Iterator[tuple[str, str]]:
    """The path and text of each rendered file: ``campaigns/<name>.yaml`` and ``pipelines/<id>.yaml``."""
    for _, name, objects in delivery.everything(loaded):
        yield f"{name}.yaml", yaml_writer.dump_all(objects)


def render(loaded: Loaded, delivery: Delivery, out: pathlib.Path) -> Written | None:
    """Writes every file, or none: nothing below ``out`` changes when the repo turns out to be bad (None) or a file
    cannot be written (:class:`OSError`).

    Files of ours that no longer have a source are removed. Others stay, and so do files that would not change.
    """
    if not loaded.is_good():
        return None
    with _made(out), _staging(out) as staging:
        rendered = []
        for path, text in files(loaded, delivery):
            staged = staging / path
            staged.parent.mkdir(exist_ok=True)
            staged.write_text(text, encoding="utf-8", newline="\n")
            rendered.append(path)
        if not loaded.is_good():
            return None
        _check_folders(out)
        unchanged = [path for path in rendered if _same(staging / path, out / path)]
        written = sorted({*rendered} - {*unchanged})
        removed = sorted({*_ours(out)} - {*rendered})
        with _restoring(out, [*written, *removed], staging / "before"):
            for path in written:
                (out / path).parent.mkdir(exist_ok=True)
                (staging / path).replace(out / path)
            for path in removed:
                (out / path).unlink()
    return Written(written, sorted(unchanged), removed)


@contextlib.contextmanager
def _made(out: pathlib.Path) -> t.Iterator[None]:
    """The output folder, which is there afterwards only if it was before or has something in it."""
    new = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for folder in new:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def _staging(out: pathlib.Path) -> t.Iterator[pathlib.Path]:
    """A folder in ``out``, so that files are moved to their places and never copied. One render at a time has one."""
    descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Under the lock, another one belongs to a render that was killed.
            for left_over in out.glob(f"{_STAGING}*"):
                shutil.rmtree(left_over, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_STAGING, dir=out) as staging:
            yield pathlib.Path(staging)
    finally:
        os.close(descriptor)


def _check_folders(out: pathlib.Path) -> None:
    for folder in (out / name for name in FOLDERS):
        # Behind a link there may be the sources themselves.
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a folder of its own", str(folder))


@contextlib.contextmanager
def _restoring(out: pathlib.Path, paths: t.Iterable[str], before: pathlib.Path) -> t.Iterator[None]:
    """Puts everything back as it was when one of the changes to ``paths`` fails; ``before`` is a folder for copies."""
    folders = [folder for folder in FOLDERS if not (out / folder).exists()]
    copies: dict[str, pathlib.Path | None] = {}
    for path in paths:
        copies[path] = None
        if (out / path).is_dir() and not (out / path).is_symlink():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(out / path))
        if os.path.lexists(out / path):
            copies[path] = copy = before / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(out / path, copy, follow_symlinks=False)
    try:
        yield
    except BaseException:
        for path, saved in copies.items():
            if saved is not None:
                saved.replace(out / path)
            else:
                (out / path).unlink(missing_ok=True)
        for folder in folders:
            with contextlib.suppress(OSError):
                (out / folder).rmdir()
        raise


def _same(staged: pathlib.Path, current: pathlib.Path) -> bool:
    return current.is_file() and not current.is_symlink() and staged.read_bytes() == current.read_bytes()


def _ours(out: pathlib.Path) -> t.Iterator[str]:
    for folder in FOLDERS:
        for file in (out / folder).glob("*.yaml"):
            if file.is_file() and not file.is_symlink():
                with file.open(encoding="utf-8", errors="replace") as stream:
                    if _OURS.search(stream.read(_HEAD_CHARACTERS)):
                        yield f"{folder}/{file.name}"
