"""A volume's results in one file, made while it is sent: a zip of ALTO or PAGE files, or the plain text."""

from __future__ import annotations

import typing as t
import zipfile

from htrflow_batch import alto
from htrflow_batch.errors import PageError
from htrflow_batch.keys import Keys
from htrflow_status.progress import Progress
from htrflow_status.results_of import Reader

Kind = t.Literal["alto", "page", "text"]
KINDS: t.Final[tuple[Kind, ...]] = ("alto", "page", "text")
MEDIA_TYPES: t.Final[t.Mapping[Kind, str]] = {
    "alto": "application/zip",
    "page": "application/zip",
    "text": "text/plain; charset=utf-8",
}
#: A zip's oldest time: the same files give the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def file_name(volume_id: str, kind: Kind) -> str:
    return f"{volume_id}.txt" if kind == "text" else f"{volume_id}-{kind}.zip"


async def content(reader: Reader, keys: Keys, kind: Kind, known: Progress) -> t.AsyncIterator[bytes]:
    """The file, in blocks. A page that cannot be read is left out."""
    pages = [cell.page for cell in known.cells if cell.state in ("text", "no text", "low confidence")]
    if kind == "text":
        for number in pages:
            if (found := await reader.content(keys.alto(number))) is not None:
                yield _text(found).encode()
        return
    buffer = _Buffer()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in pages:
            key = keys.alto(number) if kind == "alto" else keys.page(number)
            if (found := await reader.content(key)) is not None:
                entry = zipfile.ZipInfo(f"{kind}/{number:04}.xml", _TIME)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, found)
                yield buffer.taken()
    yield buffer.taken()


def _text(found: bytes) -> str:
    try:
        return f"{alto.text_of(found)}\n"
    except PageError:
        return ""


class _Buffer:
    """A file that is only written to, and emptied as it goes."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._written = 0

    def write(self, block: bytes) -> int:
        self._blocks.append(bytes(block))
        self._written += len(block)
        return len(block)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        return

    def close(self) -> None:
        return

    def taken(self) -> bytes:
        blocks, self._blocks = b"".join(self._blocks), []
        return blocks
