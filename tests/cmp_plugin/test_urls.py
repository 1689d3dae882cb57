"""Addresses: which are taken, which are refused and why, and that other readers agree about those that are taken."""

from __future__ import annotations

import time
import unicodedata
import urllib.parse

import hypothesis
import pytest
import requests
from hypothesis import strategies as st

from htrflow_campaigns import urls

HOST = "has a host name that a browser cannot open"
PORT = "has a port that is not a number from 1 to 65535"
NO_SCHEME = "has no http:// or https:// at its start"
USER = "holds a user name or password, which everyone could read"

GOOD = [
    "https://example.org",
    "https://example.org/",
    "HTTPS://example.org/a",
    "http://localhost/scan.jpg",
    "https://example.org:8080/a",
    "https://example.org:1/a",
    "https://example.org:65535/a",
    "https://example.org./a",
    "https://1.2.3.4/a",
    "https://[::1]/a",
    "https://[2001:db8::1]:8080/a",
    "https://[::ffff:1.2.3.4]/a",
    "https://räksmörgås.se/a",
    "https://xn--rksmrgs-5wao1o.se/a",
    "https://a_b.example.org/a",
    "https://" + "a" * 63 + ".org/a",
    "https://example.org/iiif/3/a/full/2500,/0/default.jpg",
    "https://example.org/arkis!R0001203/manifest",
    "https://example.org/a;b=c?d=e&f=g#h",
    "https://example.org?user@example.org",
    "https://example.org/$(HOME)`id`'x'%20*~{a}|^",
    "https://example.org/Riksarkivet/Hälsingland/häfte 1".replace(" ", "%20"),
    "https://example.org/😀",
    "https://example.org/%zz",
]
BAD = {
    "": "is empty",
    "example.org/a": NO_SCHEME,
    "http:/example.org": NO_SCHEME,
    "https:example.org": NO_SCHEME,
    "//example.org/a": NO_SCHEME,
    "/a/b": NO_SCHEME,
    "https": NO_SCHEME,
    "javascript:alert(1)": NO_SCHEME,
    "data:text/plain,a": NO_SCHEME,
    "file:///etc/passwd": "starts with file://",
    "ftp://example.org/a": "starts with ftp://",
    "s3://bucket/a": "starts with s3://",
    "https://": "has no host name",
    "https:///a": "has no host name",
    "https://?a": "has no host name",
    "https://:80/a": "has no host name",
    "https://example.org:/a": PORT,
    "https://example.org:0/a": PORT,
    "https://example.org:65536/a": PORT,
    "https://example.org:+80/a": PORT,
    "https://example.org:8o/a": PORT,
    "https://example.org:٣/a": PORT,
    "https://example.org:" + "1" * 5000 + "/a": PORT,
    "https://[::1]x/a": PORT,
    "https://user:password@example.org/a": USER,
    "https://user@example.org/a": USER,
    "https://@example.org/a": USER,
    "https://a b.org/a": "holds a space at character 10",
    " https://example.org/a": "holds a space at character 1",
    "https://example.org/a b": "holds a space at character 22",
    "https://example.org/a\n": "holds a line break at character 22",
    "https://example.org/\na": "holds a line break at character 21",
    "https://exam\tple.org/a": "holds a tab at character 13",
    "https://example.org/a\rb": "holds white space at character 22",
    "https://example.org/a\u00a0b": "holds white space at character 22",
    "https://example.org/a\u2028b": "holds white space at character 22",
    "https://example.org/a\u3000b": "holds white space at character 22",
    "https://example.org/a\x00b": "holds a control character at character 22",
    "https://example.org/a\x85b": "holds white space at character 22",
    "https://example.org/a\x9fb": "holds a control character at character 22",
    "https://example.org/a\u200bb": "holds U+200B, which cannot be seen, at character 22",
    "https://example.org/a\ufeff": "holds U+FEFF, which cannot be seen, at character 22",
    "https://example.org/\u202ea": "holds U+202E, which cannot be seen, at character 21",
    "https://exam\u00adple.org/a": "holds U+00AD, which cannot be seen, at character 13",
    "https://example.org\\a": "holds a backslash",
    "https:\\\\example.org\\a": "holds a backslash",
    "<https://example.org/a>": "holds a '<'",
    'https://example.org/"a"': "holds a quotation mark",
    "https://1.2.3/a": HOST,
    "https://256.1.1.1/a": HOST,
    "https://01.2.3.4/a": HOST,
    "https://0x7f.1/a": HOST,
    "https://2130706433/a": HOST,
    "https://example.0x7f/a": HOST,
    "https://example.１/a": HOST,
    "https://[::1/a": HOST,
    "https://::1/a": HOST,
    "https://[]/a": HOST,
    "https://[1.2.3.4]/a": HOST,
    "https://[fe80::1%25eth0]/a": HOST,
    "https://exa%6dple.org/a": HOST,
    "https://exa,mple.org/a": HOST,
    "https://exam$ple.org/a": HOST,
    "https://-example.org/a": HOST,
    "https://example-.org/a": HOST,
    "https://example..org/a": HOST,
    "https://.example.org/a": HOST,
    "https://" + "a" * 64 + ".org/a": HOST,
    "https://" + "a." * 127 + "org/a": HOST,
    "https://😀.org/a": HOST,
    "https://exa²mple.org/a": HOST,
    "https://ｅxample.org/a": HOST,
    "https://①.org/a": HOST,
    "https://xn--zz--.org/a": HOST,
    "https://ex℀ample.org/a": HOST,
}
_ADDRESS_CHARACTERS = st.sampled_from(
    "ahtps:/.@%[]?#0123456789x-_ \t\r\n\\\u00e5\u200b\u2028\u2100\uff0e\u3002\ufeff{}"
)
ADDRESSES = st.one_of(
    st.text(max_size=40),
    st.text(_ADDRESS_CHARACTERS, max_size=40),
    st.text(_ADDRESS_CHARACTERS, max_size=40).map("https://example.org/".__add__),
    st.text(_ADDRESS_CHARACTERS | st.characters(), max_size=20).map("http://{}/a".format),
    st.sampled_from([*GOOD, *BAD]).flatmap(
        lambda url: st.builds(
            lambda at, sign: url[: at % (len(url) + 1)] + sign + url[at % (len(url) + 1) :],
            st.integers(0, 200),
            st.characters(),
        )
    ),
)


