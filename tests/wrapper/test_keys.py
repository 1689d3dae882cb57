"""The keys of a volume."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_batch.errors import PermanentError
from htrflow_batch.keys import Keys
from htrflow_batch.store import checked_key

KEYS = Keys("htr-batch/", "demo-v1", "R0001203")

NAMES = st.text(st.characters(codec="ascii"), max_size=70) | st.text(max_size=4)


def test_the_keys_are_those_of_the_layout() -> None:
    assert [KEYS.page(1), KEYS.alto(12), KEYS.annotations(12)] == [
        "htr-batch/demo-v1/R0001203/page/0001.xml",
        "htr-batch/demo-v1/R0001203/alto/0012.xml",
        "htr-batch/demo-v1/R0001203/annotations/0012.json",
    ]
    assert [KEYS.iiif, KEYS.progress, KEYS.pipeline_yaml, KEYS.manifest] == [
        f"htr-batch/demo-v1/R0001203/{name}"
        for name in ("iiif.json", "progress.json", "pipeline.yaml", "manifest.json")
    ]
    assert KEYS.run_log == "htr-batch/status/logs/demo-v1/R0001203.txt"
    assert KEYS.source_manifest == "htr-batch/sources/demo-v1/R0001203/manifest.json"


def test_the_slash_at_the_end_of_the_prefix_may_be_missing() -> None:
    assert (
        Keys("htr-batch", "demo-v1", "R1").folder
        == Keys("htr-batch/", "demo-v1", "R1").folder
        == "htr-batch/demo-v1/R1/"
    )


def test_a_prefix_may_have_several_parts() -> None:
    assert Keys("archive/htr-batch/", "demo-v1", "R1").manifest == "archive/htr-batch/demo-v1/R1/manifest.json"


@pytest.mark.parametrize("number", [0, -1])
def test_pages_are_counted_from_one(number: int) -> None:
    for key in (KEYS.page, KEYS.alto, KEYS.annotations):
        with pytest.raises(ValueError, match="counted from 1"):
            key(number)


@given(st.sets(st.integers(1, 200_000)), st.sets(st.integers(1, 200_000)))
def test_a_listing_gives_back_the_pages_that_were_written(page: set[int], alto: set[int]) -> None:
    listing = [KEYS.page(number) for number in page] + [KEYS.alto(number) for number in alto] + [KEYS.manifest]

    found = KEYS.pages(listing)

    assert (set(found.page), set(found.alto), set(found.whole)) == (page, alto, page & alto)


@pytest.mark.parametrize(
    "key",
    [
        "htr-batch/demo-v1/R00012034/page/0001.xml",  # another volume
        "htr-batch/demo-v1/R0001203/page/0000.xml",
        "htr-batch/demo-v1/R0001203/page/1.xml",
        "htr-batch/demo-v1/R0001203/page/00001.xml",
        "htr-batch/demo-v1/R0001203/page/0001.xml.part",
        "htr-batch/demo-v1/R0001203/page/0001.xml\n",
        "htr-batch/demo-v1/R0001203/page/٠٠٠١.xml",
        "htr-batch/demo-v1/R0001203/page/",
        "htr-batch/demo-v1/R0001203/annotations/0001.json",
        "htr-batch/demo-v1/R0001203/annotations/0001.xml",
        "htr-batch/demo-v1/R0001203/old/page/0001.xml",
        "page/0001.xml",
    ],
)
def test_a_key_that_is_no_page_of_this_volume_is_passed_over(key: str) -> None:
    assert KEYS.pages([key]) == (frozenset(), frozenset())


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/b", "../x", "a/../b", "-a", "a-", "å", "a\n", "a b", "a\\b"])
def test_a_name_that_leads_elsewhere_is_refused_as_each_part_of_a_key(name: str) -> None:
    for names in (("htr-batch", name, "R1"), ("htr-batch", "demo-v1", name), (f"{name}/x/", "demo-v1", "R1")):
        if name in ("a/b", "a-") and names[0].startswith("a/b"):
            continue
        with pytest.raises(PermanentError, match=" — "):
            Keys(*names)


@pytest.mark.parametrize("prefix", ["", "/", "//", "htr-batch//", "/htr-batch/", "../", "a/../b/"])
def test_a_prefix_with_an_empty_part_or_dots_is_refused(prefix: str) -> None:
    with pytest.raises(PermanentError, match="S3_PREFIX"):
        Keys(prefix, "demo-v1", "R1")


@pytest.mark.parametrize("pipeline", ["status", "sources"])
def test_a_pipeline_cannot_have_the_name_of_what_is_beside_the_pipelines(pipeline: str) -> None:
    with pytest.raises(PermanentError, match="neither status nor sources"):
        Keys("htr-batch/", pipeline, "R1")


def test_names_as_long_as_the_converter_takes_them_are_good_and_longer_ones_are_refused() -> None:
    assert Keys("n" * 63, "p" * 52, "V" * 63).page(1).count("/") == 4
    for pipeline, volume in (("p" * 53, "V"), ("p", "V" * 64)):
        with pytest.raises(PermanentError, match="characters"):
            Keys("n", pipeline, volume)


@given(NAMES, NAMES, NAMES)
def test_whatever_the_names_a_key_is_refused_or_stays_below_its_own_folders(a: str, b: str, c: str) -> None:
    try:
        keys = Keys(a, b, c)
    except PermanentError:
        return
    for key in (
        keys.page(1),
        keys.alto(1),
        keys.annotations(1),
        keys.progress,
        keys.manifest,
        keys.run_log,
        keys.source_manifest,
    ):
        assert checked_key(key).startswith(a.removesuffix("/") + "/")
    assert keys.folder == f"{a.removesuffix('/')}/{b}/{c}/"


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_volumes_share_no_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    made = []
    for names in (one, other):
        try:
            keys = Keys("htr-batch", *names)
        except PermanentError:
            return
        made.append({keys.page(1), keys.alto(1), keys.progress, keys.iiif, keys.manifest, keys.run_log, keys.folder})
    assert (one == other) == bool(made[0] & made[1])
