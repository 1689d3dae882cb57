"""Campaigns repos that reach every branch and every limit of what is rendered, and their objects in both deliveries."""

from __future__ import annotations

import json
import pathlib
import typing as t

import yaml

from htrflow_campaigns import delivery, generate, init, limits, load, render, tree
from htrflow_campaigns.settings import Settings

Object = dict[str, t.Any]
Deliver = t.Callable[[pathlib.Path], list[Object]]

HERE = pathlib.Path(__file__).parent
#: The inputs of the documented example.
EXAMPLE = HERE / "reference" / "inputs"
#: A repo that uses every key of the three files.
FEATURES = HERE / "reference" / "features"

_PIPELINE = (EXAMPLE / "pipelines" / "demo-v1.yaml").read_text(encoding="utf-8")
_CONVERTER = "source_template: https://iiif.example.org/{ref}/manifest\n"


def applied(repo: pathlib.Path) -> list[Object]:
    """The objects of ``render``, read back from the YAML that it writes."""
    loaded = load.load(tree.from_folder(repo))
    texts = [text for _, text in render.files(loaded, delivery.Apply())]
    assert loaded.is_good(), loaded.problems
    return [document for text in texts for document in yaml.load_all(text, yaml.CSafeLoader)]


def generated(repo: pathlib.Path) -> list[Object]:
    """The objects of ``generate``, read back from the JSON lines that it prints."""
    loaded = load.load(tree.from_folder(repo))
    lines = generate.generate(loaded, delivery.ArgoCD(), Settings())
    assert loaded.is_good(), loaded.problems
    return [json.loads(line) for line in lines]


DELIVERIES: dict[str, Deliver] = {"apply": applied, "argocd": generated}


def one(objects: t.Iterable[Object], kind: str, name: str) -> Object:
    """The only object of that kind and name."""
    (found,) = (found for found in objects if found["kind"] == kind and found["metadata"]["name"] == name)
    return found


def _written(folder: pathlib.Path, campaigns: t.Mapping[str, str], pipeline: str = "demo-v1") -> pathlib.Path:
    (folder / "campaigns").mkdir(parents=True)
    (folder / "pipelines").mkdir()
    (folder / "converter.yaml").write_text(_CONVERTER, encoding="utf-8")
    (folder / "pipelines" / f"{pipeline}.yaml").write_text(_PIPELINE, encoding="utf-8")
    for name, volumes in campaigns.items():
        (folder / "campaigns" / f"{name}.yaml").write_text(f"pipeline: {pipeline}\nvolumes:\n{volumes}", "utf-8")
    return folder


def _bare(count: int) -> str:
    return "".join(f"  - R{number:07}\n" for number in range(count))


def _images(id_: str, address: str, size: int) -> str:
    """A volume whose line in ``volumes.txt`` has exactly ``size`` bytes, nearly all of them ``address`` repeated."""
    room = size - len(f"{id_}\timages:") + 1
    addresses = [address] * (room // (len(address) + 1))
    addresses[-1] += "x" * (room - len(addresses) * (len(address) + 1))
    return f"  - id: {id_}\n    images:\n" + "".join(f"      - {url}\n" for url in addresses)


def _example_of_init(folder: pathlib.Path) -> pathlib.Path:
    init.write(folder, ci="github", force=False)
    return folder


_SCAN = "https://example.org/scan.jpg"
_QUERY = "https://h.example/i?a&b&c&d&e"

#: Every repo whose objects are held to the Kubernetes schemas and to our own checks, by what it shows.
REPOS: dict[str, t.Callable[[pathlib.Path], pathlib.Path]] = {
    "documented-example": lambda _: EXAMPLE,
    "every-feature": lambda _: FEATURES,
    "written-by-init": _example_of_init,
    "10000-volumes": lambda folder: _written(folder, {"c": _bare(limits.PART_VOLUMES)}),
    "10001-volumes": lambda folder: _written(folder, {"c": _bare(limits.PART_VOLUMES + 1)}),
    "over-900-kib": lambda folder: _written(
        folder, {"c": "".join(_images(f"v{n}", _SCAN, limits.VOLUME_LINE_BYTES) for n in range(10))}
    ),
    # Written as JSON for the API server, each ampersand of an address takes six bytes.
    "ampersands": lambda folder: _written(
        folder, {"c": "".join(_images(f"v{n}", _QUERY, limits.CLIENT_SIDE_APPLY_BYTES // 2 - 1000) for n in range(2))}
    ),
    # With 63 characters in the name of the last pod, and in that of the warm-up Job.
    "longest-names": lambda folder: _written(
        folder, {"c" * 61: _bare(10), "d" * (63 - 11): _bare(10_001)}, pipeline="p" * limits.PIPELINE_ID_CHARACTERS
    ),
}
