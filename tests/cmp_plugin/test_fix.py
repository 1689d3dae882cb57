"""``validate --fix``. Each folder in ``fix/`` holds files as they were before, and as they have to be after."""

from __future__ import annotations

import io
import pathlib
import subprocess
import sys
import tempfile
import typing as t

import pytest
import ruamel.yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from htrflow_campaigns import fix, validate, yamldoc
from htrflow_campaigns.tree import from_folder

if t.TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from tests.cmp_plugin.conftest import Repo

CASES = pathlib.Path(__file__).parent / "fix"
HEAD = "pipeline: demo-v1\nvolumes:\n"

LEFT_ALONE: dict[str, str | bytes] = {
    "a tab that could be text or indentation": "pipeline: |\n  demo\n\tv1\nvolumes: [R0001203]\n",
    "a tab in a file that is broken elsewhere": HEAD + "\t- a\n\t- [b\n",
    "a tab between a dash and a key": HEAD + "-\tid: a\n  manifest: https://example.org/a\n",
    "a tab between a key and a list": "pipeline:\t- demo-v1\n",
    "a mark in a file that is broken elsewhere": "\ufeff" + HEAD + "- a: b: c\n",
    "a mark in a file that is not UTF-8": b"\xef\xbb\xbf" + HEAD.encode() + b"- \xe5\n",
    "a value that an alias names": HEAD + "- &first 0012345\n",
    "an alias": "window: &number 2\npipeline: *number\nvolumes: [R0001203]\n",
    "a value over two lines": HEAD + "- 2024-01-31\n  12:00:00\n",
    "a key": HEAD + "- {id: a, 0012: b, images: ['https://example.org/1.jpg']}\n",
    "a value with a tag": HEAD + "- !!int 0012345\n",
    "an empty value": HEAD + "- id:\n- ~\n- null\n",
    "quotes around a number": "window: '2'\n" + HEAD + "- R0001203\n",
    "text in a tab-indented quote": HEAD + '- "R0001\n\t203"\n',
    "nothing to repair": "\n# a\n" + HEAD + "-   R0001203   \n",
}


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }


def marks(folder: pathlib.Path) -> dict[str, tuple[int, int, int]]:
    """What would tell that a file or folder was written, even with the same content."""
    found = {}
    for file in (folder, *folder.rglob("*")):
        status = file.lstat()
        found[str(file)] = (status.st_ino, status.st_mtime_ns, status.st_mode)
    return found


def repair(repo: Repo) -> dict[str, list[str]]:
    return fix.fix(repo.path, from_folder(repo.path))


@pytest.fixture(params=sorted(case.name for case in CASES.iterdir()))
def case(request: pytest.FixtureRequest, repo: Repo) -> pathlib.Path:
    """A case, whose files before the repair stand in ``repo``."""
    folder = CASES / str(request.param)
    for name, content in contents(folder / "before").items():
        repo.write(name, content)
    return folder


def test_a_file_is_repaired_and_nothing_else_in_it_changes(
    case: pathlib.Path, repo: Repo, snapshot: SnapshotAssertion
) -> None:
    done = repo.run("validate", "--fix")
    assert {name: content for name, content in contents(repo.path).items() if name in contents(case / "after")} == (
        contents(case / "after")
    )
    assert contents(case / "before") != contents(case / "after")
    assert done.stderr == snapshot


def test_after_a_repair_no_problem_is_left_that_could_be_repaired(case: pathlib.Path, repo: Repo) -> None:
    before = validate.validate(from_folder(repo.path)).problems
    repair(repo)
    after = validate.validate(from_folder(repo.path)).problems
    assert any(problem.rule.fixable for problem in before)
    assert not any(problem.rule.fixable for problem in after)


def test_a_second_repair_finds_nothing_and_writes_nothing(case: pathlib.Path, repo: Repo) -> None:
    assert repair(repo)
    before = marks(repo.path)
    assert repair(repo) == {}
    assert marks(repo.path) == before


