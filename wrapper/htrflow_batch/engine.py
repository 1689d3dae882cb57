"""What the wrapper asks of the library that reads pages. One module knows the library; it offers an :class:`Engine`.

The three steps of a group of pages are apart, so that the images of the next group are decoded and the results of the
one before are written while the model works. Each step runs in a thread of its own, one group at a time.
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import typing as t

from htrflow_batch.run import Model


class EngineError(Exception):
    """The engine cannot be had. ``permanent`` says whether another attempt would find the same."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    """A page as the library read it: both files as text, PAGE is None where it writes none, and each line's text."""

    number: int
    alto: str
    page: str | None
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Unread:
    """A page that the library did not read, and why."""

    number: int
    reason: str


#: Numbers of pages, and where their images are.
Paths = t.Mapping[int, pathlib.Path]


class Engine(t.Protocol):
    """A pipeline with its models. Any method may raise, and then nothing came out of the group."""

    #: The library and its version, such as ``htrflow 0.2.6``.
    name: str

    def load(self) -> tuple[Model, ...]:
        """Loads every model of every step. Raises :class:`EngineError`."""
        ...

    def prepare(self, paths: Paths) -> t.Any:
        """Decodes a group's images."""
        ...

    def infer(self, group: t.Any) -> t.Any:
        """Runs every step of the pipeline on a group that :meth:`prepare` gave."""
        ...

    def export(self, group: t.Any) -> list[Read | Unread]:
        """Writes a group that :meth:`infer` gave as ALTO and PAGE."""
        ...


def create(module: str, pipeline: bytes) -> Engine:
    """The engine that the function ``create`` of a module makes of a ``pipeline.yaml``. Loads no models.

    Raises :class:`EngineError` when the pipeline is none.
    """
    made: Engine = importlib.import_module(module).create(pipeline)
    return made
