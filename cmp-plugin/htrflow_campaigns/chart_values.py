"""The values of the chart that a cluster was installed with, as far as ``converter.yaml`` names the same things."""

from __future__ import annotations

import functools
import json
import pathlib
import typing as t

from htrflow_campaigns import yamldoc
from htrflow_campaigns.problems import Problem

Values = t.Mapping[str, t.Any]

#: Installed beside this module; in a checkout at the top.
_DEFAULTS = (
    pathlib.Path(__file__).parent / "schema_files/chart-defaults.json",
    pathlib.Path(__file__).parent.parent.parent / "helm/htrflow-batch/files/defaults.json",
)


class ValuesError(Exception):
    """A file of values cannot be used. The message is one sentence."""


def read(files: t.Iterable[pathlib.Path]) -> Values:
    """What the chart sees of files of values, the later ones first, over its own defaults. Raises ``ValuesError``."""
    found: Values = {}
    for file in files:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ValuesError(f"{file} cannot be read ({(error.strerror or str(error)).lower()})") from None
        document, problems = yamldoc.parse(str(file), content)
        if document is None or any(problem.rule.level == "problem" for problem in problems):
            raise ValuesError(_said(problems))
        root = document.root
        if root is not None and not isinstance(root, dict):
            raise ValuesError(f"{file} holds no values of a chart — name the file that helm install got with --values")
        found = _over(found, root or {})
    return _over(_defaults(), found, null=False)


@functools.cache
def _defaults() -> Values:
    file = next(file for file in _DEFAULTS if file.is_file())
    return t.cast(Values, json.loads(file.read_text(encoding="utf-8")))


def _over(below: Values, above: Values, *, null: bool = True) -> Values:
    """As helm lays one file over another: mappings key by key. Without ``null``, what is null leaves what is below."""
    merged = dict(below)
    for key, value in above.items():
        under = below.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            merged[key] = _over(under, value, null=null)
        elif value is not None or null:
            merged[key] = value
    return merged


def _said(problems: t.Sequence[Problem]) -> str:
    first = problems[0]
    return f"{first.position.path}:{first.position.line}:{first.position.column}: {first.message}"
