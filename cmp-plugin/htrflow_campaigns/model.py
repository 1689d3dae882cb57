"""What a good campaigns repo says, as plain values. Nothing here can be wrong: the checks are behind it."""

from __future__ import annotations

import dataclasses
import typing as t


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """A named pod size. ``cpu``, ``memory`` and ``workdir`` are Kubernetes quantities."""

    name: str
    gpu: int
    cpu: str
    memory: str
    workdir: str
    flavor: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Converter:
    """``converter.yaml`` with its defaults filled in."""

    namespace: str
    queue: str
    window: int
    priority_classes: tuple[str, ...]
    s3_secret: str
    hf_token_secret: str
    data_pvc: str
    runtime_class: str
    node_selector: dict[str, str]
    tolerations: tuple[dict[str, t.Any], ...]
    results_url: str
    source_template: str | None
    max_seconds: int
    warmup_wait_seconds: int
    ttl_seconds_after_finished: int
    manifest_max_bytes: int
    fetch_max_bytes: int
    flavors: dict[str, dict[str, str]]
    sizes: dict[str, Size]
    default_size: str


class Volume(t.NamedTuple):
    """An archival volume and where its pages come from: one manifest, or image addresses in their order."""

    id: str
    manifest: str | None
    images: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Its line in ``volumes.txt``, which the pod's shell takes apart at the tab."""
        return f"{self.id}\t{self.manifest}" if self.manifest else f"{self.id}\timages:{' '.join(self.images)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """``pipelines/<id>.yaml``.

    ``steps`` is htrflow's own structure, as written; ``yaml`` is the file that htrflow reads in the pod.
    """

    id: str
    path: str
    image: str
    steps: list[t.Any]
    yaml: str
    size: str | None = None
    max_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Campaign:
    """``campaigns/<name>.yaml``. ``lines`` are those of ``volumes.txt``, one a volume."""

    name: str
    path: str
    pipeline: str
    volumes: tuple[Volume, ...]
    lines: tuple[str, ...]
    window: int | None = None
    priority: str | None = None
    suspend: bool = False
    finished: bool = False
