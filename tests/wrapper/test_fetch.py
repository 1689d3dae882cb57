"""Downloads from a server that misbehaves in every known way."""

from __future__ import annotations

import concurrent.futures
import datetime
import email.utils
import gzip
import io
import json
import pathlib
import socket
import ssl
import threading
import time
import tracemalloc
import typing as t
import zlib

import PIL.Image
import pytest

from htrflow_batch import errors, fetch, hosts
from tests.testbed.plugin import certificates
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp, Request

_LIMIT = 1_000_000
_HTML = b"<!DOCTYPE html>\n<title>Log in</title>\n"


def _image(kind: str = "JPEG", mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    PIL.Image.effect_noise((60, 40), 50).convert(mode).save(file, kind)
    return file.getvalue()


_JPEG = _image()


@pytest.fixture
def fetcher() -> t.Iterator[fetch.Fetcher]:
    made = fetch.Fetcher("mailto:htr@example.org", connect_seconds=2, silence_seconds=1, whole_seconds=3)
    yield made
    made.close()


def _get(fetcher: fetch.Fetcher, url: str, kind: fetch.Kind = "image", limit: int = _LIMIT) -> fetch.Fetched:
    return fetcher.fetch(url, limit_bytes=limit, kind=kind)


def _refused(fetcher: fetch.Fetcher, url: str, kind: fetch.Kind = "image") -> fetch.Refused:
    with pytest.raises(fetch.Refused) as raised:
        _get(fetcher, url, kind)
    return raised.value


def _later(fetcher: fetch.Fetcher, url: str, kind: fetch.Kind = "image") -> errors.LaterError:
    with pytest.raises(errors.LaterError) as raised:
        _get(fetcher, url, kind)
    return raised.value


# What comes well


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP", "GIF", "BMP", "JPEG2000"])
def test_every_raster_image_comes_whole_whatever_its_server_calls_it(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, kind: str
) -> None:
    content = _image(kind)
    url = misbehaving_http.put("/scan", Answer(content, headers={"Content-Type": "Text/Plain; charset=x"}))

    found = _get(fetcher, url)

    assert found == fetch.Fetched(content, url, "text/plain")


@pytest.mark.parametrize("content", [b'{"items": []}', b'\xef\xbb\xbf\r\n {"a": 1}', b"[1]"])
def test_json_comes_whole(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, content: bytes) -> None:
    assert _get(fetcher, misbehaving_http.put("/manifest", content), "json").content == content


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b'{"a":', mtime=0) + gzip.compress(b" 1}", mtime=0)),
        ("x-gzip", gzip.compress(b'{"a": 1}', mtime=0)),
        ("deflate", zlib.compress(b'{"a": 1}')),
        ("identity", b'{"a": 1}'),
    ],
)
def test_a_compressed_body_is_unpacked(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, encoding: str, body: bytes
) -> None:
    url = misbehaving_http.put("/manifest", Answer(body, headers={"Content-Encoding": encoding}))

    assert json.loads(_get(fetcher, url, "json").content) == {"a": 1}


