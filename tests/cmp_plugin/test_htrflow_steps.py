"""Our tables of htrflow's steps and models are those of the release that the wrapper runs, as its source has them."""

from __future__ import annotations

import ast
import importlib.metadata
import pathlib
import typing as t

import pytest

from htrflow_campaigns import htrflow_steps

_DISTRIBUTION = importlib.metadata.distribution("htrflow")
_PACKAGE = pathlib.Path(str(_DISTRIBUTION.locate_file("htrflow")))


def _classes(file: pathlib.Path) -> dict[str, ast.ClassDef]:
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def _descendants(classes: t.Mapping[str, ast.ClassDef], root: str) -> set[str]:
    """The names of the classes that inherit from ``root``, directly or not."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, node in classes.items()
            if any(isinstance(base, ast.Name) and base.id in {root, *found} for base in node.bases)
        }
        if more == found:
            return found
        found = more


STEPS = _classes(_PACKAGE / "pipeline" / "steps.py")
MODELS = {name: node for file in (_PACKAGE / "models").rglob("*.py") for name, node in _classes(file).items()}


def _parameters(name: str) -> set[str]:
    """What the constructor of a model class takes by name, its own or the one that it inherits."""
    node = MODELS[name]
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return {argument.arg for argument in [*part.args.args, *part.args.kwonlyargs]} - {"self"}
    (base, *_) = (base.id for base in node.bases if isinstance(base, ast.Name))
    return _parameters(base)


def _called(name: str, function: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(MODELS[name])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == function
    ]


def test_the_release_is_the_one_that_the_tables_are_of() -> None:
    assert _DISTRIBUTION.version == "0.2.6"
    assert "0.2.6" in (htrflow_steps.__doc__ or "")


def test_every_step_of_the_release_is_in_one_table_and_every_entry_is_a_step() -> None:
    refused = {name: entry[0] for name, entry in htrflow_steps.REFUSED_STEPS.items()}
    tables = [htrflow_steps.MODEL_STEPS, htrflow_steps.OTHER_STEPS, refused]
    names = [name for table in tables for name in table.values()]
    assert sorted(names) == sorted(_descendants(STEPS, "PipelineStep"))
    assert all(name == shown.lower() for table in tables for name, shown in table.items())


def test_model_steps_are_those_that_run_inference() -> None:
    assert {*htrflow_steps.MODEL_STEPS.values()} == {"Inference", *_descendants(STEPS, "Inference")}


def test_every_model_class_of_the_release_is_in_the_table_and_every_entry_is_one() -> None:
    importer = ast.parse((_PACKAGE / "models" / "importer.py").read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in ast.walk(importer)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("htrflow.models.")
        for alias in node.names
    }
    # The library's own base has the name that a library for data classes gives its base too.
    models = {name for name in _descendants(MODELS, "BaseModel") if "images" in _predict_parameters(name)}
    assert {model.name for model in htrflow_steps.MODELS.values()} == imported == models
    assert all(name == model.name.lower() for name, model in htrflow_steps.MODELS.items())


def _predict_parameters(name: str) -> set[str]:
    node = MODELS.get(name)
    for part in node.body if node else ():
        if isinstance(part, ast.FunctionDef) and part.name == "_predict":
            return {argument.arg for argument in part.args.args}
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)] if node else []
    return {parameter for base in bases if base != "BaseModel" for parameter in _predict_parameters(base)}


@pytest.mark.parametrize("model", htrflow_steps.MODELS.values(), ids=htrflow_steps.MODELS)
def test_a_model_takes_its_revision_where_the_table_says(model: htrflow_steps.Model) -> None:
    parameters = _parameters(model.name)
    direct = {("revision",)} if "revision" in parameters else set()
    forwarded = {(key, "revision") for key in ("model_kwargs", "processor_kwargs") if key in parameters}
    assert {*model.pins} == direct | forwarded
    assert not (direct and forwarded)


@pytest.mark.parametrize("name", ["TrOCR", "Donut", "DiT"])
def test_what_is_forwarded_reaches_both_downloads(name: str) -> None:
    forwarded = [
        keyword.value.id
        for call in _called(name, "from_pretrained")
        for keyword in call.keywords
        if keyword.arg is None and isinstance(keyword.value, ast.Name)
    ]
    assert sorted(forwarded) == ["model_kwargs", "processor_kwargs"]


@pytest.mark.parametrize("model", htrflow_steps.MODELS.values(), ids=htrflow_steps.MODELS)
def test_what_a_model_does_is_what_its_result_is(model: htrflow_steps.Model) -> None:
    made = {
        call.func.attr
        for call in ast.walk(MODELS[model.name])
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    }
    # A step that finds words in a line finds no regions for a line reader to read.
    assert ("segmentation_result" in made) == (model.does == "segments")
    if model.does == "reads lines":
        assert made & {"text_recognition_result", "word_segmentation_result"}


def test_the_settings_of_a_model_step_are_those_that_it_reads() -> None:
    (from_config,) = (
        part for part in STEPS["Inference"].body if isinstance(part, ast.FunctionDef) and part.name == "from_config"
    )
    read = [
        call.args[0].value
        for call in ast.walk(from_config)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "pop"
        and isinstance(call.args[0], ast.Constant)
    ]
    assert sorted(map(str, read)) == sorted(htrflow_steps.SETTINGS)
