"""One attempt at a volume and the ones after it: what they write, in which order, and what they do not do again."""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import typing as t

from htrflow_batch import provenance
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import pods, volumes
from tests.wrapper.watched_store import WatchedStore

OTHER_IMAGE = f"registry.example.org/htrflow-batch@sha256:{'b' * 64}"


def test_a_volume_is_written_page_by_page_with_its_manifest_last_and_says_what_made_it(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    watched = WatchedStore(s3.url)
    manifest = pods.serve_volume(misbehaving_http, 23).replace("http://", "http://reader:secret@") + "?token=secret"
    pod = pods.Pod(s3, tmp_path, manifest, engine="slow", url=watched.url)

    ended = pod.run()
    watched.close()

    assert (ended.code, ended.message) == (0, None), ended.log
    found = volumes.holds_to_its_schemas(pod)
    names = {f"{kind}/{number:04}" for kind in ("page", "alto", "annotations") for number in range(1, 24)}
    expected = {f"{pod.prefix}{name}.{'json' if name.startswith('ann') else 'xml'}" for name in names}
    expected |= {f"{pod.prefix}{name}" for name in ("progress.json", "iiif.json", "pipeline.yaml", "manifest.json")}
    assert set(found) == {*expected, f"htr-batch/status/logs/demo-v1/{pod.volume}.txt"}
    assert found[f"{pod.prefix}pipeline.yaml"] == pods.STEPS

    order = [key.removeprefix(pod.prefix) for key in watched.order]
    for number in range(1, 24):
        kinds = (f"page/{number:04}.xml", f"annotations/{number:04}.json", f"alto/{number:04}.xml")
        assert order.index(kinds[0]) < order.index(kinds[1]) < order.index(kinds[2])
    last_page = max(place for place, name in enumerate(order) if name.startswith("alto/"))
    assert {"progress.json", "iiif.json"} <= set(order[:last_page])
    assert order[last_page + 1 :][-5:] == [
        "iiif.json",
        "pipeline.yaml",
        "progress.json",
        "manifest.json",
        f"htr-batch/status/logs/demo-v1/{pod.volume}.txt",
    ]

    steps = hashlib.sha256(pods.STEPS).hexdigest()
    recipe = hashlib.sha256(f"{pods.IMAGE}\n".encode() + pods.STEPS).hexdigest()
    made_by = {
        "image": (pods.IMAGE,),
        "pipeline": ("demo-v1",),
        "pipeline_sha256": (steps,),
        "recipe": (recipe,),
        "engine": ("quick 1.0",),
        "model": (f"demo/quick@{'0' * 40}",),
        "campaign": ("demo",),
    }
    digests = {page["page"]: page["sha256"] for page in pod.json("manifest.json")["pages"]}
    for number in range(1, 24):
        alto = found[f"{pod.prefix}alto/{number:04}.xml"]
        source = (f"{misbehaving_http.url}/volume/{number}.jpg",)
        assert provenance.stated(alto) == {**made_by, "source": source}
        in_page = volumes.stated_in_page(found[f"{pod.prefix}page/{number:04}.xml"])
        assert {name: tuple(values) for name, values in in_page.items()} == {**made_by, "source": source}
        assert digests[number] == hashlib.sha256(alto).hexdigest()
        assert b"<softwareVersion>" in alto
    about = pod.json("manifest.json")
    assert about["pipeline"]["models"] == [{"name": "demo/quick", "revision": "0" * 40}]
    assert about["source"]["url"] == f"{misbehaving_http.url}/volume/manifest.json?…".replace("http://", "http://…@")
    assert pod.json("progress.json")["state"] == "finished"
    run_log = found[f"htr-batch/status/logs/demo-v1/{pod.volume}.txt"].decode()
    assert run_log.startswith("=== attempt ")
    assert run_log.partition("\n")[2] == ended.log


def test_a_list_of_images_has_its_manifest_in_the_bucket_before_its_first_page(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    watched = WatchedStore(s3.url)
    for number in (1, 2, 3):
        misbehaving_http.put(f"/scans/{number}.jpg", pods.picture(number))
    with_secrets = misbehaving_http.url.replace("http://", "http://reader:pass-word@")
    addresses = [
        f"{misbehaving_http.url}/scans/1.jpg",
        f"{with_secrets}/scans/2.jpg",
        f"{misbehaving_http.url}/scans/3.jpg?size=full,2500",
    ]
    pod = pods.Pod(s3, tmp_path, url=watched.url, variables={"IMAGES": " ".join(addresses)})

    ended = pod.run()
    watched.close()

    assert ended.code == 0, ended.log
    found = volumes.holds_to_its_schemas(pod)
    source = f"htr-batch/sources/demo-v1/{pod.volume}/manifest.json"
    assert watched.order[0] == source
    assert watched.written[source] == 1
    assert volumes.became(pod) == ["done"] * 3
    assert {key for key, content in found.items() if b"pass-word" in content} == set()
    canvases = json.loads(found[source])["items"]
    assert [canvas["id"] for canvas in pod.json("iiif.json")["items"]] == [canvas["id"] for canvas in canvases]
    shown = [canvas["items"][0]["items"][0]["body"]["id"] for canvas in canvases]
    assert shown == [addresses[0], f"{misbehaving_http.url}/scans/2.jpg", addresses[2]]
    asked = {request.path: request.headers.get("Authorization") for request in misbehaving_http.requests}
    assert asked["/scans/2.jpg"] == "Basic cmVhZGVyOnBhc3Mtd29yZA=="
    assert asked["/scans/3.jpg?size=full,2500"] is None


def test_an_attempt_at_a_finished_volume_reads_nothing_and_publishes_the_same(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 12))
    assert pod.run().code == 0
    before = _timeless(pod)
    misbehaving_http.requests.clear()

    ended = pod.run()

    assert ended.code == 0, ended.log
    assert [request.path for request in misbehaving_http.requests] == ["/volume/manifest.json"]
    assert "loaded its models" not in ended.log
    assert _timeless(pod) == before
    # The log of the first attempt stays in front of that of the second.
    run_log = pod.objects()[f"htr-batch/status/logs/demo-v1/{pod.volume}.txt"].decode()
    assert run_log.count("=== attempt ") == 2


def test_a_page_that_failed_before_is_tried_again_and_what_is_published_stays_the_same(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    good = [(pods.picture(number),) for number in range(1, 4)]
    pod = pods.Pod(s3, tmp_path, volumes.pages(misbehaving_http, *good, (Answer("", 404),)))
    assert pod.run().code == 0
    before = _timeless(pod)
    misbehaving_http.requests.clear()

    # Its models take their time to load, and no page needs them in the end.
    ended = pod.run(ENGINE="tests.wrapper.engines.late")

    assert ended.code == 0, ended.log
    assert [request.path for request in misbehaving_http.requests] == ["/volume/manifest.json", "/volume/4.jpg"]
    assert _timeless(pod) == before


def test_pages_are_made_again_if_their_recipe_source_or_metadata_is_another_and_no_others_are(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    bodies = [
        volumes.image(misbehaving_http.put(f"/volume/{number}.jpg", pods.picture(number))) for number in range(1, 7)
    ]
    pod = pods.Pod(s3, tmp_path, pods.serve_manifest(misbehaving_http, bodies))
    assert _read_by(pod) == [1, 2, 3, 4, 5, 6]

    bodies[2] = volumes.image(misbehaving_http.put("/volume/3-new.jpg", pods.picture(33)))
    pods.serve_manifest(misbehaving_http, bodies)
    assert _read_by(pod) == [3]
    key = f"{pod.prefix}alto/0003.xml"
    assert provenance.stated(pod.objects(key)[key])["source"] == (f"{misbehaving_http.url}/volume/3-new.jpg",)

    client = s3.client(s3.writer)
    key = f"{pod.prefix}alto/0005.xml"
    client.put_object(Bucket=s3.bucket, Key=key, Body=pod.objects(key)[key], ContentType="application/xml")
    client.delete_object(Bucket=s3.bucket, Key=f"{pod.prefix}page/0006.xml")
    client.close()
    assert _read_by(pod) == [5, 6]

    assert _read_by(pod, IMAGE_DIGEST=OTHER_IMAGE) == [1, 2, 3, 4, 5, 6]
    recipe = hashlib.sha256(f"{OTHER_IMAGE}\n".encode() + pods.STEPS).hexdigest()
    assert pod.json("manifest.json")["pipeline"]["recipe_sha256"] == recipe
    altos = pod.objects(f"{pod.prefix}alto/")
    assert {provenance.stated(content)["recipe"] for content in altos.values()} == {(recipe,)}

    assert _read_by(pod, IMAGE_DIGEST=OTHER_IMAGE, MAX_IMAGE_WIDTH="150") == [1, 2, 3, 4, 5, 6]
    assert _read_by(pod, IMAGE_DIGEST=OTHER_IMAGE, MAX_IMAGE_WIDTH="150") == []
    assert pod.json("manifest.json")["pages"][0]["width"] == 150


def test_a_page_that_attempts_ended_on_is_read_last_and_alone_and_in_the_last_attempt_not_at_all(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 6), engine="slow")
    groups = tmp_path / "work/home/groups"
    _left(pod, active=[2, 3])
    ended = pod.run(INDEX_FAILURE_COUNT="1")
    assert ended.code == 0, ended.log
    asked = groups.read_text().splitlines()
    assert asked[-2:] == ["[2]", "[3]"]
    assert sorted(number for group in asked[:-2] for number in json.loads(group)) == [1, 4, 5, 6]

    other = pods.Pod(s3, tmp_path, pod.manifest, volume="R0001204", engine="slow")
    _left(other, active=[2])
    groups.unlink()
    ended = other.run(INDEX_FAILURE_COUNT="3")
    assert ended.code == 0, ended.log
    assert volumes.became(other) == ["done", "model", "done", "done", "done", "done"]
    failed = other.json("manifest.json")["pages"][1]
    assert "Earlier attempts ended without a word" in failed["reason"]
    assert not any(2 in json.loads(group) for group in groups.read_text().splitlines())


def test_pages_that_are_in_doubt_do_not_keep_others_from_coming(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    manifest = pods.serve_volume(misbehaving_http, 4)
    # Two pages failed before, and come one by one: the second when nothing is left of the first.
    pod = pods.Pod(s3, tmp_path, manifest, engine="failing")
    _left(pod, active=[], failed=[2, 3])
    ended = pod.wait(pod.start(INDEX_FAILURE_COUNT="1"), 30)
    assert ended.code == 1, ended.log
    assert pod.json("progress.json")["counts"]["failed"] == 4

    # The window has room for a single page, and that one is in doubt.
    other = pods.Pod(s3, tmp_path, manifest, volume="R0001204", engine="failing")
    ended = other.wait(other.start(LOOKAHEAD_PAGES="1"), 30)
    assert ended.code == 1, ended.log
    assert other.json("progress.json")["counts"]["failed"] == 4


def _left(pod: pods.Pod, active: list[int], failed: t.Sequence[int] = ()) -> None:
    """What an attempt leaves that was killed while the model had some pages and had failed on others."""
    client = pod.store.client(pod.store.writer)
    causes = [{"page": number, "cause": "model"} for number in failed]
    progress = json.dumps({"state": "running", "active": active, "failed": causes})
    client.put_object(Bucket=pod.store.bucket, Key=f"{pod.prefix}progress.json", Body=progress.encode())
    client.close()


def _read_by(pod: pods.Pod, **variables: str) -> list[int]:
    """The pages that an attempt reads."""
    ended = pod.run(**variables)
    assert ended.code == 0, ended.log
    assert set(volumes.became(pod)) == {"done"}
    return sorted(int(number) for number in re.findall(r"page (\d+) done:", ended.log))


def _timeless(pod: pods.Pod) -> dict[str, str]:
    """What is in the bucket, without times and without the run log."""
    return {
        key: re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"|"pages_per_hour":[0-9a-z.]+', "TIME", content.decode())
        for key, content in pod.objects().items()
        if not key.endswith(".txt")
    }
