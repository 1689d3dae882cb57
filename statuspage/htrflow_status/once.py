"""Renders a part of a page once for the same data."""

from __future__ import annotations

import collections
import hashlib
import json
import typing as t

import markupsafe

from htrflow_status.words import Words


class Once:
    """The parts that were rendered last, ``most`` of them.

    A part is found by all of the data that it shows and by the language. So it makes no difference whose request it was
    rendered for: whoever has the same data gets the same text, and nobody gets any other.
    """

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._kept: collections.OrderedDict[bytes, markupsafe.Markup] = collections.OrderedDict()

    def __call__(self, part: t.Callable[..., markupsafe.Markup], w: Words, data: object) -> markupsafe.Markup:
        """What a macro of a template makes of a language and of plain data."""
        content = json.dumps([getattr(part, "name", ""), w.language, data], separators=(",", ":"))
        key = hashlib.blake2b(content.encode(), digest_size=32).digest()
        if (text := self._kept.get(key)) is None:
            text = self._kept[key] = part(w, data)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return text
