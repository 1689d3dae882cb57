"""What one would write first: a site that asks the API server for each page it shows.

``python -m benchmarks.site_plain API NAMESPACE`` serves ``/`` and ``/campaigns/<namespace>/<campaign>`` with what the
cards need: Jobs, Workloads, lists of volumes and pods, of all campaigns or of one. It sends a few lines a campaign
instead of a page, and reads no results, so it does less than the site beside which it is measured.
"""

from __future__ import annotations

import collections
import functools
import http.server
import json
import sys
import typing as t

import urllib3

_KINDS = {
    "jobs": "/apis/batch/v1",
    "workloads": "/apis/kueue.x-k8s.io/v1beta2",
    "configmaps": "/api/v1",
    "pods": "/api/v1",
}
_LABEL = "htrflow.riksarkivet.se/campaign"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, pool: urllib3.PoolManager, api: str, namespace: str, *arguments: t.Any) -> None:
        self._pool, self._api, self._namespace = pool, api, namespace
        super().__init__(*arguments)

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        selector = f"?labelSelector={_LABEL}={name}" if name else ""
        found = {
            kind: self._list(f"{prefix}/namespaces/{self._namespace}/{kind}{selector}", kind)
            for kind, prefix in _KINDS.items()
        }
        running = collections.Counter(
            pod["metadata"]["labels"][_LABEL] for pod in found["pods"] if pod["status"]["phase"] == "Running"
        )
        rows = sorted(
            (job["metadata"]["creationTimestamp"], job["metadata"]["name"], job["status"].get("completedIndexes", ""))
            for job in found["jobs"]
        )
        content = "".join(
            f"<p>{name}: {done} done, {running[name]} running</p>\n" for _, name, done in rows[:30]
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _list(self, path: str, kind: str) -> list[t.Any]:
        answer = self._pool.request("GET", f"{self._api}{path}", headers={"Accept-Encoding": "gzip"}, timeout=600)
        return t.cast("list[t.Any]", json.loads(answer.data)["items"])

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


def main() -> None:
    api, namespace = sys.argv[1:3]
    made = functools.partial(_Handler, urllib3.PoolManager(maxsize=16), api, namespace)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), made)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
