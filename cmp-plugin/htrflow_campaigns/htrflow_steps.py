"""What htrflow 0.2.6, the release that the wrapper runs, can do: its steps, its models and where each takes a revision.

A test compares this with the release itself.
"""

from __future__ import annotations

import typing as t

#: Steps that run a model, by their name in lower case.
MODEL_STEPS = {"inference": "Inference", "segmentation": "Segmentation", "textrecognition": "TextRecognition"}
#: Steps that work on what models found.
OTHER_STEPS = {
    name.lower(): name
    for name in (
        "WordSegmentation",
        "ReadingOrderMarginalia",
        "OrderLines",
        "RemoveLowTextConfidenceLines",
        "RemoveLowTextConfidenceRegions",
        "RemoveLowTextConfidencePages",
        "FilterRegionsBySize",
        "FilterRegionsByShape",
        "Binarization",
    )
}
#: Steps of htrflow's that make no sense in a pod, with the reason and what to do instead.
REFUSED_STEPS: dict[str, tuple[str, str, str]] = {
    "export": (
        "Export",
        "writes files into the pod, where nobody sees them; the platform writes ALTO and PAGE XML itself",
        "delete the step",
    ),
    "exportimages": ("ExportImages", "writes images into the pod, where nobody sees them", "delete the step"),
    "importsegmentation": (
        "ImportSegmentation",
        "reads PAGE XML files from a folder, and a pod has none",
        "find the lines with a Segmentation step",
    ),
    "break": ("Break", "stops every page on purpose", "delete the step"),
    "processimages": (
        "ProcessImages",
        "is only the base of steps that change images, and does nothing by itself",
        "use Binarization, or delete the step",
    ),
    "prune": ("Prune", "needs Python code and cannot be written in YAML", "use one of the RemoveLow… or Filter… steps"),
}


class Model(t.NamedTuple):
    """A model class: what it does, and the places under ``model_settings`` that pin its downloads to a commit."""

    name: str
    does: t.Literal["segments", "reads lines", "reads regions", "classifies"]
    pins: tuple[tuple[str, ...], ...]


_DIRECT = (("revision",),)
_TRANSFORMERS = (("model_kwargs", "revision"), ("processor_kwargs", "revision"))

#: Model classes by their name in lower case.
MODELS = {
    model.name.lower(): model
    for model in (
        Model("YOLO", "segments", _DIRECT),
        Model("RTMDet", "segments", _DIRECT),
        Model("TrOCR", "reads lines", _TRANSFORMERS),
        Model("WordLevelTrOCR", "reads lines", _TRANSFORMERS),
        Model("PyLaia", "reads lines", _DIRECT),
        Model("Satrn", "reads lines", _DIRECT),
        Model("Donut", "reads regions", _TRANSFORMERS),
        Model("LLavaNext", "reads regions", ()),
        Model("DiT", "classifies", _TRANSFORMERS),
    )
}
#: The keys of a model step's settings.
SETTINGS = ("model", "model_settings", "generation_settings")
