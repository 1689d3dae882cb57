"""What the rendered Job tells a pod through its environment, read once and checked as a whole."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import typing as t

from htrflow_batch import documents, source
from htrflow_batch.errors import PermanentError
from htrflow_batch.keys import Keys
from htrflow_batch.run import Recipe
from htrflow_batch.variables import Variables

MIB = 1024 * 1024
#: Where Kubernetes looks for a container's last words, unless the pod says otherwise.
TERMINATION_LOG = "/dev/termination-log"
#: The module that knows the library.
ENGINE = "htrflow_batch.htrflow_engine"
#: Who sets the variables.
SETTER = "the rendered Job sets it"


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt of its index a pod is: how many have failed before, and how many may fail in all but the last."""

    failures: int
    limit: int

    @property
    def last(self) -> bool:
        return self.failures >= self.limit


@dataclasses.dataclass(frozen=True, slots=True)
class Fetching:
    """How sources are asked. Sizes are in bytes and pixels, ``headers`` are by host."""

    manifest_bytes: int
    image_bytes: int
    max_width: int
    max_pixels: int
    connections: int
    contact: str | None
    headers: t.Mapping[str, t.Mapping[str, str]] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Lookahead:
    """The window of pages in flight: how many pages, how many bytes of images, and how many the model gets at once."""

    pages: int
    bytes: int
    group: int


@dataclasses.dataclass(frozen=True, slots=True)
class Bucket:
    """The store in S3. ``credentials`` is a file; ``verify`` is whether certificates are checked, or by which file."""

    name: str
    endpoint: str | None
    credentials: pathlib.Path
    verify: pathlib.Path | bool


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """One attempt at one volume. Exactly one of ``manifest_url`` and ``images`` is there. Times are in seconds."""

    volume: str
    campaign: str
    manifest_url: str | None = dataclasses.field(repr=False)
    images: tuple[str, ...] = dataclasses.field(repr=False)
    recipe: Recipe
    keys: Keys
    results_url: str
    store: Bucket | pathlib.Path
    workdir: pathlib.Path
    attempt: Attempt
    fetching: Fetching
    lookahead: Lookahead
    page_seconds: float
    load_seconds: float
    low_confidence: float
    engine: str


def read(environ: t.Mapping[str, str]) -> Config:
    """The attempt that the environment describes. Raises :class:`PermanentError` with all that is wrong in it."""
    reader = Variables(environ, SETTER)
    volume = reader.text("VOLUME_REF")
    recipe = read_recipe(environ, reader)
    manifest_url, images = _source(environ, reader)
    prefix = reader.text("S3_PREFIX")
    secret = _Secret(pathlib.Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or "/secrets/s3/credentials"), environ)
    store = _store(environ, reader, secret)
    attempt = Attempt(
        failures=reader.whole("INDEX_FAILURE_COUNT", 0, least=0),
        limit=reader.whole("BACKOFF_LIMIT_PER_INDEX", 0, least=0),
    )
    fetching = Fetching(
        manifest_bytes=reader.whole("MANIFEST_MAX_BYTES", 16 * MIB),
        image_bytes=reader.whole("FETCH_MAX_BYTES", 64 * MIB),
        max_width=reader.whole("MAX_IMAGE_WIDTH", 2500, most=65_500),
        max_pixels=reader.whole("MAX_IMAGE_PIXELS", 200_000_000),
        connections=reader.whole("FETCH_CONNECTIONS", 4, most=32),
        contact=secret.text("FETCH_CONTACT") or None,
        headers=_headers(secret.text("FETCH_HEADERS"), reader),
    )
    lookahead = Lookahead(
        pages=reader.whole("LOOKAHEAD_PAGES", 64, most=1024),
        bytes=reader.whole("LOOKAHEAD_BYTES", 1024 * MIB),
        group=reader.whole("GROUP_PAGES", 16, most=256),
    )
    page_seconds = reader.number("PAGE_SECONDS", 600, 0.1, 86_400)
    load_seconds = reader.number("LOAD_SECONDS", 900, 0.1, 86_400)
    low = reader.number("LOW_CONFIDENCE", 0.5, 0, 1)
    workdir = pathlib.Path(reader.text("WORKDIR_PATH", "/work"))
    keys = _keys(prefix, recipe.pipeline_id, volume, reader)
    results_url = _results_url(environ, store)
    if environ.get("RESULTS_URL", "").strip() and source.address(results_url) is None:
        reader.fault("RESULTS_URL is not absolute http or https — correct results_url in converter.yaml")
    reader.finish()
    assert keys is not None
    return Config(
        volume=volume,
        campaign=environ.get("CAMPAIGN", "").strip(),
        manifest_url=manifest_url,
        images=images,
        recipe=recipe,
        keys=keys,
        results_url=results_url,
        store=store,
        workdir=workdir,
        attempt=attempt,
        fetching=fetching,
        lookahead=lookahead,
        page_seconds=page_seconds,
        load_seconds=load_seconds,
        low_confidence=low,
        engine=environ.get("ENGINE", "").strip() or ENGINE,
    )


