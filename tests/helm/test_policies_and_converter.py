"""The policies and the converter's own rules hold the same things to be right."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from htrflow_campaigns import htrflow_steps
from htrflow_campaigns.checks import pipeline as converter
from tests.helm import kyverno_cli, policy_files
from tests.helm.kyverno_cli import Object, Row

#: They take long together.
pytestmark = pytest.mark.slow

Tool = t.Callable[[str], pathlib.Path]

_RULES = pathlib.Path(__file__).parents[1] / "cmp_plugin" / "bad"
#: The converter's rules about what pins a pipeline, and the policies that stand behind them.
_BEHIND = {
    "HTR402-image-not-pinned": {"image-digests"},
    "HTR407-settings-beside-model-settings": {"model-settings"},
    "HTR408-revision-not-text": {"models-pinned"},
    "HTR409-model-not-pinned": {"models-pinned", "processors-pinned"},
    "HTR410-model-unknown": {"model-classes"},
    "HTR411-model-missing": {"model-classes"},
}


def test_what_the_converter_refuses_of_images_and_models_the_policies_refuse_as_well(tool: Tool) -> None:
    cases = {f"{rule}.{case.name}": case for rule in _BEHIND for case in sorted((_RULES / rule).iterdir())}
    objects = [item for name, case in cases.items() for item in _objects(name.lower(), case)]

    rows = _run(tool("kyverno"), objects, set[str]().union(*_BEHIND.values()))

    for name in cases:
        assert set(policy_files.refused_by(rows, name.lower())) & _BEHIND[name.partition(".")[0]], name
    assert len(cases) >= 25


def test_the_policy_and_the_converter_have_one_grammar_of_a_pinned_image() -> None:
    (policy,) = policy_files.read(policy_files.FOLDER / "image-digests.yaml")
    (expression,) = (item["expression"] for item in policy["spec"]["variables"] if item["name"] == "floating")
    pattern = "".join(re.findall(r"'([^']*)'", expression))

    assert pattern == f"^{converter._IMAGE.pattern}$".replace(r"\.", "[.]")
    assert f"size(i) <= {converter._IMAGE_CHARACTERS} &&" in expression


def test_the_policies_know_the_classes_of_models_and_where_each_takes_its_revision() -> None:
    text = {name: (policy_files.FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in policy_files.NAMES}
    direct = {key for key, model in htrflow_steps.MODELS.items() if model.pins == (("revision",),)}
    keywords = {key for key, model in htrflow_steps.MODELS.items() if len(model.pins) == 2}
    nowhere = {key for key, model in htrflow_steps.MODELS.items() if not model.pins}

    assert _lists(text["model-classes"]) >= {frozenset(htrflow_steps.MODELS), frozenset(htrflow_steps.MODEL_STEPS)}
    assert _lists(text["model-settings"]) >= {frozenset(htrflow_steps.SETTINGS), frozenset(htrflow_steps.MODEL_STEPS)}
    assert _lists(text["models-pinned"]) >= {frozenset(direct), frozenset(keywords)}
    assert _lists(text["processors-pinned"]) >= {frozenset(keywords)}
    assert direct | keywords | nowhere == set(htrflow_steps.MODELS)
    # Nothing pins a model whose class takes no revision, so the policy has no place where it would find one.
    assert nowhere == {"llavanext"}


def _lists(text: str) -> set[frozenset[str]]:
    """The lists of words in the expressions of a policy."""
    return {frozenset(re.findall(r"'(\w+)'", found)) for found in re.findall(r"\[('\w+'(?:,\s*'\w+')*)\]", text)}


def _pipelines(folder: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in sorted(folder.rglob("*.y*ml")) if path.parent.name == "pipelines"]


def _objects(name: str, case: pathlib.Path) -> t.Iterator[Object]:
    """The pipeline of a case as it would come into the cluster if nobody had checked it before."""
    (path,) = _pipelines(case)
    text = path.read_text(encoding="utf-8")
    metadata = {"name": name, "namespace": "team-a"}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"pipeline.yaml": text}}
    yield _job(name, yaml.safe_load(text)["image"])


def _job(name: str, image: str) -> Object:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "wrapper", "image": image}]}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "team-a"}, "spec": spec}


def _run(program: pathlib.Path, objects: t.Iterable[Object], names: set[str]) -> list[Row]:
    policies = [policy for policy in policy_files.filled() if policy["metadata"]["name"].removeprefix("htr-") in names]
    return kyverno_cli.apply(program, policies, objects, policy_files.canaries())
