"""What Argo CD's repo-server does with a plugin: the environment, the archive and the calls."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import tarfile
import typing as t

import grpc

from tests.cmp_plugin.plugin_server import code

#: A repo-server sends chunks of 1 KiB.
_CHUNK = 1024
_SECONDS = 59.9
_MIB = 1024 * 1024
_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.max_receive_message_length", 100 * _MIB),
    ("grpc.max_send_message_length", 100 * _MIB),
    # Error texts travel in the trailers, of which Go takes this much.
    ("grpc.max_metadata_size", 16 * _MIB),
    ("grpc.absolute_max_metadata_size", 16 * _MIB),
    ("grpc.default_authority", "localhost"),
]

#: ``null`` is what an Application with a plugin and without parameters gives; None is one without a plugin block.
PARAMETERS: tuple[str | None, ...] = (None, "null", "[]")


def variables(
    *,
    revision: str = "3f8c1f0a6d1b4a7e9c2d5e8f7a6b5c4d3e2f1a0b",
    kube_version: str = "1.36.3",
    path: str = ".",
    parameters: str | None = "null",
    extra: t.Mapping[str, str] | None = None,
) -> dict[str, str]:
    """All that a repo-server adds to the environment of the plugin. ``extra`` is what an Application can set."""
    kinds = [
        "v1",
        "v1/ConfigMap",
        "batch/v1",
        "batch/v1/Job",
        *(f"example.org/v{number}/Kind" for number in range(2000)),
    ]
    return {
        "ARGOCD_APP_NAME": "htrflow-campaigns",
        "ARGOCD_APP_NAMESPACE": "htr-batch",
        "ARGOCD_APP_PROJECT_NAME": "htrflow-campaigns",
        "ARGOCD_APP_REVISION": revision,
        "ARGOCD_APP_REVISION_SHORT": revision[:7],
        "ARGOCD_APP_REVISION_SHORT_8": revision[:8],
        "ARGOCD_APP_SOURCE_REPO_URL": "https://git.example.org/archive/campaigns.git",
        "ARGOCD_APP_SOURCE_PATH": path,
        "ARGOCD_APP_SOURCE_TARGET_REVISION": "main",
        "KUBE_VERSION": kube_version,
        "KUBE_API_VERSIONS": ",".join(kinds),
        **({} if parameters is None else {"ARGOCD_APP_PARAMETERS": parameters}),
        **(extra or {}),
    }


def archive(repo: pathlib.Path) -> bytes:
    """``repo`` as a gzipped tar of files, folders and links."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for path in sorted(repo.rglob("*")):
            tar.add(path, path.relative_to(repo).as_posix(), recursive=False)
    return stream.getvalue()


def objects(output: bytes) -> list[t.Any]:
    """The objects of a plugin's output."""
    return [json.loads(line) for line in output.splitlines()]


class Client:
    """A repo-server at the socket of a plugin server."""

    def __init__(self, socket: pathlib.Path) -> None:
        self._plugin, grpc_code = code.generated()
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=_OPTIONS)
        self._stub = grpc_code.ConfigManagementPluginServiceStub(self._channel)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def discovers(self) -> bool:
        """Whether the plugin wants to be asked about every repo."""
        answer = self._stub.CheckPluginConfiguration(code.empty(), timeout=_SECONDS)
        return bool(answer.isDiscoveryConfigured)

    def generate(
        self, repo: pathlib.Path, path: str, variables: t.Mapping[str, str], checksum: str | None = None
    ) -> list[t.Any]:
        """The manifests of the folder ``path`` of ``repo``. Raises :class:`grpc.RpcError`."""
        requests = self._requests(archive(repo), path, variables, checksum)
        answer = self._stub.GenerateManifest(requests, timeout=_SECONDS)
        return [json.loads(manifest) for manifest in answer.manifests]

    def parameters(self, repo: pathlib.Path, path: str, variables: t.Mapping[str, str]) -> int:
        """How many parameters the plugin announces, which the user interface asks for."""
        requests = self._requests(archive(repo), path, variables, None)
        return len(self._stub.GetParametersAnnouncement(requests, timeout=_SECONDS).parameterAnnouncements)

    def _requests(
        self, data: bytes, path: str, variables: t.Mapping[str, str], checksum: str | None
    ) -> t.Iterator[t.Any]:
        entries = [self._plugin.EnvEntry(name=name, value=value) for name, value in variables.items()]
        yield self._plugin.AppStreamRequest(
            metadata=self._plugin.ManifestRequestMetadata(
                appName=pathlib.PurePath(path).name,
                appRelPath=path,
                checksum=checksum or hashlib.sha256(data).hexdigest(),
                size=len(data),
                env=entries,
            )
        )
        for start in range(0, len(data), _CHUNK):
            yield self._plugin.AppStreamRequest(file=self._plugin.File(chunk=data[start : start + _CHUNK]))
