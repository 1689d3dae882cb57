"""The small models in a Hugging Face cache, as if they had been downloaded."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil

WEIGHTS = pathlib.Path(__file__).parent / "weights"
#: The repositories of the demo, by the folder below ``weights`` that holds their files.
REPOSITORIES = {"regions": "demo/regions", "lines": "demo/lines", "text": "demo/text"}


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def revision(folder: pathlib.Path) -> str:
    """40 hexadecimal digits made of the names and contents of all files below ``folder``, as a commit has them."""
    digest = hashlib.sha256()
    for name, path in _files(folder).items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:40]


def add(home: pathlib.Path, repository: str, folder: pathlib.Path) -> str:
    """Put the files below ``folder`` into the cache of ``$HF_HOME`` = ``home`` as the newest of ``repository``.

    Returns their revision. A file is linked where that is possible, and copied elsewhere. Repeating is harmless.
    """
    commit = revision(folder)
    cached = home / "hub" / f"models--{repository.replace('/', '--')}"
    for name, path in _files(folder).items():
        target = cached / "snapshots" / commit / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            os.link(path, target)
        except OSError:
            shutil.copyfile(path, target)
    # Read as it stands: without a newline.
    (cached / "refs").mkdir(exist_ok=True)
    (cached / "refs" / "main").write_text(commit, encoding="utf-8")
    return commit


def lay_out(home: pathlib.Path, weights: pathlib.Path = WEIGHTS) -> dict[str, str]:
    """All of :data:`REPOSITORIES` in the cache of ``$HF_HOME`` = ``home``: the revision of each repository."""
    return {repository: add(home, repository, weights / name) for name, repository in REPOSITORIES.items()}
