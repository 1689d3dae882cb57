"""What the wrapper and the process with the models say to each other, one JSON document a message."""

from __future__ import annotations

import dataclasses
import json
import threading
import typing as t
from multiprocessing import connection


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The first message: which module is the engine, and its ``pipeline.yaml``."""

    engine: str
    pipeline: str


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Pages to read together: their numbers, and the paths of their images."""

    number: int
    pages: list[tuple[int, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """The models are there: pairs of name and revision."""

    engine: str
    models: list[tuple[str, str]]
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """The models are not to be had."""

    error: str
    permanent: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Started:
    """The model begins with a group, after it had nothing to do for so many seconds."""

    group: int
    waited: float


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """A page that was read, as :class:`htrflow_batch.engine.Read`; ``seconds`` is its share of its group's time."""

    number: int
    alto: str
    page: str | None
    lines: list[str]
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """A page that was not read."""

    number: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """All pages of a group are said. The model spent so many seconds on it."""

    group: int
    seconds: float


Message: t.TypeAlias = Load | Group | Loaded | Refused | Started | Page | Failed | Done
_KINDS: dict[str, type[t.Any]] = {kind.__name__: kind for kind in t.get_args(Message)}


class Pipe:
    """One end of a pipe for messages. Any thread may send."""

    def __init__(self, descriptor: int) -> None:
        self._connection = connection.Connection(descriptor)
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Raises ``OSError`` when nobody reads."""
        # Half characters, which a model's text may hold, survive as escapes.
        text = json.dumps([type(message).__name__, dataclasses.asdict(message)])
        with self._lock:
            self._connection.send_bytes(text.encode())

    def receive(self) -> Message | None:
        """The next message, or None when the other side is gone."""
        try:
            name, values = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return None
        message: Message = _KINDS[name](**values)
        return message

    def close(self) -> None:
        self._connection.close()
