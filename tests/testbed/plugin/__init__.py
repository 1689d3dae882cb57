"""A pytest plugin: the real programs that tests run against, each started once a run when a test asks for it."""

from __future__ import annotations

pytest_plugins = ["tests.testbed.plugin.run", "tests.testbed.plugin.skipping", "tests.testbed.plugin.fixtures"]
