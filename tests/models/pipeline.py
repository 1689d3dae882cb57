"""The steps of the demo's pipeline: regions on the page, lines in the regions, text of the lines."""

from __future__ import annotations

import typing as t

from tests.models.hub import REPOSITORIES


def _finder(repository: str, revision: str, size: int, confidence: float) -> dict[str, t.Any]:
    return {
        "step": "Segmentation",
        "settings": {
            "model": "yolo",
            "model_settings": {"model": repository, "revision": revision, "device": "cpu"},
            "generation_settings": {"batch_size": 8, "imgsz": size, "conf": confidence, "iou": 0.5},
        },
    }


def steps(revisions: dict[str, str]) -> dict[str, t.Any]:
    """The pipeline of htrflow 0.2.6 as a new dict: ``{"steps": [...]}``, without an export step.

    ``revisions`` has the revision of every repository of the demo, as :func:`tests.models.hub.lay_out` returns it.
    """
    regions, lines, text = (REPOSITORIES[name] for name in ("regions", "lines", "text"))
    # The processor has a revision of its own; without one it would be the newest.
    reader = {"revision": revisions[text]}
    return {
        "steps": [
            _finder(regions, revisions[regions], size=320, confidence=0.25),
            _finder(lines, revisions[lines], size=448, confidence=0.4),
            {
                "step": "TextRecognition",
                "settings": {
                    "model": "TrOCR",
                    "model_settings": {
                        "model": text,
                        "device": "cpu",
                        "model_kwargs": dict(reader),
                        "processor_kwargs": dict(reader),
                    },
                    "generation_settings": {"batch_size": 64, "num_beams": 1},
                },
            },
            {"step": "OrderLines"},
        ]
    }
