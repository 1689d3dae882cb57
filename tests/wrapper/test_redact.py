"""Secrets in addresses reach no message."""

from __future__ import annotations

import string
import urllib.parse

import hypothesis
import pytest
from hypothesis import strategies as st

from htrflow_batch import redact

# A secret of eight signs is in none of the surroundings by chance. All may stand in an address as they are.
_SIGNS = string.ascii_letters + string.digits + "-._~!$&'()*+,;=:%åé漢"
_SECRET = st.text(_SIGNS, min_size=8, max_size=30).filter(lambda text: sum(sign.isalnum() for sign in text) >= 6)
_IN_PASSWORD = st.text(_SIGNS + "@/?#", min_size=8, max_size=30).filter(
    lambda text: sum(sign.isalnum() for sign in text) >= 6
)
_HOST = st.sampled_from(["example.org", "example.org:8080", "127.0.0.1:80", "[::1]:81", "arkiv.å.se"])
_PATH = st.sampled_from(["", "/", "/iiif/arkis!R0001203_00007/full/max/0/default.jpg", "/a@b/c", "/a:b"])
_AROUND = st.sampled_from(["{}", "GET {}: 404", "'{}' and <{}>", '["{}","{}"]', "{}\n{}", "url={}, again", "({})."])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.org/a/b.jpg", "https://example.org/a/b.jpg"),
        ("https://eva:pw@example.org/a", "https://…@example.org/a"),
        ("https://token@example.org/a", "https://…@example.org/a"),
        ("https://example.org/a?key=1&b=2", "https://example.org/a?…"),
        ("https://example.org/a#part", "https://example.org/a#…"),
        ("https://eva:pw@example.org:80/a?b#c", "https://…@example.org:80/a?…"),
        ("HTTP://EVA:PW@EXAMPLE.ORG", "HTTP://…@EXAMPLE.ORG"),
        ("s3://key:pw@bucket/a", "s3://…@bucket/a"),
        ("http://[::1]:80/a", "http://[::1]:80/a"),
        ("https://example.org/v@2/a", "https://example.org/v@2/a"),
        ("(see 'https://example.org/a?b=c').", "(see 'https://example.org/a?…')."),
        ("http://eva:p/w@example.org/a", "http://…@example.org/a"),
        ("http://eva:p?w@example.org/a", "http://…?…"),
        ("https://eva:a://b@example.org/", "https://…@example.org/"),
        ("https://proxy.org/https://eva:pw@example.org/a?b", "https://proxy.org/https://…@example.org/a?…"),
        ("//eva:pw@example.org/a", "…@example.org/a"),
        ("Max retries exceeded with url: /a?key=1 (Caused by x)", "Max retries exceeded with url: /a?… (Caused by x)"),
        ("/login?next=https://example.org/a", "/login?…"),
        ("What? Nothing at eva@example.org, 12:30", "What? Nothing at eva@example.org, 12:30"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_user_info_query_and_fragment(text: str, expected: str) -> None:
    assert redact.url(text) == expected


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_address_that_is_an_identifier_in_another_is_redacted(times: int) -> None:
    inner = "https://eva:geheim@example.org/scan.tif?token=hemlig"
    for _ in range(times):
        inner = urllib.parse.quote(inner, safe="")

    shown = redact.url(f"https://images.org/iiif/{inner}/full/max/0/default.jpg")

    assert "geheim" not in shown
    assert "hemlig" not in shown
    assert "example.org" in shown
    assert shown.startswith("https://images.org/iiif/https%3A")
    assert shown.endswith("/full/max/0/default.jpg")


def test_an_encoded_identifier_without_secrets_stays_as_it_is() -> None:
    text = "https://images.org/iiif/https%3A%2F%2Fexample.org%2Fscan.tif/full/max/0/default.jpg"

    assert redact.url(text) == text


@hypothesis.given(_AROUND, _HOST, _PATH, _IN_PASSWORD, _SECRET, _SECRET)
def test_no_password_query_or_fragment_survives_in_any_text(
    around: str, host: str, path: str, password: str, query: str, fragment: str
) -> None:
    # Without a slash first: else what looks like the user would be a whole and harmless host.
    shown = redact.url(around.replace("{}", f"https://user:x{password}@{host}{path}?{query}#{fragment}"))

    assert password not in shown
    assert query not in shown
    assert fragment not in shown


@hypothesis.given(_AROUND, _HOST, _PATH, _SECRET)
def test_no_query_survives_where_a_library_leaves_out_the_scheme(
    around: str, host: str, path: str, secret: str
) -> None:
    assert secret not in redact.url(around.replace("{}", f"{host}{path or '/'}?key={secret}"))


@hypothesis.given(
    st.lists(st.sampled_from(["https", "://", "/", "?", "#", "@", ":", " ", "a", "%3A%2F%2F", "%40", "%3F"]))
)
def test_redacting_twice_changes_nothing_more(parts: list[str]) -> None:
    once = redact.url("".join(parts))

    assert redact.url(once) == once


@hypothesis.given(_HOST, _PATH)
def test_an_address_without_secrets_is_not_changed(host: str, path: str) -> None:
    assert redact.url(f"http://{host}{path}") == f"http://{host}{path}"


def test_any_number_of_addresses_in_one_another_can_be_read() -> None:
    inside = "https://a.se/" * 3000

    assert redact.url(f"{inside}p?token=s") == f"{inside}p?…"
    assert redact.url("://" * 3000) == "://" * 3000


def test_an_address_that_is_encoded_before_a_query_with_another_loses_its_password_at_once() -> None:
    once = redact.url("/%3A%2F%2Fu:p%40a?://")

    assert "p%40" not in once
    assert redact.url(once) == once
