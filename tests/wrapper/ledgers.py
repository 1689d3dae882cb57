"""Ledgers for tests: of one source with a page of every kind, of any source, and of whatever hypothesis thinks of."""

from __future__ import annotations

import datetime
import functools
import json
import pathlib
import typing as t

import jsonschema
from hypothesis import strategies as st

from htrflow_batch import image_service
from htrflow_batch.config import Attempt
from htrflow_batch.documents import to_bytes
from htrflow_batch.keys import Keys
from htrflow_batch.ledger import Cause, Failure, Ledger, Outcome
from htrflow_batch.progress import Standing
from htrflow_batch.run import Model, Recipe, Run
from htrflow_batch.source import FailedPage, Image, ImageService, Page, Source, address

SCHEMAS = pathlib.Path(__file__).parent.parent.parent / "schemas"
STARTED = datetime.datetime(2026, 11, 29, 12, 0, 0, tzinfo=datetime.UTC)
KEYS = Keys("htr-batch/", "demo-v1", "R0001203")
RUN = Run(
    volume="R0001203",
    campaign="letters",
    recipe=Recipe("demo-v1", f"registry.example.org/htrflow@sha256:{'a' * 64}", b"steps: []\n"),
    results_url="https://htr.example.org/results",
    source_url="https://iiif.example.org/R0001203/manifest",
    wrapper_version="0.1.0",
    engine="htrflow 0.2.6",
    models=(Model("Riksarkivet/lines", "d" * 40), Model("/data/own-model", "")),
)
CAUSES: tuple[Cause, ...] = t.get_args(Cause)


def holds(document: t.Mapping[str, t.Any], schema: str) -> dict[str, t.Any]:
    """The document as a reader gets it, once it holds to its schema."""
    read = json.loads(to_bytes(document), parse_constant=_refuse)
    _validator(schema).validate(read)
    return t.cast(dict[str, t.Any], read)


def faults(document: object, schema: str) -> list[str]:
    """What of a document does not hold to a schema."""
    return [error.message for error in _validator(schema).iter_errors(document)]


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _refuse(word: str) -> t.NoReturn:
    raise AssertionError(f"{word} is not JSON")


def outcome(number: int, **more: t.Any) -> Outcome:
    facts = {"width": 2000, "height": 3000, "lines": 40, "words": 212, "confidence": 0.9312, "seconds": 4.12}
    return Outcome(number=number, sha256=f"{number:064x}", **{**facts, **more})


def standing(**more: t.Any) -> Standing:
    facts = {
        "condition": "running",
        "stage": "stream",
        "started": STARTED,
        "advanced": STARTED,
        "attempt": Attempt(0, 3),
    }
    return Standing(**{**facts, "updated": STARTED + datetime.timedelta(minutes=30), **more})


def image(name: str, **more: t.Any) -> Image:
    return Image(f"https://iiif.example.org/{name}.jpg", "image/jpeg", **more)


def every_state() -> Ledger:
    """Text, low confidence, no text, each cause of failing, and two pages of which nothing is known."""
    pages: list[Page | FailedPage] = [
        Page(1, image("a", width=4000, height=6000), "https://iiif.example.org/canvas/1", "1 r", 4000, 6000),
        Page(2, image("b"), "https://iiif.example.org/canvas/2", "1 v"),
        Page(3, image("c"), None, "", notes=("The canvas has 2 images; only the first is read.",)),
        FailedPage(4, "The canvas has no image.", "https://iiif.example.org/canvas/4", "2 v"),
        *(Page(number, image(str(number)), f"https://iiif.example.org/canvas/{number}") for number in range(5, 11)),
    ]
    ledger = Ledger(Source("https://iiif.example.org/R0001203", "Dombok 1724", 3, tuple(pages)), 0.6)
    ledger.came_out(outcome(1))
    ledger.came_out(outcome(2, confidence=0.4217, notes=("made smaller, from 4000 × 6000 pixels",)))
    ledger.came_out(outcome(3, lines=0, words=0, confidence=None, seconds=0.04))
    for number, cause in enumerate(CAUSES[1:], start=5):
        ledger.failed(Failure(number, cause, f"This page failed in: {cause}."))
    return ledger


