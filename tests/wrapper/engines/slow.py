"""The quick engine, at a tenth of a second a page. It notes in a file when it begins with a group."""

from __future__ import annotations

import os
import pathlib
import time
import typing as t

from tests.wrapper.engines import quick


class Slow(quick.Quick):
    """See :class:`tests.wrapper.engines.quick.Quick`."""

    def infer(self, group: t.Any) -> t.Any:
        with open(pathlib.Path(os.environ["HOME"]) / "groups", "a") as file:
            file.write(f"{sorted(group)}\n")
        time.sleep(0.1 * len(group))
        return group


def create(pipeline: bytes) -> Slow:
    return Slow()
