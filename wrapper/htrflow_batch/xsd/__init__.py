"""The schemas of ALTO and PAGE, which htrflow carries, and what a document has against them.

The one schema here, ``xlink.xsd``, stands for the one that ALTO's imports from the network.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import threading
import typing as t
from pathlib import Path

from lxml import etree

from htrflow_batch.errors import PermanentError

_NAMESPACE = re.compile(r"\{[^{}]*\}")
_XLINK = Path(__file__).with_name("xlink.xsd")
_LOCK = threading.Lock()


def fault(tree: etree._Element, file_name: str) -> str | None:
    """What ``tree`` first has against the schema ``file_name`` of htrflow; None when it is valid."""
    message = None
    # A schema keeps the faults of the last document, and two cannot be read at once.
    with _LOCK:
        schema = _schema(file_name)
        try:
            schema.assertValid(tree)
        except etree.DocumentInvalid as error:
            message = str(error)
    return None if message is None else _NAMESPACE.sub("", message).rstrip(". ")


@functools.cache
def _schema(file_name: str) -> etree.XMLSchema:
    # find_spec looks for the library without importing it, which takes seconds and hundreds of megabytes.
    spec = importlib.util.find_spec("htrflow")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "serialization", "schemas", file_name)
        if path.is_file():
            parser = etree.XMLParser(no_network=True, resolve_entities=False)
            parser.resolvers.add(_Local())
            return etree.XMLSchema(etree.parse(str(path), parser))
    raise PermanentError(f"The schema {file_name} of htrflow is not installed — use an image with htrflow 0.2.6.")


class _Local(etree.Resolver):
    """Answers for the network. ALTO takes one group of attributes from XLink, and htrflow writes none of them."""

    def resolve(self, system_url: str, public_id: str, context: t.Any) -> t.Any:  # type: ignore[override]
        if system_url.startswith(("http:", "https:")):
            return self.resolve_filename(str(_XLINK), context)  # type: ignore[attr-defined]
        return None
