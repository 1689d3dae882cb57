"""The demo, from the campaigns repo to text beside the page image, with the code of a fresh clone."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing as t
from collections import abc

import jiwer
import pytest
import requests

from htrflow_batch import alto
from tests.demo import repo
from tests.demo.archive import VOLUMES, Archive
from tests.testbed.plugin.s3 import Store
from tests.wrapper.hub_server import HubServer

pytestmark = pytest.mark.slow

TOP = pathlib.Path(__file__).parents[2]
#: Of the characters that are drawn. The models alone reach 2 to 3 %.
MOST_ERRORS = 0.06


@pytest.fixture
def clone(tmp_path: pathlib.Path) -> pathlib.Path:
    """What a clone would have of this checkout."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=TOP, capture_output=True, check=True)
    folder = tmp_path / "clone"
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_file():
            shutil.copy2(TOP / name, target)
    return folder


@pytest.fixture
def archive() -> abc.Iterator[Archive]:
    served = Archive()
    yield served
    served.close()


@pytest.fixture
def hub() -> abc.Iterator[HubServer]:
    served = HubServer.of_the_demo()
    yield served
    served.close()


def test_the_demo_reads_two_volumes_and_accounts_for_every_page(
    clone: pathlib.Path, archive: Archive, hub: HubServer, tmp_path: pathlib.Path, record_property: t.Any
) -> None:
    repo.write(tmp_path / "demo/repo", archive, hub)

    done = _local(clone, tmp_path, hub)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "demo: partially succeeded" in done.stdout
    drawn, read = list[str](), list[str]()
    for name, (_, sheets) in VOLUMES.items():
        results = tmp_path / "demo/data/results/demo/demo-v1" / name
        manifest = json.loads((results / "manifest.json").read_text())
        blank = [number for number, sheet in enumerate(sheets, 1) if not sheet.face]
        lost = [number for number, sheet in enumerate(sheets, 1) if sheet.lost]
        states = {page["page"]: page["state"] for page in manifest["pages"]}
        assert list(states) == list(range(1, len(sheets) + 1))
        assert [number for number, state in states.items() if state == "no_text"] == blank
        assert [number for number, state in states.items() if state == "failed"] == lost
        for page in manifest["pages"]:
            if page["state"] == "failed":
                assert "answered 404 Not Found" in page["reason"]
        for number, sheet in enumerate(sheets, 1):
            if number not in lost:
                text = alto.text_of((results / f"alto/{number:04}.xml").read_bytes())
                drawn += [sheet.drawn().text] if sheet.face else []
                read += [text] if sheet.face else []
        _check_viewer(results, [number for number in states if number not in lost])
    rate = jiwer.cer(drawn, read)
    record_property("character error rate", f"{rate:.3f}")
    assert rate <= MOST_ERRORS


def test_results_go_to_a_bucket_that_is_named(
    clone: pathlib.Path, archive: Archive, hub: HubServer, s3: Store, tmp_path: pathlib.Path
) -> None:
    repo.write(tmp_path / "demo/repo", archive, hub, ["brev-1802"])
    keys = f"aws_access_key_id = {s3.writer.access}\naws_secret_access_key = {s3.writer.secret}\n"
    (tmp_path / "keys").write_text(f"[default]\n{keys}")

    done = _local(clone, tmp_path, hub, "--s3", f"{s3.url}/{s3.bucket}", "--credentials", "keys")

    assert done.returncode == 0, done.stdout + done.stderr
    client = s3.client(s3.reader)
    listed = client.list_objects_v2(Bucket=s3.bucket, Prefix="demo/demo-v1/brev-1802/")["Contents"]
    written = {row["Key"].removeprefix("demo/demo-v1/brev-1802/") for row in listed}
    assert {"manifest.json", "iiif.json", "alto/0001.xml", "page/0001.xml", "annotations/0001.json"} <= written
    assert not list((tmp_path / "demo/data/results").iterdir())
    assert s3.writer.secret not in done.stdout + done.stderr
    kept = [path.read_text() for path in (tmp_path / "demo/data").rglob("*.json") if path.is_file()]
    assert not any(s3.writer.secret in text for text in kept)


def _local(clone: pathlib.Path, folder: pathlib.Path, hub: HubServer, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs the demo's repo in a folder, with the code of the clone."""
    command = [sys.executable, "-m", "htrflow_campaigns", "local", "demo/repo", "--data", "demo/data"]
    path = os.pathsep.join(str(clone / name) for name in ("cmp-plugin", "wrapper"))
    return subprocess.run(
        [*command, "--port", "0", "--slots", "1", "--once", *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HF_ENDPOINT": hub.url},
        capture_output=True,
        text=True,
        timeout=300,
    )


def _check_viewer(results: pathlib.Path, pages: list[int]) -> None:
    """What a viewer would load: images from the archive, the text from the results."""
    iiif = json.loads((results / "iiif.json").read_text())
    assert len(iiif["items"]) == len(pages)
    for number, canvas in zip(pages, iiif["items"], strict=True):
        body = canvas["items"][0]["items"][0]["body"]
        answer = requests.get(body["id"], timeout=10)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/jpeg")
        assert (canvas["width"], canvas["height"]) == (body["width"], body["height"])
        (page,) = canvas["annotations"]
        assert page["id"].endswith(f"/results/demo/demo-v1/{results.name}/annotations/{number:04}.json")
        annotations = json.loads((results / f"annotations/{number:04}.json").read_text())
        assert all(one["target"].startswith(f"{canvas['id']}#xywh=") for one in annotations["items"])


def test_the_demo_can_be_started_again_and_has_everything_that_it_had(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "tests.demo", str(tmp_path / "demo")]
    texts = []
    for _ in range(2):
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "put them back" not in done.stdout
        iiif = tmp_path / "demo/data/results/demo/demo-v1/brev-1802/iiif.json"
        texts.append((iiif.read_text(), iiif.stat().st_mtime_ns))

    assert texts[0] == texts[1]
