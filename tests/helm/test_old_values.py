"""Values that are older than the chart, or null: what they do not name is as by default, and nothing is lost."""

from __future__ import annotations

import json
import pathlib
import shutil
import typing as t

import pytest
import yaml

from tests.helm import chart
from tests.helm.chart import Helm, Object

_VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text(encoding="utf-8"))
#: What may not be missing: without it, pods may do or reach more.
_SECURITY = {
    "NetworkPolicy",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "ServiceAccount",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ClusterQueue",
}


@pytest.fixture
def bare(helm: Helm, tmp_path: pathlib.Path) -> Helm:
    """The chart without any default, which is what ``--reuse-values`` gives it of values that are newer than they are.

    With that option helm takes the values of the old release as they are, with the defaults of the old chart in them,
    and none of the new chart.
    """
    copy = tmp_path / "htrflow-batch"
    shutil.copytree(chart.CHART, copy)
    (copy / "values.yaml").write_text("{}\n", encoding="utf-8")
    return Helm(helm.program, copy)


def _security(objects: t.Iterable[Object]) -> dict[tuple[str, str, str], Object]:
    return {chart.key(item): item for item in objects if item["kind"] in _SECURITY}


@chart.each_way
def test_values_that_lack_every_new_one_make_the_same_objects(helm: Helm, bare: Helm, way: str) -> None:
    objects = helm.template(way)

    assert _security(objects)
    assert bare.template(way) == objects


@pytest.mark.parametrize("group", sorted(_VALUES.keys() - {"resultsUrl"}))
def test_a_value_that_is_null_drops_no_security_object(helm: Helm, group: str) -> None:
    given = yaml.safe_load((chart.VALUES / "apply.yaml").read_text(encoding="utf-8"))
    settings: dict[str, t.Any] = {group: None}
    if group in given and isinstance(given[group], dict):
        settings = {f"{group}.{key}": None for key in _VALUES[group] if key not in given.get(group, {})}
    expected = _security(helm.template("apply"))

    assert len(expected) > 12
    assert _security(helm.template("apply", settings=settings)) == expected


def test_a_null_of_which_the_schema_was_not_asked_drops_no_security_object_either(helm: Helm, bare: Helm) -> None:
    given = yaml.safe_load((chart.VALUES / "apply.yaml").read_text(encoding="utf-8"))
    groups = {key: value for key, value in _VALUES.items() if isinstance(value, dict) and key in given}
    settings: dict[str, t.Any] = dict.fromkeys(_VALUES.keys() - given.keys())
    settings |= {
        f"{group}.{key}": None for group, value in groups.items() for key in value.keys() - given[group].keys()
    }
    arguments = bare.arguments(["apply"], settings)

    done = bare.run("template", "htr", str(bare.chart), "--skip-schema-validation", "-n=htr-batch", *arguments)

    assert len(settings) > 30
    assert done.returncode == 0, done.stderr
    assert _security(chart.objects(done.stdout)) == _security(helm.template("apply"))


def test_every_default_is_in_the_copy_that_templates_read() -> None:
    copy = json.loads((chart.CHART / "files" / "defaults.json").read_text(encoding="utf-8"))

    assert copy == _VALUES


def test_every_template_begins_with_the_defaults() -> None:
    templates = [*chart.CHART.glob("templates/*.yaml"), *chart.CHART.glob("templates/*.txt")]

    assert len(templates) > 10
    for file in templates:
        assert file.read_text(encoding="utf-8").startswith('{{- include "htrflow.defaults" . -}}\n'), file.name


def test_a_value_that_is_false_stays_false(bare: Helm) -> None:
    for path, kind in (("network.enabled", "NetworkPolicy"), ("web.enabled", "Deployment")):
        assert [item for item in bare.template("default", settings={path: False}) if item["kind"] == kind] == []
