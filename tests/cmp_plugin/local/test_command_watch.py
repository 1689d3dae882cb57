"""``htrflow-campaigns local --watch`` takes up what changes in the repo."""

from __future__ import annotations

import json
import re

import pytest
import requests

from tests.cmp_plugin.local import commands
from tests.cmp_plugin.local.commands import Local
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp

pytestmark = pytest.mark.slow


def test_what_is_added_to_the_repo_starts_and_its_results_are_served(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "1")
    local.start("--watch")
    local.says("letters: succeeded")
    commands.campaign(local, "diaries", pages, "2 3")
    local.says("diaries: succeeded")

    (address,) = set(re.findall(r"http://127\.0\.0\.1:\d+(?=$|\n)", local.printed))
    served = requests.get(f"{address}/results/htr-batch/demo-v1/diaries-0/manifest.json", timeout=10)
    assert served.json() == commands.result(local, "diaries-0", "manifest.json")
    assert requests.get(f"{address}/results/htr-batch/demo-v1/nothing", timeout=10).status_code == 404
    assert local.end()[0] == 0, "nothing was left to do"


def test_a_paused_campaign_stops_and_goes_on_later(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "1 late 2")
    local.start("--watch")
    local.until(lambda: pages.count("/late.png"))
    commands.campaign(local, "letters", pages, "1 late 2", suspend=True)
    local.says("letters: paused, suspend: true in its file")
    local.until(lambda: not local.left())
    commands.awake(pages)
    commands.campaign(local, "letters", pages, "1 late 2")
    local.says("letters: letters-0 is done, 3 of 3 pages")

    job = json.loads((local.data / "jobs/letters.json").read_text())["job"]
    assert "failed" not in job["status"], "a pause is no failure"
    assert local.end()[0] == 0


def test_a_removed_campaign_goes_away_and_its_results_stay(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "1", "late")
    commands.campaign(local, "stays", pages, "late")
    local.start("--watch", "--slots", "2")
    local.until(lambda: pages.count("/late.png") == 2)
    (local.repo.path / "campaigns/letters.yaml").unlink()
    local.says("letters is removed; its results stay")

    assert not (local.data / "jobs/letters.json").exists()
    assert not [*local.data.glob("pods/letters-*")]
    assert commands.result(local, "letters-0", "manifest.json")["counts"]["done"] == 1
    assert local.left(), "the other one goes on"


def test_what_cannot_be_taken_up_changes_nothing(local: Local, pages: MisbehavingHttp) -> None:
    commands.campaign(local, "letters", pages, "late")
    local.start("--watch")
    local.until(lambda: pages.count("/late.png"))
    local.says("htr-warmup-demo-v1 has ended")
    before = local.left()
    assert before

    commands.campaign(local, "letters", pages, "late", "1")
    local.says(
        "campaigns/letters.yaml: its volumes changed after it was started — put them back, and write new volumes into a"
        " new campaign file\n"
    )
    local.repo.write("campaigns/letters.yaml", "pipeline: demo-v1\nvolumes: [\n")
    local.says("everything goes on as it was before the change\n")
    assert "campaigns/letters.yaml:" in local.printed.partition("new campaign file")[2]
    local.repo.write("converter.yaml", "window: 1\nnamespace: other\n")
    commands.campaign(local, "letters", pages, "late")
    local.says("converter.yaml: namespace, s3_secret and hf_token_secret are read at the start — stop this, and start")
    assert local.left() == before

    commands.awake(pages)
    local.repo.write("converter.yaml", "window: 1\n")
    pages.close()
    assert local.end()[0] == 130
