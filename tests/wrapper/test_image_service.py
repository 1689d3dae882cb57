"""The addresses that one page's image can be had from, by what its services say of themselves."""

from __future__ import annotations

import typing as t

import hypothesis
import pytest
from hypothesis import strategies as st

from htrflow_batch import image_service
from htrflow_batch.source import Image, ImageService

IMAGE_1 = "http://library.stanford.edu/iiif/image-api/1.1/context.json"
IMAGE_2 = "http://iiif.io/api/image/2/context.json"
IMAGE_3 = "http://iiif.io/api/image/3/context.json"
HOST = "https://iiif.example.org"


def _service(value: dict[str, t.Any]) -> ImageService:
    service = image_service.read_service({"id": f"{HOST}/a", **value})
    assert service is not None
    return service


def _paths(
    *services: dict[str, t.Any], width: int | None = None, max_width: int = 2500, own: str | None = None
) -> list[str]:
    """The candidates below the service's address, in order."""
    image = Image(own, None, width, None, tuple(_service(service) for service in services))
    found = image_service.candidates(image, max_width)
    return [candidate.address.removeprefix(f"{HOST}/") for candidate in found]


def _v1(level: int, **more: t.Any) -> dict[str, t.Any]:
    profile = f"http://library.stanford.edu/iiif/image-api/1.1/compliance.html#level{level}"
    return {"@context": IMAGE_1, "profile": profile, **more}


def _v2(level: int, *parts: t.Any, **more: t.Any) -> dict[str, t.Any]:
    return {"@context": IMAGE_2, "profile": [f"http://iiif.io/api/image/2/level{level}.json", *parts], **more}


def _v3(level: int, **more: t.Any) -> dict[str, t.Any]:
    return {"type": "ImageService3", "profile": f"level{level}", **more}


SIZES = [{"width": 4000, "height": 3000}, {"width": 2000, "height": 1500}, {"width": 500, "height": 375}]


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param(_v1(2), ["2500,", "full"], id="1.1"),
        pytest.param(_v1(0), ["full"], id="1.1 of level 0"),
        pytest.param(_v2(1), ["2500,", "full", "max"], id="2.0"),
        pytest.param(_v2(2, {"maxWidth": 1200}), ["1200,", "max", "full"], id="2.1 with a limit"),
        pytest.param(_v2(0), ["full", "max"], id="2 of level 0"),
        pytest.param(_v2(0, {"supports": ["sizeByW"]}), ["2500,", "full", "max"], id="2 of level 0 with widths"),
        pytest.param(_v2(0, sizes=SIZES), ["2000,1500", "2000,", "full", "max"], id="2 of level 0 with sizes"),
        pytest.param(_v3(1), ["2500,", "max"], id="3"),
        pytest.param(_v3(0, sizes=SIZES), ["2000,1500", "max"], id="3 of level 0 with sizes"),
        pytest.param(_v3(0, extraFeatures=["sizeByW"]), ["2500,", "max"], id="3 of level 0 with widths"),
        pytest.param({"type": "ImageService3", "sizes": SIZES}, ["2500,", "2000,1500", "max"], id="3 of no level"),
        pytest.param(_v3(2, width=1800, height=900), ["max"], id="3 of a small image"),
        pytest.param(_v3(2, width=8000, height=4000, maxWidth=2000), ["2000,", "max"], id="3 with a limited width"),
        pytest.param(_v3(2, width=4000, height=8000, maxWidth=2000), ["1000,", "max"], id="3 with a limited square"),
        pytest.param(_v3(2, width=4000, height=4000, maxArea=1_000_000), ["1000,", "max"], id="3 with a limited area"),
    ],
)
def test_a_service_is_asked_for_the_size_it_can_give_and_then_for_the_whole_image(
    service: dict[str, t.Any], expected: list[str]
) -> None:
    assert [path.split("/")[2] for path in _paths(service)] == expected


@pytest.mark.parametrize(("service", "file"), [(_v1(2), "native"), (_v2(2), "default"), (_v3(2), "default")])
def test_an_address_has_the_quality_of_its_version(service: dict[str, t.Any], file: str) -> None:
    assert _paths(service)[0] == f"a/full/2500,/0/{file}.jpg"