def test_only_the_files_at_fault_are_written_and_named(case: pathlib.Path, repo: Repo) -> None:
    before = {file: file.stat().st_ino for file in repo.path.rglob("*.yaml")}
    said = repair(repo)
    touched = [file.relative_to(repo.path).as_posix() for file, node in before.items() if file.stat().st_ino != node]
    assert sorted(touched) == sorted(said) == sorted(contents(case / "after"))


@pytest.mark.parametrize("content", LEFT_ALONE.values(), ids=[name.replace(" ", "-") for name in LEFT_ALONE])
def test_what_has_no_repair_or_several_is_left_alone(content: str | bytes, repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", content)
    before = contents(repo.path)
    done = repo.run("validate", "--fix")
    assert "Traceback" not in done.stderr
    assert (done.stderr, contents(repo.path)) == ("", before)


def test_what_can_be_repaired_is_although_something_else_in_the_file_cannot(repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", HEAD + "- 0012345\n- &a 0012346\n- *a\n- SE/RA/310187/1\n")
    assert repair(repo) == {"campaigns/letters.yaml": ["line 3: put 0012345 in quotes"]}
    assert (
        (repo.path / "campaigns/letters.yaml")
        .read_text()
        .endswith('- "0012345"\n- &a 0012346\n- *a\n- SE/RA/310187/1\n')
    )


def test_a_good_repo_is_not_touched(repo: Repo) -> None:
    before = marks(repo.path)
    done = repo.run("validate", "--fix")
    assert (done.returncode, done.stderr) == (0, "")
    assert marks(repo.path) == before


def test_the_report_is_of_the_repaired_repo(repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", HEAD + "- 0012345\n")
    done = repo.run("validate", "--fix")
    assert (done.returncode, done.stdout) == (0, "no problems in 3 files\n")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_a_repaired_file_keeps_its_mode(mode: int, repo: Repo) -> None:
    file = repo.write("campaigns/letters.yaml", HEAD + "- 0012345\n")
    file.chmod(mode)
    assert repair(repo)
    assert file.stat().st_mode & 0o7777 == mode


def test_a_symbolic_link_is_not_written_through(repo: Repo) -> None:
    repo.write("shared/letters.yaml", HEAD + "- 0012345\n")
    link = repo.path / "campaigns/letters.yaml"
    link.unlink()
    link.symlink_to("../shared/letters.yaml")
    before = marks(repo.path)
    assert any(problem.rule.fixable for problem in validate.validate(from_folder(repo.path)).problems)
    assert repair(repo) == {}
    assert marks(repo.path) == before


def test_a_repo_that_is_reached_over_a_link_is_repaired(repo: Repo, tmp_path: pathlib.Path) -> None:
    repo.write("campaigns/letters.yaml", HEAD + "- 0012345\n")
    link = tmp_path / "link"
    link.symlink_to(repo.path)
    assert fix.fix(link, from_folder(link))
    assert (repo.path / "campaigns/letters.yaml").read_text() == HEAD + '- "0012345"\n'


def test_a_file_stays_whole_when_the_disk_takes_no_more(repo: Repo) -> None:
    repo.write("campaigns/letters.yaml", HEAD + "- 0012345\n" * 2000)
    before = contents(repo.path)
    script = (
        "import pathlib, resource, sys; from htrflow_campaigns import fix, tree; folder = pathlib.Path(sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); fix.fix(folder, tree.from_folder(folder))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(repo.path)], capture_output=True, text=True, check=False)
    assert done.stderr.strip().rpartition("\n")[2].startswith("OSError: [Errno 27]")
    assert contents(repo.path) == before


def test_ruamel_yaml_is_imported_only_for_a_repair(repo: Repo) -> None:
    script = (
        "import sys; from htrflow_campaigns import cli; cli.main(['validate', *sys.argv[1:]]);"
        "print('ruamel.yaml' in sys.modules)"
    )
    run = [sys.executable, "-c", script, str(repo.path)]
    without = subprocess.run(run, capture_output=True, text=True, check=True)
    repo.write("campaigns/letters.yaml", HEAD + "- 0012345\n")
    with_fix = subprocess.run([*run, "--fix"], capture_output=True, text=True, check=True)
    assert [done.stdout.split()[-1] for done in (without, with_fix)] == ["False", "True"]


def test_ruamel_yaml_would_change_the_layout_of_these_files_if_it_wrote_them() -> None:
    # The reason for editing text in place: with a writer that kept all of them, fix.py would be a few lines.
    changed = []
    for folder in sorted(CASES.iterdir()):
        for name, content in contents(folder / "after").items():
            yaml = ruamel.yaml.YAML(typ="rt")
            yaml.preserve_quotes = True
            stream = io.BytesIO()
            try:
                yaml.dump(yaml.load(content), stream)
            except ruamel.yaml.error.YAMLError:
                stream.write(b"a tab before a line's end is more than it reads")
            changed += [f"{folder.name}/{name}"] if stream.getvalue() != content else []
    assert len(changed) >= 5


INDENTS = st.sampled_from(["", "", "  ", "    ", "\t", "\t\t", "  \t", "- ", "  - ", "\t- ", "-   ", "-\t"])
WORDS = st.sampled_from([
    "0012345", "1:20", "1.10", "yes", "~", "2024-01-31", "0x1F", "R0001203", "'0012'", '"1.10"', "&a 0012", "*a",
    "{id: 0012, images: [ 1.5 ,x]}", "[0012,1:20 , yes]", "å𝔄", "|", ">-", "!!str 0012", "", "# no", "a # yes", "'x",
])  # fmt: skip
KEYS = st.sampled_from(["id: ", "manifest: ", "images: ", "window: ", "revision:  ", "", "", "0012: "])
ENDS = st.sampled_from(["\n", "\n", "\r\n", " # c\n", "\t# c\n", "\n\n", "\r"])
LINES = st.builds("".join, st.tuples(INDENTS, KEYS, WORDS, ENDS))


@settings(deadline=None)
@given(
    start=st.sampled_from(["", "\ufeff", "\ufeff\ufeff", "# c\n", "---\n", "%YAML 1.1\n---\n"]),
    lines=st.lists(LINES, max_size=8),
    end=st.sampled_from(["", "# the end", "\t", "...\n"]),
)
def test_a_repair_ends_reads_well_and_changes_only_marks_tabs_and_quotes(
    start: str, lines: list[str], end: str
) -> None:
    before = start + "pipeline: 1.10\nvolumes:\n" + "".join(lines) + end
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "campaigns").mkdir()
        file = folder / "campaigns/a.yaml"
        file.write_bytes(before.encode())
        said = fix.fix(folder, from_folder(folder))
        after = file.read_bytes().decode()
        assert (after != before) == bool(said)
        assert fix.fix(folder, from_folder(folder)) == {}
        assert [*folder.rglob("*.*")] == [file]
    if said:
        document, _ = yamldoc.parse("a.yaml", after.encode())
        assert document is not None
        assert any(
            after.replace('"', "").replace("\t", spaces)
            == before.lstrip("\ufeff").replace('"', "").replace("\t", spaces)
            for spaces in ("  ", "    ", "        ")
        )
        assert comments(after) == comments(before)


def comments(text: str) -> list[str]:
    return [line.partition("#")[2] for line in text.splitlines()]


@settings(deadline=None)
@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda text: b"\xef\xbb\xbf" + text.encode(errors="replace"))
)
def test_any_bytes_are_repaired_once_or_left_alone(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "campaigns").mkdir()
        file = folder / "campaigns/a.yaml"
        file.write_bytes(content)
        said = fix.fix(folder, from_folder(folder))
        assert (file.read_bytes() != content) == bool(said)
        assert fix.fix(folder, from_folder(folder)) == {}
