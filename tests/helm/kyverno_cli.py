"""Runs Kyverno's command line on policies and objects, so that a run that checks nothing is an error.

Kyverno drops every policy of a path, says nothing and ends with 0 when it cannot load one of them. So each run has
canaries among its objects, which every policy must refuse, and what counts is the report, not the exit code.
"""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import tempfile
import typing as t

import yaml

Object = dict[str, t.Any]
Operation = t.Literal["CREATE", "UPDATE", "DELETE"]

_VERSION = "policies.kyverno.io/v1"
_SECONDS = 120


class KyvernoError(Exception):
    """A run whose report proves nothing: Kyverno failed, or a policy did not take part."""


class Row(t.NamedTuple):
    """What one policy says of one object. ``result`` is pass, fail, warn, error or skip."""

    policy: str
    kind: str
    namespace: str
    name: str
    result: str
    message: str


class Run(t.NamedTuple):
    """What the request looks like that the objects come with."""

    user: str = ""
    operation: Operation = "CREATE"
    options: tuple[str, ...] = ()


def load(folder: pathlib.Path) -> list[Object]:
    """The policies of a folder, one a file. Raises :class:`KyvernoError` when a file holds anything else."""
    policies = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        except yaml.YAMLError as error:
            raise KyvernoError(f"{path}: not YAML: {error}") from None
        if len(documents) != 1 or (documents[0] or {}).get("apiVersion") != _VERSION:
            raise KyvernoError(f"{path}: not one policy of {_VERSION}")
        policies += documents
    if not policies:
        raise KyvernoError(f"{folder}: no policies")
    return policies


def fill_in(policies: t.Iterable[Object], **settings: t.Any) -> list[Object]:
    """The policies with the values of their settings, which are those of their variables that have such a name."""
    filled = t.cast(list[Object], json.loads(json.dumps(list(policies))))
    unused = set(settings)
    for policy in filled:
        for variable in policy["spec"].get("variables", ()):
            if variable["name"] in settings:
                variable["expression"] = json.dumps(settings[variable["name"]])
                unused.discard(variable["name"])
    if unused:
        raise KyvernoError(f"no policy has the setting {', '.join(sorted(unused))}")
    return filled


def apply(
    program: pathlib.Path,
    policies: t.Sequence[Object],
    objects: t.Iterable[Object],
    canaries: t.Sequence[Object],
    run: Run | None = None,
) -> list[Row]:
    """What each policy says of each object that it matches, in order.

    Raises :class:`KyvernoError` when there is no report, when two objects would share a row, and when a policy does not
    refuse a canary. A policy with a condition on the user may skip it.
    """
    run = run or Run()
    objects = [*objects, *canaries]
    _no_twins(objects)
    with tempfile.TemporaryDirectory(prefix="kyverno-") as folder:
        command = [str(program), *_arguments(pathlib.Path(folder), policies, objects, run)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    rows = read_report(done.stdout)
    if not rows:
        raise KyvernoError(f"no report, exit code {done.returncode}: {done.stdout}{done.stderr}")
    birds = {_identity(canary) for canary in canaries}
    _all_took_part(policies, [row for row in rows if _of(row) in birds])
    return [row for row in rows if _of(row) not in birds]


def _arguments(
    folder: pathlib.Path, policies: t.Iterable[Object], objects: t.Iterable[Object], run: Run
) -> t.Iterator[str]:
    yield from ("apply", _write(folder, "policies", policies), "--resource", _write(folder, "objects", objects))
    yield from ("--policy-report", "--output-format", "json", "--remove-color", *run.options)
    # Without a row that passes, even a run without policies ends with another code than 0.
    yield from ("--warn-no-pass", "--warn-exit-code", "3")
    if run.user:
        yield from ("--userinfo", _write(folder, "user", [_cli("UserInfo", userInfo={"username": run.user})]))
    if run.operation != "CREATE":
        values = _cli("Values", globalValues={"request.operation": run.operation})
        yield from ("--values-file", _write(folder, "values", [values]))


def _cli(kind: str, **fields: t.Any) -> Object:
    return {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": kind, "metadata": {"name": "run"}, **fields}


def read_report(printed: str) -> list[Row]:
    """The rows of what Kyverno printed, sorted: a report is a line of JSON among lines of text."""
    reports = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return sorted(
        Row(row["policy"], of["kind"], of.get("namespace", ""), of["name"], row["result"], row.get("message", ""))
        for report in reports
        for row in report.get("results") or ()
        for of in row["resources"]
    )


def _all_took_part(policies: t.Iterable[Object], rows: t.Sequence[Row]) -> None:
    seen = {(row.policy, row.result) for row in rows}
    absent = []
    for policy in policies:
        name = policy["metadata"]["name"]
        about_users = "request.userInfo" in json.dumps(policy["spec"].get("matchConditions", []))
        if (name, "fail") not in seen and not (about_users and (name, "skip") in seen):
            absent.append(name)
    if absent:
        said = "; ".join(f"{row.policy}: {row.result} {row.message}" for row in rows if row.policy in absent)
        raise KyvernoError(f"no canary was refused by {', '.join(absent)}: {said or 'not a word'}")


def _no_twins(objects: t.Iterable[Object]) -> None:
    counts = collections.Counter(map(_identity, objects))
    twins = [identity for identity, count in counts.items() if count > 1]
    if twins:
        raise KyvernoError(f"twice among the objects: {twins}")


def _identity(item: Object) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", "default"), item["metadata"]["name"]


def _of(row: Row) -> tuple[str, str, str]:
    return row.kind, row.namespace or "default", row.name


def _write(folder: pathlib.Path, name: str, documents: t.Iterable[Object]) -> str:
    path = folder / f"{name}.yaml"
    # JSON is YAML, and nobody reads it in another way than it was meant.
    path.write_text("".join(f"---\n{json.dumps(document)}\n" for document in documents), encoding="utf-8")
    return str(path)
