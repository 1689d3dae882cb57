"""The container of the plugin, as near as a test machine comes to it.

The converter is built and installed with nothing but the dependencies that it declares, where everybody may read it; it
runs as uid 999 without groups, capabilities, HOME or network, on a root that cannot be written.
"""

from __future__ import annotations

import atexit
import compileall
import functools
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing as t
import uuid

TOP = pathlib.Path(__file__).parents[3]
UID = 999
SECONDS = 60

#: Arguments: a folder to write to, or nothing; the command. What is mounted below the root keeps its mode.
_WALLS = """
mount --make-rprivate / || exit 125
[ -z "$1" ] || mount --bind "$1" "$1" || exit 125
mount -o remount,bind,ro / || exit 125
shift
exec "$@"
"""
_SHELL = ["sh", "-c", _WALLS, "sh"]
_UNSHARE = ["unshare", "--net", "--mount", "--"]
_USER = [
    *("setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"),
    *("--no-new-privs", "--inh-caps", "-all", "--bounding-set", "-all", "--"),
    # setpriv itself has its capabilities until it starts a program, and would find one where the user may not go.
    "env",
]


@functools.cache
def world() -> pathlib.Path:
    """A folder that everybody may enter; it goes when the tests end. pytest's own are for one user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="htrflow-campaigns-", dir="/tmp"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def installed() -> pathlib.Path:
    """The ``bin`` folder of a virtual environment with the converter as it is built from this checkout."""
    home = world() / "venv"
    subprocess.run([_python(), "-m", "venv", "--without-pip", str(home)], check=True, timeout=SECONDS)
    python = home / "bin" / "python"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(world() / "wheel")]
    subprocess.run(build, cwd=TOP, check=True, capture_output=True, timeout=SECONDS)
    (wheel,) = (world() / "wheel").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, timeout=SECONDS)
    (packages,) = home.glob("lib/python*/site-packages")
    (own,) = importlib.metadata.distributions(name="htrflow-campaigns", path=[str(packages)])
    for distribution in _closure(own):
        _copy(distribution, packages)
    compileall.compile_dir(packages, quiet=2)
    normalise(home)
    return home / "bin"


def _python() -> str:
    """A Python of the version of the tests' own that everybody may run: theirs may lie in a user's home."""
    name = "python{}.{}".format(*sys.version_info)
    places = [f"{sys.base_prefix}/bin/{name}", f"/usr/local/bin/{name}", f"/usr/bin/{name}"]
    for place in places:
        tried = subprocess.run([*user(), place, "-c", "import venv"], capture_output=True, check=False)
        if tried.returncode == 0:
            return place
    raise AssertionError(f"uid {UID} can run none of {', '.join(places)} — install one of them for everybody")


def _closure(distribution: importlib.metadata.Distribution) -> t.Iterator[importlib.metadata.Distribution]:
    """The distributions that ``distribution`` needs without extras, from the environment of the tests."""
    seen, todo = {distribution.metadata["Name"]}, [distribution]
    while todo:
        for requirement in todo.pop().requires or []:
            name = t.cast(re.Match[str], re.match(r"[\w.-]+", requirement))[0]
            if name in seen or "extra ==" in requirement:
                continue
            seen.add(name)
            try:
                found = importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:
                continue  # Needed by another Python or platform; if not, the converter fails to start.
            todo.append(found)
            yield found


def _copy(distribution: importlib.metadata.Distribution, packages: pathlib.Path) -> None:
    for file in distribution.files or []:
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)


def normalise(top: pathlib.Path) -> None:
    """Gives files 0644 and folders 0755, as the plugin server does; programs in a ``bin`` folder stay programs."""
    for folder, _, files in os.walk(top):
        pathlib.Path(folder).chmod(0o755)
        for name in files:
            path = pathlib.Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.parent.name == "bin" else 0o644)


def checkout(repo: pathlib.Path) -> pathlib.Path:
    """A fresh copy of ``repo`` where, and with the modes with which, the plugin server puts it."""
    copy = world() / "work" / "_cmp_server" / str(uuid.uuid4())
    shutil.copytree(repo, copy, symlinks=True)
    for path in (world() / "work", world() / "work" / "_cmp_server"):
        path.chmod(0o755)
    normalise(copy)
    return copy


@functools.cache
def walls() -> list[str]:
    """What starts a command without a network and with a read-only root; nothing, and a word, where that is refused."""
    start = [*_UNSHARE, *_SHELL]
    tried = subprocess.run([*start, "", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        print(f"no network namespaces here, so the plugin runs with one: {tried.stderr.strip()}", file=sys.__stderr__)
        return []
    return start


def is_root() -> bool:
    return os.geteuid() == 0


@functools.cache
def user() -> list[str]:
    """What starts a command as uid 999. Only root can; on a developer's machine the tests' own user runs it."""
    if is_root():
        return _USER
    assert not os.environ.get("CI"), "run these tests as root: they start the plugin as another user"
    print("not root, so the plugin runs as the user who runs the tests", file=sys.__stderr__)
    return ["env"]


def confined(command: t.Sequence[str], writable: pathlib.Path | None = None) -> list[str]:
    """``command`` behind the walls, as the plugin's user."""
    outside = walls()
    return [*outside, *([str(writable or "")] if outside else []), *user(), *command]


def environment(settings: t.Mapping[str, str] | None = None) -> dict[str, str]:
    """The container's own environment: what the image and the cluster set, and the plugin's settings."""
    return {
        "PATH": f"{installed()}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOSTNAME": "argocd-repo-server-5d8f9c7b6d-x2x7k",
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
        **(settings or {}),
    }


def run(
    command: t.Sequence[str],
    folder: pathlib.Path,
    variables: t.Mapping[str, str],
    settings: t.Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Runs ``command`` in ``folder`` as the plugin server runs it: no shell, no input, a process group of its own."""
    with subprocess.Popen(
        confined(command),
        cwd=folder,
        env={**environment(settings), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            output, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess([*command], process.returncode, output, errors)
