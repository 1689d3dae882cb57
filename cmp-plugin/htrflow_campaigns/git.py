"""A campaigns repo as it is in a git revision."""

from __future__ import annotations

import pathlib
import subprocess

from htrflow_campaigns.problems import Position, Problem, Words
from htrflow_campaigns.rules import files as rules
from htrflow_campaigns.tree import Tree, arrange

_REGULAR_FILES = ("100644", "100755")


class GitError(Exception):
    """A revision cannot be read. The message is one sentence for the user."""


def from_revision(folder: pathlib.Path, revision: str) -> Tree:
    """The files of the campaigns repo at ``folder`` as they are in ``revision``. Links are not followed."""
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    listing = _git(folder, "ls-tree", "-r", "-z", commit.decode(), "--", ".").split(b"\0")
    objects: dict[str, str] = {}
    for row in filter(None, listing):
        facts, _, path = row.partition(b"\t")
        mode, _, sha = facts.decode().split(" ")
        if mode in _REGULAR_FILES:
            objects[path.decode("utf-8", "surrogateescape")] = sha
    return arrange(objects, lambda path: _read(folder, path, objects[path]))


def _read(folder: pathlib.Path, path: str, sha: str) -> bytes | Problem:
    try:
        return _git(folder, "cat-file", "blob", sha)
    except GitError as error:
        return rules.UNREADABLE.at(Position(path), reason=Words(str(error)))


def _git(folder: pathlib.Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, check=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise GitError("git is not installed, and --base needs it") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        if arguments[0] == "rev-parse":
            revision = arguments[-1].removesuffix("^{commit}")
            said = said or f'there is no revision "{revision}" in this repo; fetch it first, with its history'
        raise GitError(said.removeprefix("fatal: ")) from None
    return done.stdout
