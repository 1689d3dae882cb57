"""The quick engine, whose models take two seconds to load."""

from __future__ import annotations

import time

from htrflow_batch.run import Model
from tests.wrapper.engines import quick


class Late(quick.Quick):
    """See :class:`tests.wrapper.engines.quick.Quick`."""

    def load(self) -> tuple[Model, ...]:
        time.sleep(2)
        return super().load()


def create(pipeline: bytes) -> Late:
    return Late()
