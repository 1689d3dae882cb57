"""A container's last words."""

from __future__ import annotations

import json
import logging
import pathlib

import hypothesis
import pytest
from hypothesis import strategies as st

from htrflow_batch import termination


def test_the_last_words_are_one_line_of_json(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "termination-log"
    file.write_text("something longer that was there before", encoding="utf-8")

    termination.write(file, "load", True, 'Modellen "trocr" finns inte på https://eva:pw@example.org/m?key=1')

    text = file.read_text(encoding="utf-8")
    assert text.count("\n") == 0
    assert json.loads(text) == {
        "stage": "load",
        "permanent": True,
        "error": 'Modellen "trocr" finns inte på https://…@example.org/m?…',
    }


@pytest.mark.parametrize("sign", ["a", "å", "漢", "🦉", '"', "\\", "a\nb ", "\x01a "])
def test_a_long_sentence_is_cut_between_characters_and_uses_the_room(tmp_path: pathlib.Path, sign: str) -> None:
    file = tmp_path / "termination-log"

    termination.write(file, "stream", False, sign * 9000)

    content = file.read_bytes()
    assert 4096 - 8 < len(content) <= 4096
    assert json.loads(content)["error"].endswith("…")


@hypothesis.given(st.text(st.characters(), max_size=200), st.text(st.characters(), max_size=6000))
def test_any_words_fit_and_are_json(stage: str, error: str) -> None:
    content = termination.message(stage, True, error)

    assert len(content) <= termination.MOST_BYTES
    assert json.loads(content)["permanent"] is True


def test_there_is_a_sentence_even_where_nothing_is_known() -> None:
    assert json.loads(termination.message("load", False, "\n"))["error"] == "no reason is known"


def test_a_secret_is_not_shown_by_cutting_its_address_in_two() -> None:
    for length in range(3900, 4100):
        error = f"{'x' * length} https://eva:hemligt@example.org/"
        assert b"hemligt" not in termination.message("load", False, error)


def test_a_file_that_cannot_be_written_is_logged(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        termination.write(tmp_path / "none" / "termination-log", "load", True, "x")

    assert "none/termination-log: No such file or directory" in caplog.text
