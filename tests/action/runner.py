"""A repository on GitHub's runner: a checkout, the environment that a runner sets, and what it makes of a run."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

TOP = pathlib.Path(__file__).parent.parent.parent
GIT = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
DIGEST = "@sha256:" + "0123456789abcdef" * 4
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ALLOWED = "registry.example.org/htr"


def pipeline(image: str = f"{ALLOWED}/htrflow-batch{DIGEST}", **revisions: str) -> str:
    """A good pipeline of two YOLO steps and TrOCR; revisions are ``regions``, ``lines``, ``reader``, ``processor``."""
    regions, lines, reader, processor = (revisions.get(name, COMMIT) for name in _PINS)
    return f"""\
image: {image}
steps:
  - step: Segmentation
    settings:
      model: yolo
      model_settings:
        model: Riksarkivet/regions
        revision: {regions}
  - step: Segmentation
    settings:
      model: yolo
      model_settings:
        model: Riksarkivet/lines
        revision: {lines}
  - step: TextRecognition
    settings:
      model: TrOCR
      model_settings:
        model: Riksarkivet/reader
        model_kwargs: {{revision: {reader}}}
        processor_kwargs: {{revision: {processor}}}
"""


_PINS = ("regions", "lines", "reader", "processor")
CAMPAIGN = "pipeline: demo-v1\nvolumes:\n  - id: brev-1\n    images: [https://example.org/1.jpg]\n"


class Command(t.NamedTuple):
    """A workflow command that the runner obeys."""

    name: str
    properties: dict[str, str]
    data: str

    @property
    def place(self) -> str:
        return ":".join(self.properties.get(key, "") for key in ("file", "line", "col"))


@dataclasses.dataclass(frozen=True)
class Done:
    """What a run leaves behind."""

    code: int
    printed: str
    summary: str
    outputs: dict[str, str]

    @property
    def commands(self) -> list[Command]:
        return list(obeyed(self.printed))

    def annotations(self, name: str = "error") -> list[Command]:
        return [command for command in self.commands if command.name == name]


def obeyed(printed: str) -> t.Iterator[Command]:
    """The commands that a runner obeys: all but those between ``stop-commands`` and its token."""
    token = None
    for line in re.split("\r\n|\r|\n", printed):
        match = re.match(r"\s*::([^ :]+)(?: (.*?))?::(.*)", line)
        if token is not None:
            token = None if match and match[1] == token else token
        elif match:
            pairs = (pair.split("=", 1) for pair in (match[2] or "").split(",") if pair)
            yield Command(match[1], {key: _decoded(value, ":", ",") for key, value in pairs}, _decoded(match[3]))
            token = match[3] if match[1] == "stop-commands" else None
        else:
            assert "##[" not in line, "an older command would start here"


def _decoded(value: str, *more: str) -> str:
    for character in ("\r", "\n", *more, "%"):
        value = value.replace(f"%{ord(character):02X}", character)
    return value


def outputs(text: str) -> dict[str, str]:
    """The outputs in a file of ``GITHUB_OUTPUT``, which has both forms."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, block, end = line.partition("<<")
        if block:
            found[name] = "\n".join(iter(lambda: next(lines), end))
        else:
            name, _, found[line.partition("=")[0]] = line.partition("=")
    return found


class Workspace:
    """A checkout in git with a campaigns repo at ``at`` in it, good as it is, and one commit."""

    def __init__(self, folder: pathlib.Path, at: str = ".") -> None:
        self.path, self.at = folder / "workspace", at
        self.temp = folder / "temp"
        self.repo = self.path / at
        self.repo.mkdir(parents=True)
        self.temp.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("converter.yaml", "namespace: team-a\nqueue: letters-a\n")
        self.write("pipelines/demo-v1.yaml", pipeline())
        self.write("campaigns/brev.yaml", CAMPAIGN)
        self.base = self.commit()

    def write(self, name: str, content: str | bytes) -> pathlib.Path:
        """Writes a file of the campaigns repo."""
        file = self.repo / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *GIT, "-C", str(self.path), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self) -> str:
        """Commits everything, and gives the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def event(self, payload: t.Any) -> str:
        path = self.temp / "event.json"
        path.write_text(json.dumps(payload), encoding="utf-8")
        return str(path)

    def pull_request(self, *, number: int = 7, fork: bool = False, base: str = "", head: str = "") -> dict[str, str]:
        """The environment of a pull request whose head is what is checked out."""
        sides = {
            "base": {"sha": base or self.base, "repo": {"full_name": "arkiv/campaigns"}},
            "head": {
                "sha": head or self.git("rev-parse", "HEAD"),
                "repo": {"full_name": "other/campaigns" if fork else "arkiv/campaigns"},
            },
        }
        payload = {"number": number, "pull_request": {"number": number, **sides}}
        return {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": self.event(payload)}

    def run(self, environment: t.Mapping[str, str] | None = None, **inputs: str | pathlib.Path) -> Done:
        """Runs the action's program as its step does; inputs have ``_`` for ``-``."""
        files = {name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("", encoding="utf-8")
        given = {"path": self.at, "fetch": "false", "allowed_repositories": ALLOWED, **inputs}
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = subprocess.run(
            [sys.executable, "-P", "-s", "-m", "htrflow_action"],
            cwd=self.path,
            env={
                **kept,
                "PYTHONPATH": str(TOP / "action"),
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_WORKSPACE": str(self.path),
                "GITHUB_REPOSITORY": "arkiv/campaigns",
                **{name: str(file) for name, file in files.items()},
                **{f"INPUT_{name.upper()}": str(value) for name, value in given.items()},
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=180,
            check=False,
        )
        summary = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        return Done(done.returncode, done.stdout, summary, outputs(files["GITHUB_OUTPUT"].read_text(encoding="utf-8")))
