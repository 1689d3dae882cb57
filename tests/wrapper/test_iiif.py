"""Manifests as sources of pages. ``manifests/`` is a list of them, each with what it is read as beside it."""

from __future__ import annotations

import copy
import json
import pathlib
import re
import time
import typing as t

import hypothesis
import iiif_prezi3  # type: ignore[import-untyped]
import pytest
from hypothesis import strategies as st

from htrflow_batch import iiif, image_service
from htrflow_batch.errors import ExitCode, PermanentError
from htrflow_batch.source import FailedPage, Page, Source, address, clean, size, text

MANIFESTS = pathlib.Path(__file__).parent / "manifests"
GOOD = sorted((MANIFESTS / "good").glob("*.json"))
BAD = sorted((MANIFESTS / "bad").glob("*.json"))
ADDRESS = "https://archive.example.org/v/manifest"


def _shown(source: Source) -> str:
    """A source as the lines of an expected file."""
    lines = [f"Presentation {source.presentation}: {source.label}"]
    lines += [f"    {note}" for note in source.notes]
    for page in source.pages:
        lines.append(f"{page.name} {page.label!r} {page.canvas_id}")
        if isinstance(page, FailedPage):
            lines.append(f"    failed: {page.reason}")
            continue
        image = page.image
        lines.append(f"    canvas {page.width} x {page.height}, image {image.width} x {image.height} {image.format}")
        lines.append(f"    {image.id}")
        lines += [f"    Image API {one.version}, level {one.level}: {one.id}" for one in image.services]
        lines += [f"    {note}" for note in page.notes]
    return "\n".join(lines) + "\n"


def _manifest(*canvases: object) -> dict[str, t.Any]:
    return {"@context": iiif.PRESENTATION_3, "id": ADDRESS, "type": "Manifest", "items": list(canvases)}


def _canvas(body: object, **more: object) -> dict[str, t.Any]:
    painting = {"type": "Annotation", "motivation": "painting", "body": body}
    return {"type": "Canvas", **more, "items": [{"type": "AnnotationPage", "items": [painting]}]}


def _image(number: int = 1) -> dict[str, t.Any]:
    return {"id": f"https://example.org/{number}.jpg", "type": "Image"}


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_manifest_is_read_as_the_pages_beside_it(path: pathlib.Path) -> None:
    assert _shown(iiif.read(path.read_bytes(), ADDRESS)) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_what_is_no_manifest_with_an_image_is_refused_with_the_sentence_beside_it(path: pathlib.Path) -> None:
    with pytest.raises(PermanentError) as refused:
        iiif.read(path.read_bytes(), ADDRESS)
    assert f"{refused.value}\n" == path.with_suffix(".txt").read_text(encoding="utf-8")
    assert refused.value.exit_code == ExitCode.PERMANENT


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_no_refusal_tells_a_secret_in_an_address(path: pathlib.Path) -> None:
    with pytest.raises(PermanentError) as refused:
        iiif.read(path.read_bytes(), "https://user:hunter2@archive.example.org/manifest?token=hunter3")
    assert "archive.example.org/manifest" in str(refused.value)
    assert "hunter" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_the_encoding_of_a_manifest_is_read_from_its_first_bytes(encoding: str) -> None:
    content = json.dumps({**_manifest(_canvas(_image())), "label": "Häradsrätt"}, ensure_ascii=False).encode(encoding)
    assert iiif.read(content, ADDRESS).label == "Häradsrätt"


@pytest.mark.parametrize("version", ["2", "3"])
def test_the_address_says_nothing_about_the_version(version: str) -> None:
    for path in GOOD:
        content = path.read_bytes()
        where = f"https://archive.example.org/iiif/presentation/{version}/manifest"
        assert iiif.read(content, where).presentation == iiif.read(content, ADDRESS).presentation


@pytest.mark.parametrize("content", [b"[" * 1_000_000, b'{"items":' * 200_000, b"9" * 100_000])
def test_json_that_python_cannot_hold_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(PermanentError, match=r"nested too deeply|too long|ends too early"):
        iiif.read(content, ADDRESS)


def test_reading_a_manifest_leaves_its_data_as_it_was() -> None:
    for path in GOOD:
        data = json.loads(path.read_bytes())
        before = copy.deepcopy(data)
        iiif.read_manifest(data, ADDRESS)
        assert data == before


def test_a_canvas_with_the_lists_of_both_versions_is_read_the_same_every_time() -> None:
    canvas = {**_canvas(_image(2)), "images": [{"resource": _image(1)}]}
    first, second = (iiif.read_manifest(_manifest(canvas), ADDRESS) for _ in range(2))
    assert first == second
    assert first.usable[0].notes == ("The canvas has 2 images; only the first is read.",)


