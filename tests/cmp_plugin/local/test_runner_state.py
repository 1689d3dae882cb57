"""What is kept of Jobs, and what becomes of them when the runner is killed."""

from __future__ import annotations

import copy
import itertools
import json
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time
import typing as t

import pytest

from htrflow_campaigns.local import indexes, processes
from tests.cmp_plugin.conftest import Repo
from tests.cmp_plugin.local import driver
from tests.cmp_plugin.local.cases import Object
from tests.cmp_plugin.local.here import Here, alive, campaign, folder_of, wanted_of

TOP = pathlib.Path(__file__).parents[3]


def test_what_is_known_of_jobs_is_there_again_after_a_restart(
    repo: Repo, machine: Here, tmp_path: pathlib.Path
) -> None:
    count = f'echo $JOB_COMPLETION_INDEX >>{tmp_path}/runs; [ "$JOB_COMPLETION_INDEX" != 1 ] || exit 13'
    wanted = wanted_of(repo, letters=count)
    machine.runner.want(wanted)
    machine.idle()
    before = copy.deepcopy(machine.runner.jobs["letters"].object)
    machine.again()
    machine.runner.want(wanted)
    machine.idle()

    assert machine.runner.jobs["letters"].object == before
    assert sorted((tmp_path / "runs").read_text().split()) == ["0", "1", "2"]


@pytest.mark.parametrize("content", ["", "{", "null", "[]", '{"job": {}, "failures": {}}'])
def test_a_damaged_file_of_a_job_is_put_aside_and_the_job_begins_anew(
    repo: Repo, machine: Here, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = wanted_of(repo)
    machine.runner.want(wanted)
    machine.idle()
    file = machine.data.folder / "jobs/letters.json"
    file.write_text(content)
    machine.again()
    assert "letters" not in machine.runner.jobs
    machine.runner.want(wanted)
    machine.idle()

    assert machine.runner.jobs["letters"].condition("Complete")
    assert file.with_suffix(".unreadable").read_text() == content
    assert "what was known of letters cannot be read, so it begins anew; its results stay" in caplog.messages


@pytest.mark.parametrize("content", ["", "null", "[]", '{"metadata": {}}'])
@pytest.mark.parametrize("what", ["config-maps/letters.json", "pods"])
def test_other_damaged_files_do_no_harm(repo: Repo, machine: Here, what: str, content: str) -> None:
    wanted = wanted_of(repo, letters="exec sleep 1000")
    machine.runner.want(wanted)
    machine.until(lambda: machine.running("letters"))
    file = machine.data.folder / what
    if file.is_dir():
        file = folder_of(machine, "letters") / "pod.json"
    file.write_text(content)
    machine.again()

    assert processes.below(machine.data.folder) == []
    assert machine.runner.want(wanted) == []
    machine.until(lambda: machine.running("letters") == [0, 1, 2])
    for index in (0, 1, 2):
        assert len([pod for pod in machine.pods("letters", index) if pod["status"]["phase"] == "Running"]) == 1


def test_what_is_kept_of_a_job_goes_with_its_campaign(repo: Repo, machine: Here) -> None:
    campaign(repo, "stays")
    machine.runner.want(wanted_of(repo, letters="exec sleep 1000"))
    machine.until(lambda: machine.running("letters"))
    result = machine.data.results / "htr-batch/demo-v1/R0001203/manifest.json"
    result.parent.mkdir(parents=True)
    result.touch()
    (repo.path / "campaigns/letters.yaml").unlink()
    machine.runner.want(wanted_of(repo))
    machine.idle()

    left = [path for path in machine.data.folder.rglob("*") if "letters" in path.name]
    assert (left, processes.below(machine.data.folder)) == ([], [])
    assert result.exists(), "results stay"
    assert machine.runner.jobs["stays"].condition("Complete")


def test_a_runner_that_is_killed_at_any_moment_runs_no_finished_index_again(repo: Repo, tmp_path: pathlib.Path) -> None:
    """Scripts note their beginning and their end; one index always fails, one fails once."""
    campaign(repo, "letters", 8, window=4)
    script = textwrap.dedent(
        f"""\
        i=$JOB_COMPLETION_INDEX; echo $i $$$$ >>{tmp_path}/begun; sleep 0.0$((i % 4))
        echo $i >>{tmp_path}/ended
        [ $i != 5 ] || exit 13
        [ $i != 6 ] || [ "$INDEX_FAILURE_COUNT" != 0 ] || exit 1"""
    )
    wanted = wanted_of(repo, letters=script)
    file, data = tmp_path / "wanted.json", tmp_path / "data"
    file.write_text(json.dumps({"jobs": wanted.jobs, "config_maps": wanted.config_maps}))
    chance = random.Random(7)  # noqa: S311
    decided: dict[int, set[int]] = {}

    def status() -> Object:
        try:
            return t.cast(Object, json.loads((data / "jobs/letters.json").read_text())["job"]["status"])
        except FileNotFoundError:
            return {}

    def runs() -> list[int]:
        path = tmp_path / "begun"
        return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []

    command = [sys.executable, "-m", driver.__name__, str(data), str(file)]
    for number in itertools.count():
        process = subprocess.Popen(command, cwd=TOP)
        # It is killed when it has begun with a few more, or a moment later.
        enough = len(runs()) + chance.randint(1, 3)
        while process.poll() is None and (number > 8 or len(runs()) < enough):
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.06))
        process.kill()
        code = process.wait()
        found = status()
        done = indexes.read(found.get("completedIndexes", "")) | indexes.read(found.get("failedIndexes", ""))
        for index in done:
            # From here on it has been run as often as it will ever be.
            decided.setdefault(index, set()).add(runs().count(index))
        if code == 0:
            break
        assert code == -signal.SIGKILL

    assert number >= 3, "it was killed a few times"
    assert (found["completedIndexes"], found["failedIndexes"]) == ("0-4,6,7", "5")
    assert found["succeeded"] == 7
    assert {index: len(counts) for index, counts in decided.items()} == dict.fromkeys(range(8), 1)
    assert processes.below(data) == []
    for line in (tmp_path / "begun").read_text().splitlines():
        assert not alive(int(line.split()[1]))
