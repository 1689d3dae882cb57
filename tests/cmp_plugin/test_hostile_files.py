"""Attacks on the converter's time and memory, by what stands in a file and by what stands in its place."""

from __future__ import annotations

import os
import socket
import stat
import typing as t

import pytest

from tests.cmp_plugin.hostile.attacks import MIB, VALUES, WHOLE, Content
from tests.cmp_plugin.hostile.measured import run_and_check

if t.TYPE_CHECKING:
    from tests.cmp_plugin.conftest import Repo


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_an_attack_on_the_reader_costs_little_in_any_file_and_ends_in_a_sentence(repo: Repo, name: str) -> None:
    content = WHOLE[name]()
    for file, command in (
        ("campaigns/letters.yaml", "validate"),
        ("pipelines/demo-v1.yaml", "generate"),
        ("converter.yaml", "render"),
    ):
        good = repo.path.joinpath(file).read_bytes()
        repo.write(file, content)
        ran = run_and_check(command, repo.path)
        assert ran.code == 1 or file == "converter.yaml"
        repo.write(file, good)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name", "content"), VALUES, ids=[f"{file.partition('/')[0]}: {name}" for file, name, _ in VALUES]
)
def test_an_attack_on_a_value_costs_little_and_ends_in_sentences_or_a_render(
    repo: Repo, file: str, name: str, content: Content
) -> None:
    repo.write(file, content())
    if run_and_check("validate", repo.path).code == 0:
        assert run_and_check("generate", repo.path).code == 0
        assert run_and_check("render", repo.path).code == 0


CAMPAIGN = "pipeline: demo-v1\nvolumes:\n  - R0001203\n"


def rules(repo: Repo) -> list[str]:
    """Path and rule of each problem, after all three commands have run."""
    validated, generated, rendered = (
        run_and_check(command, repo.path) for command in ("validate", "generate", "render")
    )
    assert validated.code == generated.code == rendered.code
    *lines, _ = validated.stdout.decode().splitlines()
    return [f"{line.partition(':')[0]} {line[-7:-1]}" for line in lines if ": warning: " not in line]


def test_a_link_inside_the_repo_is_the_file_that_it_names(repo: Repo) -> None:
    repo.write("letters-1900.yaml", CAMPAIGN)
    repo.path.joinpath("campaigns/linked.yaml").symlink_to("../letters-1900.yaml")
    assert rules(repo) == []


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "/dev/zero", "../../outside.yaml", "../../../../../../../etc/passwd", "missing.yaml", "evil.yaml"],
)
@pytest.mark.parametrize("file", ["campaigns/evil.yaml", "pipelines/evil.yaml", "converter.yaml"])
def test_a_link_that_leaves_the_repo_or_leads_nowhere_is_never_followed(repo: Repo, file: str, target: str) -> None:
    repo.path.parent.joinpath("outside.yaml").write_text(CAMPAIGN, encoding="utf-8")
    repo.path.joinpath(file).unlink(missing_ok=True)
    repo.path.joinpath(file).symlink_to(target if file != "converter.yaml" else target.removeprefix("../"))
    assert f"{file} HTR013" in rules(repo)


def test_links_in_a_circle_are_named(repo: Repo) -> None:
    repo.path.joinpath("campaigns/a.yaml").symlink_to("b.yaml")
    repo.path.joinpath("campaigns/b.yaml").symlink_to("a.yaml")
    assert rules(repo) == ["campaigns/a.yaml HTR013", "campaigns/b.yaml HTR013"]


def test_a_link_through_a_linked_folder_out_of_the_repo_is_refused(repo: Repo) -> None:
    outside = repo.path.parent / "outside"
    outside.mkdir()
    outside.joinpath("a.yaml").write_text(CAMPAIGN, encoding="utf-8")
    repo.path.joinpath("aside").symlink_to("../outside")
    repo.path.joinpath("campaigns/a.yaml").symlink_to("../aside/a.yaml")
    assert rules(repo) == ["campaigns/a.yaml HTR013"]


