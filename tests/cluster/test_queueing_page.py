"""The page on queueing names a test for what it says, and the versions that the tests run on."""

from __future__ import annotations

import re

from tests.helm.chart import TOP
from tests.tools.cache import owner

_PAGE = (TOP / "docs/queueing.md").read_text(encoding="utf-8")
_HERE = TOP / "tests/cluster"


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(?:(tests/\w+)/)?(test_\w+\.py)::(test_\w+)`", _PAGE)

    assert len(named) > 15
    missing = [
        test
        for folder, file, test in named
        if f"def {test}(" not in (TOP / (folder or "tests/cluster") / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_test_of_the_queue_and_of_pauses_is_named() -> None:
    files = ("test_queue.py", "test_pause.py", "test_pods_ready.py", "test_cohort.py")
    defined = [
        f"{name}::{test}"
        for name in files
        for test in re.findall(r"^def (test_\w+)\(", (_HERE / name).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert [name for name in defined if f"`{name}`" not in _PAGE] == []


def test_the_versions_are_those_that_the_tests_run_on() -> None:
    assert f"Kueue {owner('kueue').version_of('kueue')} on Kubernetes {owner('kube-apiserver').version}" in _PAGE
