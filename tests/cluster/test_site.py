"""The whole way, seen in a browser: ``apply``, Kueue, a pod's real wrapper that writes to a real store, the site."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest

from tests.cmp_plugin.apply.teams import Team
from tests.statuspage.programs import platform
from tests.testbed.plugin.browser import Browser
from tests.testbed.plugin.cluster import Cluster
from tests.testbed.plugin.fake_nodes import FakeNodes
from tests.testbed.plugin.kubelet import index_of
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.namespace import Namespace
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods

_PAGES, _LOST = 300, 7


@pytest.mark.slow
def test_a_campaign_is_followed_from_apply_to_its_record_in_a_browser(
    cluster: Cluster,
    namespace: Namespace,
    fake_nodes: FakeNodes,
    s3: Store,
    misbehaving_http: MisbehavingHttp,
    browser: Browser,
    tool: t.Callable[[str], pathlib.Path],
    tmp_path: pathlib.Path,
) -> None:
    manifest = pods.serve_volume(misbehaving_http, _PAGES)
    misbehaving_http.put(f"/volume/{_LOST}.jpg", b"<html>gone")
    team = Team(tmp_path / "repo", namespace, cluster.admin)
    team.repo.write(
        "campaigns/letters.yaml", f"pipeline: demo-v1\nvolumes:\n  - {{id: R0001203, manifest: '{manifest}'}}\n"
    )
    namespace.quota(gpu=0)
    assert team.apply().code == 0
    (tmp_path / "site").mkdir()
    viewer = str(tool("universalviewer") / "dist")
    with platform(tmp_path / "site", cluster.admin, s3, [namespace.name], VIEWER=viewer) as site:
        page = browser.page(locale="en-GB")
        page.goto(site.web.url)
        page.get_by_label("User name").fill(s3.reader.access)
        page.get_by_label("Password").fill(s3.reader.secret)
        page.get_by_role("button", name="Log in").click()
        card = page.locator("article")
        card.locator(".state-queued").first.wait_for(timeout=15_000)
        card.get_by_text("It can never start").wait_for(timeout=20_000)

        namespace.quota(gpu=2)
        card.locator(".state-running").first.wait_for(timeout=30_000)
        pod = pods.Pod(s3, tmp_path / "pod", manifest, engine="slow", variables={"S3_PREFIX": f"{namespace.name}/"})
        process = pod.start()
        some = re.compile(rf"^[1-9][0-9]* of {_PAGES}")
        page.locator(".total .numbers", has_text=some).first.wait_for(timeout=60_000)
        assert process.poll() is None, "its progress is seen before it ends"
        assert pod.wait(process).code == 0
        running = team.wait(lambda: [one for one in namespace.pods() if index_of(one) == "0"], "the pod is there")
        fake_nodes.end(running[0]["metadata"]["name"])

        card.get_by_text("Partially succeeded").wait_for(timeout=60_000)
        card.get_by_text(f"{_PAGES - 1} of {_PAGES} · 1 failed").first.wait_for(timeout=30_000)
        page.goto(f"{site.web.url}/campaigns/{namespace.name}/letters/R0001203")
        assert "is an HTML page and not an image" in page.inner_text("main")
        assert page.locator(".cell-failed").count() >= 1

        # The next run writes the ending into the record, which is what is left when the Job's time is over.
        assert "recorded Job/letters" in team.apply().out
        team.gone("letters")
        page.goto(site.web.url)
        page.get_by_text("job removed").wait_for(timeout=30_000)
        assert "Partially succeeded" in card.inner_text()
        assert team.apply().code == 0
        assert team.job("letters") is None
