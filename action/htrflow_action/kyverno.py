"""Runs Kyverno's command line on the objects, so that nothing passes because nothing was checked.

Kyverno ends with 0 when it could not load a policy, and with 1 for whatever a policy says. So what counts is its
report, and that every policy refuses one of the canaries that are among the objects.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import typing as t

from htrflow_action import made, program, report
from htrflow_action.made import Made, Sources
from htrflow_action.policies import NO_CANARY, Object, Policies, Policy, canaries
from htrflow_action.report import Identity, Row
from htrflow_campaigns.problems import Problem, Words

_SECONDS = 900
_SAID = 1500
_CANARY = "htrflow-canary"
#: Objects that are held to the policies in one go, and how many goes run at once.
_TOGETHER, _RUNS = 50, 4
#: Neither a proxy of Kyverno's own nor a token of ours is any business of this run.
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG")


class KyvernoError(Exception):
    """Kyverno says nothing of use. The message is one sentence."""


class Verdict(t.NamedTuple):
    """What Kyverno says: the rows about the user's objects, and the policies that refuse no canary."""

    rows: list[Row]
    problems: list[Problem]
    objects: int


class Objects:
    """The objects of a run: files that grow, and the sources of each object that is in one of them.

    Kyverno compiles every policy anew for every object, which takes a tenth of a second, so the objects of a large repo
    are dealt out to several runs at once.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.sources: dict[Identity, Sources] = {}
        self._files = [folder / f"objects-{number}.yaml" for number in range(min(os.cpu_count() or 1, _RUNS))]

    @property
    def files(self) -> list[pathlib.Path]:
        """The files that have objects in them; at least one."""
        used = -(-len(self.sources) // _TOGETHER)
        return self._files[: max(1, used)]

    def add(self, items: t.Iterable[Made]) -> None:
        """Adds objects. Of two with one name, the first is held to the policies."""
        for item in items:
            if self.sources.setdefault(item.identity, item.sources) is item.sources:
                file = self._files[(len(self.sources) - 1) // _TOGETHER % len(self._files)]
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(_document(item.object))


def apply(program: pathlib.Path, policies: Policies, objects: Objects, user: str) -> Verdict:
    """Holds ``objects`` to ``policies``, as ``user`` sends them. Raises :class:`KyvernoError`."""
    folder = objects.folder
    flock = [*_canaries(policies.canaries, objects.sources)]
    command = [
        *(str(program), "apply", _write(folder, "policies", [policy.object for policy in policies.policies])),
        *("--userinfo", _write(folder, "user", [_user_info(user)])),
        *("--policy-report", "--output-format", "json", "--remove-color"),
        # Without a row that passes, even a run without policies ends with another code than 0.
        *("--warn-no-pass", "--warn-exit-code", "3"),
        *(("--exception", _write(folder, "exceptions", policies.exceptions)) if policies.exceptions else ()),
    ]
    birds = {made.identity(canary) for canary in flock}
    for file in objects.files:
        with file.open("a", encoding="utf-8") as stream:
            stream.writelines(map(_document, flock))
    with concurrent.futures.ThreadPoolExecutor(len(objects.files)) as pool:
        runs = [*pool.map(lambda file: _rows([*command, "--resource", str(file)]), objects.files)]
    found = [row for rows in runs for row in rows if row.of not in birds]
    if unknown := {row.of for row in found} - objects.sources.keys():
        raise KyvernoError(f"Kyverno speaks of objects that it was not given: {sorted(unknown)}")
    unproven = [problem for rows in runs for problem in _unproven(policies.policies, rows, birds)]
    return Verdict(sorted(found), [*dict.fromkeys(unproven)], len(objects.sources))


def _rows(command: t.Sequence[str]) -> list[Row]:
    printed = _run(command)
    try:
        return report.rows(printed.stdout)
    except report.ReportError as error:
        said = re.sub(r"\s+", " ", printed.stderr or printed.stdout).strip()[:_SAID]
        raise KyvernoError(f"Kyverno ended with {printed.returncode}, and {error}: {said or 'not a word'}") from None


def _run(command: t.Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        return program.run(command, environment, _SECONDS)
    except subprocess.TimeoutExpired:
        raise KyvernoError(f"Kyverno took more than {_SECONDS} seconds") from None
    except OSError as error:
        raise KyvernoError(f"{command[0]} cannot be run ({(error.strerror or 'unknown error').lower()})") from None


def _unproven(
    policies: t.Iterable[Policy], rows: t.Iterable[Row], birds: t.Collection[Identity]
) -> t.Iterator[Problem]:
    rows = [row for row in rows if row.of in birds]
    refused = {row.policy for row in rows if row.result in ("fail", "warn")}
    for policy in policies:
        if policy.name not in refused:
            errors = [row.message for row in rows if row.policy == policy.name and row.result == "error"]
            why = Words(f" ({plain(errors[0])})" if errors else "")
            yield NO_CANARY.at(policy.position, policy=Words(plain(policy.name)), why=why)


def _canaries(own: t.Iterable[Object], taken: t.Collection[Identity]) -> t.Iterator[Object]:
    """The canaries of the action, in a namespace that no other object is in, and the folder's own.

    These are as they are written, but for a name that another object has.
    """
    namespace = _CANARY
    while namespace in {of.namespace for of in taken}:
        namespace += "-x"
    seen = {*taken}
    for item in (*({**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in canaries()), *own):
        metadata = {**item["metadata"]}
        while made.identity({**item, "metadata": metadata}) in seen:
            metadata["name"] += "-x"
        seen.add(made.identity({**item, "metadata": metadata}))
        yield {**item, "metadata": metadata}


def plain(text: str) -> str:
    """``text`` on one line, with what cannot be printed written out."""
    line = re.sub(r"\s+", " ", text).strip()[:_SAID]
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in line)


def _user_info(user: str) -> Object:
    return {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "UserInfo",
        "metadata": {"name": "user"},
        "userInfo": {"username": user},
    }


def _write(folder: pathlib.Path, name: str, documents: t.Iterable[Object]) -> str:
    path = folder / f"{name}.yaml"
    path.write_text("".join(map(_document, documents)), encoding="utf-8")
    return str(path)


def _document(item: Object) -> str:
    # JSON is YAML, and nobody reads it in another way than it was meant.
    return f"---\n{json.dumps(item)}\n"
