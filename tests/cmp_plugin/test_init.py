"""``htrflow-campaigns init`` writes a campaigns repo that is good as it is, and never harms what is there."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import typing as t

import pytest
import yaml

from htrflow_campaigns import schemas

TOP = pathlib.Path(__file__).parent.parent.parent
MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
WRITTEN = [
    ".editorconfig",
    ".github/workflows/validate.yml",
    ".gitignore",
    ".schemas/campaign.schema.json",
    ".schemas/converter.schema.json",
    ".schemas/pipeline.schema.json",
    ".vscode/extensions.json",
    ".vscode/settings.json",
    "README.md",
    "campaigns/example.yaml",
    "converter.yaml",
    "pipelines/demo-v1.yaml",
]
YAML_FILES = {"converter": "converter.yaml", "campaign": "campaigns/example.yaml", "pipeline": "pipelines/demo-v1.yaml"}


def run(
    *arguments: object, cwd: pathlib.Path | None = None, preexec: t.Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "htrflow_campaigns", *map(str, arguments)],
        cwd=cwd,
        preexec_fn=preexec,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def check_schema(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = pathlib.Path(sys.executable).with_name("check-jsonschema")
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, check=False)


def snapshot(folder: pathlib.Path) -> dict[str, str]:
    """The path and text of every file below a folder."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}


