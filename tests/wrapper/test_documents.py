"""``progress.json``, ``manifest.json``, and what a pod and a warm-up leave: what they say, and their schemas."""

from __future__ import annotations

import dataclasses
import datetime
import json
import time
import typing as t

import hypothesis
import pytest
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from htrflow_batch import manifest, progress
from htrflow_batch.config import Attempt
from htrflow_batch.documents import redacted, to_bytes, utc, without_user_info
from htrflow_batch.ledger import Failure, Ledger
from htrflow_batch.source import FailedPage, Image, Page, Source
from tests.wrapper import ledgers
from tests.wrapper.ledgers import RUN, STARTED, holds, outcome, standing

FINISHED = STARTED + datetime.timedelta(hours=1, seconds=12.7)
SECRET = "https://reader:secret@iiif.example.org/{}?token=secret#secret"  # noqa: S105


def shown(document: t.Mapping[str, t.Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def volume(pages: int) -> Source:
    names = [f"https://lbiiif.example.org/arkis!R0001203_{number:05}/full/max/0" for number in range(1, pages + 1)]
    made = tuple(Page(number, Image(f"{name}/default.jpg")) for number, name in enumerate(names, start=1))
    return Source("https://lbiiif.example.org/arkis!R0001203/manifest", "Dombok 1724", 3, made)


def done() -> Ledger:
    ledger = ledgers.every_state()
    for page in ledger.waiting:
        ledger.came_out(outcome(page.number))
    return ledger


def secret() -> Ledger:
    pages = (
        Page(1, Image(SECRET.format("a.jpg")), SECRET.format("canvas/1")),
        Page(2, Image(SECRET.format("b.jpg")), SECRET.format("canvas/2")),
        FailedPage(3, "The canvas has no image.", SECRET.format("canvas/3")),
    )
    ledger = Ledger(Source(SECRET.format("manifest"), "", 2, pages), 0.6)
    ledger.came_out(outcome(1))
    ledger.failed(Failure(2, "fetch", "The server answered 404."))
    return ledger


def test_progress_of_a_page_of_every_state(snapshot: SnapshotAssertion) -> None:
    document = progress.document(ledgers.every_state(), RUN, standing(resumed=1, active=[9, 2], deferred={10, 1}))

    assert shown(holds(document, "progress")) == snapshot


def test_a_manifest_with_a_page_of_every_state(snapshot: SnapshotAssertion) -> None:
    assert shown(holds(manifest.document(done(), RUN, FINISHED, STARTED), "manifest")) == snapshot


def test_the_counts_of_progress_add_up_and_a_deferred_page_is_no_waiting_one() -> None:
    document = progress.document(ledgers.every_state(), RUN, standing(deferred=[10]))

    counts = document["counts"]
    assert counts["done"] == counts["text"] + counts["no_text"] + counts["low_confidence"] == 3
    assert counts["total"] == counts["done"] + counts["failed"] + counts["waiting"] + counts["deferred"] == 10
    assert (counts["waiting"], counts["deferred"]) == (1, 1)
    assert document["pages"]["states"] == "tlnfffffwd"


def test_a_page_that_was_deferred_or_in_work_when_it_came_out_is_neither_any_more() -> None:
    document = progress.document(ledgers.every_state(), RUN, standing(active=[1, 9], deferred=[2, 5]))

    assert document["active"] == [9]
    assert document["counts"]["deferred"] == 0


def test_a_page_that_failed_after_it_came_out_has_neither_seconds_nor_confidence() -> None:
    ledger = Ledger(volume(1), 0.6)
    ledger.came_out(outcome(1))
    ledger.failed(Failure(1, "result", "The store refuses its PAGE file."))

    assert progress.document(ledger, RUN, standing())["pages"] == {
        "states": "f",
        "seconds": [None],
        "confidence": [None],
    }
    assert "sha256" not in manifest.document(ledger, RUN, FINISHED)["pages"][0]


@pytest.mark.parametrize(
    ("resumed", "minutes", "expected"),
    [(0, 30, 4.0), (1, 30, 2.0), (2, 30, None), (0, 0, None), (0, 240, 0.5)],
    ids=["all new", "one resumed", "none new", "no time has passed", "half a page an hour"],
)
def test_the_pace_counts_what_this_attempt_made(resumed: int, minutes: int, expected: float | None) -> None:
    ledger = Ledger(volume(3), 0.6)
    ledger.came_out(outcome(1))
    ledger.came_out(outcome(2))
    updated = STARTED + datetime.timedelta(minutes=minutes)

    document = progress.document(ledger, RUN, standing(resumed=resumed, updated=updated))

    assert holds(document, "progress")["pages_per_hour"] == expected


@pytest.mark.parametrize("pages", [1, 100, 2000])
def test_progress_of_up_to_2000_pages_is_under_30_kb_whatever_became_of_them(pages: int) -> None:
    most = 0
    for failed in (0, pages // 50, pages // 2, pages):
        ledger = Ledger(volume(pages), 0.6)
        for number in range(1, pages + 1):
            if number <= failed:
                ledger.failed(
                    Failure(number, "fetch", f"The server answered 404 to {'every size ' * 12}of page {number}.")
                )
            else:
                ledger.came_out(outcome(number, confidence=0.8 + number % 199 / 1000, seconds=3 + number % 97 / 7))
        content = to_bytes(
            holds(progress.document(ledger, RUN, standing(active=[*range(1, 17)], error=None)), "progress")
        )
        read = json.loads(content)
        assert len(read["failed"]) + read["failed_left_out"] == failed
        assert [entry["page"] for entry in read["failed"]] == [*range(1, len(read["failed"]) + 1)]
        assert len(read["failed"]) >= min(failed, 15)
        most = max(most, len(content))
    assert most < 30_000


def test_progress_of_10000_pages_still_names_pages_that_failed() -> None:
    ledger = Ledger(volume(10_000), 0.6)
    for number in range(1, 10_001):
        ledger.failed(Failure(number, "fetch", "The server answered 404."))

    assert len(holds(progress.document(ledger, RUN, standing()), "progress")["failed"]) > 15


def test_progress_of_2000_pages_takes_less_than_a_tenth_of_a_second_of_processor_time() -> None:
    ledger = ledgers.all_done(volume(2000))
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        to_bytes(progress.document(ledger, RUN, standing()))
        best = min(best, time.process_time() - start)
    assert best < 0.1


@pytest.mark.parametrize(
    ("condition", "error", "good"),
    [
        ("running", None, True),
        ("finished", None, True),
        ("stopped", None, True),
        ("stopped", "The pod was told to end.", True),
        ("failed", "The bucket cannot be reached.", True),
        ("failed", None, False),
        ("finished", "The bucket cannot be reached.", False),
        ("running", "The bucket cannot be reached.", False),
    ],
)
def test_an_attempt_that_failed_says_why_and_one_that_did_not_has_no_error(
    condition: progress.Condition, error: str | None, good: bool
) -> None:
    document = progress.document(Ledger(volume(1), 0.6), RUN, standing(condition=condition, error=error))

    assert (ledgers.faults(document, "progress") == []) == good


@pytest.mark.parametrize("stage", t.get_args(progress.Stage))
def test_progress_knows_every_stage(stage: progress.Stage) -> None:
    document = progress.document(Ledger(volume(1), 0.6), RUN, standing(stage=stage, attempt=Attempt(2, 3)))

    assert holds(document, "progress")["stage"] == stage
    assert document["attempt"] == {"failures": 2, "limit": 3}


def test_what_is_not_known_yet_is_null() -> None:
    early = dataclasses.replace(RUN, engine="", models=())

    assert holds(progress.document(Ledger(volume(1), 0.6), early, standing()), "progress")["engine"] is None
    pipeline = holds(manifest.document(done(), early, FINISHED), "manifest")["pipeline"]
    assert (pipeline["engine"], pipeline["models"]) == (None, None)
    assert manifest.document(done(), early, FINISHED)["started"] is None


def test_a_model_without_a_commit_has_no_revision() -> None:
    assert manifest.document(done(), RUN, FINISHED)["pipeline"]["models"] == [
        {"name": "Riksarkivet/lines", "revision": "d" * 40},
        {"name": "/data/own-model", "revision": None},
    ]


def test_no_manifest_is_made_of_a_volume_that_is_not_done() -> None:
    with pytest.raises(ValueError, match="page 9 has neither come out nor failed"):
        manifest.document(ledgers.every_state(), RUN, FINISHED)


def test_a_volume_that_was_resumed_has_the_manifest_of_one_that_was_not() -> None:
    undisturbed, resumed = Ledger(volume(4), 0.6), Ledger(volume(4), 0.6)
    undisturbed.failed(Failure(3, "fetch", "The server answered 503."))
    for number in (1, 2, 3, 4):
        undisturbed.came_out(outcome(number, seconds=number / 3))
    # Another order, and other times.
    for number in (4, 2, 1, 3):
        resumed.came_out(outcome(number, seconds=number / 7))
    first = manifest.document(undisturbed, RUN, FINISHED, STARTED)
    second = manifest.document(resumed, RUN, FINISHED + datetime.timedelta(days=1))

    assert first != second
    for document in (first, second):
        document |= {"started": None, "finished": None}
        for page in document["pages"]:
            page["seconds"] = None
    assert to_bytes(first) == to_bytes(second)


def test_no_secret_of_an_address_is_in_progress_or_the_manifest() -> None:
    run = dataclasses.replace(RUN, source_url=SECRET.format("manifest"))
    for document, schema in (
        (progress.document(secret(), run, standing()), "progress"),
        (manifest.document(secret(), run, FINISHED), "manifest"),
    ):
        holds(document, schema)
        assert b"secret" not in to_bytes(document)
        assert "https://…@iiif.example.org/b.jpg?…" in to_bytes(document).decode()


@pytest.mark.parametrize("stage", ["config", "setup", "resume", "load", "stream", "verify", "publish", "warmup"])
def test_the_last_words_of_a_pod_name_a_stage(stage: str) -> None:
    holds({"stage": stage, "permanent": True, "error": "the image is not there — name another one"}, "termination")


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"stage": "load", "permanent": True},
        {"stage": "model", "permanent": True, "error": "x"},
        {"stage": "load", "permanent": "true", "error": "x"},
        {"stage": "load", "permanent": True, "error": ""},
        {"stage": "load", "permanent": True, "error": "x\ny"},
        {"stage": "load", "permanent": True, "error": "x" * 4097},
        {"stage": "load", "permanent": True, "error": "x", "code": 13},
    ],
)
def test_other_last_words_are_none(words: dict[str, t.Any]) -> None:
    assert ledgers.faults(words, "termination") != []


