"""How an attempt at a volume, or a page of it, ends when it does not end well."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What the Job's ``podFailurePolicy`` reads. Any other code is taken for :attr:`TRANSIENT`."""

    FINE = 0
    TRANSIENT = 1
    PERMANENT = 13
    TERMINATED = 143


class AttemptError(Exception):
    """Ends this attempt. The message is one sentence: what is wrong, where, and what to do. It holds no secret."""

    exit_code = ExitCode.TRANSIENT


class TransientError(AttemptError):
    """Another attempt may go better: the store or a server is not there for a while."""


class PermanentError(AttemptError):
    """Another attempt would end the same way: the volume or the pipeline is wrong."""

    exit_code = ExitCode.PERMANENT


class PageError(Exception):
    """This page cannot be had or read, for good; the volume goes on. The message is one sentence without secrets."""


class LaterError(Exception):
    """This page cannot be had right now and is worth asking for again; ``after`` is in seconds, if a server said so."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after