def read_recipe(environ: t.Mapping[str, str], reader: Variables) -> Recipe:
    """The pipeline as it is mounted."""
    path = pathlib.Path(reader.text("PIPELINE_PATH", "/config/pipeline.yaml"))
    content = b""
    try:
        content = path.read_bytes()
    except OSError as error:
        reader.fault(f"the pipeline {path} cannot be read: {error.strerror} — see the ConfigMap that is mounted there")
    return Recipe(reader.text("PIPELINE_ID"), reader.text("IMAGE_DIGEST", "unknown"), content)


def termination_log(environ: t.Mapping[str, str] = os.environ) -> pathlib.Path:
    """The file for a container's last words."""
    return pathlib.Path(environ.get("TERMINATION_MESSAGE_PATH") or TERMINATION_LOG)


class _Secret:
    """Settings that an operator adds to the store's Secret: each key of it is a file beside the credentials."""

    def __init__(self, credentials: pathlib.Path, environ: t.Mapping[str, str]) -> None:
        self.credentials = credentials
        self._environ = environ

    def text(self, name: str) -> str:
        if value := self._environ.get(name, "").strip():
            return value
        try:
            return self.credentials.with_name(name).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return ""

    def file(self, name: str) -> pathlib.Path | None:
        path = self.credentials.with_name(name)
        return path if path.is_file() else None


def _source(environ: t.Mapping[str, str], reader: Variables) -> tuple[str | None, tuple[str, ...]]:
    url, images = environ.get("IIIF_MANIFEST_URL", "").strip(), environ.get("IMAGES", "").split(" ")
    addresses = tuple(image for image in images if image)
    if bool(url) == bool(addresses):
        both = "both IIIF_MANIFEST_URL and IMAGES are" if url else "neither IIIF_MANIFEST_URL nor IMAGES is"
        reader.fault(f"{both} set — the rendered Job sets one of them from its line of volumes.txt")
    for address in (url, *addresses):
        if address and source.address(address) is None:
            reader.fault("an address of the volume is not absolute http or https — correct it in the campaign file")
    return url or None, addresses


def _keys(prefix: str, pipeline: str, volume: str, reader: Variables) -> Keys | None:
    if not (prefix and pipeline and volume):
        return None
    try:
        return Keys(prefix, pipeline, volume)
    except PermanentError as error:
        reader.fault(str(error))
        return None


def _store(environ: t.Mapping[str, str], reader: Variables, secret: _Secret) -> Bucket | pathlib.Path:
    if folder := environ.get("RESULTS_FOLDER", "").strip():
        return pathlib.Path(folder)
    verify = secret.text("S3_VERIFY_TLS").lower() or "true"
    if verify not in ("true", "false"):
        reader.fault(f"S3_VERIFY_TLS is {verify[:40]!r} — write true or false")
    return Bucket(
        name=reader.text("S3_BUCKET"),
        endpoint=environ.get("S3_ENDPOINT", "").strip() or None,
        credentials=secret.credentials,
        verify=verify == "true" and (secret.file("ca.crt") or True),
    )


def _results_url(environ: t.Mapping[str, str], store: Bucket | pathlib.Path) -> str:
    """The results proxy's address, or else that of the bucket itself: IIIF wants an address for everything."""
    if url := environ.get("RESULTS_URL", "").strip().rstrip("/"):
        return url
    if isinstance(store, pathlib.Path):
        return "http://localhost/results"
    endpoint = documents.without_user_info(store.endpoint or "https://s3.amazonaws.com")
    return f"{endpoint.rstrip('/')}/{store.name}"


def _headers(text: str, reader: Variables) -> dict[str, dict[str, str]]:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict) and all(
        isinstance(named, dict) and all(isinstance(value, str) for value in named.values()) for named in found.values()
    ):
        return found
    reader.fault('FETCH_HEADERS is not JSON of the form {"host": {"Header-Name": "value"}} — correct it in the Secret')
    return {}
