"""A plugin server of our own that does what Argo CD's does, so that the protocol can be tested without Argo CD.

It takes the same option and environment: ``--config-dir-path`` with the folder of plugin.yaml,
``ARGOCD_PLUGINSOCKFILEPATH`` with the folder of the socket, and ``ARGOCD_CMP_WORKDIR``. The command runs behind the
walls of :mod:`sandbox`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import threading
import typing as t
import uuid

import grpc
import yaml

from tests.cmp_plugin.plugin_server import code, sandbox

_MIB = 1024 * 1024
_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", 100 * _MIB),
    ("grpc.max_send_message_length", 100 * _MIB),
    ("grpc.max_metadata_size", 16 * _MIB),
    ("grpc.absolute_max_metadata_size", 16 * _MIB),
]
#: How long before the caller's deadline the server gives up, in seconds.
_MARGIN = 0.1


class PluginError(Exception):
    """A call fails with this text."""


@dataclasses.dataclass(frozen=True)
class Plugin:
    """What plugin.yaml says."""

    name: str
    command: list[str]
    discovers: bool

    @classmethod
    def read(cls, file: pathlib.Path) -> Plugin:
        document = yaml.safe_load(file.read_text("utf-8"))
        spec = document["spec"]
        name = document["metadata"]["name"] + (f"-{spec['version']}" if spec.get("version") else "")
        generate = spec["generate"]
        return cls(name, [*generate["command"], *generate.get("args", [])], "discover" in spec)


class Service:
    """The calls of a plugin server."""

    def __init__(self, plugin: Plugin, work: pathlib.Path) -> None:
        self._plugin, self._work = plugin, work
        self._code, _ = code.generated()

    def CheckPluginConfiguration(self, _: t.Any, __: grpc.ServicerContext) -> t.Any:  # noqa: N802
        return self._code.CheckPluginConfigurationResponse(isDiscoveryConfigured=self._plugin.discovers)

    def MatchRepository(self, requests: t.Iterator[t.Any], context: grpc.ServicerContext) -> t.Any:  # noqa: N802
        with self._received(requests, context, "match repository error"):
            return self._code.RepositoryResponse(isSupported=False, isDiscoveryEnabled=self._plugin.discovers)

    def GetParametersAnnouncement(  # noqa: N802
        self, requests: t.Iterator[t.Any], context: grpc.ServicerContext
    ) -> t.Any:
        with self._received(requests, context, "get parameters announcement error"):
            return self._code.ParametersAnnouncementResponse()

    def GenerateManifest(self, requests: t.Iterator[t.Any], context: grpc.ServicerContext) -> t.Any:  # noqa: N802
        with self._received(requests, context, "generate manifest error") as (folder, variables):
            try:
                manifests = split(run(self._plugin.command, folder, variables, context))
            except (PluginError, ValueError) as error:
                context.abort(grpc.StatusCode.UNKNOWN, f"error generating manifests: {error}")
        return self._code.ManifestResponse(manifests=manifests)

    @contextlib.contextmanager
    def _received(
        self, requests: t.Iterator[t.Any], context: grpc.ServicerContext, what: str
    ) -> t.Iterator[tuple[pathlib.Path, dict[str, str]]]:
        top = self._work / str(uuid.uuid4())
        top.mkdir()
        try:
            try:
                yield receive(requests, top)
            except PluginError as error:
                context.abort(grpc.StatusCode.UNKNOWN, f"{what} receiving stream: {error}")
        finally:
            shutil.rmtree(top)


def receive(requests: t.Iterator[t.Any], top: pathlib.Path) -> tuple[pathlib.Path, dict[str, str]]:
    """Unpacks a repo into ``top``. Returns the Application's folder in it, and the Application's variables."""
    first = next(requests, None)
    if first is None or first.WhichOneof("request") != "metadata":
        raise PluginError("the first message has no metadata")
    metadata = first.metadata
    data = b"".join(request.file.chunk for request in requests)
    if (checksum := hashlib.sha256(data).hexdigest()) != metadata.checksum:
        raise PluginError(f"error receiving tgz file: checksum is {checksum}, expected {metadata.checksum}")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        # Older releases of Python 3.11 have no filters; the archive is the test's own.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(top)  # noqa: S202
    # Argo CD 3.1 writes a link's whole path.
    for link in filter(pathlib.Path.is_symlink, [*top.rglob("*")]):
        target = link.resolve()
        link.unlink()
        link.symlink_to(target)
    sandbox.normalise(top)
    folder = (top / metadata.appRelPath).resolve()
    if not folder.is_relative_to(top):
        raise PluginError("illegal appPath: out of workDir bound")
    return folder, {entry.name: entry.value for entry in metadata.env}


def run(
    command: list[str], folder: pathlib.Path, variables: t.Mapping[str, str], context: grpc.ServicerContext
) -> bytes:
    """The output of ``command``. Raises :class:`PluginError` with its error text."""
    with subprocess.Popen(
        sandbox.confined(command),
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            output, errors = process.communicate(timeout=max(0.0, (context.time_remaining() or 60) - _MARGIN))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise PluginError(f"`{' '.join(command)}` failed signal: killed") from None
    if process.returncode:
        text = f"`{' '.join(command)}` failed exit status {process.returncode}"
        raise PluginError(f"{text}: {errors.decode().strip()}" if errors.strip() else text)
    return output


def split(output: bytes) -> list[str]:
    """The JSON objects of a stream, as they stand there. Raises :class:`ValueError` for anything else."""
    text, decoder, position = output.decode(), json.JSONDecoder(), 0
    manifests = []
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        value, end = decoder.raw_decode(text, position)
        if not isinstance(value, dict) or "kind" not in value:
            raise ValueError(f"not an object: {text[position:end][:200]}")
        manifests.append(text[position:end])
        position = end
    return manifests


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config-dir-path", type=pathlib.Path, required=True)
    plugin = Plugin.read(parser.parse_args().config_dir_path / "plugin.yaml")
    work = pathlib.Path(os.environ["ARGOCD_CMP_WORKDIR"], "_cmp_server")
    work.mkdir(exist_ok=True)
    work.chmod(0o755)
    socket = pathlib.Path(os.environ["ARGOCD_PLUGINSOCKFILEPATH"], f"{plugin.name}.sock")
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=8), options=_OPTIONS)
    code.generated()[1].add_ConfigManagementPluginServiceServicer_to_server(Service(plugin, work), server)
    # The callers are another user here; in the container, all are uid 999.
    usual = os.umask(0)
    server.add_insecure_port(f"unix:{socket}")
    os.umask(usual)
    server.start()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    stop.wait()
    server.stop(grace=None).wait()
    socket.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
