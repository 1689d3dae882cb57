"""Runs the wrapper as a pod does: in a process, with the rendered Job's environment and folders for its mounts."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import PIL.Image
import PIL.ImageDraw

from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store

REPO = pathlib.Path(__file__).parents[2]
STEPS = b"steps:\n- step: Quick\n"
IMAGE = f"registry.example.org/htrflow-batch@sha256:{'a' * 64}"


@dataclasses.dataclass
class Ended:
    """How a pod ended: its exit code, its termination message, and what it printed."""

    code: int
    message: dict[str, t.Any] | None
    log: str


@dataclasses.dataclass
class Pod:
    """One volume on one pipeline in one bucket. ``engine`` is a module of :mod:`tests.wrapper.engines`, or empty."""

    store: Store
    folder: pathlib.Path
    manifest: str = ""
    volume: str = "R0001203"
    engine: str = "quick"
    steps: bytes = STEPS
    image: str = IMAGE
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    url: str = ""

    @property
    def prefix(self) -> str:
        return f"htr-batch/demo-v1/{self.volume}/"

    def environment(self, **variables: str) -> dict[str, str]:
        """The variables that the rendered Job sets, with its mounts in ``folder``."""
        config, secret, work = (self.folder / name for name in ("config", "secret", "work"))
        for place in (config, secret, work):
            place.mkdir(parents=True, exist_ok=True)
        (config / "pipeline.yaml").write_bytes(self.steps)
        keys = f"[default]\naws_access_key_id = {self.store.writer.access}\n"
        (secret / "credentials").write_text(f"{keys}aws_secret_access_key = {self.store.writer.secret}\n")
        made = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPO),
            "PYTHONUTF8": "1",
            "PIPELINE_PATH": str(config / "pipeline.yaml"),
            "PIPELINE_ID": "demo-v1",
            "S3_PREFIX": "htr-batch/",
            "RESULTS_URL": "https://htr.example.org/results",
            "IMAGE_DIGEST": self.image,
            "CAMPAIGN": "demo",
            "HF_HUB_OFFLINE": "1",
            "INDEX_FAILURE_COUNT": "0",
            "BACKOFF_LIMIT_PER_INDEX": "3",
            "HF_HOME": str(self.folder / "data/hf"),
            "HOME": str(work / "home"),
            "TMPDIR": str(work / "tmp"),
            "YOLO_CONFIG_DIR": str(work / "ultralytics"),
            "WORKDIR_PATH": str(work),
            "S3_BUCKET": self.store.bucket,
            "S3_ENDPOINT": self.url or self.store.url,
            "AWS_SHARED_CREDENTIALS_FILE": str(secret / "credentials"),
            "VOLUME_REF": self.volume,
            "TERMINATION_MESSAGE_PATH": str(self.folder / "termination-log"),
            **({"IIIF_MANIFEST_URL": self.manifest} if self.manifest else {}),
            **({"ENGINE": f"tests.wrapper.engines.{self.engine}"} if self.engine else {}),
            **self.variables,
            **variables,
        }
        (work / "home").mkdir(exist_ok=True)
        (work / "tmp").mkdir(exist_ok=True)
        return made

    def start(self, **variables: str) -> subprocess.Popen[bytes]:
        """Begins an attempt; what it prints goes to ``folder/printed``."""
        environment = self.environment(**variables)
        (self.folder / "termination-log").unlink(missing_ok=True)
        with open(self.folder / "printed", "wb") as printed:
            return subprocess.Popen(
                [sys.executable, "-m", "htrflow_batch"],
                env=environment,
                cwd=self.folder,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, process: subprocess.Popen[bytes], seconds: float = 120) -> Ended:
        """Waits for the end of an attempt."""
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"still running after {seconds} s:\n{self.printed()}") from None
        path = self.folder / "termination-log"
        message = json.loads(path.read_text()) if path.exists() else None
        return Ended(code, message, self.printed())

    def run(self, **variables: str) -> Ended:
        """One attempt from its beginning to its end."""
        return self.wait(self.start(**variables))

    def printed(self) -> str:
        return (self.folder / "printed").read_text(encoding="utf-8", errors="replace")

    def objects(self, prefix: str = "htr-batch/") -> dict[str, bytes]:
        """Everything in the bucket below a prefix, by key."""
        client = self.store.client(self.store.writer)
        found = {}
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.store.bucket, Prefix=prefix):
            for row in page.get("Contents", []):
                found[row["Key"]] = client.get_object(Bucket=self.store.bucket, Key=row["Key"])["Body"].read()
        client.close()
        return found

    def json(self, name: str) -> dict[str, t.Any]:
        """One of the volume's JSON documents."""
        client = self.store.client(self.store.writer)
        answer = client.get_object(Bucket=self.store.bucket, Key=f"{self.prefix}{name}")
        found: dict[str, t.Any] = json.loads(answer["Body"].read())
        client.close()
        return found


def picture(number: int, width: int = 200, height: int = 280) -> bytes:
    """A small JPEG that no other number has."""
    image = PIL.Image.new("L", (width, height), 240)
    draw = PIL.ImageDraw.Draw(image)
    for bit in range(16):
        draw.rectangle((10, 10 + 16 * bit, 60 + 6 * (number >> bit & 1) * 20, 20 + 16 * bit), fill=30)
    written = io.BytesIO()
    image.save(written, "JPEG", quality=80)
    return written.getvalue()


def serve_volume(http: MisbehavingHttp, pages: int, name: str = "volume") -> str:
    """A Presentation 3 manifest of so many pages, and its images at ``/<name>/<number>.jpg``; gives its address."""
    addresses = [http.put(f"/{name}/{number}.jpg", picture(number)) for number in range(1, pages + 1)]
    image = {"type": "Image", "format": "image/jpeg", "width": 200, "height": 280}
    return serve_manifest(http, [{"id": address, **image} for address in addresses], name)


def serve_manifest(http: MisbehavingHttp, bodies: t.Sequence[t.Mapping[str, t.Any]], name: str = "volume") -> str:
    """A Presentation 3 manifest, one canvas a body; gives its address."""
    canvases = []
    for number, body in enumerate(bodies, 1):
        canvas = f"{http.url}/{name}/canvas/{number}"
        annotation = {"id": f"{canvas}/a", "type": "Annotation", "motivation": "painting", "target": canvas}
        canvases.append(
            {
                "id": canvas,
                "type": "Canvas",
                "label": {"none": [str(number)]},
                "width": 200,
                "height": 280,
                "items": [{"id": f"{canvas}/p", "type": "AnnotationPage", "items": [{**annotation, "body": body}]}],
            }
        )
    manifest = {
        "@context": "http://iiif.io/api/presentation/3/context.json",
        "id": f"{http.url}/{name}/manifest.json",
        "type": "Manifest",
        "label": {"sv": ["Dombok"]},
        "items": canvases,
    }
    return http.put(f"/{name}/manifest.json", json.dumps(manifest))
