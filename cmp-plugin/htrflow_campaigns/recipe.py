"""A recipe: what a pipeline's id stands for, for good."""

from __future__ import annotations

import hashlib
import typing as t

from htrflow_campaigns import yaml_writer
from htrflow_campaigns.model import Pipeline


def pipeline_yaml(steps: list[t.Any]) -> str:
    """The ``pipeline.yaml`` that htrflow reads in the pod: the steps as they were written, without the image."""
    return yaml_writer.dump({"steps": steps})


def pipeline_sha256(pipeline: Pipeline) -> str:
    """The digest of ``pipeline.yaml``, in hexadecimal."""
    return hashlib.sha256(pipeline.yaml.encode()).hexdigest()


def recipe_sha256(pipeline: Pipeline) -> str:
    """The digest of the steps and the image together, in hexadecimal. It names the directory of the model cache.

    The size is not in it: another size runs the same models, and must find them.
    """
    return hashlib.sha256(f"{pipeline.image}\n{pipeline.yaml}".encode()).hexdigest()
