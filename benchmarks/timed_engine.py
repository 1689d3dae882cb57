"""htrflow as an engine with its parts timed, into the file that ``TIMED`` names and ``.model`` after it."""

from __future__ import annotations

import os
import pathlib
import typing as t

from htrflow.volume.volume import Collection, PageNode

from benchmarks.timed import Timed
from htrflow_batch import htrflow_engine, messages
from htrflow_batch.engine import Paths, Read, Unread
from htrflow_batch.htrflow_engine import HtrflowEngine, Pages

_TIMED = Timed()


class TimedEngine(HtrflowEngine):
    """See :class:`htrflow_batch.engine.Engine`."""

    def prepare(self, paths: Paths) -> dict[int, PageNode]:
        return super().prepare(paths)

    def export(self, group: t.Any) -> list[Read | Unread]:
        made = super().export(group)
        _TIMED.write(pathlib.Path(f"{os.environ['TIMED']}.model"))
        return made


def create(pipeline: bytes) -> HtrflowEngine:
    made = htrflow_engine.create(pipeline)
    made.__class__ = TimedEngine
    for owner, name, kind in (
        (TimedEngine, "prepare", "htrflow: decode"),
        (TimedEngine, "infer", "htrflow: models"),
        (TimedEngine, "export", "htrflow: export"),
        (Collection, "update", "htrflow: models"),
        (Pages, "active_leaves", "ours: pages"),
        (Pages, "update", "ours: pages"),
        (messages.Pipe, "send", "ours: messages"),
        (messages.Pipe, "receive", "ours: messages"),
    ):
        _TIMED.wrap(owner, name, kind)
    return made
