"""A run of Kyverno that checks nothing is an error, whatever its exit code."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from tests.helm import kyverno_cli, policy_files
from tests.helm.kyverno_cli import KyvernoError, Object

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]


def _copy(folder: pathlib.Path) -> pathlib.Path:
    """A folder with two of the policies."""
    for name in ("configmap-text", "pipeline-key"):
        (folder / f"{name}.yaml").write_bytes((policy_files.FOLDER / f"{name}.yaml").read_bytes())
    return folder


def _spoil(file: pathlib.Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("failurePolicy:", "failurePolicies:", "no report|not a word"),
        ("size(variables.elsewhere) == 0", "size(variables.elsewhere) = 0", "failed to compile policy"),
        ("size(variables.elsewhere) == 0", "size(variables.elsewhere) >= 0", "htr-pipeline-key: pass success"),
        ("resources: [configmaps]", "resources: [configmap]", "by htr-pipeline-key: not a word"),
        ("kind: ValidatingPolicy", "kind: ValidatingPolicies", "no report|not a word"),
    ],
)
def test_a_policy_with_an_error_stops_the_run(
    tool: Tool, tmp_path: pathlib.Path, old: str, new: str, said: str
) -> None:
    folder = _copy(tmp_path)
    good = policy_files.objects("pipeline-key", "good")[:1]
    assert kyverno_cli.apply(tool("kyverno"), kyverno_cli.load(folder), good, policy_files.canaries())
    _spoil(folder / "pipeline-key.yaml", old, new)

    with pytest.raises(KyvernoError, match=said):
        kyverno_cli.apply(tool("kyverno"), kyverno_cli.load(folder), good, policy_files.canaries())


@pytest.mark.parametrize("content", ["", "a: [", "apiVersion: v1\nkind: ConfigMap\n", "a: 1\n---\nb: 2\n"])
def test_a_file_that_is_not_one_policy_is_refused_before_kyverno_drops_it(tmp_path: pathlib.Path, content: str) -> None:
    (_copy(tmp_path) / "other.yaml").write_text(content, encoding="utf-8")

    with pytest.raises(KyvernoError, match=r"other\.yaml: not "):
        kyverno_cli.load(tmp_path)


def test_a_folder_without_policies_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(KyvernoError, match="no policies"):
        kyverno_cli.load(tmp_path)


def test_a_setting_that_no_policy_has_is_refused() -> None:
    with pytest.raises(KyvernoError, match="no policy has the setting teams"):
        kyverno_cli.fill_in(kyverno_cli.load(policy_files.FOLDER), teams={})


def test_two_objects_that_share_a_row_of_the_report_are_refused(tool: Tool) -> None:
    twin: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}

    with pytest.raises(KyvernoError, match="twice"):
        kyverno_cli.apply(tool("kyverno"), policy_files.filled(), [twin, twin], policy_files.canaries())


def test_text_around_the_report_is_passed_over() -> None:
    row = {"policy": "p", "result": "fail", "message": "m", "resources": [{"kind": "Job", "name": "j"}]}
    line = f'{{"results": [{row}]}}'.replace("'", '"')

    assert kyverno_cli.read_report(f"WARNING: old\n{line}\n---\n{{}}\n") == [("p", "Job", "", "j", "fail", "m")]