def test_an_image_service_makes_an_image_of_a_resource_that_seems_to_be_something_else() -> None:
    service = {"id": "https://example.org/image/1", "type": "ImageService3", "profile": "level2"}
    body = {"id": "https://example.org/1.pdf", "format": "application/pdf", "service": [service]}
    (page,) = iiif.read_manifest(_manifest(_canvas(body)), ADDRESS).usable
    assert image_service.candidates(page.image)[0].address == "https://example.org/image/1/full/2500,/0/default.jpg"


@pytest.mark.parametrize(
    "value", [0, -1, True, 1.5, float("nan"), float("inf"), 2**31, "", "-1", "1e3", "²", [1], None]
)
def test_what_cannot_be_a_number_of_pixels_is_none(value: object) -> None:
    assert size(value) is None


def test_bodies_in_bodies_in_bodies_end() -> None:
    body: dict[str, t.Any] = _image()
    for _ in range(500):
        body = {"type": "Choice", "items": [body, body]}
    source = iiif.read_manifest(_manifest(_canvas(_image()), _canvas(body)), ADDRESS)
    assert [type(page) for page in source.pages] == [Page, FailedPage]


def test_pages_are_numbered_past_the_ones_that_fail() -> None:
    canvases = [_canvas(_image(number)) if number % 2 else {"type": "Canvas"} for number in range(1, 12_001)]
    source = iiif.read_manifest(_manifest(*canvases), ADDRESS)
    assert [page.number for page in source.pages] == list(range(1, 12_001))
    assert source.usable[1].name == "0003"
    assert source.failed[0].name == "0002"
    assert source.pages[-1].name == "12000"
    assert len(source.usable) == len(source.failed) == 6_000


def test_a_manifest_of_ten_thousand_pages_is_read_in_a_few_seconds() -> None:
    service = {"id": "https://example.org/image/1", "type": "ImageService3", "profile": "level2"}
    canvases = [_canvas({**_image(n), "service": [service]}, id=f"{ADDRESS}/{n}", label=f"{n}") for n in range(10_000)]
    content = json.dumps(_manifest(*canvases)).encode()
    started = time.process_time()
    assert len(iiif.read(content, ADDRESS).usable) == 10_000
    assert time.process_time() - started < 10


def test_the_service_is_kept_as_the_source_has_it() -> None:
    service = {"@id": "https://example.org/image/1/", "profile": ["http://iiif.io/api/image/2/level1.json", {"a": 1}]}
    (page,) = iiif.read_manifest(_manifest(_canvas({**_image(), "service": service})), ADDRESS).usable
    assert page.image.services[0].data == service
    assert page.image.services[0].id == "https://example.org/image/1"


URLS = [
    "https://example.org/scan1.jpg",
    "https://example.org/S%C3%B6der/scan%202.TIF?size=full",
    "https://example.org/scan1.jpg",
    "https://example.org/image/",
    "https://example.org/image.webp#top",
]


def test_a_list_of_images_makes_a_manifest_that_is_valid_in_presentation_3() -> None:
    base = "https://results.example.org/htr-batch/sources/demo-v1/loose-scans/"
    manifest = iiif.synthetic_manifest("loose-scans", URLS, base)
    read = iiif_prezi3.Manifest(**manifest)
    assert read.id == f"{base}manifest.json"
    assert [canvas.items[0].items[0].body.id for canvas in read.items] == URLS
    assert [canvas.label["none"] for canvas in read.items] == [
        ["scan1.jpg"],
        ["scan 2.TIF"],
        ["scan1.jpg"],
        ["4"],
        ["image.webp"],
    ]
    ids = re.findall(r'"id": "([^"]+)"', json.dumps([{**c, "items": c["items"][0]} for c in manifest["items"]]))
    ours = [own for own in ids if own.startswith(base)]
    assert len(ours) == len(set(ours)) == 3 * len(URLS)
    for canvas in manifest["items"]:
        assert canvas["items"][0]["items"][0]["target"] == canvas["id"]


def test_the_pages_of_a_list_of_images_come_out_of_the_same_reader() -> None:
    manifest = iiif.synthetic_manifest("loose-scans", URLS, "https://results.example.org/s")
    source = iiif.read(json.dumps(manifest).encode(), "https://results.example.org/s/manifest.json")
    assert source.label == "loose-scans"
    assert [page.image.id for page in source.usable] == URLS
    assert [page.image.format for page in source.usable] == [
        "image/jpeg",
        "image/tiff",
        "image/jpeg",
        None,
        "image/webp",
    ]
    assert {(page.width, page.height) for page in source.usable} == {(None, None)}
    assert image_service.candidates(source.usable[1].image) == ((URLS[1], "the image's own address"),)


