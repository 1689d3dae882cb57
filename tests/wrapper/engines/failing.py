"""The quick engine, which fails on every page."""

from __future__ import annotations

import typing as t

from tests.wrapper.engines import quick


class Failing(quick.Quick):
    """See :class:`tests.wrapper.engines.quick.Quick`."""

    def infer(self, group: t.Any) -> t.Any:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


def create(pipeline: bytes) -> Failing:
    return Failing()