def test_a_body_without_a_length_comes_whole(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    url = misbehaving_http.put("/scan", Answer(_JPEG * 50, headers={"Content-Length": None}))

    assert _get(fetcher, url).content == _JPEG * 50


def test_the_request_says_who_asks(misbehaving_http: MisbehavingHttp) -> None:
    url = misbehaving_http.put("/scan", _JPEG)

    for contact in ("https://example.org/htr", None):
        _get(fetch.Fetcher(contact, version="1.2"), url)

    with_contact, without = (request.headers for request in misbehaving_http.requests)
    assert with_contact["User-Agent"] == "htrflow-batch/1.2 (+https://example.org/htr)"
    assert without["User-Agent"] == "htrflow-batch/1.2"
    assert with_contact["Accept"].startswith("image/jpeg")
    assert with_contact["Accept-Encoding"] == "identity"
    assert with_contact["Cookie"] is None


def test_a_server_that_dislikes_our_accept_header_is_asked_for_anything(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher
) -> None:
    url = misbehaving_http.put("/scan", Answer(status=406), _JPEG)

    assert _get(fetcher, url).content == _JPEG
    assert misbehaving_http.requests[1].headers["Accept"] == "*/*"


def test_a_server_that_accepts_nothing_is_asked_twice(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher
) -> None:
    assert _refused(fetcher, misbehaving_http.put("/scan", Answer(status=406))).status == 406
    assert misbehaving_http.count("/scan") == 2


def test_netrc_cookies_and_proxies_of_the_environment_are_not_used(
    misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login eva password geheim\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    url = misbehaving_http.put("/scan", Answer(_JPEG, headers={"Set-Cookie": "a=b; Path=/"}))
    fetcher = fetch.Fetcher(None)

    for _ in range(2):
        _get(fetcher, url)

    assert [(request.headers["Authorization"], request.headers["Cookie"]) for request in misbehaving_http.requests] == [
        (None, None)
    ] * 2


# Later


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 520])
def test_a_server_in_trouble_is_for_later(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, status: int
) -> None:
    error = _later(fetcher, misbehaving_http.put("/scan", Answer(status=status)))

    assert f"/scan answered {status}" in str(error)
    assert error.after is None


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("in 120", 120),
        ("in -100", 0),
        ("9" * 5000, 600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 600),
    ],
)
def test_a_server_says_how_long_to_wait_and_is_believed_up_to_a_cap(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, status: int, value: str, after: int
) -> None:
    if value.startswith("in "):
        then = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=int(value[3:]))
        value = email.utils.format_datetime(then, usegmt=True)

    error = _later(fetcher, misbehaving_http.put("/scan", Answer(status=status, headers={"Retry-After": value})))

    assert error.after == pytest.approx(after, abs=2)


def test_a_point_in_time_is_measured_by_the_servers_own_clock(fetcher: fetch.Fetcher) -> None:
    url, thread = _raw_server(
        b"HTTP/1.1 503 Busy\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\n"
        b"Retry-After: Wed, 21 Oct 2015 07:30:00 GMT\r\nContent-Length: 0\r\n\r\n",
        pause=0,
    )

    assert _later(fetcher, url).after == 120
    thread.join()


@pytest.mark.parametrize("value", ["soon", "-5", "1.5", "", "Wed, 99 Oct 2026 07:30:00 GMT"])
def test_a_wait_that_cannot_be_read_is_no_wait(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, value: str
) -> None:
    url = misbehaving_http.put("/scan", Answer(status=503, headers={"Retry-After": value}))

    assert _later(fetcher, url).after is None


def test_all_pages_of_a_server_that_wants_quiet_wait(misbehaving_http: MisbehavingHttp) -> None:
    busy = misbehaving_http.put("/a", Answer(status=429, headers={"Retry-After": "100"}))
    fine = misbehaving_http.put("/b", _JPEG)
    fetcher = fetch.Fetcher(None)

    _later(fetcher, busy)
    error = _later(fetcher, fine)

    assert error.after == pytest.approx(100, abs=3)
    assert misbehaving_http.count("/b") == 0
    assert _get(fetcher, fine.replace("127.0.0.1", "localhost")).content == _JPEG


def test_a_short_wait_is_sat_out(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    url = misbehaving_http.put("/scan", Answer(status=503, headers={"Retry-After": "1"}), _JPEG)

    _later(fetcher, url)
    began = time.monotonic()

    assert _get(fetcher, url).content == _JPEG
    assert time.monotonic() - began > 0.8


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(_JPEG, delay=20), "sent nothing for 1 s"),
        (Answer(_JPEG, pace=100), "took longer than 3 s"),
        (Answer(_JPEG, cut_after=0), "broke off"),
        (Answer(_JPEG, cut_after=500), "broke off"),
        (Answer(_JPEG, reset=True), "broke off"),
        (Answer(_JPEG, cut_after=500, reset=True), "broke off"),
        (Answer(_JPEG, headers={"Content-Length": str(len(_JPEG) + 1)}, cut_after=len(_JPEG)), "broke off"),
        (Answer(gzip.compress(_JPEG)[:-9], headers={"Content-Encoding": "gzip"}), "broke off"),
        (
            Answer(b"4\r\n\xff\xd8\xff\xe0\r\n", headers={"Transfer-Encoding": "chunked", "Content-Length": None}),
            "broke",
        ),
    ],
)
def test_an_answer_that_does_not_come_whole_in_time_is_for_later(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, answer: Answer, said: str
) -> None:
    began = time.monotonic()

    error = _later(fetcher, misbehaving_http.put("/scan", answer))

    assert said in str(error)
    assert time.monotonic() - began < 8


