"""What happens to a test whose program is missing, and the account of which programs tests ran against.

On a developer's own machine such a test is skipped, with a sentence that says how to get the program. With ``CI`` set
it fails.
"""

from __future__ import annotations

import collections
import functools
import os
import pathlib
import typing as t

import pytest

from tests import tools
from tests.tools.cache import owner

_PROPERTY = "testbed"
_CLUSTER = ("etcd", "kube-apiserver", "kueue", "kubectl")
#: The version of a cluster that is not ours.
FOREIGN = pytest.StashKey[str]()
#: The programs behind a fixture.
BEHIND: dict[str, tuple[str, ...]] = {
    "cluster": _CLUSTER,
    "guarded_cluster": (*_CLUSTER, "kyverno-admission-controller"),
    "s3": ("versitygw",),
    "own_s3": ("versitygw",),
    "browser": ("chromium", "axe-core"),
}
_CLUSTERS = {"cluster", "guarded_cluster"}


def require(*names: str) -> None:
    """Skips the test that runs, or fails it with ``CI`` set, when one of the programs is missing."""
    missing = []
    for name in names:
        try:
            tools.find(name)
        except tools.MissingError as error:
            missing.append(str(error))
    if missing:
        give_up("; ".join(missing))


def give_up(sentence: str) -> t.NoReturn:
    """Skips the test that runs, or fails it with ``CI`` set."""
    if os.environ.get("CI"):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.fixture
def tool(request: pytest.FixtureRequest) -> t.Callable[[str], pathlib.Path]:
    """Finds a program by its name: ``tool("helm")`` is its path."""

    def find(name: str) -> pathlib.Path:
        require(name)
        note(request.node, name)
        return tools.find(name)

    return find


def note(item: pytest.Item, name: str) -> None:
    """Counts a test as one that ran against a program."""
    entry = (_PROPERTY, _named(name))
    if entry not in item.user_properties:
        item.user_properties.append(entry)


@functools.cache
def _named(name: str) -> str:
    program = owner(name)
    return f"{name if name in program.versions else program.name} {program.version_of(name)}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Counts the programs behind the test's fixtures."""
    foreign = item.config.getoption("cluster_of_kubeconfig")
    for fixture in getattr(item, "fixturenames", ()):
        for name in BEHIND.get(fixture, ()):
            if not (foreign and fixture in _CLUSTERS):
                note(item, name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Counts a cluster of others, whose version is known when the test has it."""
    version = item.config.stash.get(FOREIGN, "")
    if version and _CLUSTERS & {*getattr(item, "fixturenames", ())}:
        item.user_properties.append((_PROPERTY, f"the cluster of KUBECONFIG {version}"))


def pytest_terminal_summary(terminalreporter: t.Any) -> None:
    """Says how many tests ran against which program, and what tests measured."""
    counts: collections.Counter[str] = collections.Counter()
    measured: list[str] = []
    for outcome in ("passed", "failed", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, ()):
            if report.when == "call":
                counts.update(value for key, value in report.user_properties if key == _PROPERTY)
                name = report.nodeid.rpartition("/")[2]
                measured += [f"{name}: {key}: {value}" for key, value in report.user_properties if key != _PROPERTY]
    if counts:
        facts = ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))
        terminalreporter.write_line(f"tests against real programs: {facts}")
    for line in measured:
        terminalreporter.write_line(f"measured by {line}")
