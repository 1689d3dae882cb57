"""One pod of a rendered Job, as processes: its init containers one after the other, then its container."""

from __future__ import annotations

import dataclasses
import errno
import os
import pathlib
import shutil
import subprocess
import sys
import time
import typing as t

from htrflow_campaigns.local import environment, processes
from htrflow_campaigns.local.job import Ended, Object, timestamp

#: Kubernetes keeps so many bytes of a container's last words, and so many bytes and lines of its log in place of them.
_WORDS_BYTES, _LOG_BYTES, _LOG_LINES = 4096, 2048, 80
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
#: Passed on from the runner's own environment: how this machine reaches the network.
_PASSED_ON = (
    "LANG", "LC_ALL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HF_ENDPOINT", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "OMP_NUM_THREADS",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs: its own folder, and what its volumes are.

    ``config_maps`` are files by name, ``claims`` is the folder of the PersistentVolumeClaims, ``secrets`` are keys and
    values by name. ``extra`` are variables that this machine adds to each container.
    """

    folder: pathlib.Path
    config_maps: t.Mapping[str, t.Mapping[str, str]]
    claims: pathlib.Path
    secrets: t.Mapping[str, t.Mapping[str, str]]
    extra: t.Mapping[str, str]


class Pod:
    """A pod. ``object`` is what an API server would say of it."""

    def __init__(self, name: str, job: Object, index: int, failures: int, place: Place) -> None:
        self._place = place
        self._folder = place.folder.resolve()
        self._spec = job["spec"]["template"]["spec"]
        self._waiting = [*self._spec.get("initContainers", []), *self._spec["containers"]]
        self._began = time.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._container: Object = {}
        self._stopping_since: float | None = None
        self._reason = ""
        self._codes: dict[str, int] = {}
        own = job["spec"]["template"].get("metadata", {})
        labels, annotations = {**own.get("labels", {})}, {**own.get("annotations", {})}
        labels["batch.kubernetes.io/job-name"] = job["metadata"]["name"]
        self._variables: dict[str, str] = {}
        if job["spec"].get("completionMode") == "Indexed":
            labels["batch.kubernetes.io/job-completion-index"] = str(index)
            annotations["batch.kubernetes.io/job-completion-index"] = str(index)
            annotations["batch.kubernetes.io/job-index-failure-count"] = str(failures)
            self._variables["JOB_COMPLETION_INDEX"] = str(index)
        self.ended: Ended | None = None
        self.object: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": job["metadata"]["namespace"],
                "labels": labels,
                "annotations": annotations,
                "creationTimestamp": timestamp(time.time()),
            },
            "status": {"phase": "Pending", "startTime": timestamp(time.time()), "containerStatuses": []},
        }

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    def poll(self) -> bool:
        """Goes on. True when anything has changed; :attr:`ended` is set when the pod has come to its end."""
        if self.ended is not None:
            return False
        if self._process is None:
            if self._stopping_since is None:
                self._next()
            else:
                self._finish(succeeded=False)
            return True
        code = self._process.poll()
        if code is None:
            self._watch()
            return False
        self._over(128 - code if code < 0 else code)
        return True

    def stop(self, reason: str = "") -> None:
        """Asks the pod to end; after its grace period it is made to. With a ``reason`` that is its failure."""
        if self._stopping_since is None:
            self._stopping_since, self._reason = time.monotonic(), reason
            if self._process is not None:
                # Its first process alone: that ends what it started in its own way.
                self._process.terminate()

    def kill(self) -> None:
        """Ends the pod at once."""
        self.stop()
        processes.kill(self._folder)

    def _next(self) -> None:
        container = self._waiting.pop(0)
        try:
            self._start(container)
        except (environment.MissingError, OSError) as error:
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise
            self._log(container["name"]).write_text(f"{error}\n", encoding="utf-8")
            self._container = container
            self._over(1)

    def _start(self, container: Object) -> None:
        mounts = {mount["mountPath"]: str(self._mounted(mount)) for mount in container.get("volumeMounts", [])}
        secrets = {name: dict(keys) for name, keys in self._place.secrets.items()}
        given = environment.variables(container, self.object["metadata"]["annotations"], secrets)
        given |= self._variables
        path = os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        variables = {
            "PATH": path,
            "PYTHONUTF8": "1",
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            **{name: environment.placed(value, mounts, whole=True) for name, value in given.items()},
            **self._place.extra,
            "TERMINATION_MESSAGE_PATH": str(self._words(container["name"])),
            processes.VARIABLE: str(self._folder),
        }
        command = [*container.get("command", []), *container.get("args", [])]
        with open(self._log(container["name"]), "wb") as log:
            self._process = subprocess.Popen(
                [environment.placed(environment.expanded(word, given), mounts, whole=False) for word in command],
                cwd=self._place.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._container = container
        self.object["status"]["phase"] = "Running"

    def _mounted(self, mount: Object) -> pathlib.Path:
        """The folder of a mount, filled."""
        volume = next(one for one in self._spec["volumes"] if one["name"] == mount["name"])
        if claim := volume.get("persistentVolumeClaim"):
            folder = self._place.claims / str(claim["claimName"]) / str(mount.get("subPath", ""))
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        folder = self._place.folder / "mounts" / str(volume["name"])
        folder.mkdir(parents=True, exist_ok=True)
        files: t.Mapping[str, str] = {}
        if config_map := volume.get("configMap"):
            files = self._place.config_maps[config_map["name"]]
        elif secret := volume.get("secret"):
            files = self._place.secrets.get(secret["secretName"], {})
        for name, content in files.items():
            # Whoever may read a Secret in a cluster is named in its mode.
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        return folder

    def _watch(self) -> None:
        deadline = self._spec.get("activeDeadlineSeconds")
        now = time.monotonic()
        if self._stopping_since is not None:
            if now - self._stopping_since > self._spec.get("terminationGracePeriodSeconds", 30):
                self.kill()
        elif deadline is not None and now - self._began > deadline:
            self.stop("DeadlineExceeded")

    def _over(self, code: int) -> None:
        """The container has ended."""
        name = self._container["name"]
        if self._process is not None:
            # A container ends with its first process.
            processes.kill(self._folder)
        self._process = None
        self._codes[name] = code
        state = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "message": self._said(code)}
        status = {"name": name, "state": {"terminated": {**state, "finishedAt": timestamp(time.time())}}}
        init = any(one["name"] == name for one in self._spec.get("initContainers", []))
        self.object["status"].setdefault("initContainerStatuses" if init else "containerStatuses", []).append(status)
        if code == 0 and self._waiting:
            return
        self._finish(succeeded=code == 0 and not self._waiting and not self._reason)

    def _finish(self, *, succeeded: bool) -> None:
        self.object["status"]["phase"] = "Succeeded" if succeeded else "Failed"
        if self._reason:
            self.object["status"]["reason"] = self._reason
        removed = self._stopping_since is not None and not self._reason and not succeeded
        self.ended = Ended(dict(self._codes), succeeded=succeeded, removed=removed)
        # What it worked on lay in memory, in a cluster.
        shutil.rmtree(self._place.folder / "mounts", ignore_errors=True)

    def _said(self, code: int) -> str:
        """The container's last words, as a kubelet takes them."""
        name = self._container["name"]
        words = _content(self._words(name))[-_WORDS_BYTES:]
        if not words and code and self._container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            lines = _content(self._log(name))[-_LOG_BYTES:].splitlines(keepends=True)
            words = b"".join(lines[-_LOG_LINES:])
        return words.decode("utf-8", "replace")

    def _log(self, container: str) -> pathlib.Path:
        return self._place.folder / f"{container}.log"

    def _words(self, container: str) -> pathlib.Path:
        return self._place.folder / f"{container}.termination-log"


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