MARKER = {
    "version": 1,
    "pipeline": "demo-v1",
    "recipe_sha256": "b" * 64,
    "engine": "htrflow 0.2.6",
    "models": [{"name": "Riksarkivet/lines", "revision": "d" * 40}, {"name": "/data/own-model", "revision": None}],
    "finished": "2026-11-29T12:00:00Z",
}


def test_the_marker_of_a_warm_up_names_the_models_with_their_revisions() -> None:
    holds(MARKER, "warmup-marker")


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"recipe_sha256": "B" * 64},
        {"engine": ""},
        {"models": [{"name": "Riksarkivet/lines"}]},
        {"models": ["Riksarkivet/lines"]},
        {"finished": "2026-11-29 12:00"},
        {"host": "node-1"},
    ],
)
def test_another_marker_is_none(change: dict[str, t.Any]) -> None:
    assert ledgers.faults({**MARKER, **change}, "warmup-marker") != []


def test_the_bytes_of_a_document_are_utf_8_on_one_line_in_its_own_order() -> None:
    assert to_bytes({"b": "å\n…", "a": [1, None, True]}) == '{"b":"å\\n…","a":[1,null,true]}\n'.encode()
    assert to_bytes({"a": "half \ud83d"}) == b'{"a":"half ?"}\n'
    with pytest.raises(ValueError, match="JSON"):
        to_bytes({"a": float("inf")})