@pytest.mark.parametrize(
    ("widths", "expected"),
    [
        pytest.param([100, 1250, 2500, 2501], 2500, id="the widest that is not too wide"),
        pytest.param([100, 1250, 4000], 1250, id="half the width is enough"),
        pytest.param([100, 1249, 4000, 8000], 4000, id="a thumbnail is not, and the next larger is taken"),
        pytest.param([100, 1249], None, id="thumbnails alone are never asked for"),
    ],
)
def test_of_ready_sizes_one_that_can_be_read_is_taken(widths: list[int], expected: int | None) -> None:
    sizes = [{"width": width, "height": 10} for width in widths]
    sized = [] if expected is None else [f"a/full/{expected},10/0/default.jpg"]
    assert _paths(_v3(0, sizes=sizes)) == [*sized, "a/full/max/0/default.jpg"]


def test_the_images_own_address_is_the_last_and_stands_once() -> None:
    own = f"{HOST}/a/full/max/0/default.jpg"
    assert _paths(_v3(1), own=own) == ["a/full/2500,/0/default.jpg", "a/full/max/0/default.jpg"]
    assert _paths(_v3(1), own=f"{HOST}/scan.jpg")[-1] == "scan.jpg"
    assert _paths(own=f"{HOST}/scan.jpg") == ["scan.jpg"]


def test_of_two_services_the_one_that_makes_sizes_is_asked_first_and_then_the_newer() -> None:
    first = _paths(_v3(0, id=f"{HOST}/files"), _v2(2, id=f"{HOST}/two"), _v3(1, id=f"{HOST}/three"))
    assert [path.partition("/full")[0] for path in first] == ["three", "two", "three", "two", "two", "files"]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (f"{HOST}/a/", "a/full/2500,/0/default.jpg"),
        (f"{HOST}/a/info.json", "a/full/2500,/0/default.jpg"),
        (f"{HOST}/a?key=1", "a/full/2500,/0/default.jpg?key=1"),
        (f"{HOST}/arkis!R0001203_00007", "arkis!R0001203_00007/full/2500,/0/default.jpg"),
        (f"{HOST}/a%2Fb", "a%2Fb/full/2500,/0/default.jpg"),
    ],
)
def test_the_address_of_a_service_is_kept_as_it_is_encoded(own: str, expected: str) -> None:
    assert _paths(_v3(1, id=own))[0] == expected


@pytest.mark.parametrize(
    ("value", "version", "level"),
    [
        ({"type": "ImageService3"}, 3, None),
        ({"@type": "ImageService2", "profile": "level2"}, 2, 2),
        ({"@type": "iiif:ImageService1"}, 1, None),
        ({"profile": "level1"}, 3, 1),
        ({"profile": "http://iiif.io/api/image/2/profiles/level2.json"}, 2, 2),
        ({"profile": "http://library.stanford.edu/iiif/image-api/compliance.html#level0"}, 1, 0),
        ({"profile": ["http://iiif.io/api/image/3/level2.json"]}, 3, 2),
        ({"@context": ["x", IMAGE_3]}, 3, None),
        ({"protocol": "http://iiif.io/api/image"}, 3, None),
    ],
)
def test_the_version_is_read_from_what_a_service_says(value: dict[str, t.Any], version: int, level: int | None) -> None:
    service = _service({"id": f"{HOST}/iiif/1/v2/a", **value})
    assert (service.version, service.level) == (version, level)


@pytest.mark.parametrize(
    "value",
    [
        None, "https://example.org/image", 7, [], {}, {"id": f"{HOST}/search", "type": "SearchService2"},
        {"@id": f"{HOST}/login", "profile": "http://iiif.io/api/auth/1/login"}, {"type": "ImageService3"},
        {"id": "ftp://example.org/a", "type": "ImageService3"}, {"id": f"{HOST}/a", "profile": {"level": 1}},
    ],
)  # fmt: skip
def test_what_is_no_image_service_is_passed_over(value: object) -> None:
    assert image_service.read_services([value]) == ()