def _raw_server(*pieces: bytes, pause: float) -> tuple[str, threading.Thread]:
    """A server that sends pieces of an answer slowly to one client, also those of the header."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as client:
            client.recv(65536)
            try:
                for piece in pieces:
                    client.sendall(piece)
                    time.sleep(pause)
            except OSError:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/scan", thread


def test_a_header_that_drips_ends_in_time(fetcher: fetch.Fetcher) -> None:
    url, thread = _raw_server(b"HTTP/1.1 200 OK\r\nX: ", *[b"x"] * 40, pause=0.1)
    began = time.monotonic()

    error = _later(fetcher, url)

    assert 2.9 < time.monotonic() - began < 6
    assert "took longer than 3 s" in str(error)
    thread.join()


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x" * 99999]
)
def test_an_answer_that_is_not_http_is_for_later(fetcher: fetch.Fetcher, answer: bytes) -> None:
    url, thread = _raw_server(answer, pause=0)

    assert "broke off" in str(_later(fetcher, url))
    thread.join()


def test_a_host_that_takes_no_connection_or_has_no_name_is_for_later(fetcher: fetch.Fetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    assert "takes no connection" in str(_later(fetcher, f"http://127.0.0.1:{port}/scan"))
    assert "name is not known" in str(_later(fetcher, "http://archive.invalid/scan"))


def test_a_server_that_speaks_no_tls_is_for_later(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    url = misbehaving_http.put("/scan", _JPEG).replace("http:", "https:")

    assert "no encryption that can be trusted" in str(_later(fetcher, url))


# Refused


@pytest.mark.parametrize("status", [204, 206, 300, 304, 400, 404, 405, 410, 416, 451, 501, 505])
def test_an_error_for_good_says_its_status(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, status: int
) -> None:
    error = _refused(fetcher, misbehaving_http.put("/full/!9,9/0/default.jpg", Answer(status=status)))

    assert error.status == status
    assert f"/full/!9,9/0/default.jpg answered {status}" in str(error)


@pytest.mark.parametrize("status", [401, 403])
def test_a_page_that_the_archive_does_not_publish_is_said_to_be_so(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, status: int
) -> None:
    error = _refused(fetcher, misbehaving_http.put("/scan", Answer(status=status)))

    assert "the archive does not publish this page" in str(error)
    assert error.status == status


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_HTML, "an HTML page"),
        (b"\xef\xbb\xbf  <!-- a --><!-- b -->\n<HTML>", "an HTML page"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html/>", "an HTML page"),
        (b'{"error": "busy"}', "a JSON document"),
        (b"<?xml version='1.0'?><svg/>", "an SVG drawing"),
        (b"<?xml version='1.0'?><error/>", "an XML document"),
        (b"%PDF-1.7", "a PDF"),
        (b"\0\0\0 ftypavif", "an AVIF or HEIC image"),
        (b"BMW is no bitmap", "plain text"),
        (b"\0\1\2", "data of an unknown kind"),
        (b"<!---->" * 140, "plain text"),
        (b"", "nothing at all"),
    ],
)
def test_what_is_no_image_is_called_what_it_is(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, content: bytes, said: str
) -> None:
    url = misbehaving_http.put("/scan", Answer(content, headers={"Content-Type": "image/jpeg"}))

    error = _refused(fetcher, url)

    assert f"/scan is {said}" in str(error)
    assert error.status == 200


@pytest.mark.parametrize(("content", "said"), [(_HTML, "an HTML page"), (_JPEG, "a JPEG image"), (b"a", "plain text")])
def test_what_is_no_json_is_called_what_it_is(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, content: bytes, said: str
) -> None:
    assert f"is {said} and not a JSON document" in str(_refused(fetcher, misbehaving_http.put("/m", content), "json"))


def test_a_long_page_that_is_no_image_is_not_read_to_its_end(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher
) -> None:
    url = misbehaving_http.put("/scan", Answer(_HTML + b" " * 900_000, pace=100_000))
    began = time.monotonic()

    assert "an HTML page" in str(_refused(fetcher, url))
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("encoding", "said"), [("gzip", "not compressed as its server says"), ("br", "encoding that was not asked for")]
)
def test_an_encoding_that_cannot_be_undone_is_refused(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, encoding: str, said: str
) -> None:
    url = misbehaving_http.put("/scan", Answer(_JPEG, headers={"Content-Encoding": encoding}))

    assert said in str(_refused(fetcher, url))


# Too large


_HUGE = _JPEG + b"\0" * 30_000_000


@pytest.mark.parametrize(
    "answer",
    [
        Answer(_HUGE),
        Answer(_HUGE, headers={"Content-Length": None}),
        Answer(_JPEG, headers={"Content-Length": "9" * 15}),
        Answer(gzip.compress(_HUGE), headers={"Content-Encoding": "gzip"}),
        Answer(zlib.compress(_HUGE), headers={"Content-Encoding": "deflate"}),
        Answer(
            gzip.compress(_JPEG) + gzip.compress(b"") * 60_000,
            headers={"Content-Encoding": "gzip", "Content-Length": None},
        ),
    ],
    ids=["said", "not said", "a lie", "gzip", "deflate", "many empty members"],
)
def test_a_file_over_the_limit_is_refused(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, answer: Answer
) -> None:
    with pytest.raises(errors.PageError, match="larger than the limit of 1000000 bytes"):
        _get(fetcher, misbehaving_http.put("/scan", answer))


def test_a_bomb_is_not_unpacked_beyond_the_limit(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    url = misbehaving_http.put("/scan", Answer(gzip.compress(_HUGE), headers={"Content-Encoding": "gzip"}))

    tracemalloc.start()
    with pytest.raises(errors.PageError, match="larger"):
        _get(fetcher, url)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 10_000_000


def test_a_file_of_exactly_the_limit_comes(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    packed = Answer(gzip.compress(_JPEG), headers={"Content-Encoding": "gzip"})

    for number, answer in enumerate([Answer(_JPEG), packed]):
        url = misbehaving_http.put(f"/{number}", answer)
        assert _get(fetcher, url, limit=len(_JPEG)).content == _JPEG
        with pytest.raises(errors.PageError, match="larger"):
            _get(fetcher, url, limit=len(_JPEG) - 1)


def test_a_length_that_is_too_short_does_not_spoil_the_next_answer(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher
) -> None:
    short = misbehaving_http.put("/short", Answer(_JPEG, headers={"Content-Length": "100"}))
    fine = misbehaving_http.put("/fine", _JPEG)

    assert _get(fetcher, short).content == _JPEG[:100]
    time.sleep(0.1)
    assert _get(fetcher, fine).content == _JPEG


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("to", ["/there", "there", "{}/there", "//{host}/there", " /there#part"])
def test_a_redirect_is_followed(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, status: int, to: str
) -> None:
    there = misbehaving_http.put("/there", _JPEG)
    to = to.replace("{}", misbehaving_http.url).replace("{host}", misbehaving_http.url.removeprefix("http://"))

    found = _get(fetcher, misbehaving_http.redirect("/here", to, status))

    assert found.url.partition("#")[0] == there


def test_five_redirects_are_followed_and_six_are_not(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    misbehaving_http.put("/0", _JPEG)
    urls = [misbehaving_http.redirect(f"/{number}", f"/{number - 1}") for number in range(1, 7)]

    assert _get(fetcher, urls[4]).content == _JPEG
    with pytest.raises(errors.PageError, match="more than 5 redirects"):
        _get(fetcher, urls[5])


def test_a_redirect_in_a_circle_is_noticed(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    misbehaving_http.redirect("/b", "/a")

    with pytest.raises(errors.PageError, match="in a circle"):
        _get(fetcher, misbehaving_http.redirect("/a", "/b"))
    assert len(misbehaving_http.requests) == 2


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "ftp://eva:geheim@127.0.0.1/a", "data:image/png,a", "gopher://a/", "httpx://a/"]
)
def test_a_redirect_to_another_scheme_is_refused(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, to: str
) -> None:
    with pytest.raises(errors.PageError, match="no address of http or https") as raised:
        _get(fetcher, misbehaving_http.redirect("/scan", to))

    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize("to", ["http://[", "http://a:b:c/", "http://a:99999/", "http://" + "a" * 300 + "/"])
def test_a_redirect_to_no_address_is_refused(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, to: str
) -> None:
    with pytest.raises(errors.PageError, match="no address"):
        _get(fetcher, misbehaving_http.redirect("/scan", to))


@pytest.mark.parametrize("url", ["", "scan.jpg", "file:///etc/passwd", "http:///a", "http://a b/c", "http://\0/"])
def test_what_is_no_address_is_refused(fetcher: fetch.Fetcher, url: str) -> None:
    with pytest.raises(errors.PageError, match="no address"):
        _get(fetcher, url)


def test_a_redirect_without_a_place_is_an_error_for_good(
    misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher
) -> None:
    assert _refused(fetcher, misbehaving_http.put("/scan", Answer(status=302))).status == 302


def test_a_huge_body_of_a_redirect_is_not_read(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    misbehaving_http.put("/there", _JPEG)
    bomb = Answer(gzip.compress(_HUGE), 302, {"Location": "/there", "Content-Encoding": "gzip"}, pace=100)

    assert _get(fetcher, misbehaving_http.put("/here", bomb)).content == _JPEG


def test_headers_of_one_host_reach_no_other(misbehaving_http: MisbehavingHttp) -> None:
    host = misbehaving_http.url.removeprefix("http://")
    other = misbehaving_http.url.replace("127.0.0.1", "localhost")
    misbehaving_http.redirect("/a", f"{other}/b")
    misbehaving_http.redirect("/b", f"{misbehaving_http.url}/c")
    misbehaving_http.put("/c", _JPEG)
    secret = {"X-Key": "hemlig", "Authorization": "Bearer hemlig", "User-Agent": "own"}

    _get(fetch.Fetcher(None, {host: secret, "127.0.0.1": {"X-Default-Port": "no"}}), f"{misbehaving_http.url}/a")

    first, second, third = (request.headers for request in misbehaving_http.requests)
    assert [first[name] for name in secret] == [third[name] for name in secret] == list(secret.values())
    assert "hemlig" not in str(second)
    assert second["User-Agent"] != "own"
    assert first["X-Default-Port"] is None


def test_user_info_goes_to_its_own_host_alone(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    misbehaving_http.redirect("/a", misbehaving_http.url.replace("127.0.0.1", "localhost") + "/b")
    misbehaving_http.put("/b", _JPEG)

    _get(fetcher, f"{misbehaving_http.url}/a".replace("//", "//eva:geheim@"))

    assert misbehaving_http.requests[0].headers["Authorization"].startswith("Basic ")
    assert misbehaving_http.requests[1].headers["Authorization"] is None


class _Encrypted(MisbehavingHttp):
    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__()
        authority = certificates.Authority(folder, "authority")
        authority.server(folder / "server.crt", folder / "server.key", "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.authority = authority.certificate

    @property
    def url(self) -> str:
        return super().url.replace("http:", "https:")


@pytest.fixture
def encrypted(tmp_path: pathlib.Path) -> t.Iterator[_Encrypted]:
    site = _Encrypted(tmp_path)
    yield site
    site.close()


def test_an_encrypted_connection_has_the_same_limits(encrypted: _Encrypted) -> None:
    fetcher = fetch.Fetcher(None, authorities=encrypted.authority, silence_seconds=1, whole_seconds=3)

    assert _get(fetcher, encrypted.put("/scan", Answer(_JPEG * 300, delay=0.4))).content == _JPEG * 300
    assert "took longer than 3 s" in str(_later(fetcher, encrypted.put("/drip", Answer(_JPEG, pace=100))))
    assert "sent nothing for 1 s" in str(_later(fetcher, encrypted.put("/late", Answer(_JPEG, delay=5))))
    assert "broke off" in str(_later(fetcher, encrypted.put("/cut", Answer(_JPEG, cut_after=9))))
    fetcher.close()


def test_a_certificate_of_a_stranger_is_not_trusted(encrypted: _Encrypted, fetcher: fetch.Fetcher) -> None:
    assert "no encryption that can be trusted" in str(_later(fetcher, encrypted.put("/scan", _JPEG)))
    assert encrypted.requests == []


def test_headers_of_a_host_never_go_from_an_encrypted_connection_to_an_open_one(
    encrypted: _Encrypted, misbehaving_http: MisbehavingHttp
) -> None:
    open_url = misbehaving_http.put("/scan", _JPEG)
    secret = {"X-Key": "hemlig"}
    by_host = {site.url.rpartition("/")[2]: secret for site in (encrypted, misbehaving_http)}
    fetcher = fetch.Fetcher(None, by_host, authorities=encrypted.authority)

    _get(fetcher, open_url)
    _get(fetcher, encrypted.redirect("/scan", open_url))

    assert encrypted.requests[0].headers["X-Key"] == "hemlig"
    assert [request.headers["X-Key"] for request in misbehaving_http.requests] == ["hemlig", None]
    fetcher.close()


# Messages


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404),
        Answer(status=403),
        Answer(status=503),
        Answer(_HTML),
        Answer(_HUGE),
        Answer(_JPEG, cut_after=5),
        Answer(_JPEG, delay=9),
        Answer(status=302, headers={"Location": "?token=hemlig"}),
        Answer(status=302, headers={"Location": "ftp://eva:hemlig@a/?hemlig hemlig"}),
    ],
)
def test_no_message_holds_a_secret(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher, answer: Answer) -> None:
    url = misbehaving_http.put("/scan", answer).replace("//", "//eva:hemlig@") + "?token=hemlig&b=hemlig hemlig"

    with pytest.raises((errors.PageError, errors.LaterError)) as raised:
        _get(fetcher, url)

    assert "hemlig" not in str(raised.value)
    assert str(raised.value).endswith(".")
    assert raised.value.__cause__ is None


def test_what_was_fetched_shows_no_secret(misbehaving_http: MisbehavingHttp, fetcher: fetch.Fetcher) -> None:
    found = _get(fetcher, misbehaving_http.put("/scan", _JPEG) + "?token=hemlig")

    assert found.url.endswith("?token=hemlig")
    assert found.shown == f"{misbehaving_http.url}/scan?…"
    assert "hemlig" not in repr(found)


@pytest.mark.parametrize(
    ("contact", "headers"),
    [("a\r\nX: hemlig", {}), ("漢 hemlig", {}), (None, {"a": {"X": "hemlig\n"}}), (None, {"a": {"X\n": "hemlig"}})],
)
def test_what_cannot_be_a_header_is_refused_before_any_request(
    contact: str | None, headers: dict[str, dict[str, str]]
) -> None:
    with pytest.raises(errors.PermanentError, match="cannot be sent") as raised:
        fetch.Fetcher(contact, headers)

    assert "hemlig" not in str(raised.value)


# Many at once


class _Counting(MisbehavingHttp):
    """Knows how many of its requests are answered at the same time. Each answer has a delay."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._counting = threading.Lock()
        super().__init__()

    def take(self, request: Request) -> Answer:
        with self._counting:
            self.now += 1
            self.most = max(self.most, self.now)
        return super().take(request)

    def pause(self, seconds: float) -> bool:
        try:
            return super().pause(seconds)
        finally:
            with self._counting:
                self.now -= 1


@pytest.mark.parametrize("connections", [1, 2, 4])
def test_a_server_sees_no_more_requests_at_once_than_it_gets_connections(connections: int) -> None:
    site = _Counting()
    url = site.put("/scan", Answer(_JPEG, delay=0.05))
    fetcher = fetch.Fetcher(None, limits=hosts.Hosts(connections))

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda number: _get(fetcher, f"{url}?{number}").content, range(20)))
    site.close()

    assert found == [_JPEG] * 20
    assert site.most == connections


@pytest.mark.parametrize("answer", [Answer(_JPEG, delay=30), Answer(_JPEG, pace=50)])
def test_closing_ends_downloads_that_run_and_wait(misbehaving_http: MisbehavingHttp, answer: Answer) -> None:
    url = misbehaving_http.put("/scan", answer)
    fetcher = fetch.Fetcher(None)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(_get, fetcher, url) for _ in range(4)]
        time.sleep(0.4)
        fetcher.close()
        began = time.monotonic()
        for future in running:
            with pytest.raises(hosts.Closing):
                future.result(5)
        assert time.monotonic() - began < 3
    with pytest.raises(hosts.Closing):
        _get(fetcher, url)
