"""The chart, for its tests."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from tests.helm.chart import Helm


@pytest.fixture
def helm(tool: t.Callable[[str], pathlib.Path]) -> Helm:
    return Helm(tool("helm"))
