"""The server that answers as a test wants it."""

from __future__ import annotations

import pathlib
import time

import pytest
import requests

from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_a_file_is_served_with_its_length_and_type(
    misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path, size: int
) -> None:
    (tmp_path / "scan.jpg").write_bytes(b"x" * size)
    url = misbehaving_http.serve("/scans/", tmp_path)

    answer = requests.get(f"{url}scan.jpg", timeout=5)

    assert answer.content == b"x" * size
    assert answer.headers["Content-Type"] == "image/jpeg"
    assert answer.headers["Content-Length"] == str(size)


def test_no_file_outside_the_folder_is_served(misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "open").mkdir()
    url = misbehaving_http.serve("/open/", tmp_path / "open")

    request = requests.Request("GET", url).prepare()
    request.url = f"{url}../secret"

    with requests.Session() as session:
        assert session.send(request, timeout=5).status_code == 404


def test_answers_come_in_turn_and_the_last_one_stays(misbehaving_http: MisbehavingHttp) -> None:
    url = misbehaving_http.put("/page", Answer(status=503, headers={"Retry-After": "1"}), "fine")

    answers = [requests.get(url, timeout=5) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [503, 200, 200]
    assert answers[0].headers["Retry-After"] == "1"
    assert misbehaving_http.count("/page") == 3


def test_a_redirect_is_followed_by_a_client(misbehaving_http: MisbehavingHttp) -> None:
    target = misbehaving_http.put("/there", "fine")

    answer = requests.get(misbehaving_http.redirect("/here", target, 307), timeout=5)

    assert (answer.text, answer.url) == ("fine", target)


def test_a_body_that_is_cut_off_is_noticed_by_a_client(misbehaving_http: MisbehavingHttp) -> None:
    url = misbehaving_http.put("/cut", Answer(b"x" * 1000, cut_after=100))

    with pytest.raises(requests.exceptions.ChunkedEncodingError, match="100 bytes read, 900 more expected"):
        requests.get(url, timeout=5)


def test_a_connection_is_reset_before_and_within_an_answer(misbehaving_http: MisbehavingHttp) -> None:
    before = misbehaving_http.put("/before", Answer(reset=True))
    within = misbehaving_http.put("/within", Answer(b"x" * 1_000_000, cut_after=10, reset=True))

    for url in (before, within):
        with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
            requests.get(url, timeout=5)


def test_an_answer_is_late_and_slow_as_told(misbehaving_http: MisbehavingHttp) -> None:
    url = misbehaving_http.put("/slow", Answer(b"x" * 10_000, delay=0.3, pace=20_000))

    with pytest.raises(requests.ReadTimeout):
        requests.get(url, timeout=0.1)
    started = time.monotonic()
    answer = requests.get(url, timeout=5)

    assert len(answer.content) == 10_000
    assert time.monotonic() - started > 0.7


def test_headers_can_be_wrong_or_left_out(misbehaving_http: MisbehavingHttp) -> None:
    headers = {"Content-Length": None, "Content-Type": "text/html"}
    url = misbehaving_http.put("/page.jpg", Answer("<p>not a picture</p>", headers=headers))

    answer = requests.get(url, timeout=5)

    assert answer.text == "<p>not a picture</p>"
    assert "Content-Length" not in answer.headers
    assert answer.headers["Content-Type"] == "text/html"