def test_times_are_in_utc_and_in_whole_seconds() -> None:
    stockholm = datetime.timezone(datetime.timedelta(hours=1))

    assert utc(datetime.datetime(2026, 11, 29, 12, 30, 15, 999_999, tzinfo=stockholm)) == "2026-11-29T11:30:15Z"
    with pytest.raises(ValueError, match="time zone"):
        utc(datetime.datetime(2026, 11, 29))


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("https://reader:secret@example.org/a?b=c@d#e", "https://example.org/a?b=c@d#e"),
        ("HTTP://reader@[::1]:8080/a", "HTTP://[::1]:8080/a"),
        ("https://reader:sec@ret@example.org", "https://example.org"),
        ("https:\\\\reader:secret@example.org", "https:\\\\example.org"),
        (" https:reader:secret@example.org", " https:example.org"),
        ("https://example.org/arkis@1/reader:secret@a", "https://example.org/arkis@1/reader:secret@a"),
        ("https://example.org?a@b", "https://example.org?a@b"),
        ("reader@example.org", "reader@example.org"),
        ("", ""),
    ],
)
def test_user_information_is_taken_out_of_an_address_and_nothing_else(stated: str, expected: str) -> None:
    assert without_user_info(stated) == expected
    assert without_user_info(expected) == expected