def test_a_pdf_in_a_list_of_images_is_a_failed_page() -> None:
    manifest = iiif.synthetic_manifest("v", ["https://example.org/1.jpg", "https://example.org/2.pdf"], "https://a.org")
    (failed,) = iiif.read_manifest(manifest, ADDRESS).failed
    assert (failed.number, failed.reason) == (2, "The canvas holds a PDF, not an image.")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("\ud800 half", "half"),
        ("<b>bold</b>", "<b>bold</b>"),
        ([["a"], "b"], "b"),
        ({"sv": [None, "a"], "en": ["b"]}, "a"),
        ({"@value": ["a", "b"]}, "a; b"),
        ([{"@value": "a", "@language": "sv"}, {"@value": "b", "@language": "sv"}], "a; b"),
        pytest.param(10**5000, "", id="a number of 5000 digits"),
        (True, ""),
    ],
)
def test_a_label_of_any_shape_is_one_line(value: object, expected: str) -> None:
    assert text(value) == expected


@pytest.mark.parametrize(
    "value",
    ["", " ", "x", "/a", "ftp://a.org/b", "file:///etc/passwd", "https:///a", "https://a.org:0/", "https://a b.org/",
     "https://a.org/\x00", "https://a.org\\@b.org/", "javascript:alert(1)", None, 1, ["https://a.org/"]],
)  # fmt: skip
def test_what_no_client_can_open_is_no_address(value: object) -> None:
    assert address(value) is None


def _words(text: str) -> list[str]:
    return text.split()


_TYPES = _words(
    """Manifest sc:Manifest Collection Canvas sc:Canvas Image dctypes:Image Choice oa:Choice SpecificResource
    AnnotationPage Annotation Sound ImageService2 ImageService3 Range"""
)
_CONTEXTS = _words(
    """http://iiif.io/api/presentation/3/context.json http://iiif.io/api/presentation/2/context.json
    http://iiif.io/api/image/2/context.json http://library.stanford.edu/iiif/image-api/1.1/context.json"""
)
_KEYS = st.sampled_from(
    _words(
        """@context id @id type @type label items sequences canvases images resource body default item source full
        selector motivation on target service profile format width height sizes maxWidth maxArea supports
        extraFeatures tiles protocol partOf manifests members collections structures behavior @value @language"""
    )
)
_OTHER_WORDS = _words(
    """painting sc:painting level0 level2 http://iiif.io/api/image/2/level1.json https://example.org/1.jpg image/jpeg
    https://example.org/image?x=1 application/pdf sizeByW rdf:nil // https://[ x#xywh=1 2000"""
)
_WORDS = st.sampled_from(_OTHER_WORDS + _TYPES + _CONTEXTS)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | _WORDS | st.just("\ud800")
_JSON = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_KEYS | st.text(), inner), max_leaves=40)
#: Values that get as far as a canvas, so that its parts are what varies.
_NEARLY = st.builds(
    lambda version, canvases, more: {
        **more,
        "type": "Manifest",
        **({"items": canvases} if version == 3 else {"sequences": [{"canvases": canvases}]}),
    },
    st.sampled_from([2, 3]),
    st.lists(
        _JSON
        | st.builds(lambda body, more: {**more, **_canvas(body)}, _JSON, st.dictionaries(_KEYS, _JSON, max_size=3))
        | st.builds(lambda body: {"images": [{"resource": body}]}, _JSON)
        | st.builds(lambda service: _canvas({**_image(), "service": service}), _JSON),
        max_size=5,
    ),
    st.dictionaries(_KEYS, _JSON, max_size=4),
)


@hypothesis.settings(max_examples=400, deadline=None)
@hypothesis.example(data={"type": "Manifest", "sequences": [{"canvases": [{"type": "\ud800"}]}]}, where=ADDRESS)
@hypothesis.given(data=_JSON | _NEARLY, where=st.sampled_from([ADDRESS, "", "https://["]) | st.text())
def test_any_json_is_a_source_or_is_refused_with_a_sentence(data: object, where: str) -> None:
    try:
        source = iiif.read_manifest(data, where)
    except PermanentError as refused:
        sentence = str(refused)
    else:
        _check(source)
        return
    assert sentence == clean(sentence, 10_000)
    assert re.search(r" is | has no image to read ", sentence)


def _check(source: Source) -> None:
    assert [page.number for page in source.pages] == list(range(1, len(source.pages) + 1))
    assert source.usable
    ids = [page.canvas_id for page in source.pages if page.canvas_id is not None]
    assert len(ids) == len(set(ids))
    for page in source.pages:
        assert re.fullmatch("[0-9]{4,}", page.name)
        if isinstance(page, FailedPage):
            assert re.fullmatch(r"The .+\.", page.reason)
            continue
        image_service.wants_info(page.image)
        for candidate in image_service.candidates(page.image):
            assert re.match("https?://[^/?#]", candidate.address)
            assert address(candidate.address) == candidate.address


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(content=st.binary() | _JSON.map(lambda data: json.dumps(data).encode()))
def test_any_bytes_are_a_source_or_are_refused_with_a_sentence(content: bytes) -> None:
    refusal = ""
    try:
        source = iiif.read(content, ADDRESS)
    except PermanentError as refused:
        refusal = str(refused)
    assert ADDRESS in refusal if refusal else source.usable
