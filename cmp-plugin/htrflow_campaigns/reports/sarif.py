"""For code scanners' viewers: SARIF 2.1.0, an OASIS standard (sections in parentheses are the standard's)."""

from __future__ import annotations

import collections
import hashlib
import json
import re
import typing as t
import urllib.parse

from htrflow_campaigns import __version__
from htrflow_campaigns.problems import Problem, Rule
from htrflow_campaigns.reports import Outcome
from htrflow_campaigns.reports.as_json import docs
from htrflow_campaigns.rules import RULES

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"problem": "error", "warning": "warning"}
_INDEX = {id_: index for index, id_ in enumerate(RULES)}
_ROOT = "%SRCROOT%"
#: A place that a message names moves when lines are added above it.
_LINE_NUMBER = re.compile(r"\bline \d+")
_PLACEHOLDER = re.compile(r"(?<!\{)\{\w+\}(?!\})")

_Json = dict[str, t.Any]


def report(outcome: Outcome) -> str:
    """One run with every rule, used or not, and one result a problem."""
    driver = {
        "name": "htrflow-campaigns",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in RULES.values()],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repo that holds the files."}}},
        "columnKind": "unicodeCodePoints",
        "results": [*_results(outcome.problems)],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _rule(rule: Rule) -> _Json:
    # helpUri has to be absolute (3.49.12), so the help names the page in words.
    sentence = _PLACEHOLDER.sub("…", f"{rule.what} — {rule.instead}".replace("{{", "{").replace("}}", "}"))
    explained = f"Explained in {docs(rule.id)}."
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": f"{rule.title}. Said as: {sentence}"},
        "help": {"text": explained},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
    }


def _results(problems: t.Iterable[Problem]) -> t.Iterator[_Json]:
    seen: collections.Counter[str] = collections.Counter()
    for problem in problems:
        digest = _digest(problem)
        seen[digest] += 1
        yield _result(problem, f"{digest}:{seen[digest]}")


def _result(problem: Problem, fingerprint: str) -> _Json:
    path, line, column = problem.position
    location = {
        "artifactLocation": {"uri": urllib.parse.quote(path, errors="surrogatepass"), "uriBaseId": _ROOT},
        "region": {"startLine": line, "startColumn": column},
    }
    return {
        "ruleId": problem.rule.id,
        "ruleIndex": _INDEX[problem.rule.id],
        "level": _LEVELS[problem.rule.level],
        # "[text](target)" would be a link, also in plain text (3.11.6).
        "message": {"text": problem.message.replace("](", "] (")},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"problem/v1": fingerprint},
    }


def _digest(problem: Problem) -> str:
    """What stays the same of a problem when lines are added or taken away above it."""
    words = (problem.rule.id, problem.position.path, _LINE_NUMBER.sub("line", problem.what))
    return hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]
