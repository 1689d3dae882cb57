"""A container's last words, which Kubernetes keeps with the pod: why the attempt ended."""

from __future__ import annotations

import json
import logging
import pathlib

from htrflow_batch import plain

#: What Kubernetes reads of the file, in bytes.
MOST_BYTES = 4096

_STAGE_CHARACTERS = 64
_LOG = logging.getLogger(__name__)


def write(path: pathlib.Path, stage: str, permanent: bool, error: str) -> None:
    """Writes ``{"stage": …, "permanent": …, "error": …}`` as JSON into a file, on one line of at most 4096 bytes.

    ``error`` is one sentence; what is too long for the file is cut off and ends with ``…``. Addresses are shown
    without their secrets. Never raises: a file that cannot be written is logged.
    """
    content = message(stage, permanent, error)
    try:
        path.write_bytes(content)
    except OSError as reason:
        _LOG.warning("the last words cannot be written into %s: %s", path, reason.strerror)


def message(stage: str, permanent: bool, error: str) -> bytes:
    """What :func:`write` writes."""
    named, sentence = plain.line(stage)[:_STAGE_CHARACTERS], plain.line(error) or "no reason is known"
    content = _json(named, permanent, sentence)
    if len(content) <= MOST_BYTES:
        return content
    fits, too_long = 0, len(sentence)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if len(_json(named, permanent, sentence[:middle] + "…")) <= MOST_BYTES:
            fits = middle
        else:
            too_long = middle
    return _json(named, permanent, sentence[:fits] + "…")


def _json(stage: str, permanent: bool, error: str) -> bytes:
    return json.dumps({"stage": stage, "permanent": permanent, "error": error}, ensure_ascii=False).encode()