def all_done(source: Source) -> Ledger:
    """Each page of a source that has an image came out."""
    ledger = Ledger(source, 0.6)
    for page in source.usable:
        ledger.came_out(outcome(page.number))
    return ledger


_LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20).filter(str.strip)
_USERS = st.sampled_from(["", "", "reader@", "reader:secret@"])
_PATHS = st.text(st.sampled_from("abcåö/%;,:!@$ ?=&#"), max_size=12)


@st.composite
def _addresses(draw: st.DrawFn, host: str = "iiif.example.org") -> str:
    found = address(f"{draw(st.sampled_from(['http', 'https', 'HTTPS']))}://{draw(_USERS)}{host}/{draw(_PATHS)}")
    assert found is not None
    return found


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("\ud800") | _addresses(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
_KEYS = ("id", "@id", "type", "@type", "profile", "label", "service", "sizes", "width", "maxWidth", "x", "logo")
_NESTED = st.fixed_dictionaries({}, optional={name: _JSON | _addresses() for name in _KEYS})


@st.composite
def _services(draw: st.DrawFn) -> ImageService | None:
    data = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(_KEYS, _JSON)))
    data |= {"service": draw(st.lists(_NESTED, max_size=2))} if draw(st.booleans()) else {}
    data |= {draw(st.sampled_from(["id", "@id"])): draw(_addresses())}
    version, level = draw(st.sampled_from("123")), draw(st.sampled_from("012"))
    data |= draw(
        st.sampled_from(
            [
                {"type": f"ImageService{version}", "profile": f"level{level}"},
                {"@context": f"http://iiif.io/api/image/{version}/context.json"},
                {"@type": "iiif:Image", "profile": [f"http://iiif.io/api/image/{version}/level{level}.json", {}]},
            ]
        )
    )
    return image_service.read_service(data)


@st.composite
def _images(draw: st.DrawFn) -> Image:
    services = tuple(service for service in draw(st.lists(_services(), max_size=2)) if service is not None)
    own = draw(st.none() | _addresses()) if services else draw(_addresses())
    sizes = st.none() | st.integers(1, 2**31 - 1)
    return Image(own, draw(st.none() | st.just("image/jpeg") | _LINES), draw(sizes), draw(sizes), services)


@st.composite
def ledgers(draw: st.DrawFn, whole: bool = False) -> Ledger:
    """Any ledger; with ``whole`` one of a volume that is done."""
    pages: list[Page | FailedPage] = []
    seen: set[str] = set()
    for number in range(1, draw(st.integers(1, 5)) + 1):
        canvas_id = draw(st.none() | _addresses("canvas.example.org"))
        canvas_id = None if canvas_id in seen else canvas_id
        seen |= {canvas_id} if canvas_id else set()
        label = " ".join(draw(st.just("") | _LINES).split())
        if number > 1 and draw(st.booleans()):
            pages.append(FailedPage(number, draw(_LINES), canvas_id, label))
        else:
            notes = tuple(draw(st.lists(_LINES, max_size=2)))
            pages.append(Page(number, draw(_images()), canvas_id, label, notes=notes))
    source = Source(
        draw(st.none() | _addresses()), draw(st.just("") | _LINES), draw(st.sampled_from([2, 3])), (*pages,)
    )
    ledger = Ledger(source, draw(st.floats(0, 1)))
    for page in source.usable:
        happened = draw(st.sampled_from(["out", "failed", "failed later"] if whole else ["out", "failed", "waits"]))
        if happened in ("out", "failed later"):
            size, count = st.integers(1, 65_500), st.integers(0, 10**6)
            facts: dict[str, t.Any] = {
                "width": draw(size),
                "height": draw(size),
                "lines": draw(count),
                "words": draw(count),
                "confidence": draw(st.none() | st.floats(0, 1)),
                "seconds": draw(st.floats(0, 10**6)),
                "notes": tuple(draw(st.lists(_LINES, max_size=2))),
            }
            ledger.came_out(outcome(page.number, **facts))
        if happened.startswith("failed"):
            ledger.failed(Failure(page.number, draw(st.sampled_from(CAUSES)), draw(_LINES)))
    return ledger
