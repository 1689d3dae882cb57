"""The text that the step ``Lines`` of :mod:`tests.wrapper.engines.broken` finds. Needs no library."""

from __future__ import annotations

import typing as t

from htrflow_batch import alto

if t.TYPE_CHECKING:
    from tests.wrapper.pods import Pod

LINES = ("Anno 1734 den 3 maj", "hölls laga ting", "med menige allmoge")


def of(pod: Pod, number: int) -> list[str]:
    """The lines of a page in the bucket."""
    key = f"{pod.prefix}alto/{number:04}.xml"
    return alto.text_of(pod.objects(key)[key]).splitlines()