@pytest.fixture
def new(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repo that ``init`` has just written."""
    folder = tmp_path / "my campaigns"
    done = run("init", folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_a_new_repo_has_these_files_and_no_other(new: pathlib.Path) -> None:
    assert [*snapshot(new)] == WRITTEN


def test_a_new_repo_has_no_problem_and_no_warning(new: pathlib.Path) -> None:
    done = run("validate", new, "--strict")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no problems in 3 files\n", "")


def test_a_new_repo_renders(new: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = run("render", new, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert [*snapshot(tmp_path / "out")] == ["campaigns/example.yaml", "pipelines/demo-v1.yaml"]


def test_the_example_campaign_has_all_three_forms_of_a_volume(new: pathlib.Path) -> None:
    done = run("generate", cwd=new)
    assert done.returncode == 0
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    config_map = next(o for o in objects if o["metadata"]["name"] == "campaign-example")
    assert config_map["data"]["volumes.txt"].splitlines() == [
        "R0001203\thttps://lbiiif.riksarkivet.se/arkis!R0001203/manifest",
        "letters-1\thttps://iiif.example.org/letters-1/manifest.json",
        "loose-scans\timages:https://example.org/scan-0001.jpg https://example.org/scan-0002.jpg",
    ]
    assert len(objects) == 4


def test_every_model_of_the_example_pipeline_is_pinned_to_a_commit(new: pathlib.Path) -> None:
    steps = yaml.safe_load((new / "pipelines" / "demo-v1.yaml").read_text(encoding="utf-8"))["steps"]
    pins = [
        pin
        for step in steps
        for settings in [step["settings"]["model_settings"]]
        for pin in (
            [settings["model_kwargs"]["revision"], settings["processor_kwargs"]["revision"]]
            if step["settings"]["model"] == "TrOCR"
            else [settings["revision"]]
        )
    ]
    assert len(pins) == 4
    assert all(re.fullmatch("[0-9a-f]{40}", pin) and len(set(pin)) > 4 for pin in pins)


def test_each_yaml_file_follows_the_schema_that_its_first_line_names(new: pathlib.Path) -> None:
    for kind, name in YAML_FILES.items():
        file = new / name
        modeline = MODELINE.match(file.read_text(encoding="utf-8"))
        assert modeline is not None
        schema = (file.parent / modeline[1]).resolve()
        assert schema == (new / ".schemas" / f"{kind}.schema.json").resolve()
        done = check_schema("--schemafile", schema, file)
        assert done.returncode == 0, done.stdout


def test_the_schemas_in_a_new_repo_are_those_of_the_validator(new: pathlib.Path) -> None:
    for kind in YAML_FILES:
        written = (new / ".schemas" / f"{kind}.schema.json").read_bytes()
        assert written == (TOP / "schemas" / f"{kind}.schema.json").read_bytes()


def test_the_editor_binds_each_schema_to_the_files_that_follow_it(new: pathlib.Path) -> None:
    bound = json.loads((new / ".vscode" / "settings.json").read_text(encoding="utf-8"))["yaml.schemas"]
    assert {(new / schema).resolve() for schema in bound} == {*(new / ".schemas").resolve().iterdir()}
    for schema, patterns in bound.items():
        name = YAML_FILES[pathlib.PurePath(schema).name.removesuffix(".schema.json")]
        assert any(pathlib.PurePath(name).match(pattern) for pattern in patterns)


def test_converter_yaml_explains_every_key_of_its_schema(new: pathlib.Path) -> None:
    text = (new / "converter.yaml").read_text(encoding="utf-8")
    explained = {}
    for block in text.split("\n\n")[1:]:
        words = [line.removeprefix("# ") for line in block.splitlines() if re.match("# [^ ]", line)]
        key = re.search(r"^#?(\w+):", block, re.MULTILINE)
        assert key is not None
        explained[key[1]] = " ".join(words)
    properties = schemas.load("converter")["properties"]
    assert explained == {key: schema["description"] for key, schema in properties.items()}
    for key, schema in properties["sizes"]["additionalProperties"]["properties"].items():
        assert re.search(rf"^#    {key}: .* # {re.escape(schema['description'])}$", text, re.MULTILINE)


def test_converter_yaml_writes_the_defaults_and_nothing_else_but_the_source_template(new: pathlib.Path) -> None:
    written = yaml.safe_load((new / "converter.yaml").read_text(encoding="utf-8"))
    assert written.pop("source_template") == "https://lbiiif.riksarkivet.se/arkis!{ref}/manifest"
    properties = schemas.load("converter")["properties"]
    assert written == {key: schema["default"] for key, schema in properties.items() if schema.get("default")}


def test_every_line_that_is_off_may_be_turned_on(new: pathlib.Path) -> None:
    for kind, name in YAML_FILES.items():
        text = (new / name).read_text(encoding="utf-8")
        turned_on = re.sub(r"^#(?=[^ \n]|  )", "", text, flags=re.MULTILINE)
        assert {*yaml.safe_load(turned_on)} == {*schemas.load(t.cast(schemas.Kind, kind))["properties"]}
        (new / name).write_text(turned_on, encoding="utf-8")
    done = run("validate", new, "--strict")
    assert (done.returncode, done.stdout) == (0, "no problems in 3 files\n")


def test_the_workflow_is_one_that_github_takes(new: pathlib.Path) -> None:
    workflow = new / ".github" / "workflows" / "validate.yml"
    done = check_schema("--builtin-schema", "vendor.github-workflows", workflow)
    assert done.returncode == 0, done.stdout
    actionlint = pathlib.Path(sys.executable).with_name("actionlint")
    lint = subprocess.run([actionlint, "-shellcheck=", workflow], capture_output=True, text=True, check=False)
    assert (lint.returncode, lint.stdout) == (0, "")


def test_the_workflow_may_read_the_repo_and_nothing_else(new: pathlib.Path) -> None:
    workflow = yaml.safe_load((new / ".github" / "workflows" / "validate.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert (workflow["permissions"], job["permissions"]) == ({}, {"contents": "read"})
    checkout, action = (step["uses"] for step in job["steps"])
    assert re.fullmatch("actions/checkout@[0-9a-f]{40}", checkout)
    version = run("--version").stdout.split()[-1]
    assert action == f"AI-Riksarkivet/htrflow-campaigns@v{version}"


def test_without_ci_there_is_no_workflow(tmp_path: pathlib.Path) -> None:
    assert run("init", tmp_path, "--ci", "none").returncode == 0
    assert [*snapshot(tmp_path)] == [path for path in WRITTEN if not path.startswith(".github/")]


def test_it_says_what_it_wrote_and_what_to_do_next_with_commands_that_work(tmp_path: pathlib.Path) -> None:
    done = run("init", "my campaigns", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0] == "wrote 12 files into my campaigns:"
    assert lines[1:13] == [f"  {path}" for path in WRITTEN]
    commands = [line.strip() for line in lines if line.startswith("  htrflow-campaigns ")]
    assert len(commands) == 2
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        subprocess.run(command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)  # noqa: S602
    assert (tmp_path / "my campaigns" / "rendered" / "campaigns" / "example.yaml").is_file()


def test_git_ignores_what_render_writes_into_a_new_repo(new: pathlib.Path) -> None:
    run("render", new, "--out", new / "rendered")
    subprocess.run(["git", "init", "--quiet"], cwd=new, check=True)
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"], cwd=new, capture_output=True, text=True, check=True
    )
    assert sorted(line.split(" ", 1)[1] for line in status.stdout.splitlines()) == WRITTEN


def test_a_git_repo_with_files_of_its_own_may_become_a_campaigns_repo(tmp_path: pathlib.Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert run("init", ".", cwd=tmp_path).returncode == 0
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert run("validate", tmp_path).returncode == 0


def test_files_in_the_way_are_named_and_nothing_is_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns" / "example.yaml").symlink_to("nowhere")
    done = run("init", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"htrflow-campaigns init: {tmp_path} already has README.md and campaigns/example.yaml"
        " — name another folder, or write over them with --force\n"
    )
    assert snapshot(tmp_path) == {"README.md": "mine"}


def test_force_writes_over_its_own_files_and_touches_no_other(new: pathlib.Path) -> None:
    fresh = snapshot(new)
    (new / "converter.yaml").write_text("mine", encoding="utf-8")
    (new / "campaigns" / "letters.yaml").write_text("mine", encoding="utf-8")
    assert run("init", new, "--force").returncode == 0
    assert snapshot(new) == fresh | {"campaigns/letters.yaml": "mine"}


def test_force_replaces_a_link_and_not_the_file_it_leads_to(tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine", encoding="utf-8")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "converter.yaml").symlink_to(outside)
    assert run("init", tmp_path / "repo", "--force").returncode == 0
    assert outside.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "repo" / "converter.yaml").is_symlink()


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        ("file", "{repo} is a file — name a folder"),
        ("file above", "{repo} is a file — name a folder"),
        ("file for folder", "{repo}/campaigns is a file, and a folder belongs there — move it, or name another folder"),
        ("link for folder", "{repo}/.schemas is a link, and a folder belongs there — move it, or name another folder"),
        ("folder for file", "{repo}/README.md is a folder, and a file belongs there — move it, or name another folder"),
    ],
)
def test_what_cannot_be_written_over_is_said_in_one_sentence(
    tmp_path: pathlib.Path, obstacle: str, message: str
) -> None:
    repo = tmp_path / "repo"
    if obstacle in ("file", "file above"):
        repo.write_text("mine", encoding="utf-8")
    elif obstacle == "file for folder":
        repo.mkdir()
        (repo / "campaigns").write_text("mine", encoding="utf-8")
    elif obstacle == "link for folder":
        repo.mkdir()
        (tmp_path / "elsewhere").mkdir()
        (repo / ".schemas").symlink_to(tmp_path / "elsewhere")
    else:
        (repo / "README.md").mkdir(parents=True)
    before = snapshot(tmp_path)
    done = run("init", repo / "below" if obstacle == "file above" else repo, "--force")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"htrflow-campaigns init: {message.format(repo=repo)}\n"
    assert snapshot(tmp_path) == before


def test_a_place_that_cannot_be_written_to_is_said_in_one_sentence() -> None:
    done = run("init", "/proc/campaigns")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "htrflow-campaigns init: /proc/campaigns cannot be written (no such file or directory)"
        " — name a folder that you may write to\n"
    )


def obey_permissions() -> None:
    """Takes from root what lets it write everywhere (``PR_CAPBSET_DROP`` of ``CAP_DAC_OVERRIDE``)."""
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0


def test_a_folder_without_write_permission_leaves_everything_as_it_was(tmp_path: pathlib.Path) -> None:
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns").chmod(0o555)
    (tmp_path / "converter.yaml").write_text("mine", encoding="utf-8")
    done = run("init", tmp_path, "--force", preexec=obey_permissions)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"htrflow-campaigns init: {tmp_path}/campaigns cannot be written (permission denied)"
        " — name a folder that you may write to\n"
    )
    assert snapshot(tmp_path) == {"converter.yaml": "mine"}


@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_is_full_half_way_leaves_nothing_behind(tmp_path: pathlib.Path, there: bool) -> None:
    repo = tmp_path / "a" / "repo"
    if there:
        repo.mkdir(parents=True)
        (repo / "converter.yaml").write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    # No file may grow beyond 2 KiB, and the schemas are larger.
    done = run("init", repo, "--force", preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"htrflow-campaigns init: {repo} cannot be written (file too large) — name a folder that you may write to\n"
    )
    assert sorted(tmp_path.rglob("*")) == before
    assert not there or (repo / "converter.yaml").read_text(encoding="utf-8") == "mine"
