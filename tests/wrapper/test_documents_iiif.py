"""``iiif.json``, the annotation pages and the manifest of a list of images, as any IIIF viewer reads them.

All real manifests of ``manifests/good`` are sources here too.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import typing as t

import hypothesis
import iiif_prezi3  # type: ignore[import-untyped]
import pytest
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from htrflow_batch import alto, iiif, presentation
from htrflow_batch import annotation_page as annotation_pages
from htrflow_batch.alto import Layout, TextLine
from htrflow_batch.documents import to_bytes
from htrflow_batch.errors import PageError
from htrflow_batch.image_service import read_service
from htrflow_batch.ledger import Failure, Ledger
from htrflow_batch.presentation_service import as_presentation_3
from htrflow_batch.source import Image, Page, Source
from tests.wrapper import ledgers
from tests.wrapper.ledgers import KEYS, RUN, holds, outcome

HERE = pathlib.Path(__file__).parent
GOOD = sorted((HERE / "manifests" / "good").glob("*.json"))
ALTO = {path.stem: path.read_bytes() for path in sorted((HERE / "results").glob("alto-*.xml"))}
OURS = "https://htr.example.org/results/htr-batch/demo-v1/R0001203"
CANVAS = "https://iiif.example.org/canvas/1"
ADDRESS = f"{OURS}/annotations/0001.json"
HOST = "https://iiif.example.org/image"
V1 = {"@context": "http://library.stanford.edu/iiif/image-api/1.1/context.json", "@id": f"{HOST}/a"}
V2 = {"@context": "http://iiif.io/api/image/2/context.json", "@id": f"{HOST}/a"}


def published(ledger: Ledger) -> dict[str, t.Any]:
    """``iiif.json`` as it is read, once it holds to its schema, to the rules of IIIF and to the library for them."""
    document = presentation.manifest(ledger, RUN, KEYS)
    assert document is not None
    read = holds(document, "iiif")
    assert rules_broken(read) == []
    assert loaded(read) == read
    return read


def loaded(document: dict[str, t.Any]) -> dict[str, t.Any]:
    """A manifest once through the library, which leaves out what it does not know."""
    read = json.loads(iiif_prezi3.Manifest(**document).json())
    for canvas in read["items"]:
        for page in canvas.get("annotations", []):
            # The library takes a reference for a page without annotations.
            assert page.pop("items") == []
    return t.cast(dict[str, t.Any], read)


def rules_broken(manifest: dict[str, t.Any]) -> list[str]:
    """What neither the schema nor the library sees: ids that are not unique, and references that lead nowhere."""
    broken, seen = [], set()
    for resource in _resources(manifest):
        if resource["id"] in seen:
            broken.append(f"two resources have the id {resource['id']}")
        seen.add(resource["id"])
    for canvas in manifest["items"]:
        if "#" in canvas["id"]:
            broken.append(f"the id of a canvas has a fragment: {canvas['id']}")
        if canvas["items"][0]["items"][0]["target"] != canvas["id"]:
            broken.append(f"the image of the canvas {canvas['id']} is on another one")
    return broken


def _resources(manifest: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
    yield manifest
    for canvas in manifest["items"]:
        yield from (canvas, *canvas["items"], *canvas["items"][0]["items"], *canvas["annotations"])


def volume(*pages: Page, **more: t.Any) -> Ledger:
    """A volume whose pages came out."""
    return ledgers.all_done(Source(**{"id": None, "label": "", "presentation": 3, "pages": pages, **more}))


def body(image: Image) -> dict[str, t.Any]:
    document = published(volume(Page(1, image, CANVAS)))
    return t.cast(dict[str, t.Any], document["items"][0]["items"][0]["items"][0]["body"])


def served(data: dict[str, t.Any], own: str | None = None) -> Image:
    """An image with one service."""
    service = read_service(data)
    assert service is not None
    return Image(own, None, services=(service,))


def thumbnail(data: dict[str, t.Any], width: int = 2000, height: int = 3000) -> object:
    ledger = Ledger(Source(None, "", 3, (Page(1, served(data), CANVAS),)), 0.6)
    ledger.came_out(outcome(1, width=width, height=height))
    return published(ledger)["items"][0].get("thumbnail")


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_every_kind_of_source_is_shown_with_all_its_pages_that_came_out(path: pathlib.Path) -> None:
    source = iiif.read(path.read_bytes(), "https://iiif.example.org/v/manifest")

    document = published(ledgers.all_done(source))

    assert len(document["items"]) == len(source.usable)
    for page, canvas in zip(source.usable, document["items"], strict=True):
        shown = canvas["items"][0]["items"][0]["body"]
        assert shown["id"] == page.image.id or page.image.id is None
        assert len(shown.get("service", [])) == len(page.image.services)


@pytest.mark.parametrize("name", ["presentation-2-with-image-api-1", "presentation-2", "two-image-services"])
def test_a_source_as_a_viewer_gets_it(name: str, snapshot: SnapshotAssertion) -> None:
    path = HERE / "manifests" / "good" / f"{name}.json"
    source = iiif.read(path.read_bytes(), "https://iiif.example.org/v/manifest")

    assert json.dumps(published(ledgers.all_done(source)), indent=2, ensure_ascii=False) == snapshot


def test_pages_with_text_without_text_and_with_low_confidence_are_shown_and_others_are_not() -> None:
    ledger = ledgers.every_state()
    document = published(ledger)

    assert [canvas["label"]["none"] for canvas in document["items"]] == [["1 r"], ["1 v"], ["3"]]
    assert [canvas["annotations"][0]["id"] for canvas in document["items"]] == [
        f"{OURS}/annotations/{number:04}.json" for number in (1, 2, 3)
    ]
    ledger.failed(Failure(2, "result", "The store refuses its PAGE file."))
    assert len(published(ledger)["items"]) == 2


def test_there_is_no_manifest_before_a_page_came_out() -> None:
    source = ledgers.every_state().source

    assert presentation.manifest(Ledger(source, 0.6), RUN, KEYS) is None


def test_a_canvas_has_the_size_of_the_image_that_was_read_and_an_image_that_of_the_source() -> None:
    canvas = published(ledgers.every_state())["items"][0]

    assert (canvas["width"], canvas["height"]) == (2000, 3000)
    shown = canvas["items"][0]["items"][0]["body"]
    assert (shown["width"], shown["height"]) == (4000, 6000)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (CANVAS, CANVAS),
        (f"{CANVAS}?page=1", f"{CANVAS}?page=1"),
        (None, f"{OURS}/iiif.json/canvas/0007"),
        (f"{CANVAS}#a", f"{OURS}/iiif.json/canvas/0007"),
        ("https://reader:secret@iiif.example.org/canvas/1", f"{OURS}/iiif.json/canvas/0007"),
        (f"{OURS}/iiif.json/canvas/0008", f"{OURS}/iiif.json/canvas/0007"),
    ],
    ids=["its own", "with a query", "none", "with a fragment", "with a password", "one of ours"],
)
def test_a_canvas_keeps_its_id_where_it_can_be_pointed_into_and_shown(own: str | None, expected: str) -> None:
    assert presentation.canvas_id(Page(7, ledgers.image("a"), own), RUN, KEYS) == expected


def test_the_annotations_of_a_page_are_on_its_canvas_in_the_manifest() -> None:
    ledger = volume(Page(1, ledgers.image("a")), Page(2, ledgers.image("b"), CANVAS))

    for page, canvas in zip(ledger.source.usable, published(ledger)["items"], strict=True):
        address = RUN.address(KEYS.annotations(page.number))
        made = annotation_pages.page(ALTO["alto-regions"], presentation.canvas_id(page, RUN, KEYS), address)
        assert canvas["annotations"] == [{"id": made["id"], "type": "AnnotationPage"}]
        assert {line["target"].partition("#")[0] for line in made["items"]} == {canvas["id"]}


def test_the_manifest_says_what_made_it_and_where_its_images_are_from() -> None:
    document = published(volume(Page(1, ledgers.image("a")), id="https://iiif.example.org/v?id=1", presentation=2))

    facts = {fact["label"]["en"][0]: fact["value"]["none"][0] for fact in document["metadata"]}
    assert facts == {
        "Volume": "R0001203",
        "Campaign": "letters",
        "Pipeline": "demo-v1",
        "Text recognition": "htrflow 0.2.6",
    }
    assert document["seeAlso"][0]["id"] == "https://iiif.example.org/v?id=1"
    assert document["seeAlso"][0]["profile"] == "http://iiif.io/api/presentation/2/context.json"
    assert document["label"] == {"none": ["R0001203"]}


@pytest.mark.parametrize(
    ("own", "url", "expected"),
    [
        (None, "https://iiif.example.org/v", "https://iiif.example.org/v"),
        (None, "https://iiif.example.org/v?…", None),
        ("https://reader:secret@iiif.example.org/v?a=b", "https://x.example.org", "https://iiif.example.org/v?a=b"),
    ],
    ids=["without an id", "without an id and an address that is shown in part", "with a password"],
)
def test_the_source_is_named_where_its_address_works(own: str | None, url: str, expected: str | None) -> None:
    ledger = volume(Page(1, ledgers.image("a")), id=own)
    document = presentation.manifest(ledger, dataclasses.replace(RUN, source_url=url), KEYS)

    assert document is not None
    assert [entry["id"] for entry in document.get("seeAlso", [])] == ([expected] if expected else [])


def test_passwords_are_taken_out_of_what_a_viewer_fetches_and_queries_stay() -> None:
    user = "https://reader:secret@iiif.example.org"
    login = {"@id": f"{user}/login", "profile": "http://iiif.io/api/auth/1/login"}
    service = {**V2, "@id": f"{user}/image/a?key=1", "profile": "level2", "terms": f"{user}/terms", "service": login}
    pages = (Page(1, served(service)), Page(2, served(service, f"{user}/b.jpg?key=2"), f"{user}/canvas"))
    document = published(volume(*pages, id=f"{user}/manifest?key=3"))

    assert "secret" not in json.dumps(document)
    first, second = (canvas["items"][0]["items"][0]["body"] for canvas in document["items"])
    assert first["id"] == "https://iiif.example.org/image/a/full/full/0/default.jpg?key=1"
    assert first["service"][0]["@id"] == "https://iiif.example.org/image/a?key=1"
    assert first["service"][0]["terms"] == "https://iiif.example.org/terms"
    assert first["service"][0]["service"][0]["@id"] == "https://iiif.example.org/login"
    assert second["id"] == "https://iiif.example.org/b.jpg?key=2"
    assert document["items"][0]["thumbnail"][0]["id"] == f"{HOST}/a/full/200,/0/default.jpg?key=1"
    assert document["seeAlso"][0]["id"] == "https://iiif.example.org/manifest?key=3"


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (V1, "full/full/0/native.jpg"),
        (V2, "full/full/0/default.jpg"),
        ({**V2, "profile": ["level1", {"maxWidth": 3000}]}, "full/max/0/default.jpg"),
        ({"id": f"{HOST}/a", "type": "ImageService3"}, "full/max/0/default.jpg"),
    ],
    ids=["1", "2", "2 with a limit", "3"],
)
def test_an_image_without_an_address_has_that_of_a_request_to_its_service(
    service: dict[str, t.Any], expected: str
) -> None:
    shown = body(served(service))

    assert shown["id"] == f"{HOST}/a/{expected}"
    assert shown["format"] == "image/jpeg"


@pytest.mark.parametrize(
    ("stated", "address", "expected"),
    [
        ("image/tiff", "https://example.org/a.jpg", "image/tiff"),
        (" IMAGE/JPEG ", "https://example.org/a", "image/jpeg"),
        ("JPEG", "https://example.org/a.jp2", "image/jp2"),
        (None, "https://example.org/a.png?x=1", "image/png"),
        (None, "https://example.org/a", None),
    ],
)
def test_the_format_of_an_image_is_what_the_source_states_or_else_its_ending(
    stated: str | None, address: str, expected: str | None
) -> None:
    assert body(Image(address, stated)).get("format") == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"id": f"{HOST}/a/", "type": "ImageService3", "profile": "level1", "maxWidth": 9},
            {"id": f"{HOST}/a", "type": "ImageService3", "profile": "level1", "maxWidth": 9},
        ),
        (
            {
                **V2,
                "profile": ["http://iiif.io/api/image/2/level2.json", {"formats": ["png"]}],
                "tiles": [{"width": 5}],
            },
            {
                "@id": f"{HOST}/a",
                "@type": "ImageService2",
                "@context": V2["@context"],
                "profile": "http://iiif.io/api/image/2/level2.json",
                "tiles": [{"width": 5}],
            },
        ),
        (V1, {"@id": f"{HOST}/a", "@type": "ImageService1", "@context": V1["@context"]}),
        ({**V2, "@type": "iiif:Image"}, {"@id": f"{HOST}/a", "@type": "iiif:Image", "@context": V2["@context"]}),
        (
            {"@id": f"{HOST}/a/info.json", "type": "ImageService2"},
            {"@id": f"{HOST}/a", "@type": "ImageService2"},
        ),
        (
            {"id": f"{HOST}/a", "@type": ["x", 1], "type": ["ImageService2"], "label": "Sida 1", "profile": {}},
            {"id": f"{HOST}/a", "type": "ImageService2", "label": {"none": ["Sida 1"]}},
        ),
        (
            {"id": f"{HOST}/a", "type": "ImageService2", "label": {"sv": ["Sida 1"]}, "service": "https://x.example"},
            {"id": f"{HOST}/a", "type": "ImageService2", "label": {"sv": ["Sida 1"]}},
        ),
    ],
    ids=["slash", "profile as a list", "no type", "another type", "info.json", "types as lists", "a bare service"],
)
def test_a_service_is_as_the_source_has_it_in_a_form_of_presentation_3(
    data: dict[str, t.Any], expected: dict[str, t.Any]
) -> None:
    (found,) = body(served(data, "https://example.org/a.jpg"))["service"]

    assert found == expected
    assert [*found][:2] in (["id", "type"], ["@id", "@type"])


def test_the_login_of_a_service_comes_along_with_its_token_service() -> None:
    token = {"@id": "https://example.org/token", "profile": "http://iiif.io/api/auth/1/token"}
    login = {"@id": "https://example.org/login", "profile": "http://iiif.io/api/auth/1/login", "label": "Log in"}
    other = {"@id": "https://example.org/search", "profile": "http://iiif.io/api/search/1/search"}
    service = read_service({**V2, "service": [{**login, "service": token}, other, {"@id": "urn:x"}, None]})
    assert service is not None

    assert as_presentation_3(service)["service"] == [
        {
            "@id": "https://example.org/login",
            "@type": "AuthCookieService1",
            "profile": "http://iiif.io/api/auth/1/login",
            "label": "Log in",
            "service": [{**token, "@type": "AuthTokenService1"}],
        },
        {**other, "@type": "Service"},
    ]


def test_a_service_that_is_nested_without_end_is_cut_and_the_source_stays_as_it_was() -> None:
    deep: dict[str, t.Any] = {**V2, "number": 1e999}
    for _ in range(400):
        deep = {**V2, "service": [deep]}
    service = read_service(deep)
    assert service is not None

    content = to_bytes(as_presentation_3(service))

    assert len(content) < 2000
    assert deep["service"][0]["service"]


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({**V2, "profile": "level2"}, ("full/200,/0/default.jpg", 200, 300)),
        ({**V1, "profile": f"{V1['@context']}#level1"}, ("full/200,/0/native.jpg", 200, 300)),
        ({**V2}, None),
        ({**V2, "profile": "level0"}, None),
        (
            {**V2, "profile": "level0", "sizes": [{"width": 150, "height": 225}]},
            ("full/150,225/0/default.jpg", 150, 225),
        ),
        (
            {**V2, "profile": "level0", "sizes": [{"width": 600, "height": 900}]},
            ("full/600,900/0/default.jpg", 600, 900),
        ),
        ({**V2, "profile": "level0", "sizes": [{"width": 4000, "height": 6000}]}, None),
        ({**V2, "profile": ["level1", {"maxWidth": 100}]}, ("full/100,/0/default.jpg", 100, 150)),
    ],
    ids=["2", "1", "unknown level", "level 0", "ready", "ready and larger", "ready and far larger", "limited"],
)
def test_a_page_has_a_thumbnail_where_its_service_makes_one(
    service: dict[str, t.Any], expected: tuple[str, int, int] | None
) -> None:
    found = thumbnail({"profile": None, **service} if service.get("profile") else service)

    if expected is None:
        assert found is None
    else:
        path, width, height = expected
        one = {"id": f"{HOST}/a/{path}", "type": "Image", "format": "image/jpeg", "height": height, "width": width}
        assert found == [one]


def test_a_small_image_has_no_thumbnail() -> None:
    assert thumbnail({**V2, "profile": "level2"}, 200, 300) is None


def test_iiif_json_of_2000_pages_is_small_since_the_text_is_elsewhere() -> None:
    pages = []
    for number in range(1, 2001):
        name = f"https://lbiiif.example.org/arkis!R0001203_{number:05}"
        image = served({"id": name, "type": "ImageService3", "profile": "level1"}, f"{name}/full/max/0/default.jpg")
        pages.append(Page(number, image, f"https://lbiiif.example.org/arkis!R0001203_{number:05}/canvas", str(number)))
    document = presentation.manifest(volume(*pages), RUN, KEYS)

    assert document is not None
    assert len(to_bytes(document)) < 2000 * 1600


def test_the_manifest_of_a_list_of_images_holds_to_its_schema_and_can_be_shown() -> None:
    base = "https://htr.example.org/results/htr-batch/sources/demo-v1/R0001203"
    images = ["https://example.org/scan å 1.jpg", "https://example.org/scan?id=2", "https://example.org/3.tif"]

    made = holds(iiif.synthetic_manifest("R0001203", images, base), "source-manifest")

    assert loaded(made) == made
    document = published(ledgers.all_done(iiif.read_manifest(made, made["id"])))
    assert document["seeAlso"][0]["id"] == RUN.address(KEYS.source_manifest)
    assert [canvas["id"] for canvas in document["items"]] == [canvas["id"] for canvas in made["items"]]


@pytest.mark.parametrize("name", ALTO)
def test_the_lines_of_a_page_as_annotations(name: str, snapshot: SnapshotAssertion) -> None:
    document = holds(annotation_pages.page(ALTO[name], CANVAS, ADDRESS), "annotations")

    assert iiif_prezi3.AnnotationPage(**document).id == ADDRESS
    assert json.dumps(document, indent=2, ensure_ascii=False) == snapshot


def test_a_page_without_text_has_no_annotations() -> None:
    assert annotation_pages.page(ALTO["alto-no-text"], CANVAS, ADDRESS)["items"] == []
    assert alto.lines_of(ALTO["alto-no-text"]) == ()


def test_lines_come_in_reading_order_with_their_boxes_confidences_and_outlines() -> None:
    outline = ((20, 300), (100, 300), (100, 360), (20, 360))
    assert alto.layout_of(ALTO["alto-regions"]) == Layout(
        1000,
        1400,
        (
            TextLine('År 1712 hölls "ting" & syn', 120, 100, 700, 50, 0.95),
            TextLine("i häradet", 120, 160, 700, 50, 0.95),
            TextLine("N:o 4", 20, 300, 80, 60, 0.8, outline),
        ),
    )


def page_of(line: str, page: str = 'WIDTH="1000" HEIGHT="1400"', block: str = "") -> bytes:
    return (
        f'<alto xmlns="{alto.NAMESPACE}"><Layout><Page {page}><PrintSpace><TextBlock {block}>{line}</TextBlock>'
        "</PrintSpace></Page></Layout></alto>"
    ).encode()


def box_of(content: bytes) -> tuple[int, int, int, int]:
    (line,) = alto.lines_of(content)
    return line.x, line.y, line.width, line.height


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('<TextLine HPOS="1.5" VPOS="2.5" WIDTH="3" HEIGHT="4.4"><String CONTENT="a"/></TextLine>', (1, 2, 4, 5)),
        ('<TextLine HPOS="-5" VPOS="1e1" WIDTH="3" HEIGHT="4"><String CONTENT="a"/></TextLine>', (-5, 10, 3, 4)),
        (
            '<TextLine HPOS="NaN" VPOS="2" WIDTH="3" HEIGHT="4"><Shape><Polygon POINTS="5 6 9 6 9 20"/></Shape>'
            '<String CONTENT="a"/></TextLine>',
            (5, 6, 4, 14),
        ),
        (
            '<TextLine><String HPOS="10" VPOS="20" WIDTH="5" HEIGHT="6" CONTENT="a"/>'
            '<String HPOS="30" VPOS="19" WIDTH="5" HEIGHT="6" CONTENT="b"/></TextLine>',
            (10, 19, 25, 7),
        ),
        ('<TextLine><String CONTENT="a"/></TextLine>', (7, 8, 9, 10)),
        ('<TextLine HPOS="1" VPOS="2" WIDTH="INF" HEIGHT="4"><String CONTENT="a"/></TextLine>', (7, 8, 9, 10)),
        ('<TextLine HPOS="1" VPOS="2" WIDTH="1e99" HEIGHT="4"><String CONTENT="a"/></TextLine>', (7, 8, 9, 10)),
        ('<TextLine HPOS="1" VPOS="2" WIDTH="-3" HEIGHT="4"><String CONTENT="a"/></TextLine>', (7, 8, 9, 10)),
    ],
    ids=["fractions", "outside", "outline", "words", "nothing", "infinite", "too far", "negative"],
)
def test_a_line_has_its_own_box_or_that_of_what_is_nearest(line: str, expected: tuple[int, ...]) -> None:
    assert box_of(page_of(line, block='HPOS="7" VPOS="8" WIDTH="9" HEIGHT="10"')) == expected


def test_a_line_without_any_box_is_anywhere_on_its_page() -> None:
    assert box_of(page_of('<TextLine><String CONTENT="a"/></TextLine>')) == (0, 0, 1000, 1400)


def test_a_page_without_a_size_is_as_large_as_its_lines_reach() -> None:
    line = '<TextLine HPOS="10" VPOS="20" WIDTH="30" HEIGHT="40"><String CONTENT="a"/></TextLine>'
    layout = alto.layout_of(page_of(line, page=""))

    assert (layout.width, layout.height) == (40, 60)
    assert alto.layout_of(page_of("", page='WIDTH="0" HEIGHT="x"')) == Layout(1, 1, ())


@pytest.mark.parametrize("points", ["1,2 3", "a,b", "1,2 NaN,4", ""])
def test_an_outline_that_is_none_is_left_out(points: str) -> None:
    line = f'<TextLine><Shape><Polygon POINTS="{points}"/></Shape><String CONTENT="a"/></TextLine>'
    assert alto.lines_of(page_of(line))[0].points == ()


def test_a_line_without_text_is_none() -> None:
    assert alto.lines_of(page_of('<TextLine><String CONTENT=" "/></TextLine><TextLine/>')) == ()


def test_a_file_that_is_no_alto_is_refused() -> None:
    with pytest.raises(PageError, match="ALTO"):
        annotation_pages.page(b"<alto>", CANVAS, ADDRESS)


_NUMBERS = st.floats(-3000, 3000) | st.integers(-3000, 3000)


@hypothesis.given(st.lists(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, st.text(max_size=5)), max_size=4))
@hypothesis.settings(deadline=None)
def test_any_lines_are_annotations_within_the_canvas(lines: list[tuple[float, float, float, float, str]]) -> None:
    drawn = "".join(
        f'<TextLine HPOS="{x}" VPOS="{y}" WIDTH="{width}" HEIGHT="{height}">'
        f'<String CONTENT="a{_escaped(text)}"/></TextLine>'
        for x, y, width, height, text in lines
    )

    document = holds(annotation_pages.page(page_of(drawn), CANVAS, ADDRESS), "annotations")

    assert iiif_prezi3.AnnotationPage(**document)
    assert len({line["id"] for line in document["items"]}) == len(lines)
    for line in document["items"]:
        x, y, width, height = map(int, re.findall("[0-9]+", line["target"].partition("#")[2]))
        assert x + width <= 1000
        assert y + height <= 1400


def _escaped(text: str) -> str:
    return "".join(f"&#{ord(sign)};" for sign in text if sign.isprintable())


@hypothesis.given(ledgers.ledgers())
@hypothesis.settings(deadline=None)
def test_iiif_json_of_any_ledger_holds_to_its_schema_and_the_rules(ledger: Ledger) -> None:
    came_out = [page for page in ledger.source.usable if ledger.state(page) not in ("waiting", "failed")]
    document = presentation.manifest(ledger, RUN, KEYS)

    if document is None:
        assert came_out == []
        return
    read = holds(document, "iiif")
    assert len(read["items"]) == len(came_out)
    assert rules_broken(read) == []
    assert iiif_prezi3.Manifest(**read)
    addresses = [line for line in json.dumps(read).split('"') if line.lstrip().lower().startswith("http")]
    assert [address for address in addresses if re.match(r"\s*https?:/*[^/?#]*@", address, re.IGNORECASE)] == []


@pytest.mark.parametrize(
    "stated",
    [
        {
            "requiredStatement": {"label": {"sv": ["Ägare"]}, "value": {"sv": ["Riksarkivet"]}},
            "rights": "https://creativecommons.org/publicdomain/mark/1.0/",
            "viewingDirection": "right-to-left",
        },
        {
            "attribution": [{"@value": "Riksarkivet", "@language": "sv"}],
            "license": "https://creativecommons.org/publicdomain/mark/1.0/",
            "viewingDirection": "right-to-left",
        },
    ],
    ids=["as Presentation 3 has them", "as Presentation 2 has them"],
)
def test_what_its_owner_wants_to_be_shown_and_how_pages_are_turned_stay_with_the_pages(
    stated: dict[str, t.Any],
) -> None:
    content = {**json.loads((HERE / "manifests/good/presentation-3.json").read_text()), **stated}
    ledger = ledgers.all_done(iiif.read_manifest(content, "https://a.example.org/manifest"))

    made = presentation.manifest(ledger, RUN, KEYS)

    assert made is not None
    document = holds(made, "iiif")
    assert document["requiredStatement"]["value"] == {"none": ["Riksarkivet"]}
    assert document["requiredStatement"]["label"] == {"none": ["Ägare" if "rights" in stated else "Attribution"]}
    assert document["rights"] == "https://creativecommons.org/publicdomain/mark/1.0/"
    assert document["viewingDirection"] == "right-to-left"
