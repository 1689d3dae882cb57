"""The policies that objects are held to: those of the chart, or a folder in the repository.

Kyverno 1.19 drops every policy of a path, without a word, when it cannot read one document in it. So the folder is read
here, and Kyverno gets one file with nothing but policies.
"""

from __future__ import annotations

import json
import pathlib
import re
import typing as t

import yaml

from htrflow_campaigns.problems import Position, Problem, Rule, Words, show

Object = dict[str, t.Any]

#: A file of a folder of policies with objects that they have to refuse.
CANARIES = "canaries.yaml"
_OWN_CANARIES = pathlib.Path(__file__).with_name(CANARIES)
_GROUP = "policies.kyverno.io/"
_KINDS = ("ValidatingPolicy", "NamespacedValidatingPolicy")
_UNCHECKED = ("ImageValidatingPolicy", "NamespacedImageValidatingPolicy")
_BYTES = 4 * 1024 * 1024
_REPOSITORIES = "allowedRepositories"
_EMPTY = ("[]", "{}")
#: What asks others in an expression. Whoever opens a pull request may write policies, and the machine that checks it
#: reaches more than they do.
_ASKING = re.compile(r"\b(?:http|resource|globalContext)\b(?!s?:)|\bGetMetadata\b")

NOT_A_POLICY = Rule(
    "action",
    "policy-unread",
    "A folder of policies holds policies",
    "{reason}",
    "write ValidatingPolicies of policies.kyverno.io, exceptions to them, and canaries.yaml",
)
NO_POLICY = Rule(
    "action",
    "policies-missing",
    "A folder of policies is not empty",
    "there is no policy in this folder, so nothing would be checked",
    "name another folder in policies:, or write policies: none",
)
NO_CANARY = Rule(
    "action",
    "policy-without-canary",
    "A policy refuses a canary",
    "the policy {policy} refuses none of the canaries, so nobody knows whether it checks anything{why}",
    "write an object that it has to refuse into canaries.yaml beside it",
)
NOT_CHECKED = Rule(
    "action",
    "policy-not-checked",
    "A policy can be checked before the merge",
    "the {kind} {policy} is not checked here: it asks {whom}",
    "leave it to the cluster, and keep it out of this folder",
    level="warning",
)


class Policy(t.NamedTuple):
    """A policy as Kyverno gets it, and where it is written; ``denies`` is false when the cluster would only warn."""

    name: str
    object: Object
    position: Position
    denies: bool


class Policies(t.NamedTuple):
    """What a folder holds. ``canaries`` are those that lie in it; ``left_out`` are the names of policies whose setting
    nobody has given."""

    policies: list[Policy]
    exceptions: list[Object]
    canaries: list[Object]
    problems: list[Problem]
    left_out: list[str]


def read(
    folder: pathlib.Path, top: pathlib.Path, queues: t.Mapping[str, str], repositories: t.Sequence[str]
) -> Policies:
    """The policies in ``folder`` with their settings filled in, where they are empty.

    ``queues`` are the queues by namespace. Positions are relative to ``top`` when the folder lies below it. Two
    settings are known: ``queues`` and ``allowedRepositories``; a policy that needs the latter is left out without it.
    """
    found = Policies([], [], [], [], [])
    settings = {"queues": dict(queues), **({_REPOSITORIES: list(repositories)} if repositories else {})}
    here = folder.relative_to(top).as_posix() if folder.is_relative_to(top) else folder.name
    seen: set[str] = set()
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".yaml", ".yml"):
            continue
        position = Position(_printable(f"{here}/{path.name}".removeprefix("./")))
        try:
            documents = _file(path)
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            found.problems.append(_unread(position, str(error).splitlines()[0] if str(error) else "not readable"))
            continue
        for document in documents:
            if path.name != CANARIES:
                _sort(document, position, settings, seen, found)
            elif _is_object(document) and not document["kind"].endswith("List"):
                found.canaries.append(document)
            else:
                found.problems.append(_unread(position, "a canary is one object of Kubernetes, with a kind and a name"))
    if not found.policies and not found.problems and not found.left_out:
        found.problems.append(NO_POLICY.at(Position(_printable(here))))
    return found


