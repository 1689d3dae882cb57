"""What a campaigns repo asks for, as this machine is to have it."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import typing as t

from htrflow_campaigns import delivery, load, names, tree
from htrflow_campaigns.local.job import Object
from htrflow_campaigns.problems import Problem, ordered


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """The rendered objects of a good repo: ``config_maps`` by name, ``jobs`` by name, and the campaigns that pause."""

    config_maps: dict[str, dict[str, str]]
    jobs: dict[str, Object]
    paused: frozenset[str]
    priority_classes: tuple[str, ...]
    s3_secret: str
    hf_token_secret: str
    namespace: str


def read(folder: pathlib.Path) -> tuple[Wanted | None, list[Problem], int]:
    """What is asked for, or None with the problems; and the number of files. Raises ``OSError``."""
    loaded = load.load(tree.from_folder(folder))
    config_maps: dict[str, dict[str, str]] = {}
    jobs: dict[str, Object] = {}
    if loaded.is_good():
        for _, _, objects in delivery.Apply().everything(loaded):
            for found in objects:
                name = found["metadata"]["name"]
                if found["kind"] == "ConfigMap":
                    config_maps[name] = found["data"]
                else:
                    jobs[name] = found
    paused = [campaign.name for campaign, _ in loaded.campaigns() if campaign.suspend]
    if not loaded.is_good() or loaded.converter is None:
        return None, ordered(loaded.problems), loaded.files
    converter = loaded.converter
    stopped = (name for name, job in jobs.items() if job["metadata"]["labels"].get(names.CAMPAIGN_LABEL) in paused)
    wanted = Wanted(
        config_maps,
        jobs,
        frozenset(stopped),
        converter.priority_classes,
        converter.s3_secret,
        converter.hf_token_secret,
        converter.namespace,
    )
    return wanted, ordered(loaded.problems), loaded.files


def digest(folder: pathlib.Path) -> str:
    """Changes whenever a file that counts does."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.y*ml"), *folder.glob("campaigns/*"), *folder.glob("pipelines/*")]):
        try:
            found.update(f"{path}\0".encode("utf-8", "surrogateescape") + path.read_bytes() + b"\0")
        except OSError:
            continue
    return found.hexdigest()


def is_warmup(job: t.Mapping[str, t.Any]) -> bool:
    return names.CAMPAIGN_LABEL not in job["metadata"]["labels"]