@pytest.mark.parametrize("url", GOOD)
def test_a_good_address_has_no_fault(url: str) -> None:
    assert urls.fault(url) is None


@pytest.mark.parametrize(("url", "reason"), BAD.items(), ids=[ascii(url[:40]) for url in BAD])
def test_a_bad_address_has_its_reason(url: str, reason: str) -> None:
    fault = urls.fault(url)
    assert fault is not None
    assert fault.reason == reason
    assert fault.instead


@pytest.mark.parametrize("url", GOOD)
def test_a_good_address_is_sent_to_the_host_that_it_names(url: str) -> None:
    _check_other_readers(url)


@hypothesis.settings(derandomize=True, max_examples=300, deadline=None)
@hypothesis.given(ADDRESSES)
def test_an_accepted_address_is_one_word_that_every_reader_takes_for_the_same_host(url: str) -> None:
    fault = urls.fault(url)
    if fault is None:
        assert not any(c.isspace() or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp") for c in url)
        _check_other_readers(url)
    else:
        assert (fault.reason + fault.instead).isprintable()
        assert len(fault.reason) < 200


@pytest.mark.parametrize(
    "authority",
    [
        "a." * 500_000,
        "a-" * 500_000,
        "_" * 1_000_000,
        "å." * 500_000,
        "1." * 500_000 + "1",
        "[" + ":" * 1_000_000 + "]",
        "@" * 1_000_000,
        "a:" + "1" * 1_000_000,
        "\ufdfa" * 200_000,
        "a" * 1_000_000 + ":",
    ],
    ids=lambda authority: ascii(authority[:3]),
)
def test_the_longest_host_is_refused_at_once(authority: str) -> None:
    start = time.process_time()
    assert urls.fault(f"https://{authority}/") is not None
    assert time.process_time() - start < 2


def test_a_scheme_of_any_length_is_shown_shortened() -> None:
    fault = urls.fault("a" * 100_000 + "://example.org")
    assert fault is not None
    assert len(fault.reason) < 200


def _check_other_readers(url: str) -> None:
    split = urllib.parse.urlsplit(url)
    assert split.scheme in ("http", "https")
    assert split.hostname
    assert split.username is None
    assert split.port is None or 0 < split.port < 65536
    prepared = requests.Request("GET", url).prepare().url
    assert prepared is not None
    sent = urllib.parse.urlsplit(prepared)
    assert sent.port == split.port
    assert sent.hostname
    if split.hostname.isascii():
        assert sent.hostname == split.hostname
    else:
        assert sent.hostname.startswith("xn--") or ".xn--" in sent.hostname or sent.hostname.isascii()
