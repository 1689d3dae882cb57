"""The YAML that is written means the same to Python, which htrflow reads it with, and to Go, which Kubernetes does."""

from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
import typing as t

import hypothesis
import yaml
from hypothesis import strategies as st

from htrflow_campaigns import delivery, load, render, tree, yaml_writer
from tests import tools
from tests.cmp_plugin.rendered import FEATURES

# Text that can be stored as UTF-8.
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(_TEXTS, children, max_size=4),
    max_leaves=20,
)

#: Texts that some reader of YAML takes for something else when they stand there without quotes, and texts that do not
#: survive every way of writing them.
HOSTILE = [
    *("y", "Y", "n", "N", "yes", "Yes", "no", "NO", "on", "On", "off", "OFF", "true", "True", "false", "FALSE"),
    *("null", "Null", "NULL", "~", "", " ", "  ", "\t", "\n", "\n\n", "\r", "\r\n", "a\rb", "a\r\nb"),
    *("1", "-1", "+1", "01", "0o17", "017", "08", "0x1F", "0X1f", "-0x1F", "0b11", "0B11", "-0b1", "0b", "0x", "0o"),
    *("1_000", "_1", "1_", "1__0", "0x_1", "0b_1", "0o_7", "1e3", "1E3", "1e+3", "1e-3", "12e03", "1.e3", ".5", "5."),
    *(
        "-.5",
        "+.5",
        ".5e1",
        "1.5",
        "1.5.5",
        ".inf",
        "-.inf",
        "+.Inf",
        ".nan",
        ".NaN",
        ".",
        "..",
        "...",
        "---",
        "-",
        "--",
    ),
    *(
        "1:20",
        "1:20:30",
        "190:20:30.15",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "2001-12-15 2:59:43.10",
        "1-1-1",
    ),
    *("=", "<<", "<", "!", "!!str", "&a", "*a", "&", "*", "%", "%YAML 1.1", "@", "`", "|", ">", "|-", "?", "? a", ":"),
    *(
        "a: b",
        "a:b",
        "a #b",
        "#",
        "# a",
        "- a",
        "-a",
        "[",
        "]",
        "[]",
        "{",
        "}",
        "{}",
        ",",
        "a, b",
        "'",
        "''",
        '"',
        '""',
    ),
    *("'a'", '"a"', "\\", "\\n", "\\u2028", "a\\", "%s", "$(HOME)", "{{ a }}", "${a}", "inf", "nan", "Infinity", "NaN"),
    *(
        " a",
        "a ",
        "  a\nb",
        "a\n  b",
        "a\n b\n",
        "a\nb",
        "a\nb\n",
        "a\n\nb\n\n",
        "a \nb",
        "a\n b \n",
        "\na",
        "\n a\n",
        " \n",
    ),
    *(
        "a\tb",
        "\ta",
        "a\t",
        "a\tb\n",
        "\ta\n",
        "a\n\tb\n",
        "a\t\nb",
        "a: b\tc\nd: e\n",
        "#a\nb",
        "---\na",
        "...\na",
        "- a\n- b",
    ),
    *(
        "\u2028",
        "a\u2028b",
        "a\u2029b",
        "a\x85b",
        "\x85",
        "a\n\u2028\n",
        "\xa0",
        "a\xa0",
        "\ufeff",
        "a\ufeffb",
        "\ufeffa\nb",
    ),
    *("\x00", "a\x00b", "\x07", "\x1b[0m", "\x7f", "a\x1fb", "\x80", "\x9f", "\ue000", "\ufffd", "\ufffe", "\uffff"),
    *("å", "räkenskaper", "书", "🙂", "a🙂\nb", "\U0010ffff", "\u200b", "\u202e", "e\u0301", "\u0301", "x" * 5000),
    *("x y " * 1000, "1" * 400, "0" * 64, "0123456789" * 4, "1e" + "3" * 62, "5e10" + "0" * 60),
]


