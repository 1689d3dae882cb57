"""Where everything of one volume is in the bucket. No other module knows a key."""

from __future__ import annotations

import re
import typing as t

from htrflow_batch.errors import PermanentError

_PREFIX = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PIPELINE = re.compile("[a-z0-9](?:[a-z0-9.-]{0,50}[a-z0-9])?")
_VOLUME = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
#: Beside the folders of pipelines: run logs, and the manifests of volumes that are lists of images.
_STATUS, _SOURCES = "status", "sources"
# Four digits, and more without a leading zero, so that a page has one key.
_PAGE = re.compile(r"(page|alto)/((?!0000)[0-9]{4}|[1-9][0-9]{4,})\.xml")


class Pages(t.NamedTuple):
    """The numbers of the pages that a listing shows, counted from 1."""

    page: frozenset[int]
    alto: frozenset[int]

    @property
    def whole(self) -> frozenset[int]:
        """The pages that have both files."""
        return self.page & self.alto


class Keys:
    """The keys of one volume on one pipeline.

    ``prefix`` is the team's part of the bucket (``S3_PREFIX``, such as ``htr-batch/``), with or without its slash.
    Raises :class:`PermanentError` where a key made of these names could lead to another volume.
    """

    def __init__(self, prefix: str, pipeline: str, volume: str) -> None:
        top = prefix.removesuffix("/")
        if not all(_PREFIX.fullmatch(part) for part in top.split("/")):
            raise PermanentError(
                f"the prefix {prefix!r} cannot be a part of a key in the bucket — write a namespace into S3_PREFIX,"
                " such as htr-batch/"
            )
        if not _PIPELINE.fullmatch(pipeline) or pipeline in (_STATUS, _SOURCES):
            raise PermanentError(
                f"the pipeline id {pipeline!r} cannot be a folder in the bucket — name it with a-z, 0-9, . and -, at"
                f" most 52 characters, and neither {_STATUS} nor {_SOURCES}"
            )
        if not _VOLUME.fullmatch(volume):
            raise PermanentError(
                f"the volume id {volume!r} cannot be a folder in the bucket — name it with letters, digits, ., _ and"
                " -, at most 63 characters, a letter or digit at both ends"
            )
        #: All results of the volume, and nothing else, are below it.
        self.folder = f"{top}/{pipeline}/{volume}/"
        #: The volume's progress while it runs.
        self.progress = f"{self.folder}progress.json"
        #: The pages with their text, for any IIIF viewer.
        self.iiif = f"{self.folder}iiif.json"
        #: The steps that this run used.
        self.pipeline_yaml = f"{self.folder}pipeline.yaml"
        #: Written last: it alone means that the volume is done.
        self.manifest = f"{self.folder}manifest.json"
        self.run_log = f"{top}/{_STATUS}/logs/{pipeline}/{volume}.txt"
        #: The IIIF manifest of a volume that the campaign gives as a list of images.
        self.source_manifest = f"{top}/{_SOURCES}/{pipeline}/{volume}/manifest.json"

    def page(self, number: int) -> str:
        """The PAGE XML of a page, counted from 1. It is written before the page's ALTO."""
        return self._numbered("page", number)

    def alto(self, number: int) -> str:
        """The ALTO XML of a page, counted from 1. It being there means that the page is whole."""
        return self._numbered("alto", number)

    def annotations(self, number: int) -> str:
        """The text of a page, counted from 1, as a IIIF annotation page. It is written between PAGE and ALTO."""
        return self._numbered("annotations", number, "json")

    def pages(self, listing: t.Iterable[str]) -> Pages:
        """The pages whose files are among some keys. Any other key is passed over."""
        found: dict[str, set[int]] = {"page": set(), "alto": set()}
        for key in listing:
            match = _PAGE.fullmatch(key.removeprefix(self.folder)) if key.startswith(self.folder) else None
            if match:
                found[match[1]].add(int(match[2]))
        return Pages(frozenset(found["page"]), frozenset(found["alto"]))

    def _numbered(self, kind: str, number: int, ending: str = "xml") -> str:
        if number < 1:
            raise ValueError(f"pages are counted from 1: {number}")
        return f"{self.folder}{kind}/{number:04}.{ending}"
