"""The real library and the small models, on pages whose text is known."""

from __future__ import annotations

import io
import pathlib
import typing as t

import jiwer
import pytest
import yaml

from htrflow_batch import alto
from tests.models import drawing, hub, pipeline
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods

pytestmark = pytest.mark.slow

#: Of the characters that are drawn. The models alone reach 2 to 3 %.
MOST_ERRORS = 0.06
SEED = 3_000_000
BLANK = 4


@pytest.fixture
def volume(misbehaving_http: MisbehavingHttp) -> tuple[str, dict[int, drawing.Page]]:
    """A volume of eight drawn pages, one of them blank: its manifest's address and its pages."""
    address, pages = pods.serve_volume(misbehaving_http, 8), {}
    for number in range(1, 9):
        page = drawing.blank_page(SEED) if number == BLANK else drawing.page(SEED + number)
        written = io.BytesIO()
        page.image.save(written, "JPEG", quality=90)
        misbehaving_http.put(f"/volume/{number}.jpg", written.getvalue())
        pages[number] = page
    return address, pages


def test_drawn_pages_are_read_offline_by_the_pinned_models(
    volume: tuple[str, dict[int, drawing.Page]], s3: Store, tmp_path: pathlib.Path, record_property: t.Any
) -> None:
    address, pages = volume
    revisions = hub.lay_out(tmp_path / "data/hf")
    steps = yaml.safe_dump(pipeline.steps(revisions)).encode()
    pod = pods.Pod(s3, tmp_path, address, engine="", steps=steps)

    ended = pod.run()

    assert ended.code == 0, ended.log
    manifest = pod.json("manifest.json")
    assert manifest["pipeline"]["engine"] == "htrflow 0.2.6"
    assert {model["name"]: model["revision"] for model in manifest["pipeline"]["models"]} == revisions
    states = [page["state"] for page in manifest["pages"]]
    assert states == ["text"] * (BLANK - 1) + ["no_text"] + ["text"] * (8 - BLANK)
    objects = pod.objects(pod.prefix)
    read = {number: alto.text_of(objects[f"{pod.prefix}alto/{number:04}.xml"]) for number in pages}
    rate = jiwer.cer([page.text for page in pages.values() if page.lines], [text for text in read.values() if text])
    record_property("character error rate", f"{rate:.4f}")
    assert rate <= MOST_ERRORS
    assert all(page["confidence"] > 0.8 for page in manifest["pages"] if page["page"] != BLANK)


def test_the_same_lines_are_found_on_a_page_alone_and_in_company(
    volume: tuple[str, dict[int, drawing.Page]], s3: Store, tmp_path: pathlib.Path
) -> None:
    address, pages = volume
    revisions = hub.lay_out(tmp_path / "data/hf")
    steps = yaml.safe_dump(pipeline.steps(revisions)).encode()
    texts = []
    for size in ("8", "1"):
        store = Store(s3.url, {"root": s3.root, "writer": s3.writer, "reader": s3.reader})
        store.create_bucket()
        pod = pods.Pod(store, tmp_path, address, engine="", steps=steps, variables={"GROUP_PAGES": size})
        ended = pod.run()
        assert ended.code == 0, ended.log
        objects = pod.objects(pod.prefix)
        texts.append([alto.text_of(objects[f"{pod.prefix}alto/{number:04}.xml"]) for number in pages])

    assert [len(text.splitlines()) for text in texts[0]] == [len(text.splitlines()) for text in texts[1]]
    # Sums of a batch are rounded otherwise than those of one line, which may decide a letter that is in doubt.
    assert jiwer.cer(list(filter(None, texts[0])), list(filter(None, texts[1]))) < 0.01


def test_a_model_that_is_not_in_the_cache_fails_the_attempt_so_that_another_one_is_made(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    revisions = hub.lay_out(tmp_path / "data/hf")
    steps = yaml.safe_dump(pipeline.steps({**revisions, "demo/lines": "0" * 40})).encode()
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 2), engine="", steps=steps)

    ended = pod.run()

    assert ended.code == 1
    assert ended.message is not None
    assert ended.message["stage"] == "load"
    assert "step 2, Segmentation, cannot load demo/lines" in ended.message["error"]
