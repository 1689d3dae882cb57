"""What the plugin says about a bad repo: nothing on stdout, and one paragraph that Argo CD's page can show."""

from __future__ import annotations

import re
import typing as t

import pytest

from tests.cmp_plugin.plugin_server import client, sandbox
from tests.cmp_plugin.plugin_server.contract import generate, plugin, refusal

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo

VOLUMES = "volumes:\n  - R0001203\n"
BAD: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "a campaign that is no yaml": ({"campaigns/letters.yaml": "pipeline: [demo-v1\n"}, "campaigns/letters.yaml:"),
    "a campaign that is empty": ({"campaigns/letters.yaml": ""}, "campaigns/letters.yaml:1:1: "),
    "a key that nobody knows": (
        {"campaigns/letters.yaml": f"pipelin: demo-v1\n{VOLUMES}"},
        "campaigns/letters.yaml:1:1: ",
    ),
    "a key twice": (
        {"campaigns/letters.yaml": f"pipeline: demo-v1\npipeline: demo-v1\n{VOLUMES}"},
        "campaigns/letters.yaml:2:1: ",
    ),
    "a pipeline that is not there": (
        {"campaigns/letters.yaml": f"pipeline: x\n{VOLUMES}"},
        "campaigns/letters.yaml:1:11: ",
    ),
    "no volumes": ({"campaigns/letters.yaml": "pipeline: demo-v1\nvolumes: []\n"}, "campaigns/letters.yaml:2:10: "),
    "an id that yaml misreads": (
        {"campaigns/letters.yaml": "pipeline: demo-v1\nvolumes:\n  - 0012345\n"},
        "campaigns/letters.yaml:3:5: ",
    ),
    "a volume twice": (
        {"campaigns/letters.yaml": f"pipeline: demo-v1\n{VOLUMES}  - R0001203\n"},
        "campaigns/letters.yaml:4:5: ",
    ),
    "text that is not utf-8": (
        {"campaigns/letters.yaml": b"pipeline: h\xe4radsr\xe4tt\n"},
        "campaigns/letters.yaml:1:",
    ),
    "an image without a digest": (
        {"pipelines/demo-v1.yaml": "image: registry.example.org/htrflow-batch:latest\nsteps: []\n"},
        "pipelines/demo-v1.yaml:1:8: ",
    ),
    "a setting of the wrong kind": ({"converter.yaml": "window: twenty\n"}, "converter.yaml:1:9: "),
    "no converter.yaml": ({"converter.yaml": None}, "converter.yaml:1:1: "),
    "a converter.yaml that is no yaml": ({"converter.yaml": "window: {\n"}, "converter.yaml:"),
    "a campaign under two names": (
        {"campaigns/letters.yml": f"pipeline: demo-v1\n{VOLUMES}"},
        "campaigns/letters.yml:1:1: ",
    ),
    "a name that is no name": (
        {"campaigns/Brev_1.yaml": f"pipeline: demo-v1\n{VOLUMES}"},
        "campaigns/Brev_1.yaml:1:1: ",
    ),
}


def change(repo: Repo, changes: t.Mapping[str, str | bytes | None]) -> None:
    for name, content in changes.items():
        if content is None:
            (repo.path / name).unlink()
        else:
            repo.write(name, content)


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_repo_prints_no_object_and_says_where_it_is_bad(repo: Repo, fault: str) -> None:
    changes, place = BAD[fault]
    change(repo, changes)
    text = refusal(generate(repo.path))
    assert re.match(rf"\d+ problems? in the campaigns repo: \(1\) {re.escape(place)}", text), text
    assert " — " in text


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_repo_that_stands_last_prints_nothing_of_the_good_ones(repo: Repo, fault: str) -> None:
    changes, place = BAD[fault]
    for number in range(20):
        repo.write(f"campaigns/a-{number:02}.yaml", f"pipeline: demo-v1\nvolumes:\n  - R{number:07}\n")
    change(repo, changes)
    assert f") {place}" in refusal(generate(repo.path))


