"""A pytest plugin: the real programs that tests run against, each started once a run when a test asks for it."""

from __future__ import annotations

pytest_plugins = [
    "tests.testbed.plugin.run",
    "tests.testbed.plugin.skipping",
    "tests.testbed.plugin.cluster",
    "tests.testbed.plugin.fake_nodes",
    "tests.testbed.plugin.s3",
    "tests.testbed.plugin.misbehaving_http",
    "tests.testbed.plugin.browser",
]
