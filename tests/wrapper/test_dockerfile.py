"""The wrapper's image and the workflow that builds images, as far as they can be checked without building one."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import typing as t
import zipfile

import pytest

from tests.cmp_plugin.plugin_server import sandbox
from tests.dockerfiles import TOP, Dockerfile

BIN = pathlib.Path(sys.executable).parent
IMAGE = Dockerfile("wrapper")
WORKFLOW = TOP / ".github" / "workflows" / "images.yml"


def locked(name: str) -> dict[str, str]:
    """The versions in a lock file, of this Python."""
    text = (TOP / "requirements" / f"{name}.lock").read_text("utf-8")
    assert "://" not in text
    entries = re.split(r"\n(?=[a-z0-9])", text.split("\n# The following")[0])[1:]
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    found = [t.cast(re.Match[str], re.match(r"([a-z0-9.-]+)==(\S+)", entry)) for entry in entries]
    return {match[1]: match[2] for match in found}


def test_the_dockerfile_has_no_lint() -> None:
    assert IMAGE.lint() == (0, "", "")


def test_both_stages_have_the_same_base_which_is_pinned_by_its_digest() -> None:
    (base,) = (rest for name, rest in IMAGE.instructions() if name == "ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=docker\.io/library/python:3\.12-slim@sha256:[0-9a-f]{64}", base)
    assert [rest.split(" ")[0] for name, rest in IMAGE.instructions() if name == "FROM"] == ["${PYTHON_IMAGE}"] * 2


def test_everything_that_the_dockerfile_copies_is_in_the_repo_and_nothing_else_is_sent_to_the_build() -> None:
    assert all((TOP / source).exists() for source in IMAGE.copied())
    assert IMAGE.sent() == IMAGE.copied()


def test_the_container_is_the_wrapper_run_as_uid_1000() -> None:
    assert ("USER", "1000:1000") in IMAGE.final()
    assert ("ENTRYPOINT", '["python", "-m", "htrflow_batch"]') in IMAGE.final()
    assert IMAGE.final()[-1][0] == "ENTRYPOINT"


def test_the_container_writes_where_the_pod_mounts_something_and_asks_nobody_for_anything() -> None:
    assert {
        name: pathlib.PurePath(IMAGE.variables()[name]).parts[1] for name in ("HOME", "TMPDIR", "YOLO_CONFIG_DIR")
    } == {
        "HOME": "work",
        "TMPDIR": "work",
        "YOLO_CONFIG_DIR": "work",
    }
    assert IMAGE.variables()["HF_HOME"].startswith("/data/")
    switches = ("PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "HF_HUB_DISABLE_TELEMETRY", "TQDM_DISABLE")
    assert {name: IMAGE.variables()[name] for name in switches} == dict.fromkeys(switches, "1")
    assert (IMAGE.variables()["YOLO_AUTOINSTALL"], IMAGE.variables()["YOLO_OFFLINE"]) == ("false", "true")


def test_the_image_holds_the_versions_that_pyproject_pins_and_that_tests_run_on() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [re.split("[ ;]", line)[0] for line in project["optional-dependencies"]["wrapper"]]
    pins = {name: version for name, _, version in (line.partition("==") for line in wanted) if version}
    image, tests = locked("wrapper"), locked("dev")

    assert pins.keys() == {"htrflow", "torch", "torchvision", "transformers"}
    assert {name: image[name] for name in pins} == pins
    names = {re.split("[=><]", line)[0].replace(".", "-") for line in [*wanted, *project["dependencies"]]}
    assert names - {*image} == set()
    assert {name: version for name, version in image.items() if tests.get(name) not in (version, None)} == {}
    installed = {name: importlib.metadata.version(name) for name in pins}
    assert installed == pins


def test_there_is_one_opencv_and_it_is_the_one_that_needs_no_windows() -> None:
    for name in ("wrapper", "dev"):
        assert [package for package in locked(name) if package.startswith("opencv")] == ["opencv-python-headless"]
    (module,) = (BIN.parent / "lib").glob("python*/site-packages/cv2/*.so")
    needed = subprocess.run(["ldd", module], capture_output=True, text=True, check=True).stdout
    assert "libGL" not in needed


def test_nothing_is_installed_that_is_not_locked() -> None:
    runs = " && ".join(rest for name, rest in IMAGE.instructions() if name == "RUN")
    installs = re.findall(r"(?:pip|uv pip) install (.*?)(?:&&|$)", runs)
    assert len(installs) == 3
    for install in installs:
        assert "--no-deps" in install
        assert ("--require-hashes" in install) != ("--build-constraints requirements/dev.lock" in install)


def test_the_lock_file_gives_uv_as_the_build_takes_it() -> None:
    (program,) = (
        re.findall("awk '(.*?)'", rest) for name, rest in IMAGE.instructions() if name == "RUN" and "awk" in rest
    )
    lock = TOP / "requirements" / "dev.lock"
    said = subprocess.run(["awk", program[0], lock], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"uv==[\d.]+ \\\n(    --hash=sha256:[0-9a-f]{64} \\\n)+    --hash=sha256:[0-9a-f]{64}\n", said)


@pytest.fixture
def container(tmp_path: pathlib.Path) -> t.Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command with what is in the image and the variables that it sets, on a root that cannot be written.

    The libraries are those of the tests' environment that the image's lock file names, and no others.
    """
    work, image = tmp_path / "work", tmp_path / "image"
    for folder in (*(work / name for name in ("home", "tmp", "ultralytics")), image / "packages"):
        folder.mkdir(parents=True)
    for name in locked("wrapper"):
        try:
            files = importlib.metadata.files(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # For another Python or platform; if not, an import fails.
        for top in {file.parts[0] for file in files or [] if file.parts[0] != ".."}:
            link = image / "packages" / top
            if not link.exists():
                link.symlink_to(BIN.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / top)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(image)]
    subprocess.run(build, cwd=TOP, check=True, capture_output=True)
    (wheel,) = image.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(image / "wrapper")
    subprocess.run([sys.executable, "-m", "compileall", "-q", image / "wrapper"], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", image / "venv"], check=True)
    (own,) = (image / "venv").glob("lib/python*/site-packages")
    (own / "libraries.pth").write_text(f"{image / 'packages'}\n", encoding="utf-8")
    moved = {
        "PATH": f"{image / 'venv' / 'bin'}:/usr/bin:/bin",
        "PYTHONPATH": str(image / "wrapper"),
        "HF_HOME": str(tmp_path / "data"),
        "TERMINATION_MESSAGE_PATH": str(work / "termination-log"),
        **{name: value.replace("/work", str(work)) for name, value in IMAGE.variables().items() if "/work" in value},
    }
    walls = sandbox.walls()

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*walls, *([str(work)] if walls else []), *command],
            cwd=work,
            env={**IMAGE.variables(), **moved},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_wrapper_starts_with_what_is_in_the_image_and_says_what_it_lacks(
    container: t.Callable[..., subprocess.CompletedProcess[str]], tmp_path: pathlib.Path
) -> None:
    _, entrypoint = next(line for line in IMAGE.final() if line[0] == "ENTRYPOINT")
    done = container(*json.loads(entrypoint))

    assert done.returncode == 13, done.stderr
    assert "VOLUME_REF" in json.loads((tmp_path / "work" / "termination-log").read_text("utf-8"))["error"]


