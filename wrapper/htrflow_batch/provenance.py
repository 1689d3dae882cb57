"""Writes into a result what made it: image, pipeline, models, source and campaign."""

from __future__ import annotations

import dataclasses
import typing as t

from lxml import etree

from htrflow_batch import alto, pagexml, redact, xml_text
from htrflow_batch.xml_text import Element, Notes

#: The id of the ALTO element and the name of the PAGE element, by which an earlier one is found and replaced.
NAME = "htrflow-campaigns"


@dataclasses.dataclass(frozen=True, slots=True)
class Provenance:
    """What made a page. ``models`` are pairs of name and revision; ``created`` is an ISO 8601 time in UTC.

    ``source_url`` is kept without user information and query.
    """

    image: str
    pipeline_id: str
    pipeline_sha256: str
    recipe: str
    engine: str
    models: tuple[tuple[str, str], ...]
    source_url: str
    campaign: str
    wrapper_version: str
    created: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_url", redact.url(self.source_url))

    def settings(self) -> t.Iterator[tuple[str, str]]:
        """Key and value of each fact, each on one line, in the order in which a file has them."""
        facts = [
            ("image", self.image),
            ("pipeline", self.pipeline_id),
            ("pipeline_sha256", self.pipeline_sha256),
            ("recipe", self.recipe),
            ("engine", self.engine),
            *(("model", f"{name}@{revision}") for name, revision in self.models),
            ("source", self.source_url),
            ("campaign", self.campaign),
        ]
        for key, value in facts:
            yield key, xml_text.clean(value)


def stamp_alto(content: bytes, provenance: Provenance) -> bytes:
    """A checked ALTO file with ``provenance`` as the last ``Processing`` of its ``Description``."""
    ns = f"{{{alto.NAMESPACE}}}"
    tree = _read("ALTO", content, f"{ns}alto")
    description = tree.find(f"{ns}Description")
    if description is None:
        description = etree.Element(f"{ns}Description")
        tree.insert(0, description)
        etree.SubElement(description, f"{ns}MeasurementUnit").text = "pixel"
    step = etree.Element(f"{ns}Processing", ID=NAME)
    etree.SubElement(step, f"{ns}processingDateTime").text = xml_text.clean(provenance.created)
    etree.SubElement(step, f"{ns}processingStepDescription").text = "Text recognition of a volume"
    settings = "\n".join(f"{key}: {value}" for key, value in provenance.settings())
    etree.SubElement(step, f"{ns}processingStepSettings").text = settings
    software = etree.SubElement(step, f"{ns}processingSoftware")
    etree.SubElement(software, f"{ns}softwareName").text = NAME
    etree.SubElement(software, f"{ns}softwareVersion").text = xml_text.clean(provenance.wrapper_version)
    _put(description, step, [old for old in description.iterfind(f"{ns}Processing") if old.get("ID") == NAME])
    return xml_text.serialize(tree)


def stamp_page(content: bytes, provenance: Provenance) -> bytes:
    """A checked PAGE file with ``provenance`` as the last ``MetadataItem`` of its ``Metadata``."""
    ns = f"{{{pagexml.NAMESPACE}}}"
    tree = _read("PAGE", content, f"{ns}PcGts")
    metadata = tree.find(f"{ns}Metadata")
    # A checked file has one: the schema asks for it.
    assert metadata is not None
    item = etree.Element(f"{ns}MetadataItem", type="processingStep", name=NAME)
    item.set("value", xml_text.clean(provenance.wrapper_version))
    item.set("date", xml_text.clean(provenance.created))
    labels = etree.SubElement(item, f"{ns}Labels")
    for key, value in provenance.settings():
        etree.SubElement(labels, f"{ns}Label", type=key, value=value)
    _put(metadata, item, [old for old in metadata.iterfind(f"{ns}MetadataItem") if old.get("name") == NAME])
    return xml_text.serialize(tree)


def stated(content: bytes) -> dict[str, tuple[str, ...]]:
    """What :func:`stamp_alto` wrote into an ALTO file, the values of each key; empty if it is not there."""
    ns = f"{{{alto.NAMESPACE}}}"
    for step in _read("ALTO", content, f"{ns}alto").iterfind(f"{ns}Description/{ns}Processing"):
        if step.get("ID") == NAME:
            found: dict[str, tuple[str, ...]] = {}
            for line in step.findtext(f"{ns}processingStepSettings", "").splitlines():
                key, separator, value = line.partition(": ")
                if separator:
                    found[key] = (*found.get(key, ()), value)
            return found
    return {}


def _read(name: str, content: bytes, root: str) -> Element:
    try:
        return xml_text.parse(name, xml_text.decode(name, content, Notes()), root)
    except etree.XMLSyntaxError as error:
        raise xml_text.syntax_error(name, error) from None


def _put(parent: Element, new: Element, old: list[Element]) -> None:
    """Puts ``new`` last into ``parent`` in place of ``old``, so that doing it again changes no byte."""
    for element in old:
        parent.remove(element)
    inner, outer = "\n        ", "\n    "
    if len(parent):
        parent[-1].tail = inner
    else:
        parent.text = inner
    etree.indent(new, "    ", level=2)
    new.tail = outer
    parent.append(new)