def canaries() -> list[Object]:
    """What every policy of the chart refuses. The objects are in no namespace."""
    return _documents(_OWN_CANARIES.read_text(encoding="utf-8"))


def _sort(
    document: t.Any, position: Position, settings: t.Mapping[str, t.Any], seen: set[str], found: Policies
) -> None:
    if not _is_object(document):
        found.problems.append(_unread(position, "this is no object of Kubernetes with a kind and a name"))
        return
    kind, name = document["kind"], _name(document)
    if not str(document.get("apiVersion")).startswith(_GROUP) or kind not in (*_KINDS, *_UNCHECKED, "PolicyException"):
        shown = f"{document.get('apiVersion')} {kind}"
        found.problems.append(_unread(position, f"{show(shown)} is nothing that is checked here"))
    elif kind in _UNCHECKED or _asks(document.get("spec")):
        whom = Words("the images' registry" if kind in _UNCHECKED else "other servers")
        found.problems.append(NOT_CHECKED.at(position, kind=Words(kind), policy=Words(_printable(name)), whom=whom))
    elif kind == "PolicyException":
        found.exceptions.append(document)
    elif name in seen:
        found.problems.append(_unread(position, f"there are two policies {show(name)}"))
    else:
        seen.add(name)
        filled, unset = _filled(document, settings)
        if unset:
            found.left_out.append(re.sub(r"[^\w./-]", "?", name))
        else:
            actions = (document.get("spec") or {}).get("validationActions") or ["Deny"]
            found.policies.append(Policy(name, filled, position, "Deny" in actions))


def _filled(policy: Object, settings: t.Mapping[str, t.Any]) -> tuple[Object, bool]:
    """The policy with the settings that are empty in it, and whether one of them is not given."""
    filled: Object = json.loads(json.dumps(policy, default=str))
    unset = False
    spec = filled.get("spec")
    variables = spec.get("variables") if isinstance(spec, dict) else None
    for variable in variables if isinstance(variables, list) else ():
        if isinstance(variable, dict) and str(variable.get("expression", "")).strip() in _EMPTY:
            name = str(variable.get("name"))
            if name in settings:
                variable["expression"] = json.dumps(settings[name])
            unset = unset or (name == _REPOSITORIES and name not in settings)
    return filled, unset


def _asks(part: t.Any) -> bool:
    """Whether an expression in a part of a policy asks the network or a cluster."""
    if isinstance(part, list):
        return any(map(_asks, part))
    if not isinstance(part, dict):
        return False
    return any(
        _ASKING.search(value) is not None if isinstance(value, str) and "xpression" in str(key) else _asks(value)
        for key, value in part.items()
    )


def _file(path: pathlib.Path) -> list[t.Any]:
    if path.is_symlink() or not path.is_file():
        raise ValueError("this is a link or no file, and only files are read")
    if path.stat().st_size > _BYTES:
        raise ValueError("this file is larger than 4 MiB")
    return _documents(path.read_text(encoding="utf-8"))


def _documents(text: str) -> list[t.Any]:
    return [document for document in yaml.safe_load_all(text) if document is not None]


def _is_object(document: t.Any) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("kind"), str)
        and isinstance(document.get("metadata"), dict)
        and isinstance(document["metadata"].get("name"), str)
    )


def _name(policy: Object) -> str:
    """What Kyverno's report calls a policy."""
    metadata = policy["metadata"]
    if policy["kind"].startswith("Namespaced"):
        return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
    return str(metadata["name"])


def _unread(position: Position, reason: str) -> Problem:
    return NOT_A_POLICY.at(position, reason=Words(_printable(reason)))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
