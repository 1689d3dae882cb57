"""A pytest plugin: the real programs that tests run against, each started once a run when a test asks for it."""

from __future__ import annotations

pytest_plugins = [f"tests.testbed.plugin.{name}" for name in ("run", "skipping", "fixtures", "generated")]
