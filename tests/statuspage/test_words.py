"""The catalogue has a text for everything that the program may have to say."""

from __future__ import annotations

from htrflow_status import words
from htrflow_status.results.refusal import CODES


def test_every_refusal_has_a_sentence_in_both_languages() -> None:
    catalogue = words.catalogue()

    assert [code for code in sorted(CODES) if f"refusal.{code}" not in catalogue] == []
