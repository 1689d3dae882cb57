"""The chart, rendered by a real helm."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import subprocess
import typing as t

import pytest
import yaml

TOP = pathlib.Path(__file__).parents[2]
CHART = TOP / "helm" / "htrflow-batch"
VALUES = pathlib.Path(__file__).with_name("values")

Object = dict[str, t.Any]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclasses.dataclass(frozen=True)
class Helm:
    """helm, on one chart. ``settings`` are values by their path with dots, and come after those of files."""

    program: pathlib.Path
    chart: pathlib.Path = CHART

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    def arguments(self, values: t.Sequence[str], settings: t.Mapping[str, t.Any]) -> list[str]:
        """The values as helm takes them: files of ``values/`` by name, or any file by path."""
        files = [name if "/" in name else str(VALUES / f"{name}.yaml") for name in values]
        return [
            *(f"--values={file}" for file in files),
            *(f"--set-json={path}={json.dumps(value)}" for path, value in settings.items()),
        ]

    def template(
        self, *values: str, namespace: str = "htr-batch", settings: t.Mapping[str, t.Any] | None = None
    ) -> list[Object]:
        """The objects of a release in ``namespace``."""
        arguments = self.arguments(values, settings or {})
        return objects(_rendered(self, "template", "htr", str(self.chart), f"--namespace={namespace}", *arguments))

    def refusal(self, *values: str, namespace: str = "htr-batch", settings: t.Mapping[str, t.Any] | None = None) -> str:
        """What helm says of values that it does not take."""
        arguments = self.arguments(values, settings or {})
        done = self.run("template", "htr", str(self.chart), f"--namespace={namespace}", *arguments)
        assert done.returncode != 0
        assert done.stdout == ""
        return done.stderr


@functools.cache
def _rendered(helm: Helm, *arguments: str) -> str:
    done = helm.run(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[Object]:
    """The objects in what helm prints."""
    return [item for item in yaml.load_all(text, _LOADER) if item]


#: The names of the files in ``values/``: each is one way to install the chart.
WAYS = sorted(file.stem for file in VALUES.glob("*.yaml"))

#: For a test of each way to install the chart, which it takes as ``way``.
each_way = pytest.mark.parametrize("way", WAYS)


def one(objects: t.Iterable[Object], kind: str, name: str, namespace: str | None = None) -> Object:
    """The only object of a kind and a name, in a namespace when that is given."""
    (found,) = (
        item
        for item in objects
        if (item["kind"], item["metadata"]["name"]) == (kind, name)
        and namespace in (None, item["metadata"].get("namespace"))
    )
    return found


def key(item: Object) -> tuple[str, str, str]:
    """What tells an object from all others."""
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]
