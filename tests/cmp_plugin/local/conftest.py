"""A command and a runner with folders of their own."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from tests.cmp_plugin.conftest import PIPELINE, Repo
from tests.cmp_plugin.local import commands
from tests.cmp_plugin.local.commands import Local
from tests.cmp_plugin.local.here import Here, here
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return commands.environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture
def pages(misbehaving_http: MisbehavingHttp) -> MisbehavingHttp:
    """A source with pages ``/1.png`` to ``/9.png``, and ``/late.png``, which comes when a test is long over."""
    for number in range(1, 10):
        misbehaving_http.put(f"/{number}.png", commands.page(number))
    misbehaving_http.put("/late.png", Answer(commands.page(0), delay=600))
    return misbehaving_http


@pytest.fixture
def local(python: pathlib.Path, empty_repo: Repo) -> t.Iterator[Local]:
    empty_repo.write("converter.yaml", "window: 1\n")
    empty_repo.write("pipelines/demo-v1.yaml", PIPELINE)
    made = Local(python, empty_repo)
    made.warm()
    yield made
    made.close()


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> t.Iterator[Here]:
    with here(tmp_path / "data") as made:
        yield made
