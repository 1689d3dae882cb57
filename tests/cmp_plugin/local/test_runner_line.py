"""In which order campaigns run on this machine, and how many at once."""

from __future__ import annotations

import copy
import pathlib

from tests.cmp_plugin.conftest import Repo
from tests.cmp_plugin.local.here import Here, campaign, here, wanted_of


def test_campaigns_start_by_priority_and_then_by_age(repo: Repo, tmp_path: pathlib.Path) -> None:
    repo.write(
        "converter.yaml",
        (repo.path / "converter.yaml").read_text() + "priority_classes: [htr-interactive, htr-bulk, htr-idle]\n",
    )
    (repo.path / "campaigns/letters.yaml").unlink()
    order = tmp_path / "order"
    scripts = {}
    for name, priority in (("a", "htr-idle"), ("b", "htr-bulk"), ("c", None), ("d", "htr-interactive")):
        campaign(repo, name, window=1, priority=priority)
        scripts[name] = f"echo {name} >>{order}"
    with here(tmp_path / "data", slots=1) as machine:
        machine.runner.want(wanted_of(repo, **scripts))
        machine.idle()

    assert order.read_text().split() == ["d", "b", "c", "a"]


def test_a_smaller_campaign_overtakes_one_that_has_no_room_and_slots_are_never_exceeded(
    repo: Repo, tmp_path: pathlib.Path
) -> None:
    (repo.path / "campaigns/letters.yaml").unlink()
    for name, volumes, window in (("first", 2, 2), ("large", 3, 3), ("small", 1, 1), ("too-large", 4, 4)):
        campaign(repo, name, volumes, window=window)
    go = tmp_path / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done"
    with here(tmp_path / "data", slots=3) as machine:
        machine.runner.want(wanted_of(repo, first=wait, large=wait, small=wait, too_large=wait))
        machine.until(lambda: machine.running("small"))
        assert (machine.running("first"), machine.running("large")) == ([0, 1], [])
        go.touch()
        machine.idle()

        ends = {name: bool(job.condition("Complete")) for name, job in machine.runner.jobs.items()}
        assert ends == {"first": True, "large": True, "small": True, "too-large": False, "htr-warmup-demo-v1": True}
        assert machine.runner.never() == ["too-large"]


def test_fewer_slots_put_a_campaign_back_into_the_line(repo: Repo, tmp_path: pathlib.Path) -> None:
    campaign(repo, "letters", 3, window=2)
    wanted = wanted_of(repo, letters="exec sleep 1000")
    with here(tmp_path / "data", slots=2) as machine:
        machine.runner.want(wanted)
        machine.until(lambda: machine.running("letters") == [0, 1])
        machine.again(slots=1)
        machine.runner.want(wanted)
        machine.idle()

        assert machine.runner.jobs["letters"].suspended
        assert machine.running("letters") == []
        assert machine.runner.never() == ["letters"]


def test_a_queued_campaign_keeps_its_place_when_another_file_changes(repo: Repo, machine: Here) -> None:
    campaign(repo, "letters", 2)
    campaign(repo, "waits", 3)
    scripts = {"letters": "exec sleep 1000", "waits": "exit 0"}
    machine.runner.want(wanted_of(repo, **scripts))
    machine.until(lambda: machine.running("letters") == [0, 1])
    before = copy.deepcopy(machine.runner.jobs["waits"].object)
    campaign(repo, "new", 1)
    machine.runner.want(wanted_of(repo, **scripts))
    assert machine.runner.jobs["waits"].object == before

    # Nothing of it was begun, so it can become another one.
    campaign(repo, "waits", 1)
    assert machine.runner.want(wanted_of(repo, **scripts)) == []
    assert machine.runner.jobs["waits"].completions == 1


def test_a_paused_campaign_that_was_begun_keeps_its_volumes(repo: Repo, machine: Here) -> None:
    campaign(repo, "letters", 2)
    machine.runner.want(wanted_of(repo, letters="exec sleep 1000"))
    machine.until(lambda: machine.running("letters") == [0, 1])
    campaign(repo, "letters", 3, suspend=True)
    refused = machine.runner.want(wanted_of(repo, letters="exec sleep 1000"))
    machine.until(lambda: not machine.runner.jobs["letters"].active)

    assert refused == [
        "campaigns/letters.yaml: its volumes changed after it was started — put them back, and write new volumes into a"
        " new campaign file"
    ]
    assert machine.runner.jobs["letters"].completions == 2
