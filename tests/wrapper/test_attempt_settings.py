"""What an attempt makes of its variables and mounts, and where the secrets in them may be seen: nowhere."""

from __future__ import annotations

import json
import pathlib

from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.testbed.plugin.s3 import Account, Store
from tests.wrapper import pods, volumes


def test_every_variable_that_is_wrong_is_named_in_one_message_and_the_attempt_is_the_last(
    s3: Store, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path)

    ended = pod.run(
        VOLUME_REF="../other",
        IMAGES="ftp://127.0.0.1/1.jpg file:///etc/passwd",
        IIIF_MANIFEST_URL="https://iiif.example.org/manifest",
        PIPELINE_PATH=str(tmp_path / "nothing.yaml"),
        S3_BUCKET="",
        INDEX_FAILURE_COUNT="many",
        LOOKAHEAD_PAGES="0",
        FETCH_MAX_BYTES="16MiB",
        PAGE_SECONDS="nan",
        LOW_CONFIDENCE="2",
        S3_VERIFY_TLS="no",
        FETCH_HEADERS="Authorization: Bearer secret",
        RESULTS_URL="results",
    )

    assert ended.code == 13, ended.log
    assert ended.message is not None
    assert (ended.message["stage"], ended.message["permanent"]) == ("config", True)
    said = [sentence.partition(" — ")[0] for sentence in ended.message["error"].split("; ")]
    assert said == [
        f"the pipeline {tmp_path}/nothing.yaml cannot be read: No such file or directory",
        "both IIIF_MANIFEST_URL and IMAGES are set",
        "an address of the volume is not absolute http or https",
        "S3_VERIFY_TLS is 'no'",
        "the variable S3_BUCKET is missing",
        "the variable INDEX_FAILURE_COUNT is 'many'",
        "the variable FETCH_MAX_BYTES is '16MiB'",
        'FETCH_HEADERS is not JSON of the form {"host": {"Header-Name": "value"}}',
        "the variable LOOKAHEAD_PAGES is '0'",
        "the variable PAGE_SECONDS is 'nan'",
        "the variable LOW_CONFIDENCE is '2'",
        "the volume id '../other' cannot be a folder in the bucket",
        "RESULTS_URL is not absolute http or https",
    ]
    assert "Bearer" not in ended.log
    assert pod.objects() == {}


def test_variables_that_are_missing_are_named_in_one_message(s3: Store, tmp_path: pathlib.Path) -> None:
    names = ("VOLUME_REF", "PIPELINE_ID", "S3_PREFIX", "S3_BUCKET")
    ended = pods.Pod(s3, tmp_path).run(**dict.fromkeys(names, ""))

    assert ended.code == 13, ended.log
    assert ended.message is not None
    said = set(ended.message["error"].split("; "))
    assert said == {
        *(f"the variable {name} is missing — the rendered Job sets it" for name in names),
        "neither IIIF_MANIFEST_URL nor IMAGES is set — the rendered Job sets one of them from its line of volumes.txt",
    }


