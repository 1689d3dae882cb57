"""The folder in which everything is kept: results, models, and the state of Jobs and pods.

``results/`` has the bucket's keys as paths, ``claims/`` the model caches; ``jobs/``, ``config-maps/`` and ``pods/``
have a file of JSON an object, in the form in which an API server gives it. A file is written whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import pathlib
import re
import shutil
import tempfile
import typing as t

from htrflow_campaigns.local import processes
from htrflow_campaigns.local.job import Job, Object

_LOG = logging.getLogger(__name__)
_PLAIN = re.compile("[A-Za-z0-9_./-]+")
_SECONDS_TO_END = 10.0


class DataError(Exception):
    """The folder cannot be used. The message is one sentence."""


class Data:
    """The folder, which one runner at a time has. Raises :class:`DataError`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder.resolve()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataError(sentence(folder, error)) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise DataError(
                f"{folder} is in use by another htrflow-campaigns local — stop that one, or name another folder with"
                " --data"
            ) from None
        try:
            self.results, self.claims, self._jobs, self._config_maps, self._pods = (
                self._made(name) for name in ("results", "claims", "jobs", "config-maps", "pods")
            )
            self.plain = self._plain_path()
        except OSError as error:
            self.close()
            raise DataError(sentence(folder, error)) from None

    def close(self) -> None:
        """Lets others have the folder."""
        with contextlib.suppress(AttributeError):
            if self.plain != self.folder:
                self.plain.unlink(missing_ok=True)
                self.plain.parent.rmdir()
        os.close(self._lock)

    def pod_folder(self, name: str) -> pathlib.Path:
        """Where a pod's files are, by a path that a shell takes without quotes."""
        folder = self.plain / "pods" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def jobs(self) -> list[Job]:
        """The Jobs as they were left. A file that cannot be read is put aside: its Job begins anew."""
        found = []
        for path in sorted(self._jobs.glob("*.json")):
            try:
                kept = json.loads(path.read_text(encoding="utf-8"))
                failures = {int(index): int(count) for index, count in kept["failures"].items()}
                assert kept["job"]["metadata"]["name"] == path.stem
                found.append(Job(kept["job"], failures))
            except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
                path.replace(path.with_suffix(".unreadable"))
                _LOG.warning("what was known of %s cannot be read, so it begins anew; its results stay", path.stem)
        return found

    def keep_job(self, job: Job) -> None:
        kept = {"job": job.object, "failures": job.failures, "paused": job.paused}
        self._write(self._jobs / f"{job.name}.json", kept)

    def config_maps(self, job: str) -> dict[str, dict[str, str]]:
        """The files of each ConfigMap that a Job was created with, by its name."""
        try:
            kept = json.loads((self._config_maps / f"{job}.json").read_text(encoding="utf-8"))
            return {found["metadata"]["name"]: found["data"] for found in kept["items"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {}  # it was never kept, or is damaged

    def keep_config_maps(self, job: str, namespace: str, config_maps: t.Mapping[str, t.Mapping[str, str]]) -> None:
        """Keeps what a Job is created with: nothing of it changes as long as the Job is there."""
        items = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
                "data": dict(files),
            }
            for name, files in config_maps.items()
        ]
        self._write(self._config_maps / f"{job}.json", {"apiVersion": "v1", "kind": "List", "items": items})

    def keep_pod(self, pod: Object) -> None:
        self._write(self._pods / pod["metadata"]["name"] / "pod.json", pod)

    def pods(self, job: str | None = None) -> list[Object]:
        """The pods of a Job, or all, the oldest first."""
        found = [pod for folder in self._pods.iterdir() if (pod := _pod(folder))]
        if job is not None:
            found = [pod for pod in found if pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == job]
        return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def forget(self, job: str) -> None:
        """Removes what is kept of a Job. Its results stay."""
        for pod in self.pods(job):
            shutil.rmtree(self._pods / pod["metadata"]["name"], ignore_errors=True)
        for folder in (self._jobs, self._config_maps):
            (folder / f"{job}.json").unlink(missing_ok=True)

    def end_processes(self) -> None:
        """Ends whatever runs of the pods, without a word in their files."""
        processes.end(self._pods, _SECONDS_TO_END)

    def end_orphans(self) -> int:
        """Ends the pods of a runner that was killed, and gives their number. What cannot be read of them goes."""
        self.end_processes()
        ended = 0
        for folder in self._pods.iterdir():
            pod = _pod(folder)
            if pod is None:
                shutil.rmtree(folder, ignore_errors=True)
            elif pod["status"]["phase"] not in ("Succeeded", "Failed"):
                ended += 1
                pod["status"] |= {"phase": "Failed", "reason": "NodeLost"}
                self.keep_pod(pod)
                shutil.rmtree(folder / "mounts", ignore_errors=True)
        return ended

    def _made(self, name: str) -> pathlib.Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        # A folder that belongs to somebody else can be there and be of no use.
        with tempfile.TemporaryFile(dir=folder):
            return folder

    def _plain_path(self) -> pathlib.Path:
        """The folder by a path that needs no quotes in the scripts of rendered Jobs: a link, where it has to be."""
        if _PLAIN.fullmatch(str(self.folder)):
            return self.folder
        link = pathlib.Path(tempfile.mkdtemp(prefix="htrflow-campaigns-", dir="/tmp")) / "data"
        link.symlink_to(self.folder)
        return link

    def _write(self, path: pathlib.Path, content: Object) -> None:
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise DataError(sentence(self.folder, error)) from None


def _pod(folder: pathlib.Path) -> Object | None:
    """The pod of a folder, or None if what is there of it is no pod's."""
    try:
        pod: Object = json.loads((folder / "pod.json").read_text(encoding="utf-8"))
        metadata = pod["metadata"]
        known = (
            metadata["labels"]["batch.kubernetes.io/job-name"],
            metadata["creationTimestamp"],
            pod["status"]["phase"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pod if all(known) and metadata["name"] == folder.name else None


def sentence(folder: pathlib.Path, error: OSError) -> str:
    """Why the folder cannot be used, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"there is no room left for {folder} — free some, or name a folder on another disk with --data"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{folder} cannot be written — name a folder that is yours with --data"
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return f"{folder} is no folder — name one with --data"
    return f"{folder} cannot be used ({error.strerror}) — name another folder with --data"
