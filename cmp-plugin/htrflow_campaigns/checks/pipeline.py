"""``pipelines/*.yaml``: their rules, and the pipelines they become."""

from __future__ import annotations

import datetime
import difflib
import math
import re
import typing as t

from htrflow_campaigns import htrflow_steps, limits, names, structure
from htrflow_campaigns.document import Document, Mapping, Path, Sequence
from htrflow_campaigns.model import Converter, Pipeline
from htrflow_campaigns.problems import Found, Position, Problem, Words, show
from htrflow_campaigns.recipe import pipeline_yaml
from htrflow_campaigns.rules import pipeline as rules
from htrflow_campaigns.rules.files import FILE_TOO_LARGE
from htrflow_campaigns.rules.structure import VALUE_NOT_PLAIN
from htrflow_campaigns.scalars import describe

_IMAGE = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*@sha256:[0-9a-f]{64}"
)
_IMAGE_CHARACTERS = 512
#: Values of a pipeline: each takes YAML's writer some 40 microseconds.
_VALUES = 20_000
_COMMIT = re.compile("[0-9a-f]{40}")


def check(document: Document, id_: str, converter: Converter | None) -> tuple[Pipeline | None, list[Problem]]:
    """The pipeline, or None when something is wrong with it, and its problems and warnings."""
    problems = Found(_id(document, id_))
    problems += structure.check(document, "pipeline")
    root = document.root
    if not isinstance(root, Mapping):
        return None, problems
    problems += _image(document, root.get("image"))
    problems += _size(document, root.get("size"), converter)
    problems += _plain(document, ("steps",), root.get("steps"))
    problems += _steps(document, root.get("steps"))
    if problems.is_full or any(problem.rule.level == "problem" for problem in problems):
        return None, problems
    if root.size > _VALUES:
        position, found = document.at(("steps",), key=True), Words(f"more than {_VALUES} values")
        limit = Words(f"{_VALUES} values of a pipeline")
        return None, [*problems, FILE_TOO_LARGE.at(position, found=found, limit=limit)]
    pipeline = Pipeline(
        id=id_,
        path=document.path,
        image=root["image"],
        steps=root["steps"],
        yaml=pipeline_yaml(root["steps"]),
        size=root.get("size"),
        max_seconds=root.get("max_seconds"),
        ttl_seconds_after_finished=root.get("ttl_seconds_after_finished"),
    )
    size = len(pipeline.yaml.encode())
    if size > limits.PART_BYTES:
        position = document.at(("steps",), key=True)
        return None, [*problems, rules.PIPELINE_TOO_LARGE.at(position, size=size, limit=limits.PART_BYTES)]
    return pipeline, problems


def _id(document: Document, id_: str) -> t.Iterator[Problem]:
    if not names.is_pipeline_id(id_):
        yield rules.ID.at(Position(document.path), id=id_)
    elif id_ in names.RESERVED_PIPELINE_IDS:
        yield rules.ID_RESERVED.at(Position(document.path), id=id_)


def _image(document: Document, image: t.Any) -> t.Iterator[Problem]:
    if not isinstance(image, str) or (len(image) <= _IMAGE_CHARACTERS and _IMAGE.fullmatch(image)):
        return
    repository, at, digest = image.partition("@")
    if not repository.strip("/") or image.startswith("sha256:"):
        reason = "does not name a repository"
    elif not at:
        reason = "is not pinned: its author can put another image behind the same name"
    elif not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        reason = "is not pinned by a sha256 digest of 64 hexadecimal digits"
    elif ":" in repository.rpartition("/")[2]:
        reason = "has a tag beside its digest"
    else:
        reason = "is not the name of an image"
    yield rules.IMAGE.at(document.at(("image",)), value=image, reason=Words(reason))


def _size(document: Document, size: t.Any, converter: Converter | None) -> t.Iterator[Problem]:
    if isinstance(size, str) and size and converter and size not in converter.sizes:
        sizes = ", ".join(converter.sizes)
        otherwise = f"the sizes are {sizes}" if sizes else "delete the line, or add the size to converter.yaml"
        instead = structure.suggest(size, converter.sizes, otherwise)
        yield rules.SIZE_UNKNOWN.at(document.at(("size",)), size=size, instead=instead)


def _plain(document: Document, path: Path, value: t.Any) -> t.Iterator[Problem]:
    """Values that the steps cannot hold: dates, infinity and what is not a number."""
    if isinstance(value, Mapping | Sequence):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _plain(document, (*path, key), item)
    elif isinstance(value, datetime.date) or (isinstance(value, float) and not math.isfinite(value)):
        source, read = document.source(path) or str(value), Words(describe(value))
        yield VALUE_NOT_PLAIN.at(document.at(path), source=source, read=read)


