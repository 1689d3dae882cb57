"""``htrflow-campaigns local`` in an environment whose wrapper has an engine that takes no time.

The environment is a virtual one with all that this one has, and a module that names the engine to every Python in it.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t
import venv

import PIL.Image

from htrflow_campaigns import names
from htrflow_campaigns.local import processes, repo
from tests.cmp_plugin.conftest import Repo
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.processes import heed_signals

TOP = pathlib.Path(__file__).parents[3]
_ENGINE = 'import os\nos.environ.setdefault("ENGINE", "tests.wrapper.engines.quick")\n'
#: As if they were not installed.
_MISSING = """
import sys
class Missing:
    def find_spec(name, *more):
        if name in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing)
"""


def environment(folder: pathlib.Path, *, without: t.Sequence[str] = ()) -> pathlib.Path:
    """Makes the environment and gives its Python; ``without`` are modules that cannot be imported in it."""
    venv.EnvBuilder(symlinks=True).create(folder)
    (place,) = folder.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    adding = "".join(f"import site; site.addsitedir({path!r})\n" for path in ours)
    (place / "all.pth").write_text(f"{adding}{TOP}\n", encoding="utf-8")
    custom = f"{_ENGINE}{_MISSING.format(names=tuple(without))}"
    (place / "sitecustomize.py").write_text(custom, encoding="utf-8")
    return folder / "bin/python"


def page(number: int) -> bytes:
    """An image, another one for each number."""
    content = io.BytesIO()
    PIL.Image.new("L", (200, 100 + number), 255).save(content, "png")
    return content.getvalue()


class Local:
    """One ``htrflow-campaigns local`` on a repo, with its data beside it."""

    def __init__(self, python: pathlib.Path, repo_: Repo) -> None:
        self._python, self.repo = python, repo_
        self.data = repo_.path.parent / "data"
        self._printed = repo_.path.parent / "printed"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> list[str]:
        given = [str(self.repo.path), "--data", str(self.data), "--port", "0", *arguments]
        return [str(self._python), "-m", "htrflow_campaigns", "local", *given]

    def variables(self, **variables: str) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST"))}
        return {**given, "HOME": str(self.repo.path.parent), **variables}

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        with open(self._printed, "wb") as printed:
            self._process = subprocess.Popen(
                self.command(*arguments),
                cwd=self.repo.path.parent,
                env=self.variables(**variables),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                preexec_fn=heed_signals,
            )
        return self._process

    @property
    def printed(self) -> str:
        return self._printed.read_text(encoding="utf-8")

    def until(self, condition: t.Callable[[], object], seconds: float = 30) -> None:
        """Waits for something that the command does."""
        limit = time.monotonic() + seconds
        while not condition():
            assert self._process is not None
            ended = self._process.poll()
            assert ended is None, f"it has ended with {ended}:\n{self.printed}"
            assert time.monotonic() < limit, f"not within {seconds} s:\n{self.printed}"
            time.sleep(0.05)

    def says(self, text: str, seconds: float = 30) -> None:
        """Waits until a text is printed."""
        self.until(lambda: text in self.printed, seconds)

    def end(self, number: int = signal.SIGINT, seconds: float = 15) -> tuple[int, str]:
        """Asks it to end; gives its exit code and what it printed."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(seconds), self.printed

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs it to its end, which it comes to by itself."""
        return self.start(*arguments, **variables).wait(60), self.printed

    def warm(self) -> None:
        """Puts the markers of all models there, as earlier warm-ups left them: who waits looks every ten seconds."""
        wanted, _, _ = repo.read(self.repo.path)
        assert wanted is not None
        for job in wanted.jobs.values():
            (mount,) = [
                mount
                for container in job["spec"]["template"]["spec"]["containers"]
                for mount in container["volumeMounts"]
                if mount["mountPath"] == "/data"
            ]
            marker = self.data / "claims/htr-test-data" / mount["subPath"] / "warmup"
            marker.mkdir(parents=True, exist_ok=True)
            (marker / f"{job['metadata']['labels'][names.PIPELINE_LABEL]}.done").touch()

    def left(self) -> list[int]:
        """The processes that are there of its pods."""
        return [process.pid for process in processes.below(self.data / "pods")]

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        processes.kill(self.data / "pods")


def campaign(local: Local, name: str, source: MisbehavingHttp, *volumes: str, **fields: t.Any) -> None:
    """Writes a campaign; each volume is the names of its pages, with blanks between them."""
    document = {
        "pipeline": "demo-v1",
        **fields,
        "volumes": [
            {"id": f"{name}-{number}", "images": [f"{source.url}/{page}.png" for page in pages.split()]}
            for number, pages in enumerate(volumes)
        ],
    }
    local.repo.write(f"campaigns/{name}.yaml", json.dumps(document))


def result(local: Local, volume: str, name: str) -> t.Any:
    return json.loads((local.data / "results/htr-batch/demo-v1" / volume / name).read_text(encoding="utf-8"))


def awake(pages: MisbehavingHttp) -> None:
    """From here on, the late page comes at once."""
    pages.put("/late.png", page(0))


def until(condition: t.Callable[[], bool], seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def said(local: Local, *arguments: str, **variables: str) -> str:
    """The one sentence of a command that cannot run."""
    code, printed = local.run(*arguments, **variables)
    assert code == 2, printed
    assert printed.count("\n") == 1, printed
    assert local.left() == []
    return printed.removeprefix("htrflow-campaigns local: ").rstrip("\n")