def test_a_store_or_a_work_directory_that_cannot_be_used_is_said_in_one_sentence(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    manifest = pods.serve_volume(misbehaving_http, 2)
    stranger = Store(s3.url, {"root": s3.root, "writer": Account(s3.writer.access, "wrong"), "reader": s3.reader})
    cases = {
        # A folder in which nobody may make another one.
        "WORKDIR_PATH": ("/sys/kernel", 1, "the work directory /sys/kernel cannot be used: "),
        "S3_BUCKET": ("no-such-bucket", 13, "there is no such bucket — check S3_BUCKET"),
        "S3_ENDPOINT": ("store.example.org", 13, "cannot be the address of a store"),
        "AWS_SHARED_CREDENTIALS_FILE": ("/nowhere", 13, "no keys of the store in /nowhere"),
        "FETCH_CONTACT": ("mailto:snö\N{SNOWMAN}", 13, "the contact"),
        "": ("", 13, "the secret key is not the one of the access key — check aws_secret_access_key"),
    }
    for number, (name, (value, code, words)) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        pod = pods.Pod(s3 if name else stranger, folder, manifest)

        ended = pod.run(**{name: value} if name else {})

        assert ended.code == code, ended.log
        assert ended.message is not None
        assert words in ended.message["error"]
        assert ended.message["error"] in ended.log
        assert "Traceback" not in ended.log


def test_no_secret_of_an_address_or_a_header_is_in_what_anyone_may_read(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    http = misbehaving_http
    hidden, query = http.url.replace("http://", "http://reader:hush-word@"), "?token=hush-token"
    http.put("/s/1.jpg", pods.picture(1))
    http.put("/s/2.jpg", Answer("", 404))
    http.redirect("/s/3.jpg", f"{hidden}/s/moved.jpg{query}")
    http.put("/s/moved.jpg", "<html>")
    http.put("/s/4.jpg", Answer("", 503, {"Retry-After": "0"}))
    http.put("/s/5.jpg", b"\xff\xd8\xff\xe0 broken")
    pods.serve_manifest(http, [volumes.image(f"{hidden}/s/{number}.jpg{query}") for number in range(1, 6)], "s")
    host = http.url.removeprefix("http://")
    headers = json.dumps({host: {"X-Key": "hush-header"}})
    pod = pods.Pod(s3, tmp_path, f"{hidden}/s/manifest.json{query}", variables={"FETCH_HEADERS": headers})

    first = pod.run()
    last = pod.run(INDEX_FAILURE_COUNT="3")

    assert (first.code, last.code) == (1, 0), last.log
    assert {request.headers.get("X-Key") for request in http.requests} == {"hush-header"}
    assert volumes.became(pod) == ["done", "fetch", "fetch", "fetch", "image"]
    found = volumes.holds_to_its_schemas(pod)
    texts = {key: content.decode() for key, content in found.items()}
    texts |= {"first": first.log, "last": last.log, "message": json.dumps(first.message)}
    seen = {name for name, text in texts.items() if "hush" in text or s3.writer.secret in text}
    # A viewer has to fetch the images, and there are servers that know an image by its query.
    assert seen == {f"{pod.prefix}iiif.json"}
    shown = texts[f"{pod.prefix}iiif.json"]
    assert "hush-word" not in shown
    assert "hush-header" not in shown


def test_a_pipeline_that_the_library_cannot_build_ends_the_volume_for_good(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    manifest = pods.serve_volume(misbehaving_http, 2)
    pod = pods.Pod(s3, tmp_path, manifest, engine="", steps=b"steps:\n- step: Segmentations\n")

    ended = pod.run()

    assert ended.code == 13, ended.log
    assert ended.message is not None
    assert (ended.message["stage"], ended.message["permanent"]) == ("load", True)
    assert "the pipeline cannot be built: " in ended.message["error"]
    assert pod.json("progress.json")["state"] == "failed"


def test_without_an_address_for_results_documents_name_the_store_but_not_its_password(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 2))
    endpoint = s3.url.replace("http://", "http://reader:hush-word@")

    ended = pod.run(RESULTS_URL="", S3_ENDPOINT=endpoint)

    assert ended.code == 0, ended.log
    assert pod.json("iiif.json")["id"] == f"{s3.url}/{s3.bucket}/{pod.prefix}iiif.json"
    seen = [*pod.objects().values(), ended.log.encode()]
    assert not any(b"hush-word" in content for content in seen)


def test_settings_of_the_secret_are_read_from_the_files_beside_the_keys(
    s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    pod = pods.Pod(s3, tmp_path, pods.serve_volume(misbehaving_http, 2))
    pod.environment()
    host = misbehaving_http.url.removeprefix("http://")
    (tmp_path / "secret/FETCH_HEADERS").write_text(json.dumps({host: {"Authorization": "Bearer of-the-secret"}}))
    (tmp_path / "secret/FETCH_CONTACT").write_text("mailto:htr@example.org\n")

    ended = pod.run()

    assert ended.code == 0, ended.log
    assert {request.headers["Authorization"] for request in misbehaving_http.requests} == {"Bearer of-the-secret"}
    assert all("(+mailto:htr@example.org)" in request.headers["User-Agent"] for request in misbehaving_http.requests)
    assert "of-the-secret" not in ended.log