def test_a_repo_whose_last_file_is_broken_prints_nothing(repo: Repo) -> None:
    for number in range(50):
        repo.write(f"campaigns/a-{number:02}.yaml", f"pipeline: demo-v1\nvolumes:\n  - R{number:07}\n")
    repo.write(
        "campaigns/zz.yaml", "pipeline: demo-v1\nvolumes:\n  - R0000001\n  - {id: a, manifest: 'ftp://example.org'}\n"
    )
    text = refusal(generate(repo.path))
    assert text.startswith("1 problem in the campaigns repo: (1) campaigns/zz.yaml:4:")


def test_a_pipeline_that_stands_last_and_is_broken_prints_nothing(repo: Repo) -> None:
    repo.write("pipelines/zz.yaml", "image: x\nsteps:\n  - step: Export\n")
    assert "(1) pipelines/zz.yaml:1:8: " in refusal(generate(repo.path))


def test_an_empty_repo_prints_nothing_and_fails(empty_repo: Repo) -> None:
    assert "converter.yaml:1:1: " in refusal(generate(empty_repo.path))


def test_a_repo_without_campaigns_and_pipelines_fails(empty_repo: Repo) -> None:
    empty_repo.write("converter.yaml", "")
    assert "HTR601" in refusal(generate(empty_repo.path))


def test_a_folder_without_rights_is_a_sentence(repo: Repo) -> None:
    copy = sandbox.checkout(repo.path)
    (copy / "campaigns").chmod(0)
    result = sandbox.run(plugin()["spec"]["generate"]["command"], copy, client.variables())
    assert "campaigns" in refusal(result)


def test_a_file_without_rights_is_a_sentence(repo: Repo) -> None:
    copy = sandbox.checkout(repo.path)
    (copy / "campaigns/letters.yaml").chmod(0)
    result = sandbox.run(plugin()["spec"]["generate"]["command"], copy, client.variables())
    assert "(1) campaigns/letters.yaml:1:1: " in refusal(result)


def test_a_link_out_of_the_repo_is_refused_and_not_followed(repo: Repo) -> None:
    (repo.path / "campaigns/passwd.yaml").symlink_to("/etc/passwd")
    text = refusal(generate(repo.path))
    assert "(1) campaigns/passwd.yaml:1:1: " in text
    assert "root:" not in text


def test_many_problems_are_one_short_paragraph_that_says_how_many_are_left_out(repo: Repo) -> None:
    for number in range(300):
        repo.write(f"campaigns/a-{number:03}.yaml", "pipelin: demo-v1\nvolumes: []\n")
    text = refusal(generate(repo.path))
    found = re.match(r"(\d+) problems in the campaigns repo: \(1\) campaigns/a-000\.yaml:1:1: ", text)
    assert found
    rest = re.search(r"; and (\d+) more\.\n\Z", text)
    assert rest
    assert int(rest[1]) + text.count("; and ") + len(re.findall(r"\(\d+\) campaigns/", text)) - 1 == int(found[1])


def test_a_long_text_in_a_file_does_not_make_the_paragraph_long(repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", f"pipeline: demo-v1\n? {'x' * 9000}\n: 1\nvolumes:\n  - {'y' * 9000}\n")
    assert "(2) " in refusal(generate(repo.path))


def test_an_error_reads_the_same_when_its_lines_are_folded(repo: Repo) -> None:
    for number in range(5):
        repo.write(f"campaigns/a-{number}.yaml", "pipelin: demo-v1\n")
    lines = refusal(generate(repo.path)).splitlines()
    folded = " ".join(lines)
    # Each problem is numbered and ends in a semicolon or a full stop: no line break is needed to tell them apart.
    assert [line[-1] for line in lines] == [";"] * (len(lines) - 1) + ["."]
    assert re.findall(r"\((\d+)\) campaigns/", folded) == [str(number) for number in range(1, len(lines) + 1)]
