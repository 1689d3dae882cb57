"""The containers of a Job on this machine: what they get to see, and how they end."""

from __future__ import annotations

import pathlib
import time
import typing as t

import pytest

from htrflow_campaigns.local import processes
from htrflow_campaigns.local import repo as local_repo
from htrflow_campaigns.local.repo import Wanted
from tests.cmp_plugin.conftest import Repo
from tests.cmp_plugin.local.cases import WAIT, WRAPPER, Object
from tests.cmp_plugin.local.here import SECRETS, Here, alive, campaign, folder_of, here, wanted_of

#: A container that shows what it got: its environment, and the files of its mounts.
SHOW = "env -0 >shown.env; exit 0"


def _shown(folder: pathlib.Path) -> dict[str, str]:
    """The environment that :data:`SHOW` wrote."""
    rows = (folder / "shown.env").read_text(encoding="utf-8").rstrip("\0").split("\0")
    return dict(row.split("=", 1) for row in rows)


def _container(wanted: Wanted, job: str) -> Object:
    return t.cast(Object, wanted.jobs[job]["spec"]["template"]["spec"]["containers"][0])


def _message(machine: Here, job: str, container: str = WRAPPER, index: int = 0) -> str:
    (pod,) = machine.pods(job, index)
    kind = "initContainerStatuses" if container == WAIT else "containerStatuses"
    (status,) = [row for row in pod["status"][kind] if row["name"] == container]
    return str(status["state"]["terminated"]["message"])


def test_a_container_gets_its_variables_as_a_kubelet_resolves_them(repo: Repo, machine: Here) -> None:
    wanted = wanted_of(repo, letters=SHOW)
    _container(wanted, "letters")["env"] += [
        {"name": "PLAIN", "value": "a b 'c' \"d\""},
        {"name": "REFERS", "value": "$(PLAIN)-$(NOBODY)-$$(PLAIN)-$$"},
        {"name": "INDEX", "value": "$(JOB_COMPLETION_INDEX)"},
    ]
    machine.runner.want(wanted)
    machine.idle()

    first, second = (_shown(folder_of(machine, "letters", index)) for index in (0, 1))
    assert first["PLAIN"] == "a b 'c' \"d\""
    assert first["REFERS"] == "a b 'c' \"d\"-$(NOBODY)-$(PLAIN)-$"
    assert (first["JOB_COMPLETION_INDEX"], second["JOB_COMPLETION_INDEX"]) == ("0", "1")
    assert (first["INDEX_FAILURE_COUNT"], first["S3_BUCKET"]) == ("0", "results")
    assert "S3_ENDPOINT" not in first, "an optional key that is not there gives no variable"
    assert "PYTEST_CURRENT_TEST" not in first, "nothing of the runner's own environment is passed on by default"


def test_a_warm_up_has_no_index(repo: Repo, machine: Here) -> None:
    wanted = wanted_of(repo)
    _container(wanted, "htr-warmup-demo-v1")["command"] = ["/bin/sh", "-c", f": >>began; {SHOW}"]
    machine.runner.want(wanted)
    machine.idle()

    assert not {"JOB_COMPLETION_INDEX", "INDEX_FAILURE_COUNT"} & {*_shown(folder_of(machine, "htr-warmup-demo-v1"))}


def test_a_container_whose_secret_is_missing_fails_and_says_which(repo: Repo, tmp_path: pathlib.Path) -> None:
    with here(tmp_path / "data", secrets={}) as machine:
        wanted = wanted_of(repo)
        wanted.jobs["letters"]["spec"]["backoffLimitPerIndex"] = 0
        _container(wanted, "letters")["terminationMessagePolicy"] = "FallbackToLogsOnError"
        machine.runner.want(wanted)
        machine.idle()

        assert machine.runner.jobs["letters"].status["failedIndexes"] == "0-2"
        assert _message(machine, "letters") == "the Secret htr-batch-s3 has no key S3_BUCKET\n"


@pytest.mark.parametrize("name", ["plain", "with space", 'it\'s "quoted" $HOME', "åäö; exit 1"])
def test_mounts_are_found_in_scripts_and_variables_wherever_the_data_is(
    repo: Repo, tmp_path: pathlib.Path, name: str
) -> None:
    script = (
        'cat /campaign/volumes.txt /config/pipeline.yaml >copied; cp "$AWS_SHARED_CREDENTIALS_FILE" credentials;'
        f' echo /campaigns /x/campaign "/work/a" >words; mkdir -p "$HOME"; {SHOW}'
    )
    secrets = {"htr-batch-s3": {**SECRETS["htr-batch-s3"], "credentials": "[default]\n"}}
    with here(tmp_path / name, secrets=secrets) as machine:
        wanted = wanted_of(repo, letters=script)
        machine.runner.want(wanted)
        machine.idle()

        assert machine.runner.jobs["letters"].status["completedIndexes"] == "0-2"
        folder = folder_of(machine, "letters")
        files = [wanted.config_maps[name] for name in ("campaign-letters", "htr-pipeline-demo-v1")]
        assert (folder / "copied").read_text(encoding="utf-8") == files[0]["volumes.txt"] + files[1]["pipeline.yaml"]
        assert (folder / "credentials").read_text() == "[default]\n"
        shown = _shown(folder)
        assert shown["HOME"].endswith("/mounts/work/home")
        assert pathlib.Path(shown["HF_HOME"]).resolve().is_relative_to(tmp_path / name / "claims/htr-test-data")
        assert (folder / "words").read_text().startswith("/campaigns /x/campaign ")
        assert not (folder / "mounts").exists(), "what is in memory in a cluster goes with the pod"


