"""Measures the status site's two programs under load, and a site that asks the API server for each page."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import typing as t

import requests

from benchmarks import site_objects
from tests.statuspage import programs
from tests.testbed.plugin import s3
from tests.testbed.plugin.control_plane import write_kubeconfig

TOP = pathlib.Path(__file__).parent.parent
_TICK = 1 / os.sysconf("SC_CLK_TCK")
#: Readers, and how many campaigns each of them follows.
READERS, FOLLOWED = 8, 5
#: Volumes that finish in a second of the load, with three events each.
FINISHING = 5
#: How often the site without a cache is asked for each of its pages.
_REPEATED = 3


@dataclasses.dataclass(frozen=True)
class Watched:
    """A process whose use of the machine is looked at."""

    pid: int

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK

    @property
    def megabytes(self) -> float:
        """The most memory that it had so far."""
        lines = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


@dataclasses.dataclass(frozen=True)
class Server(Watched):
    """A program of the benchmark that serves at an address."""

    url: str


@contextlib.contextmanager
def server(module: str, *arguments: str) -> t.Iterator[Server]:
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(process.pid, process.stdout.readline().strip())
        finally:
            process.kill()


@dataclasses.dataclass(frozen=True)
class Load:
    """So many requests a second for so many seconds, after pages were open for ``settle`` seconds."""

    campaigns: int
    rate: float
    seconds: float
    settle: float


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What a load showed.

    ``seconds`` are by kind of page, and ``first`` those of pages that a session opens for the first time, all in order.
    ``cpu`` are shares of one processor and ``megabytes`` the most memory, by program. ``lists`` are those before and
    during the load, ``events`` what the cluster told meanwhile, ``wrong`` how many answers were none.
    """

    seconds: dict[str, list[float]]
    first: list[float]
    wrong: int
    cpu: dict[str, float]
    megabytes: dict[str, float]
    ready: float
    lists: tuple[int, int]
    events: int

    @property
    def cpu_of_page(self) -> float:
        """Seconds of processor time of both programs for one page, with all that they do beside it."""
        rate = sum(map(len, self.seconds.values())) / self.cpu["seconds"]
        return (self.cpu["web"] + self.cpu["results"]) / rate


def under_load(folder: pathlib.Path, api: Server, store: s3.Store, store_pid: int, load: Load) -> Loaded:
    """The site as it is in its pods, before the cluster and the store."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, api.url)
    began = time.perf_counter()
    with programs.platform(folder, kubeconfig, store, [site_objects.NAMESPACE]) as platform:
        url = platform.web.url
        cookies = [_login(url, platform, store.reader) for _ in range(READERS)]
        _wait(url, cookies[0], load.campaigns)
        ready = time.perf_counter() - began
        asked = plan(cookies, load.campaigns)
        once = {(request["path"], request["cookie"]): request for request in asked}.values()
        first = sorted(_opened(url, request) for request in once)
        until = time.monotonic() + load.settle
        while time.monotonic() < until:
            for request in once:
                _opened(url, request)
        watched = {"web": platform.web.pid, "results": platform.results.pid, "store": store_pid, "API server": api.pid}
        processes = {name: Watched(pid) for name, pid in watched.items()}
        before, lists = {name: one.cpu for name, one in processes.items()}, _lists(api)
        started = time.monotonic()
        with _finishing(api) as finished:
            answers, generator = _asked(url, load, asked)
        took = time.monotonic() - started
        cpu = {name: (one.cpu - before[name]) / took for name, one in processes.items()}
        return Loaded(
            {kind: sorted(row[0] for row in rows) for kind, rows in answers.items()},
            first,
            sum(row[1] != 200 for rows in answers.values() for row in rows),
            {**cpu, "generator": generator / took, "seconds": took},
            {name: processes[name].megabytes for name in ("web", "results")},
            ready,
            (lists, _lists(api) - lists),
            3 * finished[0],
        )


def plan(cookies: t.Sequence[str], campaigns: int) -> list[dict[str, str]]:
    """What readers ask for: each the list in several ways, and the campaigns that it follows."""
    found = []
    for reader, cookie in enumerate(cookies):
        own = [(reader * FOLLOWED + number) * 37 % campaigns for number in range(FOLLOWED)]
        pages = [
            *[("/", "/")] * 6,
            ("/ further on", "/?page=2"),
            ("/ further on", "/?page=5"),
            ("/ with a filter", "/?state=running"),
            ("/ with a filter", f"/?pipeline=p{reader}"),
            ("/ with a filter", "/?state=partial+volumes"),
            ("/ with a search", f"/?q={site_objects.volume_id(own[0], 7)}"),
            ("/ with a search", f"/?q=r{own[1]:04}-"),
            ("/ with a search", "/?q=R"),
            *[("a campaign", f"/campaigns/{site_objects.NAMESPACE}/campaign-{number}") for number in own] * 2,
        ]
        found += [{"kind": kind, "path": path, "cookie": cookie} for kind, path in pages]
    return found


def without_cache(api: Server) -> tuple[dict[str, float], float, float]:
    """The median seconds of each page of a site that lists for it, its processor time for all of ``/``, and its MB."""
    with server("site_plain", api.url, site_objects.NAMESPACE) as plain:
        found, cpu = {}, {}
        for kind, path in (("/", "/"), ("a campaign", f"/campaigns/{site_objects.NAMESPACE}/campaign-1")):
            before = plain.cpu
            found[kind] = statistics.median(_opened(plain.url, {"path": path, "cookie": ""}) for _ in range(_REPEATED))
            cpu[kind] = (plain.cpu - before) / _REPEATED
        return found, cpu["/"], plain.megabytes


def _login(url: str, platform: programs.Platform, account: s3.Account) -> str:
    with requests.Session() as browser:
        platform.site.login(account, browser).raise_for_status()
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies)


def _wait(url: str, cookie: str, campaigns: int) -> None:
    """Until everything was listed: pods come last."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        found = requests.get(f"{url}/campaigns.json", headers={"Cookie": cookie}, timeout=60).json()
        if found["total"] == campaigns and found["campaigns"][0]["volumes"]["running"] == site_objects.WINDOW:
            return
        time.sleep(0.1)
    raise TimeoutError("the site does not show the whole cluster")


def _opened(url: str, request: t.Mapping[str, str]) -> float:
    began = time.perf_counter()
    answer = requests.get(f"{url}{request['path']}", headers={"Cookie": request["cookie"]}, timeout=120)
    assert answer.status_code == 200, answer.text[:500]
    assert "campaign-" in answer.text
    return time.perf_counter() - began


def _asked(url: str, load: Load, asked: t.Sequence[t.Any]) -> tuple[dict[str, list[list[t.Any]]], float]:
    host, _, port = url.removeprefix("http://").partition(":")
    fields = {"host": host, "port": int(port), "rate": load.rate, "seconds": load.seconds, "seed": 1}
    command = [sys.executable, "-m", "benchmarks.site_load"]
    given = json.dumps({**fields, "requests": asked})
    found = subprocess.run(command, cwd=TOP, input=given, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(found.stdout)
    return said["answers"], said["cpu"]


@contextlib.contextmanager
def _finishing(api: Server) -> t.Iterator[list[int]]:
    """Lets volumes finish meanwhile."""
    stop, count = threading.Event(), [0]

    def work() -> None:
        while not stop.wait(1.0):
            requests.post(f"{api.url}/_finish?volumes={FINISHING}", timeout=60)
            count[0] += FINISHING

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def _lists(api: Server) -> int:
    asked = requests.get(f"{api.url}/_requests", timeout=60).json()
    return sum(count for name, count in asked.items() if name.startswith("list "))
