"""Reads a Dockerfile and the list of what its build is sent."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
import subprocess
import sys
import typing as t

TOP = pathlib.Path(__file__).parents[1]


@dataclasses.dataclass(frozen=True)
class Dockerfile:
    """A Dockerfile in a folder of the project."""

    folder: str

    @property
    def path(self) -> pathlib.Path:
        return TOP / self.folder / "Dockerfile"

    def lint(self) -> tuple[int, str, str]:
        """What hadolint says."""
        command = [pathlib.Path(sys.executable).parent / "hadolint", self.path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def instructions(self) -> list[tuple[str, str]]:
        """Name and rest of each."""
        text = re.sub(r"^#.*\n", "", self.path.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
        return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]

    def final(self) -> list[tuple[str, str]]:
        """The instructions of the last stage."""
        names = [name for name, _ in self.instructions()]
        return self.instructions()[len(names) - names[::-1].index("FROM") :]

    def variables(self) -> dict[str, str]:
        """What the image sets."""
        words = [word for name, rest in self.final() if name == "ENV" for word in shlex.split(rest)]
        return dict(t.cast(tuple[str, str], tuple(word.split("=", 1))) for word in words)

    def copied(self) -> set[str]:
        """What is copied from the repo."""
        copies = [rest for name, rest in self.instructions() if name == "COPY" and "--from" not in rest]
        return {source for rest in copies for source in rest.split()[:-1]}

    def sent(self) -> set[str]:
        """What the build is sent."""
        lines = self.path.with_name("Dockerfile.dockerignore").read_text("utf-8").splitlines()
        assert lines[1] == "*"
        return {line.removeprefix("!").removesuffix("/*.lock") for line in lines if line.startswith("!")}

    def installs(self) -> list[str]:
        """The arguments of each installation of Python packages."""
        runs = " && ".join(rest for name, rest in self.instructions() if name == "RUN")
        return re.findall(r"\binstall (.*?)(?:&&|$)", runs)