def test_an_info_json_gives_a_service_the_sizes_that_the_manifest_left_out() -> None:
    image = Image(None, services=(_service(_v3(0)),))
    service = image_service.wants_info(image)
    assert service is not None
    assert image_service.info_address(service) == f"{HOST}/a/info.json"
    info = {"@context": IMAGE_3, "id": "http://internal:8182/a", "type": "ImageService3", "profile": "level0",
            "width": 8000, "height": 6000, "sizes": SIZES}  # fmt: skip
    better = image_service.with_info(image, service, info)
    assert image_service.candidates(better)[0].address == f"{HOST}/a/full/2000,1500/0/default.jpg"
    assert image_service.wants_info(better) is None


def test_an_info_json_keeps_a_small_image_from_being_enlarged() -> None:
    image = Image(f"{HOST}/a.jpg", services=(_service(_v2(2)),))
    service = image_service.wants_info(image)
    assert service is not None
    info = {
        "@context": IMAGE_2,
        "@id": f"{HOST}/a",
        "protocol": "http://iiif.io/api/image",
        "width": 800,
        "height": 600,
    }
    better = image_service.with_info(image, service, info)
    assert image_service.candidates(better)[0].address == f"{HOST}/a/full/full/0/default.jpg"


@pytest.mark.parametrize("info", [None, [], "x", {}, {"error": "not found"}, {"width": 1, "height": 1}])
def test_data_that_is_no_info_json_changes_nothing(info: object) -> None:
    image = Image(None, services=(_service(_v2(2)),))
    assert image_service.with_info(image, image.services[0], info) == image


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        (Image("https://example.org/a.jpg"), False),
        (Image(None, services=(_service(_v3(1)),)), False),
        (Image(None, services=(_service(_v3(0, sizes=SIZES)),)), False),
        (Image(None, width=4000, services=(_service(_v2(2)),)), False),
        (Image(None, services=(_service(_v1(1)),)), True),
    ],
)
def test_an_info_json_is_wanted_only_where_it_changes_what_is_asked(image: Image, wanted: bool) -> None:
    assert (image_service.wants_info(image) is not None) is wanted


def test_a_refused_form_is_worth_another_request_and_a_refused_image_is_not() -> None:
    assert {400, 404, 501} == image_service.REFUSED_FORM
    assert not {200, 401, 403, 429, 500, 503} & image_service.REFUSED_FORM


_NUMBERS = st.none() | st.integers(1, 20_000)
_SERVICES = st.builds(
    ImageService,
    id=st.sampled_from([f"{HOST}/a", f"{HOST}/b?key=1"]),
    version=st.sampled_from([1, 2, 3]),
    level=st.none() | st.integers(0, 2),
    width=_NUMBERS,
    height=_NUMBERS,
    sizes=st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 9000)), max_size=4).map(lambda s: tuple(sorted(s))),
    any_width=st.booleans(),
    max_width=_NUMBERS,
    max_height=_NUMBERS,
    max_area=st.none() | st.integers(1, 10**9),
)


@hypothesis.settings(deadline=None)
@hypothesis.given(services=st.lists(_SERVICES, min_size=1, max_size=3), width=_NUMBERS, wanted=st.integers(1, 10_000))
def test_no_request_enlarges_asks_for_a_box_or_stands_twice(
    services: list[ImageService], width: int | None, wanted: int
) -> None:
    image = Image(f"{HOST}/own.jpg", None, width, None, tuple(services))
    found = [candidate.address for candidate in image_service.candidates(image, wanted)]
    assert len(found) == len(set(found)) >= 2
    assert found[-1] == f"{HOST}/own.jpg"
    assert not any(sign in address for address in found for sign in ("!", "^", "pct:"))
    asked = [address.split("/full/")[1].split("/")[0] for address in found[:-1]]
    whole = [word in ("max", "full") for word in asked]
    assert whole == sorted(whole), "sized requests come first"
    ready = {size[0] for service in services for size in service.sizes}
    for size in asked:
        if size not in ("max", "full"):
            number = int(size.split(",")[0])
            assert number <= wanted or number in ready
    if all((service.width or width or wanted + 1) <= min(wanted, service.max_width or wanted) for service in services):
        hypothesis.assume(not any(service.max_height or service.max_area or service.max_width for service in services))
        assert all(whole)
