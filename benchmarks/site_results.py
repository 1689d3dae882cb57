"""Results of the volumes of :mod:`benchmarks.site_objects`: a ``progress.json`` for each volume that has begun."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import typing as t

from benchmarks.site_objects import NAMESPACE, VOLUMES, WINDOW, Campaign, volume_id

#: Pages of a volume.
PAGES = 200
_VARIANTS = 16


def _document(done: int, failed: int) -> bytes:
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    left = PAGES - done - failed
    text: dict[str, t.Any] = {
        "version": 1,
        "volume": "R0000-000000",
        "campaign": "campaign",
        "pipeline": "p0",
        "recipe_sha256": "0" * 64,
        "image": f"registry.example.org/htrflow-batch@sha256:{'0123456789abcdef' * 4}",
        "engine": "htrflow 0.2.6",
        "state": "running" if left else "finished",
        "stage": "stream" if left else "publish",
        "error": None,
        "started": now,
        "advanced": now,
        "updated": now,
        "attempt": {"failures": 0, "limit": 3},
        "counts": {
            "total": PAGES,
            "done": done,
            "text": done,
            "no_text": 0,
            "low_confidence": 0,
            "failed": failed,
            "waiting": left,
            "deferred": 0,
        },
        "pages_per_hour": 412.5,
        "active": [done + failed + 1] if left else [],
        "pages": {
            "states": "t" * done + "f" * failed + "w" * left,
            "seconds": [8.3] * done + [None] * (failed + left),
            "confidence": [0.93] * done + [None] * (failed + left),
        },
        "failed": [{"page": done + 1, "cause": "source", "reason": "HTTP 404", "source": None}] * failed,
        "failed_left_out": 0,
    }
    return json.dumps(text, separators=(",", ":")).encode()


def write(folder: pathlib.Path, campaigns: int) -> int:
    """Writes the files below a folder, as a store of one file an object has them, and says how many.

    A file is one of a few, which it shares with others of the same content, and has its ETag in an attribute.
    """
    kinds = {"running": [(10 * n + 1, n % 2) for n in range(_VARIANTS)], "done": [(200, 0)] * 15 + [(199, 1)]}
    originals = {}
    for kind, counts in kinds.items():
        for number, (done, failed) in enumerate(counts):
            file = folder / NAMESPACE / f"{kind}-{number}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content := _document(done, failed))
            # Where there are no attributes, nobody but the folder's own reader reads this.
            with contextlib.suppress(OSError):
                os.setxattr(file, "user.etag", f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'.encode())
                os.setxattr(file, "user.content-type", b"application/json")
            originals[kind, number] = file
    written = 0
    for campaign in map(Campaign, range(campaigns)):
        ends = min(campaign.ended + WINDOW, VOLUMES) if campaign.state == "running" else campaign.ended
        for index in range(ends):
            kind = "done" if index < campaign.ended else "running"
            place = folder / NAMESPACE / campaign.pipeline / volume_id(campaign.number, index)
            place.mkdir(parents=True, exist_ok=True)
            os.link(originals[kind, (index + campaign.number) % _VARIANTS], place / "progress.json")
            written += 1
    return written
