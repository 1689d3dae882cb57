"""The action's inputs. Each reaches the program in a variable of its own, ``INPUT_`` and its name in capitals."""

from __future__ import annotations

import pathlib
import re
import typing as t

#: The top of this project, from which the action runs.
TOP = pathlib.Path(__file__).parent.parent.parent
#: The policies that the chart installs.
CHART_POLICIES = TOP / "helm" / "htrflow-batch" / "policies"

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*(?:/[a-z0-9][a-z0-9._-]*)*")


class InputError(Exception):
    """An input makes no sense. The message is one sentence."""


class Inputs(t.NamedTuple):
    """What the workflow asks for. ``policies`` is None when nothing is to be held to any policy."""

    workspace: pathlib.Path
    folder: pathlib.Path
    base: str
    policies: pathlib.Path | None
    repositories: tuple[str, ...]
    kyverno: pathlib.Path | None
    plan: bool
    fetch: bool
    comment: bool
    token: str
    scratch: pathlib.Path

    @property
    def path(self) -> str:
        """The campaigns repo from the top of the checkout, ``.`` when it is that top."""
        return self.folder.relative_to(self.workspace).as_posix()


def read(environment: t.Mapping[str, str]) -> Inputs:
    """The inputs of one run. Raises :class:`InputError`."""
    workspace = pathlib.Path(environment.get("GITHUB_WORKSPACE") or ".").resolve()
    scratch = pathlib.Path(environment.get("RUNNER_TEMP") or "/tmp").resolve()  # noqa: S108 -- a runner sets it

    def text(name: str, default: str = "") -> str:
        return environment.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip() or default

    def truth(name: str, default: str) -> bool:
        value = text(name, default)
        if value not in ("true", "false"):
            raise InputError(f"{name} is {value!r} — write true or false")
        return value == "true"

    base, policies, program = text("base"), text("policies"), text("kyverno")
    if base.startswith("-"):
        raise InputError(f"base is {base!r}, which is no revision — write the name of a branch, or a commit")
    asked: pathlib.Path | None = CHART_POLICIES
    if policies:
        asked = None if policies == "none" else _inside(workspace, "policies", policies)
    if asked is not None and not program:
        raise InputError("there is no Kyverno program — run the step that gets it first, or write policies: none")
    return Inputs(
        workspace=workspace,
        folder=_inside(workspace, "path", text("path", ".")),
        base=base,
        policies=asked,
        repositories=_repositories(text("allowed-repositories")),
        kyverno=pathlib.Path(program).absolute() if program else None,
        plan=truth("plan", "true"),
        fetch=truth("fetch", "true"),
        comment=truth("comment", "false"),
        token=text("token"),
        scratch=scratch,
    )


def _inside(workspace: pathlib.Path, name: str, value: str) -> pathlib.Path:
    folder = (workspace / value).resolve()
    if not folder.is_relative_to(workspace):
        raise InputError(f"{name} is {value!r}, which leaves the checkout — write a folder in it, from its top")
    if not folder.is_dir():
        raise InputError(f"{name} is {value!r}, and there is no such folder in the checkout — is it checked out first?")
    return folder


def _repositories(text: str) -> tuple[str, ...]:
    found = tuple(filter(None, re.split(r"[\s,]+", text)))
    for each in found:
        if not _REPOSITORY.fullmatch(each):
            raise InputError(
                f"allowed-repositories has {each!r} — write a registry, or a registry and the first parts of a path,"
                " such as docker.io/riksarkivet"
            )
    return found
