"""The warm-up: it fills the cache from a Hub, proves that it is enough, and says so last; and what it says when not."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

import pytest
import yaml

from htrflow_batch import alto
from tests.models import drawing, hub, pipeline
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store
from tests.wrapper import ledgers, pods, volumes
from tests.wrapper.hub_server import HubServer

pytestmark = pytest.mark.slow

TOKEN = "hf_hush-token"  # noqa: S105


@dataclasses.dataclass
class WarmUp:
    """The warm-up Job's container, with its mounts in ``folder``."""

    folder: pathlib.Path
    url: str
    steps: bytes

    @property
    def marker(self) -> pathlib.Path:
        return self.folder / "data/warmup/demo-v1.done"

    def start(self, **variables: str) -> subprocess.Popen[bytes]:
        work = self.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        (self.folder / "pipeline.yaml").write_bytes(self.steps)
        (self.folder / "termination-log").unlink(missing_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(pods.REPO),
            "PYTHONUTF8": "1",
            "PIPELINE_PATH": str(self.folder / "pipeline.yaml"),
            "PIPELINE_ID": "demo-v1",
            "IMAGE_DIGEST": pods.IMAGE,
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(self.folder / "data/hf"),
            "HOME": str(work / "home"),
            "YOLO_CONFIG_DIR": str(work / "ultralytics"),
            "WORKDIR_PATH": str(work),
            "TERMINATION_MESSAGE_PATH": str(self.folder / "termination-log"),
            **variables,
        }
        with open(self.folder / "printed", "wb") as printed:
            return subprocess.Popen(
                [sys.executable, "-m", "htrflow_batch.warmup"],
                env=environment,
                cwd=self.folder,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def run(self, **variables: str) -> pods.Ended:
        process = self.start(**variables)
        code = process.wait(180)
        path = self.folder / "termination-log"
        return pods.Ended(code, json.loads(path.read_text()) if path.exists() else None, self.printed())

    def printed(self) -> str:
        return (self.folder / "printed").read_text(encoding="utf-8", errors="replace")


@pytest.fixture
def server() -> t.Iterator[HubServer]:
    made = HubServer.of_the_demo()
    yield made
    made.close()


def test_a_warm_up_that_was_killed_goes_on_without_a_download_and_the_wrapper_reads_from_its_cache_offline(
    server: HubServer, s3: Store, misbehaving_http: MisbehavingHttp, tmp_path: pathlib.Path
) -> None:
    server.gated = {hub.REPOSITORIES["text"]}
    steps = yaml.safe_dump(pipeline.steps(server.revisions)).encode()
    warm_up = WarmUp(tmp_path, server.url, steps)

    process = warm_up.start(HF_TOKEN=TOKEN)
    _wait_until(lambda: "loading them again without a network" in warm_up.printed(), 120)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert not warm_up.marker.exists()
    files = {
        f"/{repository}/resolve/{server.revisions[repository]}/{path.name}"
        for name, repository in hub.REPOSITORIES.items()
        for path in (hub.WEIGHTS / name).iterdir()
    }
    downloaded = set(server.downloads)
    assert downloaded <= files
    assert {path for path in files if path.endswith((".pt", ".safetensors"))} <= downloaded
    assert server.tokens == {f"Bearer {TOKEN}"}
    printed = warm_up.printed()

    server.requests.clear()
    ended = warm_up.run(HF_TOKEN=TOKEN)
    assert (ended.code, ended.message) == (0, None), ended.log
    assert server.downloads == []
    said = json.loads(warm_up.marker.read_text())
    assert ledgers.faults(said, "warmup-marker") == []
    assert [path.name for path in warm_up.marker.parent.iterdir()] == ["demo-v1.done"]
    assert {model["name"]: model["revision"] for model in said["models"]} == server.revisions
    newest = max(path.stat().st_mtime for path in (tmp_path / "data/hf").rglob("*") if path.is_file())
    assert warm_up.marker.stat().st_mtime >= newest
    kept = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN not in printed + ended.log + kept

    server.requests.clear()
    drawn = [drawing.page(seed) for seed in (1, 2)]
    manifest = volumes.pages(misbehaving_http, *([_jpeg(page.image)] for page in drawn))
    (tmp_path / "pod").mkdir()
    environment = {"HF_HOME": str(tmp_path / "data/hf"), "HF_ENDPOINT": server.url}
    pod = pods.Pod(s3, tmp_path / "pod", manifest, engine="", steps=steps, variables=environment)
    read = pod.run()
    assert read.code == 0, read.log
    assert server.requests == []
    assert volumes.became(pod) == ["done", "done"]
    assert pod.json("manifest.json")["pipeline"]["models"] == said["models"]
    assert pod.json("manifest.json")["pipeline"]["recipe_sha256"] == said["recipe_sha256"]
    texts = [alto.text_of(content) for content in pod.objects(f"{pod.prefix}alto/").values()]
    assert all(len(text) > 100 for text in texts), texts


#: What is wrong, the exit code, and the sentence.
REFUSALS = {
    "unknown model": (13, "cannot load demo/nothing: there is no such model, or it is private — check its name"),
    "unknown revision": (13, "cannot load demo/regions: the model has no such revision"),
    "gated": (13, "cannot load demo/regions: the model is only for those who asked for it"),
    "forbidden": (13, "cannot load demo/regions: the Hub refuses it — give the token of hf_token_secret the right"),
    "no weights": (13, "cannot load demo/regions: the model has no file of its kind"),
    "no processor": (13, "cannot load demo/text: the model lacks a file that its loader reads"),
    "no such step": (13, "the pipeline cannot be built: "),
    "no YAML": (13, "pipeline.yaml is no YAML"),
    "Hub 503": (1, "cannot load demo/regions: "),
    "Hub away": (1, "cannot load demo/regions: "),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_warm_up_that_fails_says_in_a_sentence_why_and_writes_no_marker(
    what: str, server: HubServer, tmp_path: pathlib.Path
) -> None:
    code, sentence = REFUSALS[what]
    steps = _spoilt(what, server, tmp_path)
    warm_up = WarmUp(tmp_path, "http://127.0.0.1:9" if what == "Hub away" else server.url, steps)

    ended = warm_up.run(HF_TOKEN=TOKEN) if what == "forbidden" else warm_up.run()

    assert ended.code == code, ended.log
    assert ended.message is not None
    assert ledgers.faults(ended.message, "termination") == []
    assert (ended.message["stage"], ended.message["permanent"]) == ("warmup", code == 13)
    assert sentence in ended.message["error"], ended.message
    assert ended.message["error"] in ended.log
    assert TOKEN not in ended.log + json.dumps(ended.message)
    assert not warm_up.marker.parent.exists()


def _spoilt(what: str, server: HubServer, folder: pathlib.Path) -> bytes:
    if what == "no YAML":
        return b"steps: [\n"
    regions, _, text, _ = pipeline.steps(server.revisions)["steps"]
    step = text if what == "no processor" else regions
    settings = step["settings"]["model_settings"]
    match what:
        case "unknown model":
            settings["model"] = "demo/nothing"
        case "unknown revision":
            settings["revision"] = "f" * 40
        case "gated":
            server.gated.add("demo/regions")
        case "forbidden":
            server.refusing = 403
        case "no weights":
            _without(server, "demo/regions", "model.pt", folder)
            settings["revision"] = server.revisions["demo/regions"]
        case "no processor":
            _without(server, "demo/text", "preprocessor_config.json", folder)
            revision = {"revision": server.revisions["demo/text"]}
            settings.update(model_kwargs=revision, processor_kwargs=dict(revision))
        case "no such step":
            step["step"] = "Segmentations"
        case "Hub 503":
            server.refusing = 503
    return yaml.safe_dump({"steps": [step]}).encode()


def _without(server: HubServer, repository: str, name: str, folder: pathlib.Path) -> None:
    """Takes a file out of a repository."""
    copy = folder / "repository"
    copy.mkdir()
    for path in server.repositories[repository].iterdir():
        if path.name != name:
            (copy / path.name).symlink_to(path)
    (copy / "README.md").write_text("# A model\n")
    server.repositories[repository] = copy
    server.revisions[repository] = hub.revision(copy)


def _jpeg(image: t.Any) -> bytes:
    written = io.BytesIO()
    image.save(written, "JPEG", quality=90)
    return written.getvalue()


def _wait_until(condition: t.Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
