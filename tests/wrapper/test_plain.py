"""What is shown to people: no secrets, no control characters, and an end."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from htrflow_batch import plain


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Sidan 3 är tom", "Sidan 3 är tom"),
        ("one\r\ntwo\rthree\u2028four\x85five", "one\ntwo\nthree\nfour\nfive"),
        ("\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain", "red and plain"),
        ("a\x00b\u202ec\ud800d", "abc\ufffdd"),
        ("a\tb\u00a0c", "a b c"),
        ("GET https://eva:pw@example.org/a?key=1", "GET https://…@example.org/a?…"),
        ("https://eva:p\x00w@example.org/", "https://…@example.org/"),
        ("https://eva:p\u00a0w@example.org/", "https://…@example.org/"),
        ("https://eva:p\u2028w@example.org/", "https://…@example.org/"),
        ("https:\x00//eva:pw@example.org/", "https://…@example.org/"),
        ("https:\x1b[0m//eva:pw@example.org/", "https://…@example.org/"),
        ("\x1b]0;without an end", "0;without an end"),
        ("", ""),
    ],
)
def test_a_text_is_shown_without_secrets_and_without_commands_to_the_terminal(raw: str, shown: str) -> None:
    assert plain.text(raw) == shown


def test_a_line_has_no_line_breaks() -> None:
    assert plain.line(" one\n two\u2029three\t") == "one two three"


def test_a_text_that_is_too_long_is_cut_before_the_address_at_its_end() -> None:
    before = "x" * (plain.MOST - 30)
    shown = plain.text(f"{before} https://eva:a-long-password-{'y' * 100}@example.org/ and more")

    assert shown == f"{before} … (150 more characters)"


def test_a_word_that_is_too_long_is_left_out() -> None:
    assert plain.text("x" * 100_000) == "… (100000 more characters)"


def test_a_word_of_thousands_of_addresses_is_shown_without_their_secrets() -> None:
    assert plain.text("http://a/" * 3000 + "?token=s") == "http://a/" * 3000 + "?…"


@hypothesis.given(st.text(st.characters(), max_size=200))
def test_every_text_comes_out_printable_and_is_utf_8(raw: str) -> None:
    shown = plain.text(raw)

    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.encode().decode() == shown