def _unequal_types(one: t.Any, other: t.Any) -> bool:
    """Whether equal values are of different types somewhere: 1, 1.0 and True are equal."""
    if isinstance(one, dict):
        return any(_unequal_types(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return any(map(_unequal_types, one, other))
    return type(one) is not type(other)


@hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(data=_DATA)
@hypothesis.example(data=HOSTILE)
@hypothesis.example(data={text: text for text in HOSTILE})
@hypothesis.example(data=[[], {}, [[]], [{}], {"a": []}, {"a": {}}, {"a": None}, 1e17, 1e-7, 1e300, -0.0, 10**30])
def test_python_reads_back_what_was_written(data: t.Any) -> None:
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        read = yaml.load(yaml_writer.dump(data), loader)  # noqa: S506
        assert read == data
        assert not _unequal_types(read, data)


@hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(documents=st.lists(_DATA, max_size=3))
def test_python_reads_back_every_document_of_a_stream(documents: list[t.Any]) -> None:
    assert [*yaml.safe_load_all(yaml_writer.dump_all(documents))] == documents


def _config_map(values: t.Sequence[str], keys: t.Sequence[str] = ()) -> dict[str, t.Any]:
    data = {f"k{number}": value for number, value in enumerate(values)} | {key: key for key in keys}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hostile", "annotations": {**data}},
        "data": {**data},
    }


def _kubectl(*arguments: str) -> str:
    command = [str(tools.get("kubectl")), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def _written(folder: pathlib.Path, config_map: dict[str, t.Any]) -> pathlib.Path:
    (folder / "config_map.yaml").write_text(yaml_writer.dump(config_map), encoding="utf-8", newline="\n")
    (folder / "kustomization.yaml").write_text("resources: [config_map.yaml]\n", encoding="utf-8")
    return folder


def _as_kubectl_reads_it(folder: pathlib.Path) -> dict[str, t.Any]:
    found = _kubectl("annotate", "--local", "--output=json", f"--filename={folder / 'config_map.yaml'}", "mark=1")
    config_map: dict[str, t.Any] = json.loads(found)
    del config_map["metadata"]["annotations"]["mark"]
    return config_map


def _as_kustomize_reads_it(folder: pathlib.Path) -> dict[str, t.Any]:
    # Kustomize writes YAML of its own, which only Go is bound to read as it was meant.
    (folder / "config_map.yaml").write_text(_kubectl("kustomize", str(folder)), encoding="utf-8", newline="\n")
    return _as_kubectl_reads_it(folder)


def test_kubectl_reads_hostile_keys_and_texts_as_they_were_written(tmp_path: pathlib.Path) -> None:
    config_map = _config_map(HOSTILE, keys=HOSTILE)
    assert _as_kubectl_reads_it(_written(tmp_path, config_map)) == config_map


#: What kustomize reads and then writes in a way that no reader takes. Kubectl reads these too.
_UNWRITABLE = {"\ta\n", "a\x85b", "\x85", "\x7f", "\x80", "\x9f", "\ufffe", "\uffff"}


def test_kustomize_reads_hostile_texts_as_they_were_written(tmp_path: pathlib.Path) -> None:
    config_map = _config_map([text for text in HOSTILE if text not in _UNWRITABLE])
    assert _as_kustomize_reads_it(_written(tmp_path, config_map)) == config_map


@hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], max_examples=25)
@hypothesis.given(values=st.lists(_TEXTS | st.from_regex(r"[-+.0-9xobeE_:~ntTf]{1,6}", fullmatch=True), min_size=20))
def test_go_reads_any_text_as_it_was_written(values: list[str]) -> None:
    config_map = _config_map(values)
    with tempfile.TemporaryDirectory() as folder:
        assert _as_kubectl_reads_it(_written(pathlib.Path(folder), config_map)) == config_map


def test_kubectl_reads_every_rendered_file_as_python_does(tmp_path: pathlib.Path) -> None:
    loaded = load.load(tree.from_folder(FEATURES))
    for path, text in render.files(loaded, delivery.Apply()):
        file = tmp_path / pathlib.Path(path).name
        file.write_text(text, encoding="utf-8", newline="\n")
        output = _kubectl("annotate", "--local", "--output=json", f"--filename={file}", "mark=1")
        expected = [*yaml.safe_load_all(text)]
        for document in expected:
            document["metadata"]["annotations"]["mark"] = "1"
        assert [*_documents(output)] == expected


def _documents(text: str) -> t.Iterator[t.Any]:
    """The values of JSON that follow one another."""
    while text := text.strip():
        value, end = json.JSONDecoder().raw_decode(text)
        yield value
        text = text[end:]


def test_scripts_and_lines_with_tabs_are_written_as_blocks() -> None:
    text = "set -eu\nid=${line%%\t*}\n  indented\n\nlast\n"
    assert yaml_writer.dump({"args": [text]}) == ("args:\n- |\n  set -eu\n  id=${line%%\t*}\n    indented\n\n  last\n")


def test_keys_keep_their_order_and_long_lines_are_not_folded() -> None:
    assert yaml_writer.dump({"b": "x y " * 100 + "z", "a": ["1e3", "y", "v1"]}) == (
        "b: " + "x y " * 100 + "z\na:\n- '1e3'\n- 'y'\n- v1\n"
    )


def test_equal_parts_are_written_twice_and_not_as_an_alias() -> None:
    part = {"a": [1]}
    assert yaml_writer.dump([part, part]) == "- a:\n  - 1\n- a:\n  - 1\n"
