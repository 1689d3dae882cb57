"""What became of each page of a volume: the one record from which everything that is published about it is made.

One thread writes it. It holds numbers and sentences, never images or text, so that it stays small for any volume.
"""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_batch.source import FailedPage, Page, Source

State = t.Literal["waiting", "text", "no text", "low confidence", "failed"]
#: What a page failed in: the manifest has no image, it could not be fetched, not be decoded, the model did not read it,
#: the result could not be published.
Cause = t.Literal["source", "fetch", "image", "model", "result"]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """A page that came out.

    ``width`` and ``height`` are those of the image that was read, in pixels. ``confidence`` is the mean over the lines,
    0 to 1, or None where there is none. ``seconds`` is what the model spent on it. ``sha256`` is that of the ALTO file,
    in hexadecimal. ``notes`` say what was done to the image and repaired in the results.
    """

    number: int
    width: int
    height: int
    lines: int
    words: int
    confidence: float | None
    seconds: float
    sha256: str
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A page that did not come out. ``reason`` is a sentence without secrets."""

    number: int
    cause: Cause
    reason: str


class Ledger:
    """The pages of one source, with what became of them.

    A page whose mean confidence is below ``low`` (0 to 1) is of the state ``low confidence``.
    """

    def __init__(self, source: Source, low: float) -> None:
        self.source = source
        self._low = low
        self._outcomes: dict[int, Outcome] = {}
        self._failures: dict[int, Failure] = {
            page.number: Failure(page.number, "source", page.reason) for page in source.failed
        }

    def came_out(self, outcome: Outcome) -> None:
        """Notes a page whose files are both in the store. It may have failed before."""
        self._failures.pop(outcome.number, None)
        self._outcomes[outcome.number] = outcome

    def failed(self, failure: Failure) -> None:
        """Notes a page that failed for good."""
        self._failures[failure.number] = failure

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """In the order of the pages."""
        return tuple(self._outcomes[number] for number in sorted(self._outcomes))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """In the order of the pages."""
        return tuple(self._failures[number] for number in sorted(self._failures))

    @property
    def waiting(self) -> tuple[Page, ...]:
        """The pages of which nothing is known yet, in order."""
        return tuple(page for page in self.source.usable if self.state(page) == "waiting")

    def outcome(self, page: Page | FailedPage) -> Outcome | None:
        return self._outcomes.get(page.number)

    def failure(self, page: Page | FailedPage) -> Failure | None:
        return self._failures.get(page.number)

    def state(self, page: Page | FailedPage) -> State:
        if page.number in self._failures:
            return "failed"
        outcome = self._outcomes.get(page.number)
        if outcome is None:
            return "waiting"
        if outcome.lines == 0:
            return "no text"
        low = outcome.confidence is not None and outcome.confidence < self._low
        return "low confidence" if low else "text"

    def counts(self) -> dict[State, int]:
        """How many pages are in each state; together they are the pages of the source."""
        found: dict[State, int] = {"text": 0, "no text": 0, "low confidence": 0, "failed": 0, "waiting": 0}
        for page in self.source.pages:
            found[self.state(page)] += 1
        return found
