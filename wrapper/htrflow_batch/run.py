"""What one attempt is about: the facts that every document and every result repeats."""

from __future__ import annotations

import dataclasses
import hashlib


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """What a pipeline's id stands for.

    ``image`` is the container image with its digest, ``yaml`` the steps as htrflow reads them.
    """

    pipeline_id: str
    image: str
    yaml: bytes = dataclasses.field(repr=False)

    @property
    def pipeline_sha256(self) -> str:
        """The digest of the steps alone, in hexadecimal."""
        return hashlib.sha256(self.yaml).hexdigest()

    @property
    def sha256(self) -> str:
        """The digest of image and steps together, in hexadecimal: the one in the name of the model cache's folder."""
        return hashlib.sha256(f"{self.image}\n".encode() + self.yaml).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model that a pipeline loaded. ``revision`` is the commit on the Hub, or empty where it has none."""

    name: str
    revision: str


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """The volume, and what reads it.

    ``results_url`` is the address that the bucket's keys are below for whoever reads results, without a slash at its
    end. ``source_url`` is the manifest's address, without secrets. ``engine`` is the library and its version, such as
    ``htrflow 0.2.6``. The two tuples are empty until the models are loaded.
    """

    volume: str
    campaign: str
    recipe: Recipe
    results_url: str
    source_url: str
    wrapper_version: str
    engine: str = ""
    models: tuple[Model, ...] = ()

    def address(self, key: str) -> str:
        """Where a browser finds what has this key."""
        return f"{self.results_url}/{key}"
