"""What holds for the project as a whole: its files, its imports, its package and its commands."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import venv
import zipfile

import pytest

TOP = pathlib.Path(__file__).parent.parent
BIN = pathlib.Path(sys.executable).parent
#: Written in parts, so that this file does not hold them.
REGISTRIES = [
    ".".join(name)
    for name in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("repo1", "maven", "org"),
        ("deb", "debian", "org"),
    )
]
#: What ``generate`` has no use for. Each costs start-up time, which every commit pays.
HEAVY = {"boto3", "htrflow", "kubernetes", "lxml", "requests", "ruamel", "starlette", "torch"}


def _files() -> list[pathlib.Path]:
    """Every file that is in git, or would be after ``git add``."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TOP,
        capture_output=True,
        check=True,
    ).stdout
    paths = [TOP / os.fsdecode(name) for name in listing.split(b"\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_file_names_a_package_registry_or_a_place_on_this_machine() -> None:
    places = [rf"{re.escape(str(TOP))}(?![\w-])", *map(re.escape, REGISTRIES)]
    wrong = re.compile("|".join(places).encode())
    files = _files()
    assert len(files) > 50
    assert [str(file.relative_to(TOP)) for file in files if wrong.search(file.read_bytes())] == []


def test_every_text_file_ends_its_lines_as_unix_does_outside_of_test_inputs() -> None:
    files = [file for file in _files() if TOP / "tests" not in file.parents]
    texts = {file: content for file in files if b"\0" not in (content := file.read_bytes())}
    assert texts
    bad = [file for file, text in texts.items() if b"\r" in text or (text and not text.endswith(b"\n"))]
    assert [str(file.relative_to(TOP)) for file in bad] == []


@pytest.mark.parametrize("lock", ["action", "converter", "dev", "statuspage", "wrapper"])
def test_every_package_of_a_lock_file_has_an_exact_version_and_hashes(lock: str) -> None:
    text = (TOP / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    assert "://" not in text
    entries = re.split(r"\n(?=[a-z0-9])", re.sub("^#.*\n", "", text, flags=re.MULTILINE))
    assert len(entries) > 5
    assert [
        entry for entry in entries if not re.match(r"[a-z0-9.-]+==\S+", entry) or "--hash=sha256:" not in entry
    ] == []


def test_the_lock_files_hold_every_dependency_of_the_project() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    runtime, dev = project["project"]["dependencies"], project["dependency-groups"]["dev"]
    for lock, wanted in (("converter", runtime), ("dev", [*runtime, *dev])):
        text = (TOP / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
        locked = set(re.findall("^([a-z0-9.-]+)==", text, re.MULTILINE))
        names = {re.sub("[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower() for name in wanted}  # type: ignore[index]
        assert names - locked == set()


def test_generate_imports_no_library_that_it_has_no_use_for(tmp_path: pathlib.Path) -> None:
    subprocess.run([BIN / "htrflow-campaigns", "init", tmp_path / "repo"], check=True, capture_output=True)
    program = (
        "import sys\n"
        "from htrflow_campaigns.cli import main\n"
        "code = main(['generate', 'repo'])\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert len(done.stdout.splitlines()) == 4
    imported = set(done.stderr.split())
    assert "htrflow_campaigns" in imported
    assert imported & HEAVY == set()


def test_the_wheel_holds_the_programs_and_nothing_of_the_tests_or_the_demo(tmp_path: pathlib.Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=TOP, check=True, capture_output=True)
    (wheel,) = tmp_path.iterdir()
    names = [pathlib.PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()]

    tops = {name.parts[0] for name in names if not name.parts[0].endswith(".dist-info")}
    assert tops == {"htrflow_campaigns", "htrflow_batch", "htrflow_status"}
    assert {name.suffix for name in names} & {".pt", ".safetensors", ".ttf", ".otf", ".jpg"} == set()
    for image in ("cmp-plugin/Dockerfile", "wrapper/Dockerfile"):
        copied = re.findall("^COPY (?!--from)(.+) [^ ]+$", (TOP / image).read_text(encoding="utf-8"), re.MULTILINE)
        assert not any(word.startswith(("tests", ".")) for line in copied for word in line.split()), copied


def test_the_wheel_works_without_the_checkout(tmp_path: pathlib.Path) -> None:
    dist, environment = tmp_path / "dist", tmp_path / "environment"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(dist)]
    subprocess.run(build, cwd=TOP, check=True, capture_output=True)
    (wheel,) = dist.iterdir()
    venv.create(environment, with_pip=False)
    python, command = environment / "bin" / "python", environment / "bin" / "htrflow-campaigns"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    # The dependencies, without the .pth file that would bring in the checkout.
    (own,) = environment.glob("lib/python*/site-packages")
    for package in ("jsonschema", "yaml"):
        assert not (own / package).exists()
    libraries = pathlib.Path(pytest.__file__).parent.parent
    (own / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")

    where = subprocess.run(
        [python, "-c", "import htrflow_campaigns; print(htrflow_campaigns.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert pathlib.Path(where.stdout.strip()).is_relative_to(own)
    for arguments in (["init", "repo"], ["validate", "repo", "--strict"], ["render", "repo", "--out", "out"]):
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    generated = subprocess.run([command, "generate", "repo"], cwd=tmp_path, capture_output=True, text=True, check=True)
    kinds = [json.loads(line)["kind"] for line in generated.stdout.splitlines()]
    assert kinds == ["ConfigMap", "Job", "ConfigMap", "Job"]


def test_make_without_a_target_explains_each_target() -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=TOP, capture_output=True, text=True, check=True)
    targets = re.findall(r"^make (\w+) +(.+)$", done.stdout, re.MULTILINE)
    assert len(targets) == len(done.stdout.splitlines())
    assert {"demo", "test", "check", "lock", "docs", "help"} <= {name for name, _ in targets}
    assert all(explanation for _, explanation in targets)


def test_our_own_workflows_and_scripts_pass_their_linters() -> None:
    shellcheck = str(BIN / "shellcheck")
    for command in (
        [shellcheck, ".ci/run"],
        [str(BIN / "actionlint"), "-shellcheck", shellcheck, ".github/workflows/ci.yml"],
        [str(BIN / "zizmor"), "--offline", "--quiet", "--pedantic", ".github"],
    ):
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_action_is_pinned_to_a_commit_and_says_which_version_that_is() -> None:
    text = (TOP / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
