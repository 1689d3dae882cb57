"""Volumes of pages that each misbehave in their own way, and what their results say of themselves."""

from __future__ import annotations

import json
import typing as t

import iiif_prezi3  # type: ignore[import-untyped]
from lxml import etree

from htrflow_batch import pagexml
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.wrapper import ledgers, pods

Body = dict[str, t.Any]


def image(address: str) -> Body:
    """A page's image as a manifest has it."""
    return {"id": address, "type": "Image", "format": "image/jpeg", "width": 200, "height": 280}


def pages(http: MisbehavingHttp, *answers: t.Sequence[Answer | bytes | str], name: str = "volume") -> str:
    """A volume in which the image of each page is answered as told; gives the address of its manifest."""
    bodies = [image(http.put(f"/{name}/{number}.jpg", *page)) for number, page in enumerate(answers, 1)]
    return pods.serve_manifest(http, bodies, name)


def holds_to_its_schemas(pod: pods.Pod) -> dict[str, bytes]:
    """Everything that a pod has left in the bucket, once each JSON document in it is what its schema says."""
    found = pod.objects()
    for key, content in found.items():
        if key.endswith(".json"):
            document = json.loads(content)
            assert ledgers.faults(document, _schema(key)) == [], key
            if key.endswith("/iiif.json"):
                iiif_prezi3.Manifest(**document)
    return found


def became(pod: pods.Pod) -> list[str]:
    """What ``manifest.json`` says of each page: ``done``, or what it failed in."""
    return [page.get("cause", "done") for page in pod.json("manifest.json")["pages"]]


def stated_in_page(content: bytes) -> dict[str, list[str]]:
    """What a PAGE file says of what made it."""
    ns = f"{{{pagexml.NAMESPACE}}}"
    found: dict[str, list[str]] = {}
    for label in etree.fromstring(content).iterfind(f"{ns}Metadata/{ns}MetadataItem/{ns}Labels/{ns}Label"):
        found.setdefault(label.get("type", ""), []).append(label.get("value", ""))
    return found


def _schema(key: str) -> str:
    if "/sources/" in key:
        return "source-manifest"
    return "annotations" if "/annotations/" in key else key.rpartition("/")[2].removesuffix(".json")