def test_an_address_that_is_not_there_stays_away() -> None:
    assert redacted(None) is None
    assert redacted("https://reader:secret@example.org/a b?token=secret") == "https://…@example.org/a%20b?…"


@hypothesis.given(ledgers.ledgers(), st.data())
@hypothesis.settings(deadline=None)
def test_progress_of_any_ledger_holds_to_its_schema(ledger: Ledger, data: st.DataObject) -> None:
    numbers = st.sets(st.integers(1, 6))
    seconds = data.draw(st.floats(0, 10**7))
    there = standing(
        updated=STARTED + datetime.timedelta(seconds=seconds),
        resumed=data.draw(st.integers(0, 5)),
        active=data.draw(numbers),
        deferred=data.draw(numbers),
    )

    document = holds(progress.document(ledger, RUN, there), "progress")

    counts, columns = document["counts"], document["pages"]
    assert {len(columns[name]) for name in columns} == {counts["total"]} == {len(ledger.source.pages)}
    assert counts["total"] == sum(counts[name] for name in ("done", "failed", "waiting", "deferred"))
    for letter, name in zip(
        "tnlfwd", ("text", "no_text", "low_confidence", "failed", "waiting", "deferred"), strict=True
    ):
        assert columns["states"].count(letter) == counts[name]
    assert "secret" not in json.dumps(document)


@hypothesis.given(ledgers.ledgers(whole=True))
@hypothesis.settings(deadline=None)
def test_the_manifest_of_any_volume_that_is_done_holds_to_its_schema(ledger: Ledger) -> None:
    document = holds(manifest.document(ledger, RUN, FINISHED, STARTED), "manifest")

    states = [page["state"] for page in document["pages"]]
    counts = document["counts"]
    assert [page["page"] for page in document["pages"]] == [page.number for page in ledger.source.pages]
    for name in ("text", "no_text", "low_confidence", "failed"):
        assert states.count(name) == counts[name]
    assert counts["total"] == counts["done"] + counts["failed"]
    assert "secret" not in json.dumps(document)
