"""A data folder as ``htrflow-campaigns local`` leaves it: campaigns in several states, one volume really read."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

from htrflow_campaigns import names
from htrflow_campaigns.local.data import Data
from htrflow_campaigns.local.job import Ended, Job, Object, timestamp
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.wrapper import pods

NAMESPACE, PIPELINE, VOLUME, PAGES = "demo", "demo-v1", "R0001203", 7
_REVISION = "7c44178d85926b4a096c55c89bf224855a201fbf"
_STEPS = f"""\
steps:
- step: Segmentation
  settings:
    model: yolo
    model_settings: {{model: Riksarkivet/yolov9-regions-1, revision: {_REVISION}}}
- step: TextRecognition
  settings:
    model: TrOCR
    model_settings: {{model: Riksarkivet/trocr-base-handwritten-hist-swe-2}}
"""


def make(folder: pathlib.Path, http: MisbehavingHttp) -> pathlib.Path:
    """Makes the folder below ``folder``. Page 5 of the volume is not to be had."""
    manifest = pods.serve_volume(http, PAGES)
    http.put("/volume/5.jpg", b"<html>gone")
    data = Data(folder / "data")
    read(folder, data.results, manifest)
    _job(data, "letters", [VOLUME, "R0001204"], manifest, done=[0], failed=[1])
    _job(data, "parish", [VOLUME], manifest, done=[0])
    _job(data, "waiting", [f"R{number:07}" for number in range(2000, 2150)], manifest)
    data.close()
    return folder / "data"


def read(folder: pathlib.Path, results: pathlib.Path, manifest: str) -> None:
    """Has the wrapper read the volume into ``results``, with an engine that takes no time."""
    work = folder / "work"
    work.mkdir()
    (folder / "pipeline.yaml").write_text(_STEPS, encoding="utf-8")
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(pods.REPO),
        "PIPELINE_PATH": str(folder / "pipeline.yaml"),
        "PIPELINE_ID": PIPELINE,
        "S3_PREFIX": f"{NAMESPACE}/",
        "IMAGE_DIGEST": pods.IMAGE,
        "CAMPAIGN": "letters",
        "RESULTS_URL": "https://htr.example.org/results",
        "RESULTS_FOLDER": str(results),
        "WORKDIR_PATH": str(work),
        "VOLUME_REF": VOLUME,
        "IIIF_MANIFEST_URL": manifest,
        "ENGINE": "tests.wrapper.engines.quick",
        "TERMINATION_MESSAGE_PATH": str(folder / "termination-log"),
    }
    subprocess.run([sys.executable, "-m", "htrflow_batch"], env=variables, check=True, capture_output=True, timeout=60)


def _job(
    data: Data,
    name: str,
    volumes: list[str],
    manifest: str,
    done: list[int] | None = None,
    failed: list[int] | None = None,
) -> None:
    now = time.time()
    labels = {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.CAMPAIGN_LABEL: name,
        names.PIPELINE_LABEL: PIPELINE,
        names.QUEUE_LABEL: "demo",
    }
    spec: Object = {
        "completionMode": "Indexed",
        "completions": len(volumes),
        "parallelism": 2,
        "backoffLimitPerIndex": 0,
        "template": {"spec": {"containers": [{"name": "wrapper", "image": pods.IMAGE}]}},
    }
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": labels}
    job = Job({"metadata": {**metadata, "creationTimestamp": timestamp(now - 3600)}, "spec": spec})
    lines = "".join(f"{volume}\t{manifest}\n" for volume in volumes)
    config_maps = {names.campaign_config_map(name): {"volumes.txt": lines}}
    data.keep_config_maps(
        name, NAMESPACE, {**config_maps, names.pipeline_config_map(PIPELINE): {"pipeline.yaml": _STEPS}}
    )
    if done is None and failed is None:
        job.suspend(now)
    for index in done or []:
        job.started(index, now - 600)
        job.ended(index, Ended({"wrapper": 0}, succeeded=True), now)
    for index in failed or []:
        job.started(index, now - 600)
        job.ended(index, Ended({"wrapper": 13}), now)
    data.keep_job(job)