def test_the_rendered_script_hands_its_volume_to_the_wrapper(repo: Repo, tmp_path: pathlib.Path, machine: Here) -> None:
    wanted, _, _ = local_repo.read(repo.path)
    assert wanted is not None
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "$*" >arguments\nenv -0 >shown.env\n', encoding="utf-8")
    program.chmod(0o755)
    for job in wanted.jobs.values():
        spec = job["spec"]["template"]["spec"]
        for container in spec["containers"]:
            container["args"] = [container["args"][0].replace("exec python", f": >>began; exec {program}")]
        for container in spec.get("initContainers", []):
            container["command"] = ["true"]
    machine.runner.want(wanted)
    machine.idle()

    shown = [_shown(folder_of(machine, "letters", index)) for index in range(3)]
    assert [row["VOLUME_REF"] for row in shown] == ["R0001203", "letters-1", "loose-scans"]
    assert [row.get("IIIF_MANIFEST_URL") for row in shown] == [
        "https://iiif.example.org/R0001203/manifest",
        "https://iiif.example.org/letters-1/manifest.json",
        None,
    ]
    assert shown[2]["IMAGES"] == "https://example.org/scan-0001.jpg https://example.org/scan-0002.jpg"
    assert (folder_of(machine, "letters") / "arguments").read_text() == "-m htrflow_batch\n"
    assert (folder_of(machine, "htr-warmup-demo-v1") / "arguments").read_text() == "-m htrflow_batch.warmup\n"


def test_the_last_words_are_those_of_the_file_or_where_the_pod_says_so_of_the_log(repo: Repo, machine: Here) -> None:
    long = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo line $i; done; exit 13"
    campaign(repo, "says")
    campaign(repo, "says-nothing")
    wanted = wanted_of(
        repo,
        letters="exit 13",
        says_nothing=f"echo lost; {long}",
        says='echo x; printf word >"$TERMINATION_MESSAGE_PATH"; exit 13',
    )
    waits = wanted.jobs["letters"]["spec"]["template"]["spec"]["initContainers"][0]
    assert waits["terminationMessagePolicy"] == "FallbackToLogsOnError"
    waits["command"][2] = f": >>began; {long}"
    machine.runner.want(wanted)
    machine.idle()

    assert _message(machine, "says") == "word"
    assert _message(machine, "says-nothing") == ""
    assert _message(machine, "letters", WAIT) == "".join(f"line {number}\n" for number in range(21, 101))
    assert (folder_of(machine, "says-nothing") / "wrapper.log").read_text().startswith("lost\nline 1\n")


def test_a_pod_that_does_not_end_when_it_is_asked_to_is_ended_after_its_grace_period(repo: Repo, machine: Here) -> None:
    wanted = wanted_of(repo, letters='trap "echo asked" TERM; : >ready; while :; do sleep 0.05; done')
    wanted.jobs["letters"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    wanted.jobs["letters"]["spec"]["completions"] = 1
    machine.runner.want(wanted)
    machine.until(lambda: machine.running("letters") and (folder_of(machine, "letters") / "ready").exists())
    began = time.monotonic()
    machine.runner.stop()

    assert 1 <= time.monotonic() - began < 5
    (pod,) = machine.pods("letters")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert (folder_of(machine, "letters") / "wrapper.log").read_text() == "asked\n"
    assert "failed" not in machine.runner.jobs["letters"].status
    assert processes.below(machine.data.folder) == []


def test_a_pod_that_does_not_end_can_be_ended_at_once(repo: Repo, machine: Here) -> None:
    machine.runner.want(wanted_of(repo, letters='trap "" TERM; : >ready; while :; do sleep 0.05; done'))
    machine.until(lambda: len([*machine.data.folder.glob("pods/letters-*/ready")]) == 3)
    began = time.monotonic()
    machine.runner.stop(lambda: time.monotonic() - began > 0.2)

    assert 0.2 <= time.monotonic() - began < 5
    assert processes.below(machine.data.folder) == []
    assert "failed" not in machine.runner.jobs["letters"].status


def test_a_deadline_ends_the_pod_and_what_it_started(repo: Repo, machine: Here) -> None:
    wanted = wanted_of(repo, letters="setsid sleep 1000 & echo $! >child; wait")
    job = wanted.jobs["letters"]["spec"]
    job["completions"], job["backoffLimitPerIndex"] = 1, 0
    job["template"]["spec"]["activeDeadlineSeconds"] = 1
    machine.runner.want(wanted)
    machine.idle()

    (pod,) = machine.pods("letters")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert not alive(int((folder_of(machine, "letters") / "child").read_text()))


def test_a_container_ends_with_its_first_process(repo: Repo, machine: Here) -> None:
    machine.runner.want(wanted_of(repo, letters="sleep 1000 & echo $! >child; exit 0"))
    machine.idle()

    assert machine.runner.jobs["letters"].condition("Complete")
    assert not alive(int((folder_of(machine, "letters") / "child").read_text()))
