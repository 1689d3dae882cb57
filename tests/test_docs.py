"""The documentation says what is: its generated parts, its links, its examples and its names."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import typing as t

import pytest

from htrflow_campaigns import limits, schemas, settings

TOP = pathlib.Path(__file__).parent.parent
PAGES = sorted([TOP / "README.md", TOP / "CONTRIBUTING.md", *TOP.glob("docs/**/*.md")])
SCHEMAS = sorted(TOP.glob("schemas/*.json"))

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_EXPLICIT_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def _name(path: pathlib.Path) -> str:
    return path.relative_to(TOP).as_posix()


def _anchors(page: pathlib.Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page, and those written as HTML."""
    text = page.read_text(encoding="utf-8")
    anchors = set(_EXPLICIT_ANCHOR.findall(text))
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = _LINK.sub(lambda link: link.group().partition("]")[0][1:], heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = sum(re.fullmatch(rf"{re.escape(anchor)}(?:-\d+)?", known) is not None for known in anchors)
        anchors.add(f"{anchor}-{number}" if number else anchor)
    return anchors


def _properties(schema: t.Any, path: str = "") -> t.Iterator[tuple[str, dict[str, t.Any]]]:
    """Every key that a schema describes, by its path."""
    if isinstance(schema, dict):
        for key, inner in schema.get("properties", {}).items():
            yield f"{path}/{key}", inner
        for key, inner in schema.items():
            yield from _properties(inner, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, inner in enumerate(schema):
            yield from _properties(inner, f"{path}/{index}")


def test_the_generated_parts_are_what_make_docs_would_write() -> None:
    done = subprocess.run(
        [sys.executable, str(TOP / "docs" / "tables.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: pathlib.Path) -> None:
    broken = []
    for link in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("file", SCHEMAS, ids=_name)
def test_every_key_of_a_schema_has_a_description(file: pathlib.Path) -> None:
    schema = schemas.load(file.name.removesuffix(".schema.json"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    described = [*_properties(schema)]
    assert described
    assert [path for path, inner in described if not inner.get("description", "").endswith(".")] == []


def test_the_examples_of_the_yaml_reference_are_a_good_campaigns_repo(tmp_path: pathlib.Path) -> None:
    text = (TOP / "docs" / "campaign-yaml.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(examples) == text.count("```yaml")
    for name, content in examples:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "htrflow_campaigns", "validate", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"no problems in {len(examples)} files\n")


def test_every_message_that_the_reference_of_the_command_shows_is_a_real_one(tmp_path: pathlib.Path) -> None:
    text = (TOP / "docs" / "cli.md").read_text(encoding="utf-8")
    shown = re.findall(r"^campaigns/letters\.yaml:.*$", text, re.MULTILINE)
    subprocess.run([sys.executable, "-m", "htrflow_campaigns", "init", str(tmp_path)], check=True, capture_output=True)
    (tmp_path / "campaigns" / "example.yaml").unlink()
    (tmp_path / "campaigns" / "letters.yaml").write_text("pipeline: demo-v1\nvolumes:\n  - 0012345\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "htrflow_campaigns", "validate", str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stdout == "\n".join([*shown, "1 problem in 3 files", ""])
    assert "1 problem in 3 files" in text


def test_the_reference_of_the_command_names_every_variable_of_generate_and_its_default() -> None:
    text = (TOP / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(HTRFLOW_\w+)` \| ([^|]+?) \|", text, re.MULTILINE))
    assert rows == {
        settings.NAMESPACES: "every namespace",
        settings.ALLOW_EMPTY: f"`{str(settings.Settings().allow_empty).lower()}`",
        settings.MAX_MIB: f"`{settings.Settings().max_bytes // limits.MIB}`",
    }


def test_the_yaml_reference_names_the_limits_of_a_campaign() -> None:
    text = (TOP / "docs" / "campaign-yaml.md").read_text(encoding="utf-8")
    assert f"More than {limits.PART_VOLUMES:,} volumes".replace(",", " ") in text
    assert f"{limits.PART_BYTES // limits.KIB} KiB of addresses" in text
    assert f"at most {limits.VOLUME_LINE_BYTES // limits.KIB} KiB" in text
    assert f"at most {limits.PIPELINE_ID_CHARACTERS} characters" in text
