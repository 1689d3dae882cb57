"""Values of the chart, as ``validate --values`` reads them."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from tests.cmp_plugin.conftest import Repo


def test_the_repo_that_init_writes_and_the_chart_as_it_is_say_the_same(tmp_path: pathlib.Path, repo: Repo) -> None:
    (tmp_path / "values.yaml").write_text("resultsUrl: ''\n")
    repo.write("converter.yaml", "source_template: https://iiif.example.org/{ref}/manifest\n")

    done = repo.run("validate", "--values", str(tmp_path / "values.yaml"))

    assert (done.returncode, done.stdout) == (0, "no problems in 3 files\n"), done


def test_later_files_lie_over_earlier_ones_key_by_key_as_helm_lays_them(tmp_path: pathlib.Path, repo: Repo) -> None:
    first = {"queue": "one", "sizes": {"small": {"gpu": 1, "cpu": 4, "memory": "16Gi"}}, "window": 3}
    second = {"queue": "two", "sizes": {"small": {"cpu": 8}}, "window": None}
    for name, values in (("first", first), ("second", second)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(values))
    repo.write(
        "converter.yaml",
        "queue: two\nsizes: {small: {gpu: 1, cpu: 8, memory: 16Gi}}\nwindow: 3\n"
        "source_template: https://iiif.example.org/{ref}/manifest\n",
    )
    files = [f"--values={tmp_path / name}.yaml" for name in ("first", "second")]

    both, one = repo.run("validate", *files), repo.run("validate", files[0])

    # Null takes the window of the first file away, and the chart's own holds.
    assert both.stdout.count("[HTR701]") == 1, both.stdout
    assert "in the chart's values window is 20" in both.stdout
    assert one.stdout.count("[HTR701]") == 2, one.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- one\n", "holds no values of a chart — name the file that helm install got with --values"),
        (b"a: [1\n", "values.yaml:1:4: the list that opens here"),
        (b"\xff\xfe", "is not UTF-8"),
        (None, "values.yaml cannot be read (no such file or directory)"),
    ],
)
def test_values_that_cannot_be_read_are_a_wrong_use(
    tmp_path: pathlib.Path, repo: Repo, content: bytes | None, said: str
) -> None:
    file = tmp_path / "values.yaml"
    if content is not None:
        file.write_bytes(content)

    done = repo.run("validate", "--values", str(file))

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
