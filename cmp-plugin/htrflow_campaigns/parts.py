"""How a campaign that is too large for one Job is cut."""

from __future__ import annotations

import typing as t

from htrflow_campaigns import limits


def split(lines: t.Sequence[str]) -> list[t.Sequence[str]]:
    """``lines`` of ``volumes.txt`` in parts of at most 10 000 lines and 900 KiB each, in their order.

    A part is filled before the next one starts, so that lines added at the end would leave earlier parts as they are.
    """
    # No character takes more than four bytes, so most campaigns need no closer look.
    if len(lines) <= limits.PART_VOLUMES and 4 * sum(map(len, lines)) + len(lines) <= limits.PART_BYTES:
        return [lines]
    parts: list[t.Sequence[str]] = []
    start, size = 0, 0
    for index, line in enumerate(lines):
        line_size = len(line.encode()) + 1
        if index > start and (index - start == limits.PART_VOLUMES or size + line_size > limits.PART_BYTES):
            parts.append(lines[start:index])
            start, size = index, 0
        size += line_size
    parts.append(lines[start:])
    return parts