def test_htrflow_loads_with_what_is_in_the_image_and_writes_only_to_work(
    container: t.Callable[..., subprocess.CompletedProcess[str]], tmp_path: pathlib.Path
) -> None:
    program = (
        "import sys, htrflow.pipeline.pipeline, htrflow_batch, htrflow_batch.htrflow_engine as engine\n"
        "assert 'hypothesis' not in sys.modules\n"
        "print(htrflow_batch.__file__)\n"
    )
    done = container("python", "-c", program)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(str(tmp_path / "image"))
    assert not (tmp_path / "data").exists()
    absent = container("python", "-c", "import hypothesis")
    assert "ModuleNotFoundError" in absent.stderr


def test_the_workflow_of_images_has_no_lint_and_pins_every_action() -> None:
    done = subprocess.run(
        [BIN / "actionlint", "-shellcheck", BIN / "shellcheck", WORKFLOW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    used = re.findall("uses: (.*)", WORKFLOW.read_text("utf-8"))
    assert len(used) == 5
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_the_workflow_builds_every_dockerfile_with_an_sbom_and_provenance_and_tags_only_what_is_signed() -> None:
    text = WORKFLOW.read_text("utf-8")
    listing = ["git", "ls-files", "-co", "--exclude-standard", "*/Dockerfile"]
    files = subprocess.run(listing, cwd=TOP, capture_output=True, text=True, check=True).stdout.split()
    assert [*re.findall("file: (.*Dockerfile)", text)] == sorted(files)
    assert "sbom: true" in text
    assert "provenance: mode=max" in text
    assert "push-by-digest=true" in text
    assert text.index("cosign sign --yes") < text.index("cosign verify") < text.index("imagetools create --tag")


@pytest.mark.parametrize("tag", ["v{}", "v9.9.9"])
def test_a_tag_that_is_not_the_projects_version_is_refused(tag: str) -> None:
    version = importlib.metadata.version("htrflow-campaigns")
    step = re.search(r"Hold the tag.*?run: \|\n(.*?)\n      - ", WORKFLOW.read_text("utf-8"), re.DOTALL)
    assert step
    name = tag.format(version)
    done = subprocess.run(
        ["bash", "-e", "-c", step[1]],
        cwd=TOP,
        env={"PATH": os.environ["PATH"], "GITHUB_REF_NAME": name},
        capture_output=True,
        text=True,
        check=False,
    )
    expected = (1, f"the tag is v9.9.9 and the project's version is {version} — tag v{version}\n")
    assert (done.returncode, done.stderr) == (expected if "9.9" in tag else (0, ""))
