"""The documented example: each field that the reference page shows is in our objects, as it is shown there.

The page leaves fields out. So maps may have more keys than it shows, and lists of named things more items; what is
shown must be there, equal and in the same order. Placeholders of the page are filled in, and its tabs are tabs.
"""

from __future__ import annotations

import hashlib
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

from tests.cmp_plugin.rendered import EXAMPLE, Object

_EXPECTED = EXAMPLE.parent / "expected"
FILES = sorted(file.relative_to(_EXPECTED).as_posix() for file in _EXPECTED.rglob("*.yaml"))
PARTS = [
    ("campaigns/example.yaml", 0, "ConfigMap", "campaign-example"),
    ("campaigns/example.yaml", 1, "Job", "example"),
    ("pipelines/demo-v1.yaml", 0, "ConfigMap", "htr-pipeline-demo-v1"),
    ("pipelines/demo-v1.yaml", 1, "Job", "htr-warmup-demo-v1"),
]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that ``htrflow-campaigns render`` writes for the page's inputs."""
    out = tmp_path_factory.mktemp("reference") / "rendered"
    command = [sys.executable, "-m", "htrflow_campaigns", "render", str(EXAMPLE), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return out


def differences(shown: t.Any, ours: t.Any, path: str = "") -> t.Iterator[str]:
    """Where ``ours`` does not have what is ``shown``, or has it in another order."""
    if isinstance(shown, dict) and isinstance(ours, dict):
        for key in shown.keys() - ours.keys():
            yield f"{path}.{key} is missing"
        if [*filter(ours.__contains__, shown)] != [*filter(shown.__contains__, ours)]:
            yield f"{path}: the order is {[*ours]} and not {[*shown]}"
        for key in shown.keys() & ours.keys():
            yield from differences(shown[key], ours[key], f"{path}.{key}")
    elif _is_named(shown) and _is_named(ours):
        yield from differences({item["name"]: item for item in shown}, {item["name"]: item for item in ours}, path)
    elif isinstance(shown, list) and isinstance(ours, list) and len(shown) == len(ours):
        for index, (one, other) in enumerate(zip(shown, ours, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif shown != ours or type(shown) is not type(ours):
        yield f"{path} is {ours!r} and not {shown!r}"


def _is_named(items: t.Any) -> bool:
    return isinstance(items, list) and bool(items) and all(isinstance(i, dict) and "name" in i for i in items)


def _documents(file: pathlib.Path) -> list[Object]:
    return [*yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def test_the_render_writes_the_two_files_of_the_page(rendered: pathlib.Path) -> None:
    assert sorted(file.relative_to(rendered).as_posix() for file in rendered.rglob("*") if file.is_file()) == FILES
    assert sorted({file for file, *_ in PARTS}) == FILES


@pytest.mark.parametrize(("file", "part", "kind", "name"), PARTS, ids=lambda value: str(value))
def test_each_field_of_the_page_is_in_our_object(
    rendered: pathlib.Path, file: str, part: int, kind: str, name: str
) -> None:
    shown, ours = _documents(_EXPECTED / file), _documents(rendered / file)
    assert (shown[part]["kind"], shown[part]["metadata"]["name"]) == (kind, name)
    assert len(ours) == len(shown) == 2
    assert [*differences(shown[part], ours[part])] == []


def test_both_config_maps_are_equal_to_the_page_as_a_whole(rendered: pathlib.Path) -> None:
    for file in FILES:
        assert _documents(rendered / file)[0] == _documents(_EXPECTED / file)[0]


def test_config_maps_are_written_line_for_line_as_the_page_shows_them(rendered: pathlib.Path) -> None:
    for file in FILES:
        shown = (_EXPECTED / file).read_text(encoding="utf-8").partition("---\n")[0]
        assert (rendered / file).read_text(encoding="utf-8").startswith(shown + "---\n")


def test_the_digests_are_those_of_the_steps_and_of_the_image_and_the_steps(rendered: pathlib.Path) -> None:
    config_map, job = _documents(rendered / "pipelines/demo-v1.yaml")
    text = config_map["data"]["pipeline.yaml"]
    assert config_map["metadata"]["annotations"]["htrflow.riksarkivet.se/pipeline-sha256"] == _sha256(text)
    recipe = _sha256(f"{job['spec']['template']['spec']['containers'][0]['image']}\n{text}")
    assert job["spec"]["template"]["metadata"]["annotations"]["htrflow.riksarkivet.se/recipe-sha256"] == recipe
    campaign = _documents(rendered / "campaigns/example.yaml")[1]
    for pod in (job, campaign):
        for container in [
            *pod["spec"]["template"]["spec"]["containers"],
            *pod["spec"]["template"]["spec"].get("initContainers", []),
        ]:
            (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "data")
            assert mount["subPath"] == f"demo-v1-{recipe}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_scripts_are_written_as_blocks_that_read_like_the_page(rendered: pathlib.Path) -> None:
    for file in FILES:
        shown, ours = ((folder / file).read_text(encoding="utf-8") for folder in (_EXPECTED, rendered))
        script = shown[shown.index("        args:\n        - |\n") : shown.index("        env:\n")]
        assert script.count("\n") > 4
        assert script in ours


@pytest.mark.parametrize(
    ("shown", "ours", "says"),
    [
        ({"a": 1}, {}, ".a is missing"),
        ({"a": 1}, {"a": "1"}, ".a is '1' and not 1"),
        ({"a": 1}, {"a": True}, ".a is True and not 1"),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3, "a": 1}, ": the order is ['b', 'c', 'a'] and not ['a', 'b']"),
        ({"a": [1]}, {"a": [1, 2]}, ".a is [1, 2] and not [1]"),
        ([{"name": "a", "v": 1}], [{"name": "b"}, {"name": "a", "v": 2}], ".a.v is 2 and not 1"),
        (
            [{"name": "a"}, {"name": "b"}],
            [{"name": "b"}, {"name": "a"}],
            ": the order is ['b', 'a'] and not ['a', 'b']",
        ),
        ("a\n", "a\n\n", " is 'a\\n\\n' and not 'a\\n'"),
    ],
)
def test_the_comparison_finds_what_differs(shown: t.Any, ours: t.Any, says: str) -> None:
    assert [*differences(shown, ours)] == [says]


def test_the_comparison_allows_what_the_page_leaves_out() -> None:
    shown = {"a": 1, "env": [{"name": "x"}, {"name": "y"}]}
    ours = {"b": 0, "a": 1, "c": 2, "env": [{"name": "x", "value": ""}, {"name": "z"}, {"name": "y"}]}
    assert [*differences(shown, ours)] == []


def added(shown: t.Any, ours: t.Any, path: str = "") -> t.Iterator[str]:
    """The fields of ``ours`` that are not ``shown``, and nothing of what is below them."""
    if isinstance(shown, dict):
        for key, value in ours.items():
            deeper = f"{path}.{key}" if path else key
            yield from added(shown[key], value, deeper) if key in shown else [deeper]
    elif _is_named(shown):
        by_name = {item["name"]: item for item in shown}
        for item in ours:
            deeper = f"{path}[{item['name']}]"
            yield from added(by_name[item["name"]], item, deeper) if item["name"] in by_name else [deeper]


def test_each_field_that_the_page_leaves_out_is_explained_in_the_documentation(rendered: pathlib.Path) -> None:
    text = (pathlib.Path(__file__).parents[2] / "docs" / "rendered-objects.md").read_text(encoding="utf-8")
    table = text.partition("## What the example leaves out\n")[2].partition("\n## ")[0]
    left_out = {
        path.removeprefix("spec.template.spec.")
        for file, part, *_ in PARTS
        for path in added(_documents(_EXPECTED / file)[part], _documents(rendered / file)[part])
    }
    assert len(left_out) > 20
    assert [path for path in sorted(left_out) if f"`{path}`" not in table] == []
