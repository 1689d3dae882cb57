"""Steps of the library that fail: what becomes of their page, and that the others come out."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods
from tests.wrapper.engines import broken_texts as texts

pytestmark = pytest.mark.slow

#: The step, and the words of the reason for which page 3 fails; none where the page comes out all the same.
FAILING = {
    "Raise": "RuntimeError: CUDA error",
    "Hang": "did not finish in 2 s",
    "WaitForDeadThread": "did not finish in 2 s",
    "Exit": "SIGKILL, as when memory runs out",
    "EndThread": "exit code 70",
    "Nothing": "returned other pages than it was given",
    "TextOnPage": "The ALTO file holds 0 lines of text, but 1 were recognised",
    "Markup": "not well-formed",
}


@pytest.mark.parametrize("step", FAILING)
def test_a_page_on_which_a_step_fails_is_recorded_with_the_reason_and_the_others_come_out(
    step: str, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = _pod(step, s3, misbehaving_http, tmp_path)

    ended = pod.run()

    assert ended.code == 0, ended.log
    pages = pod.json("manifest.json")["pages"]
    assert [page["state"] for page in pages] == ["text", "text", "failed", "text", "text", "text"]
    assert pages[2]["cause"] == ("result" if step in ("TextOnPage", "Markup") else "model")
    assert FAILING[step] in pages[2]["reason"]
    written = {key.removeprefix(pod.prefix) for key in pod.objects(pod.prefix)}
    assert {name for name in written if "0003" in name} == set()
    assert {name for name in written if name.startswith("alto/")} == {
        f"alto/000{number}.xml" for number in (1, 2, 4, 5, 6)
    }


def test_characters_that_xml_cannot_hold_are_taken_out_and_those_it_reserves_are_kept(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = _pod("Characters", s3, misbehaving_http, tmp_path)

    ended = pod.run()

    assert ended.code == 0, ended.log
    assert texts.of(pod, 3) == [texts.LINES[0], "hölls laga & <ting>", texts.LINES[2]]
    assert all(texts.of(pod, number) == list(texts.LINES) for number in (1, 2, 4, 5, 6))


def test_a_line_without_text_does_not_take_its_region_with_it(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = _pod("EmptyLine", s3, misbehaving_http, tmp_path)

    ended = pod.run()

    assert ended.code == 0, ended.log
    assert texts.of(pod, 3) == [texts.LINES[0], texts.LINES[2]]
    assert all(texts.of(pod, number) == list(texts.LINES) for number in (1, 2, 4, 5, 6))


def _pod(step: str, s3: Store, http: MisbehavingHttp, folder: pathlib.Path) -> pods.Pod:
    steps = yaml.safe_dump({"steps": [{"step": "Lines"}, {"step": step, "settings": {"pages": [3]}}]}).encode()
    manifest = pods.serve_volume(http, 6)
    return pods.Pod(s3, folder, manifest, engine="broken", steps=steps, variables={"PAGE_SECONDS": "2"})
