"""A workspace to check, and a GitHub to comment on."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from tests.action.github_server import GitHub
from tests.action.runner import Workspace


@pytest.fixture
def workspace(tmp_path: pathlib.Path) -> Workspace:
    """A checkout whose top is a good campaigns repo."""
    return Workspace(tmp_path)


@pytest.fixture
def kyverno(tool: t.Callable[[str], pathlib.Path]) -> pathlib.Path:
    return tool("kyverno")


@pytest.fixture
def github() -> t.Iterator[GitHub]:
    server = GitHub()
    yield server
    server.close()
