"""A campaigns repo as it is in a git revision."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import typing as t

from htrflow_campaigns.problems import show
from htrflow_campaigns.tree import Tree, arrange

_REGULAR_FILES = ("100644", "100755")
#: What git says of a folder that it does not read, and what helps.
_REMEDIES = (
    ("not a git repository", "{folder} is not in a git repository — name the folder of a campaigns repo that is"),
    (
        "dubious ownership",
        "git does not trust {folder}, which is another user's — run: git config --global --add safe.directory '*'",
    ),
)


class GitError(Exception):
    """A revision cannot be read. The message is one sentence for the user."""


class _RefusedError(GitError):
    """What git itself says."""


@contextlib.contextmanager
def revision(folder: pathlib.Path, name: str) -> t.Iterator[Tree]:
    """The files of the campaigns repo at ``folder`` as they are in the revision ``name``. Links are not followed.

    Raises :class:`GitError` here, and when a file is read whose content the clone lacks.
    """
    commit = _commit(folder, name)
    objects: dict[str, str] = {}
    for row in filter(None, _git(folder, "ls-tree", "-r", "-z", commit, "--", ".").split(b"\0")):
        facts, _, path = row.partition(b"\t")
        mode, _, sha = facts.decode().split(" ")
        if mode in _REGULAR_FILES:
            objects[path.decode("utf-8", "surrogateescape")] = sha
    with subprocess.Popen(
        ["git", "-C", str(folder), "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as blobs:
        yield arrange(objects, lambda path: _read(blobs, path, objects[path]))


def _commit(folder: pathlib.Path, name: str) -> str:
    try:
        found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except _RefusedError as error:
        for said, sentence in _REMEDIES:
            if said in str(error):
                raise GitError(sentence.format(folder=folder)) from None
        sentence = f"there is no revision {show(name)} in this repo — fetch it first, with its history"
        raise GitError(sentence) from None
    return found.decode().strip()


def _read(blobs: subprocess.Popen[bytes], path: str, sha: str) -> bytes:
    assert blobs.stdin is not None
    assert blobs.stdout is not None
    blobs.stdin.write(f"{sha}\n".encode())
    blobs.stdin.flush()
    answer = blobs.stdout.readline().split()
    if len(answer) != 3:
        raise GitError(f"the base's {path} is not in this clone — fetch it with its history (fetch-depth: 0)")
    # Each object ends with a line break of git's own.
    return blobs.stdout.read(int(answer[2]) + 1)[:-1]


def _git(folder: pathlib.Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, check=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise GitError("git is not installed — install it, which --base needs") from None
    except subprocess.CalledProcessError as error:
        raise _RefusedError(error.stderr.decode("utf-8", "replace").strip()) from None
    return done.stdout
