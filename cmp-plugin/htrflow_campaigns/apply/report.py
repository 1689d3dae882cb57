"""What a run says, and the exit code that follows from it."""

from __future__ import annotations

import sys
import typing as t

Deed = t.Literal["created", "updated", "unchanged", "replaced", "pruned", "paused", "resumed", "recorded", "over"]

#: Objects that the summary names.
_NAMED = 20


class Report:
    """One line on stdout for each action, one on stderr for each refusal, and a summary of what was left."""

    def __init__(self) -> None:
        #: Whether anything in the cluster is as the repo asks for.
        self.reached = False
        self._left: dict[str, None] = {}
        self._unenforced: dict[str, None] = {}

    def done(self, deed: Deed, thing: str, because: str = "") -> None:
        """An action on an object, named ``Kind/name``."""
        self.reached = True
        print(f"{deed} {thing}{': ' if because else ''}{because}", flush=True)

    def say(self, sentence: str) -> None:
        """Something that is to be known and changes no exit code."""
        print(sentence, file=sys.stderr, flush=True)

    def left(self, thing: str, sentence: str) -> None:
        """An object that is not as the repo asks for."""
        self._left[thing] = None
        self.say(sentence)

    def unenforced(self, thing: str, sentence: str) -> None:
        """A campaign that is to pause and may run."""
        self._unenforced[thing] = None
        self.say(sentence)

    def end(self) -> int:
        """Says the summary, and returns the exit code: 0, 1 or 3."""
        if self._unenforced:
            self.say(f"not paused: {_some(self._unenforced)}")
        if self._left:
            self.say(f"left as they were: {_some(self._left)}")
        if self._left and not self.reached:
            self.say("nothing reached the cluster")
        if self._unenforced or (self._left and not self.reached):
            return 1
        return 3 if self._left else 0


def _some(things: t.Iterable[str]) -> str:
    found = list(things)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more