@pytest.mark.parametrize("target", ["../elsewhere", "/etc", ".", "missing", "pipelines"])
def test_a_linked_campaigns_folder_is_refused_and_not_entered(repo: Repo, target: str) -> None:
    repo.path.joinpath("campaigns").rename(repo.path.parent / "elsewhere")
    repo.path.joinpath("campaigns").symlink_to(target)
    assert rules(repo) == ["campaigns HTR013"]


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
@pytest.mark.parametrize("file", ["campaigns/odd.yaml", "pipelines/odd.yml", "converter.yaml"])
def test_what_is_no_file_is_named_and_not_waited_for(repo: Repo, file: str, kind: str) -> None:
    path = repo.path / file
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        # A socket's path has at most 107 characters.
        folder = os.open(path.parent, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        assert stat.S_ISSOCK(path.stat().st_mode)
    assert next(rule for rule in rules(repo) if rule.startswith(file))[-6:] in ("HTR014", "HTR017")


NAMES = {
    "a\nb.yaml": "HTR019",
    "a\x1b[31m.yaml": "HTR019",
    "a\u2028b.yaml": "HTR019",
    "a\u202eb.yaml": "HTR019",
    "a\udcffb.yaml": "HTR019",
    "a b.yaml": "HTR301",
    "å.yaml": "HTR301",
    "$(id).yaml": "HTR301",
    "';id;'.yaml": "HTR301",
    "CON.yaml": "HTR301",
    "a:b.yaml": "HTR301",
    "A.yaml": "HTR301",
    "a" * 64 + ".yaml": "HTR301",
    "a" * 250 + ".yaml": "HTR301",
    "a.YAML": "HTR016",
}


@pytest.mark.parametrize(("name", "rule"), NAMES.items(), ids=[ascii(name)[:20] for name in NAMES])
def test_a_file_name_that_is_no_name_is_refused_in_one_line(repo: Repo, name: str, rule: str) -> None:
    repo.path.joinpath("campaigns", name).write_text(CAMPAIGN, encoding="utf-8")
    assert [found[-6:] for found in rules(repo)] == [rule]


@pytest.mark.parametrize("name", ["con", "nul", "aux", "com1", "a--b", "0"])
def test_a_name_that_only_windows_reserves_is_a_name(repo: Repo, name: str) -> None:
    repo.write(f"campaigns/{name}.yaml", CAMPAIGN)
    assert rules(repo) == []


def test_a_file_that_may_not_be_read_is_named(repo: Repo) -> None:
    repo.path.joinpath("campaigns/letters.yaml").chmod(0)
    # What lets root read every file is taken away; another user could not start this interpreter everywhere.
    powerless = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.getuid() == 0 else ()
    for command in ("validate", "generate", "render"):
        ran = run_and_check(command, repo.path, prefix=powerless)
        assert ran.code == 1
        assert "campaigns/letters.yaml:1:1: the file cannot be read" in ran.stdout.decode() + ran.stderr


@pytest.mark.slow
def test_ten_thousand_broken_campaigns_are_all_named(repo: Repo) -> None:
    for number in range(10_000):
        repo.path.joinpath(f"campaigns/c{number}.yaml").write_text("volumes: [*a]\n", encoding="utf-8")
    validated = run_and_check("validate", repo.path)
    assert validated.stdout.decode().splitlines()[-1].startswith("10000 problems in 10003 files")
    generated = run_and_check("generate", repo.path)
    assert generated.stderr.startswith("10000 problems in the campaigns repo: (1) campaigns/c0.yaml:1:11: ")
    assert " more." in generated.stderr


@pytest.mark.slow
def test_twenty_thousand_campaigns_are_validated(repo: Repo) -> None:
    for number in range(20_000):
        repo.path.joinpath(f"campaigns/c{number}.yaml").write_text(CAMPAIGN, encoding="utf-8")
    validated = run_and_check("validate", repo.path)
    assert validated.code == 0
    assert "in 20003 files" in validated.stdout.decode()


def test_a_campaign_at_the_bottom_of_two_hundred_folders_is_named(repo: Repo) -> None:
    repo.write("campaigns/" + "a/" * 200 + "b.yaml", CAMPAIGN)
    assert [rule[-6:] for rule in rules(repo)] == ["HTR016"]


def test_a_file_that_grows_without_end_is_read_no_further_than_the_limit(repo: Repo) -> None:
    with repo.path.joinpath("campaigns/sparse.yaml").open("wb") as stream:
        stream.truncate(1024 * 1024 * MIB)
    assert rules(repo) == ["campaigns/sparse.yaml HTR008"]
