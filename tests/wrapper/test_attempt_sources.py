"""What becomes of an attempt whose source misbehaves: of the volume, and of each of its pages."""

from __future__ import annotations

import json
import pathlib
import re
import threading
import time
import typing as t

import pytest

from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp, Request
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods, volumes

Answers: t.TypeAlias = list[list[Answer | bytes | str]]
COLLECTION = {
    "@context": "http://iiif.io/api/presentation/3/context.json",
    "id": "https://iiif.example.org/c",
    "type": "Collection",
    "label": {"none": ["Domböcker"]},
    "items": [{"id": "https://iiif.example.org/a/manifest", "type": "Manifest", "label": {"none": ["A"]}}],
}
MANIFEST = {"@context": COLLECTION["@context"], "id": "https://iiif.example.org/m", "type": "Manifest", "items": []}
#: The answer, the exit code, and words of the sentence.
WRONG_MANIFESTS: dict[str, tuple[Answer, int, str]] = {
    "a Collection": (Answer(json.dumps(COLLECTION)), 13, r"a Collection.*https://iiif\.example\.org/a/manifest"),
    "another JSON": (Answer('{"hello": "world"}'), 13, "not a IIIF"),
    "a page": (Answer("<html><body>Log in</body></html>"), 13, "is an HTML page and not a JSON document"),
    "without canvases": (Answer(json.dumps(MANIFEST)), 13, "is empty: it has no canvas"),
    "missing": (Answer("gone", 404), 13, "404 Not Found: there is no such file"),
    "forbidden": (Answer("no", 403), 13, "403 Forbidden"),
    "half of one": (Answer('{"items": ['), 13, "ends too early at line 1, column 12"),
    "away": (Answer("busy", 503), 1, "cannot be had for a while: .* answered 503"),
    "cut off": (Answer("{" + " " * 999, cut_after=10), 1, "broke off before it was whole"),
}