def _steps(document: Document, steps: t.Any) -> t.Iterator[Problem]:
    # Of a step that is not understood nobody knows what it finds.
    segmentations, understood = 0, True
    for index, step in enumerate(steps) if isinstance(steps, Sequence) else ():
        name = step.get("step") if isinstance(step, Mapping) else None
        if not isinstance(name, str) or not name:
            understood = False
            continue
        path: Path = ("steps", index)
        if name.lower() in htrflow_steps.REFUSED_STEPS:
            understood = False
            _, reason, instead = htrflow_steps.REFUSED_STEPS[name.lower()]
            yield rules.STEP_REFUSED.at(
                document.at((*path, "step")), step=name, reason=Words(reason), instead=Words(instead)
            )
        elif name.lower() in htrflow_steps.MODEL_STEPS:
            model, problems = _model_step(document, path, step)
            yield from problems
            understood = understood and model is not None
            if understood and model and model.does == "reads lines" and segmentations < 2:
                count = ("no step finds regions or lines", "only one step segments the page")[segmentations]
                position = document.at((*path, "settings", "model"))
                yield rules.READER_WITHOUT_LINES.at(position, model=Words(model.name), count=Words(count))
            segmentations += model is not None and model.does == "segments"
        elif name.lower() not in htrflow_steps.OTHER_STEPS:
            understood = False
            instead = _closest(name, {**htrflow_steps.MODEL_STEPS, **htrflow_steps.OTHER_STEPS})
            yield rules.STEP_UNKNOWN.at(document.at((*path, "step")), step=name, instead=instead)


def _model_step(document: Document, path: Path, step: Mapping) -> tuple[htrflow_steps.Model | None, list[Problem]]:
    settings = step.get("settings", Mapping(0))
    if not isinstance(settings, Mapping) or len({*step} - {"step", "settings"}) > 0:
        return None, []
    problems = Found()
    for key in settings:
        if problems.is_full:
            break
        if key not in htrflow_steps.SETTINGS:
            problems.append(rules.SETTINGS_BESIDE.at(document.at((*path, "settings", key), key=True), key=key))
    if "generation_settings" in settings:
        place = (*path, "settings", "generation_settings")
        problems += structure.expect_mapping(document, place, settings["generation_settings"])
    here = (*path, "settings") if settings else path
    name = settings.get("model")
    if not isinstance(name, str) or not name:
        example = Words("model: under settings, with the name of a model class such as yolo")
        problems.append(
            rules.MODEL_MISSING.at(document.at(here), step=step["step"], key=Words("model"), example=example)
        )
        return None, problems
    model = htrflow_steps.MODELS.get(name.lower())
    if model is None:
        classes = {key: model.name for key, model in htrflow_steps.MODELS.items()}
        position = document.at((*path, "settings", "model"))
        problems.append(rules.MODEL_UNKNOWN.at(position, model=name, instead=_closest(name, classes)))
        return None, problems
    return model, [*problems, *_model_settings(document, path, step["step"], model, settings)]


def _model_settings(
    document: Document, path: Path, step: str, model: htrflow_steps.Model, settings: Mapping
) -> t.Iterator[Problem]:
    place: Path = (*path, "settings", "model_settings")
    found = settings.get("model_settings", Mapping(0))
    if not isinstance(found, Mapping) or not isinstance(found.get("model"), str) or not found["model"]:
        position = document.at(place if "model_settings" in settings else place[:-1])
        example = Words("model_settings: with model: and the name of the model, such as Riksarkivet/yolov9-regions-1")
        yield rules.MODEL_MISSING.at(position, step=step, key=Words("model under model_settings"), example=example)
        return
    if not model.pins:
        yield rules.MODEL_WITHOUT_PIN.at(document.at((*place[:-1], "model")), model=Words(model.name))
    loose = []
    for pin in model.pins:
        if len(pin) > 1 and pin[0] in found and not isinstance(found[pin[0]], Mapping):
            yield from structure.expect_mapping(document, (*place, pin[0]), found[pin[0]])
            continue
        value: t.Any = found
        for key in pin:
            value = value.get(key) if isinstance(value, Mapping) else None
        source = document.source((*place, *pin)) if value is not None else None
        if source is not None:
            quoted, read = Words(show(source)), Words(describe(value))
            yield rules.REVISION_TEXT.at(document.at((*place, *pin)), source=source, read=read, quoted=quoted)
        elif not isinstance(value, str) or not _COMMIT.fullmatch(value):
            loose.append(".".join(pin))
    if loose:
        where = Words(" and ".join(loose))
        yield rules.MODEL_NOT_PINNED.at(document.at((*place, "model")), model=found["model"], where=where)


def _closest(name: str, choices: t.Mapping[str, str]) -> Words:
    close = difflib.get_close_matches(name[:100].lower(), choices, n=1)
    return Words(f"did you mean {choices[close[0]]}?" if close else f"it has {', '.join(sorted(choices.values()))}")
