"""Each rule that mirrors one of Kubernetes or Kueue: what we refuse, the API server would refuse without the rule."""

from __future__ import annotations

import copy
import errno
import pathlib
import re
import subprocess
import typing as t

import pytest

from htrflow_campaigns import limits, tree
from htrflow_campaigns.validate import validate
from tests.cluster.mirrors import MIRRORS, Mirror, Write, another_pipeline
from tests.cluster.repos import Repo
from tests.testbed.plugin.api import ApiError, Object
from tests.testbed.plugin.namespace import Namespace


@pytest.fixture(scope="module")
def good(place: Namespace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Object]:
    """The objects of a good repo by kind and name, which the server takes."""
    repo = Repo(tmp_path_factory.mktemp("good"), place.name)
    repo.campaign("letters", 1)
    found = _by_name(repo.generated())
    place.create_all(copy.deepcopy([*found.values()]), dry_run=True)
    return found


@pytest.mark.parametrize("mirror", MIRRORS, ids=lambda mirror: f"{mirror.rule}-{mirror.what}")
def test_the_server_refuses_what_the_rule_refuses(
    mirror: Mirror, good: dict[str, Object], place: Namespace, tmp_path: pathlib.Path
) -> None:
    bad = Repo(tmp_path, place.name)
    bad.campaign("letters", 1)
    mirror.write(bad)

    found = {problem.rule.id for problem in validate(tree.from_folder(bad.path)).problems}
    assert mirror.rule in found

    with pytest.raises(ApiError) as refusal:
        place.create_all([mirror.put(copy.deepcopy(good))], dry_run=True)
    assert refusal.value.status in (400, 403, 422)
    assert re.search(mirror.refusal, str(refusal.value)), refusal.value


def _another_volume(repo: Repo) -> None:
    repo.campaign("letters", ["V0000", "V0009"])


def _one_more_volume(repo: Repo) -> None:
    repo.campaign("letters", 3)


def _another_pipeline(repo: Repo) -> None:
    another_pipeline("other-v1")(repo)
    repo.campaign("letters", 2)
    file = repo.path / "campaigns/letters.yaml"
    file.write_text(file.read_text("utf-8").replace("demo-v1", "other-v1"), "utf-8")


def _another_step(repo: Repo) -> None:
    file = repo.path / "pipelines/demo-v1.yaml"
    file.write_text(file.read_text("utf-8").replace("0123456789abcdef01234567", "0" * 24), "utf-8")


def _another_archive(repo: Repo) -> None:
    file = repo.path / "converter.yaml"
    file.write_text(file.read_text("utf-8").replace("iiif.example.org", "archive.example.org"), "utf-8")


@pytest.mark.parametrize(
    ("rule", "change", "item", "refusal"),
    [
        ("HTR501", _another_volume, "ConfigMap campaign-letters", "field is immutable when `immutable` is set"),
        (
            "HTR501",
            _one_more_volume,
            "Job letters",
            "spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism",
        ),
        ("HTR502", _another_pipeline, "Job letters", r"spec\.template\.spec: Invalid value: .*: field is immutable"),
        ("HTR503", _another_step, "ConfigMap htr-pipeline-demo-v1", "field is immutable when `immutable` is set"),
        ("HTR505", _another_archive, "ConfigMap campaign-letters", "field is immutable when `immutable` is set"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_the_server_refuses_the_change_that_the_rule_refuses(
    rule: str, change: Write, item: str, refusal: str, namespace: Namespace, tmp_path: pathlib.Path
) -> None:
    namespace.quota(gpu=0)
    before, after = Repo(tmp_path / "before", namespace.name), Repo(tmp_path / "after", namespace.name)
    for repo in (before, after):
        repo.campaign("letters", 2)
    change(after)
    outcome = validate(tree.from_folder(after.path), tree.from_folder(before.path))
    assert rule in {problem.rule.id for problem in outcome.problems}
    for made in before.generated():
        namespace.api.apply(made)

    changed = _by_name(after.generated())[item]
    with pytest.raises(ApiError) as said:
        namespace.api.apply(changed, dry_run=True)

    assert said.value.status == 422
    assert re.search(refusal, str(said.value), re.DOTALL)


def test_more_volumes_are_taken_when_the_window_is_all_of_them_and_grows_along(
    namespace: Namespace, tmp_path: pathlib.Path
) -> None:
    namespace.quota(gpu=0)
    repo = Repo(tmp_path / "repo", namespace.name)
    repo.campaign("letters", 2, window=2)
    for made in repo.generated():
        namespace.api.apply(made)
    repo.campaign("letters", 3, window=3)
    changed = _by_name(repo.generated())

    # So it is the ConfigMap, or the rule, that keeps a campaign from growing, and not the Job.
    assert namespace.api.apply(changed["Job letters"], dry_run=True)["spec"]["completions"] == 3
    with pytest.raises(ApiError, match="field is immutable when `immutable` is set"):
        namespace.api.apply(changed["ConfigMap campaign-letters"], dry_run=True)


def test_a_volumes_addresses_are_less_than_what_linux_lets_a_process_be_told() -> None:
    command = ["/bin/sh", "-c", 'printf %s "${#IMAGES}"']
    told = subprocess.run(command, env={"IMAGES": "x" * limits.VOLUME_LINE_BYTES}, capture_output=True, check=True)
    assert int(told.stdout) == limits.VOLUME_LINE_BYTES

    with pytest.raises(OSError, match="Argument list too long") as refusal:
        subprocess.run(command, env={"IMAGES": "x" * 128 * limits.KIB}, check=True)
    assert refusal.value.errno == errno.E2BIG


def test_the_server_takes_ten_times_the_volumes_of_a_part_in_one_job_and_not_one_more(
    good: dict[str, Object], place: Namespace
) -> None:
    job = good["Job letters"]

    def sized(completions: int) -> Object:
        changed = copy.deepcopy(job)
        changed["spec"] |= {"completions": completions, "maxFailedIndexes": completions}
        return changed

    place.create_all([sized(limits.PART_VOLUMES), sized(10 * limits.PART_VOLUMES)], dry_run=True)
    with pytest.raises(ApiError, match="maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000"):
        place.create_all([sized(10 * limits.PART_VOLUMES + 1)], dry_run=True)


def _by_name(objects: t.Iterable[Object]) -> dict[str, Object]:
    return {f"{item['kind']} {item['metadata']['name']}": item for item in objects}