@pytest.mark.parametrize("kind", WRONG_MANIFESTS)
def test_a_manifest_that_is_none_ends_the_attempt_with_a_sentence_that_says_what_it_is(
    kind: str, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    answer, code, words = WRONG_MANIFESTS[kind]
    pod = pods.Pod(s3, tmp_path, misbehaving_http.put("/m", answer))

    ended = pod.run()

    assert ended.code == code, ended.log
    assert ended.message is not None
    assert (ended.message["stage"], ended.message["permanent"]) == ("resume", code == 13)
    assert re.search(words, ended.message["error"]), ended.message
    assert "Traceback" not in ended.log
    # What is said is also where those look who see nothing but the bucket.
    assert {key: ended.message["error"] in content.decode() for key, content in pod.objects().items()} == {
        f"htr-batch/status/logs/demo-v1/{pod.volume}.txt": True
    }


def test_each_page_of_a_volume_has_the_outcome_that_its_server_gives_it(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    http = misbehaving_http
    good = pods.picture(5)
    large = pods.picture(6, 1500, 2000)
    loop = http.redirect("/loop/b.jpg", f"{http.url}/loop/a.jpg").replace("b.jpg", "a.jpg")
    http.redirect("/loop/a.jpg", f"{http.url}/loop/b.jpg")
    http.redirect("/moved.jpg", f"{http.url}/good.jpg", 301)
    http.redirect("/elsewhere.jpg", "ftp://127.0.0.1/page.jpg")
    huge = Answer(b"\xff\xd8\xff\xe0" + b"\0" * 300_000)
    #: The page's image, what becomes of it, and words of the reason.
    table: dict[str, tuple[volumes.Body, str, str]] = {
        "good": (volumes.image(http.put("/good.jpg", good)), "done", ""),
        "HTML with 200": (volumes.image(http.put("/html.jpg", Answer("<html>", headers=_HTML))), "fetch", "HTML page"),
        "truncated": (volumes.image(http.put("/cut.jpg", good[: len(good) // 2])), "image", "is cut off"),
        "not an image": (volumes.image(http.put("/text.jpg", "no picture here")), "fetch", "not an image"),
        "PDF": (volumes.image(http.put("/a.pdf", b"%PDF-1.7 \n1 0 obj")), "fetch", "PDF"),
        "wrong media type": (volumes.image(http.put("/type", Answer(good, headers=_HTML))), "done", ""),
        "circle": (volumes.image(loop), "fetch", "redirects in a circle"),
        "moved": (volumes.image(f"{http.url}/moved.jpg"), "done", ""),
        "another scheme": (volumes.image(f"{http.url}/elsewhere.jpg"), "fetch", "is no address of http or https"),
        "too large": (volumes.image(http.put("/huge.jpg", huge)), "fetch", "larger than the limit of 200000 bytes"),
        "no rights": (volumes.image(http.put("/403.jpg", Answer("", 403))), "fetch", "does not publish this page"),
        "gone": (volumes.image(http.put("/410.jpg", Answer("", 410))), "fetch", "there is no such file"),
        "level 0": (_level_0(http, pods.picture(8, 1250, 1750), large), "done", ""),
        "no sizes": (_no_sizes(http, large), "done", ""),
        "sound": ({"id": f"{http.url}/a.mp3", "type": "Sound", "format": "audio/mpeg"}, "source", "not an image"),
        "pixel bomb": (volumes.image(http.put("/bomb.jpg", _bomb(good))), "image", "the limit"),
    }
    pod = pods.Pod(s3, tmp_path, pods.serve_manifest(http, [body for body, _, _ in table.values()]))

    ended = pod.run(FETCH_MAX_BYTES="200000", MAX_IMAGE_PIXELS="4000000")

    assert ended.code == 0, ended.log
    pages = pod.json("manifest.json")["pages"]
    became = {name: page.get("cause", "done") for name, page in zip(table, pages, strict=True)}
    assert became == {name: expected for name, (_, expected, _) in table.items()}
    reasons = {name: page.get("reason", "") for name, page in zip(table, pages, strict=True)}
    assert {name for name, (_, _, words) in table.items() if words not in reasons[name]} == set(), reasons
    assert [
        reason for reason in reasons.values() if reason and not re.fullmatch(r"(http|ftp|[A-Z]).*[.]", reason)
    ] == []
    # The size that the server has ready, and the whole image where it refuses a size.
    assert (pages[list(table).index("level 0")]["width"], pages[list(table).index("no sizes")]["width"]) == (1250, 1500)
    assert http.count("/sized/full/max/0/default.jpg") == 1
    volumes.holds_to_its_schemas(pod)
    done = {f"{pod.prefix}alto/{place:04}.xml" for place, cause in enumerate(became.values(), 1) if cause == "done"}
    assert set(pod.objects(f"{pod.prefix}alto/")) == done


def test_a_page_that_may_come_later_is_asked_for_again_after_all_others(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    answers: Answers = [[pods.picture(number)] for number in range(1, 41)]
    answers[1] = [Answer("", 429, {"Retry-After": "2"}), pods.picture(2)]
    answers[3] = [Answer("", 429), pods.picture(4)]
    answers[5] = [Answer(pods.picture(6), cut_after=100), pods.picture(6)]
    pod = pods.Pod(s3, tmp_path, volumes.pages(misbehaving_http, *answers))

    ended = pod.run()

    assert ended.code == 0, ended.log
    assert volumes.became(pod) == ["done"] * 40
    assert set(re.findall(r"page (\d+) is put off to the end", ended.log)) == {"2", "4", "6"}
    asked = [request.path for request in misbehaving_http.requests if request.path.endswith(".jpg")]
    assert len(asked) == 43
    for number in (2, 4, 6):
        first, second = (place for place, path in enumerate(asked) if path == f"/volume/{number}.jpg")
        # Eight threads ask; all that is not under way has been asked for before.
        assert first < 16
        assert second >= 40 - 8


def test_a_page_that_stays_away_is_left_to_the_next_attempt_and_fails_in_the_last(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    wait = {"Retry-After": "1"}
    answers: Answers = [[pods.picture(number)] for number in range(1, 6)]
    answers[2] = [Answer("", 503, wait)]
    pod = pods.Pod(s3, tmp_path, volumes.pages(misbehaving_http, *answers))
    manifest, progress = f"{pod.prefix}manifest.json", "progress.json"

    ended = pod.run(INDEX_FAILURE_COUNT="0", BACKOFF_LIMIT_PER_INDEX="2")
    assert ended.code == 1, ended.log
    assert ended.message is not None
    assert not ended.message["permanent"]
    assert re.search("page 3 could not be had yet: .* answered 503", ended.message["error"])
    assert manifest not in pod.objects()
    assert pod.json(progress)["counts"] == {
        "total": 5, "done": 4, "text": 3, "no_text": 1, "low_confidence": 0, "failed": 0, "waiting": 0, "deferred": 1
    }  # fmt: skip
    assert (pod.json(progress)["state"], pod.json(progress)["pages"]["states"][2]) == ("failed", "d")

    ended = pod.run(INDEX_FAILURE_COUNT="2", BACKOFF_LIMIT_PER_INDEX="2")
    assert ended.code == 0, ended.log
    assert volumes.became(pod) == ["done", "done", "fetch", "done", "done"]
    assert pod.json("manifest.json")["pages"][2]["reason"].endswith("also in the last attempt.")
    volumes.holds_to_its_schemas(pod)
    asked = [misbehaving_http.count(f"/volume/{number}.jpg") for number in range(1, 6)]
    assert asked[:2] + asked[3:] == [1, 1, 1, 1]
    # Twice in each attempt, and in the first once more for each of the other pages that came in between.
    assert 4 <= asked[2] <= 8

    misbehaving_http.put("/volume/3.jpg", pods.picture(3))
    ended = pod.run()
    assert (ended.code, volumes.became(pod)) == (0, ["done"] * 5), ended.log


def test_a_server_that_lets_only_a_few_pages_through_at_a_time_gives_all_of_them_in_one_attempt(
    s3: Store, tmp_path: pathlib.Path
) -> None:
    http = _Quota(pages=3, seconds=1)
    try:
        pod = pods.Pod(s3, tmp_path, pods.serve_volume(http, 15))
        ended = pod.run()
    finally:
        http.close()

    assert ended.code == 0, ended.log
    assert volumes.became(pod) == ["done"] * 15
    assert "is put off to the end" in ended.log


def test_an_attempt_in_which_no_page_came_out_publishes_no_manifest(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    gone = volumes.pages(misbehaving_http, [Answer("", 404)], [Answer("", 403)], [b"\xff\xd8\xff\xe0 broken"])
    pod = pods.Pod(s3, tmp_path, gone)
    ended = pod.run()
    assert ended.code == 13, ended.log
    assert ended.message is not None
    assert ended.message["permanent"]
    assert re.match("none of the 3 pages came out; of page 1: .*/volume/1.jpg answered 404", ended.message["error"])
    assert pod.json("progress.json")["error"] == ended.message["error"]
    assert set(volumes.holds_to_its_schemas(pod)) == {
        f"{pod.prefix}progress.json",
        f"htr-batch/status/logs/demo-v1/{pod.volume}.txt",
    }

    other = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 7, "other"), "R0001204", engine="failing")
    ended = other.run()
    # Another node may have a GPU that works.
    assert ended.code == 1, ended.log
    assert ended.message is not None
    assert "CUDA error: an illegal memory access" in ended.message["error"]
    assert f"{other.prefix}manifest.json" not in other.objects()
    assert other.json("progress.json")["counts"]["failed"] == 7


_HTML = {"Content-Type": "text/html"}


def _level_0(http: MisbehavingHttp, ready: bytes, whole: bytes) -> volumes.Body:
    """An image whose server has two sizes ready, and says so in its info.json alone."""
    service = {"id": f"{http.url}/ready", "type": "ImageService3", "profile": "level0"}
    sizes = [{"width": 125, "height": 175}, {"width": 1250, "height": 1750}]
    info = {**service, "protocol": "http://iiif.io/api/image", "width": 5000, "height": 7000, "sizes": sizes}
    http.put("/ready/info.json", json.dumps({"@context": "http://iiif.io/api/image/3/context.json", **info}))
    http.put("/ready/full/1250,1750/0/default.jpg", ready)
    own = http.put("/ready/full/max/0/default.jpg", whole)
    return {"id": own, "type": "Image", "width": 5000, "height": 7000, "service": [service]}


def _no_sizes(http: MisbehavingHttp, whole: bytes) -> volumes.Body:
    """An image whose server answers 501 to a size."""
    service = {"id": f"{http.url}/sized", "type": "ImageService3", "profile": "level2"}
    http.put("/sized/full/2500,/0/default.jpg", Answer("", 501))
    own = http.put("/sized/full/max/0/default.jpg", whole)
    return {"id": own, "type": "Image", "width": 5000, "height": 7000, "service": [service]}


def _bomb(jpeg: bytes) -> bytes:
    """A JPEG whose header states 20000 × 20000 pixels."""
    frame = jpeg.index(b"\xff\xc0")
    return jpeg[: frame + 5] + (20_000).to_bytes(2, "big") * 2 + jpeg[frame + 9 :]


class _Quota(MisbehavingHttp):
    """Gives so many images in so many seconds, and answers 429 to whoever asks for more."""

    def __init__(self, pages: int, seconds: int) -> None:
        self._pages, self._seconds = pages, seconds
        self._given = 0
        self._until = 0.0
        self._counting = threading.Lock()
        super().__init__()

    def take(self, request: Request) -> Answer:
        if not request.path.endswith(".jpg"):
            return super().take(request)
        with self._counting:
            now = time.monotonic()
            if now >= self._until:
                self._until, self._given = now + self._seconds, 0
            self._given += 1
            if self._given > self._pages:
                return Answer("", 429, {"Retry-After": str(self._seconds)})
        return super().take(request)
