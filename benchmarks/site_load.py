"""Asks a site for pages, so many a second: ``python -m benchmarks.site_load`` with a plan as JSON on its input.

It is an open loop: each request has its moment before the first one is sent, and its time is counted from that moment
on, also if it could not be sent then. The moments are those of readers who know nothing of each other (Poisson).

The plan is ``{"host", "port", "rate", "seconds", "seed", "requests": [{"kind", "path", "cookie"}]}``, of which requests
are drawn with the same chance. It prints ``{"answers": {"kind": [[seconds, status, bytes], …]}, "cpu": seconds}``.
"""

from __future__ import annotations

import asyncio
import collections
import json
import random
import sys
import time
import typing as t


class Client:
    """Connections to one server, which are kept."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: collections.deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = collections.deque()

    async def get(self, path: str, cookie: str) -> tuple[int, int]:
        """The status and the bytes of an answer."""
        for _ in range(2):
            kept = bool(self._idle)
            reader, writer = self._idle.popleft() if kept else await asyncio.open_connection(self._host, self._port)
            head = f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept-Language: en\r\n"
            writer.write(f"{head}Accept-Encoding: gzip\r\nCookie: {cookie}\r\n\r\n".encode())
            try:
                status, size = await _answer(reader)
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                # The server may close a connection that was not used for a while.
                if kept:
                    continue
                raise
            self._idle.append((reader, writer))
            return status, size
        raise ConnectionError("no connection holds")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
    size = int(headers.get("content-length", 0))
    if "chunked" in headers.get("transfer-encoding", ""):
        while length := int(await reader.readline(), 16):
            size += length
            await reader.readexactly(length + 2)
        await reader.readexactly(2)
    else:
        await reader.readexactly(size)
    return int(head[0].split()[1]), size


async def load(plan: t.Mapping[str, t.Any]) -> dict[str, list[tuple[float, int, int]]]:
    """Asks as the plan says."""
    client, draw = Client(plan["host"], plan["port"]), random.Random(plan["seed"])  # noqa: S311
    found: dict[str, list[tuple[float, int, int]]] = collections.defaultdict(list)

    async def ask(request: t.Mapping[str, str], moment: float) -> None:
        try:
            status, size = await client.get(request["path"], request["cookie"])
        except (OSError, asyncio.IncompleteReadError):
            status, size = 0, 0
        found[request["kind"]].append((time.perf_counter() - moment, status, size))

    began, at, tasks = time.perf_counter(), 0.0, set()
    while (at := at + draw.expovariate(plan["rate"])) < plan["seconds"]:
        await asyncio.sleep(max(0.0, began + at - time.perf_counter()))
        tasks.add(task := asyncio.create_task(ask(draw.choice(plan["requests"]), began + at)))
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return found


def main() -> None:
    answers = asyncio.run(load(json.load(sys.stdin)))
    json.dump({"answers": answers, "cpu": time.process_time()}, sys.stdout)


if __name__ == "__main__":
    main()
