"""The status site as a process of its own: ``python -m benchmarks.site_server API NAMESPACE RESULTS``.

RESULTS is JSON: ``{"folder": …}``, or ``{"bucket": …, "endpoint": …}`` of a store, whose accounts log in. It prints its
address when everything was listed once.
"""

from __future__ import annotations

import json
import pathlib
import socket
import sys
import threading
import time
import typing as t

import uvicorn

from htrflow_status.app import Site
from htrflow_status.looks import Looks
from htrflow_status.results import proxy
from htrflow_status.results.places import Places
from htrflow_status.results.s3_place import S3Place
from htrflow_status.sources.connection import Connection
from htrflow_status.sources.kubernetes import KubernetesSource


def _proxy(settings: t.Mapping[str, str], places: Places, url: str) -> t.Callable[[Looks], proxy.Proxy]:
    if "folder" in settings:
        return lambda looks: proxy.of_folder(pathlib.Path(settings["folder"]), places)
    place = S3Place(settings["bucket"], places, settings["endpoint"])
    return lambda looks: proxy.of_bucket(proxy.Settings(place, [url]))


def main() -> None:
    api, namespace, results = sys.argv[1:4]
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    source = KubernetesSource(Connection(api), [namespace])
    site = Site(source, _proxy(json.loads(results), Places([namespace]), url))
    began = time.perf_counter()
    source.start()

    def told() -> None:
        while not source.ready:
            time.sleep(0.02)
        print(json.dumps({"url": url, "seconds": time.perf_counter() - began}), flush=True)

    threading.Thread(target=told, daemon=True).start()
    config = uvicorn.Config(site.application(), log_level="critical", lifespan="off", access_log=False)
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
