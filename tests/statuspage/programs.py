"""The site's two programs as they run in their pods, on this machine: told by their environment, over real HTTP."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

import requests
from cryptography.fernet import Fernet

from tests.statuspage.results_site import Site
from tests.testbed.plugin import processes
from tests.testbed.plugin.s3 import Store

_SECONDS = 30.0


class Program:
    """``python -m htrflow_status``, started anew with the same settings whenever a test wants it."""

    def __init__(self, name: str, folder: pathlib.Path, environ: t.Mapping[str, str]) -> None:
        (port,) = processes.free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / f"{name}.log"
        self._name, self._environ = name, {**_base(), **environ, "PORT": str(port)}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process, which runs."""
        assert self._process is not None
        return self._process.pid

    def set(self, name: str, value: str) -> None:
        """Another setting, from the next start on."""
        self._environ[name] = value

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "htrflow_status", self._name]
            self._process = subprocess.Popen(command, env=self._environ, stdout=log, stderr=log)
        until = time.monotonic() + _SECONDS
        while True:
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            with contextlib.suppress(requests.ConnectionError):
                if requests.get(f"{self.url}/healthz", timeout=5).ok:
                    return
            time.sleep(0.05)

    def stop(self) -> int:
        """Ends it as a kubelet does; gives its exit code."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(_SECONDS)
        self._process = None
        return code


class Platform(t.NamedTuple):
    """Both programs, of which the first is the site."""

    web: Program
    results: Program
    keys: pathlib.Path

    @property
    def site(self) -> Site:
        """For logins."""
        return Site(self.web.url, None)


@contextlib.contextmanager
def platform(
    folder: pathlib.Path,
    kubeconfig: pathlib.Path,
    store: Store,
    namespaces: t.Sequence[str],
    **more: str,
) -> t.Iterator[Platform]:
    """Starts both for some namespaces, before a store. ``more`` are settings of the pages."""
    keys = folder / "session-keys"
    keys.write_bytes(Fernet.generate_key() + b"\n")
    common = {"NAMESPACES": ",".join(namespaces)}
    results = Program(
        "results",
        folder,
        {**common, "S3_BUCKET": store.bucket, "S3_ENDPOINT": store.url, "SESSION_KEYS": str(keys)},
    )
    web = Program("web", folder, {**common, "KUBECONFIG": str(kubeconfig), "RESULTS_SERVICE": results.url, **more})
    results.set("SITE_ADDRESSES", web.url)
    with contextlib.ExitStack() as started:
        for program in (results, web):
            started.callback(program.stop)
            program.start()
        yield Platform(web, results, keys)


def _base() -> dict[str, str]:
    """What a pod's environment has too, and nothing that happens to be set here."""
    return {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH", "HOME")}
