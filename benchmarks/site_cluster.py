"""A cluster as the status site hears it: campaigns in their usual states, and a server of their objects.

``python -m benchmarks.site_cluster CAMPAIGNS`` serves lists, watches and single objects on a free port of 127.0.0.1, as
an API server does: in pages where they are asked for, compressed where the client takes it. Nothing is checked and
nothing can be written. A real API server with its store would have to be filled for hours, and answers the same.

``POST /_finish?volumes=N`` lets N volumes finish, which sends three events for each of them; ``GET /_requests`` counts
what was asked for.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gzip
import http.server
import itertools
import json
import queue
import sys
import threading
import typing as t
import urllib.parse

from benchmarks.site_objects import (
    PIPELINES,
    VOLUMES,
    WINDOW,
    Campaign,
    Object,
    job,
    owner,
    pipeline_of,
    pod,
    record,
    volumes,
    workload,
)

_SMALLEST_TO_COMPRESS = 128 * 1024


class Cluster:
    """The objects, and who watches them."""

    def __init__(self, campaigns: int) -> None:
        self.campaigns = [Campaign(number) for number in range(campaigns)]
        self.requests: collections.Counter[str] = collections.Counter()
        self._watching: dict[str, list[queue.Queue[bytes]]] = collections.defaultdict(list)
        self._version, self._lock = 1000, threading.Lock()
        self._turn = itertools.cycle(row for row in self.campaigns if row.state == "running")

    def objects(self, kind: str, campaign: str = "", first: int = 0, most: int = sys.maxsize) -> t.Iterator[Object]:
        """All objects of a kind, or those with a campaign's label, from one of them on."""
        if kind != "pods":
            yield from itertools.islice(self._others(kind, campaign), first, first + most)
            return
        places = ((row, index) for row in self.campaigns if campaign in ("", row.name) for index in row.pods)
        yield from (pod(*place) for place in itertools.islice(places, first, first + most))

    def _others(self, kind: str, campaign: str) -> t.Iterator[Object]:
        chosen = [row for row in self.campaigns if campaign in ("", row.name)]
        pipelines = [] if campaign else [pipeline_of(number) for number in range(PIPELINES)]
        match kind:
            case "jobs":
                yield from (made for row in chosen if (made := job(row)))
                yield from (warmup for _, warmup in pipelines)
            case "workloads":
                yield from (made for row in chosen if (made := workload(row)))
            case "configmaps":
                yield from map(volumes, chosen)
                yield from (made for row in chosen if (made := record(row)))
                yield from (steps for steps, _ in pipelines)

    def finish(self, count: int) -> None:
        """Lets volumes finish, each of another campaign, whose next volume begins."""
        with self._lock:
            for campaign in itertools.islice(self._turn, count):
                if campaign.begun + WINDOW >= VOLUMES:
                    continue
                campaign.begun += 1
                self._tell("pods", "MODIFIED", pod(campaign, campaign.begun - 1))
                self._tell("jobs", "MODIFIED", job(campaign) or {})
                self._tell("pods", "ADDED", pod(campaign, campaign.begun + WINDOW - 1))

    def watch(self, kind: str) -> queue.Queue[bytes]:
        events: queue.Queue[bytes] = queue.Queue()
        with self._lock:
            self._watching[kind].append(events)
        return events

    def _tell(self, kind: str, change: str, thing: Object) -> None:
        self._version += 1
        thing["metadata"]["resourceVersion"] = str(self._version)
        line = json.dumps({"type": change, "object": thing}).encode() + b"\n"
        for events in self._watching[kind]:
            events.put(line)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, cluster: Cluster, *arguments: t.Any) -> None:
        self._cluster = cluster
        super().__init__(*arguments)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        kind = path.rpartition("/")[2]
        if path == "/_requests":
            return self._send(dict(self._cluster.requests))
        if asked.get("watch"):
            self._cluster.requests[f"watch {kind}"] += 1
            return self._watch(kind)
        if kind in ("jobs", "workloads", "pods", "configmaps"):
            self._cluster.requests[f"list {kind}"] += 1
            return self._list(kind, asked)
        self._cluster.requests[f"get {kind}"] += 1
        if kind == "pendingworkloads":
            waiting = [row for row in self._cluster.campaigns if row.state == "queued"]
            items = [
                {"metadata": {"ownerReferences": owner(row)}, "positionInClusterQueue": place}
                for place, row in enumerate(waiting)
            ]
            return self._send({"items": items})
        return self._send({"metadata": {"resourceVersion": "1"}, "items": []})

    def do_POST(self) -> None:
        count = int(dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))["volumes"])
        self._cluster.finish(count)
        self._send({})

    def _list(self, kind: str, asked: t.Mapping[str, str]) -> None:
        name, _, value = asked.get("labelSelector", "").partition("=")
        first, limit = int(asked.get("continue", "0")), int(asked.get("limit", "0")) or sys.maxsize
        items = list(self._cluster.objects(kind, value if name.endswith("/campaign") else "", first, limit))
        more = {"continue": str(first + limit)} if len(items) == limit else {}
        self._send({"kind": "List", "metadata": {"resourceVersion": "1000", **more}, "items": items})

    def _send(self, answer: Object) -> None:
        content = json.dumps(answer, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        # As an API server does.
        if len(content) > _SMALLEST_TO_COMPRESS and "gzip" in self.headers.get("Accept-Encoding", ""):
            content = gzip.compress(content, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _watch(self, kind: str) -> None:
        events = self._cluster.watch(kind)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            while True:
                line = events.get()
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def log_message(self, *arguments: object) -> None:
        """Says nothing: what is asked for is counted."""


def main() -> None:
    cluster = Cluster(int(sys.argv[1]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, cluster))
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
