"""Says when something changes, as server-sent events. What changed is for the page to ask."""

from __future__ import annotations

import time
import typing as t

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from htrflow_status.model import Source

#: Seconds between two events at least, without one at most (proxies cut silent connections), and of one connection.
_LEAST, _QUIET, _LONGEST = 2.0, 15.0, 3600.0
#: Of results, no source of state tells: pages of a running volume are asked for again after so many seconds.
_RESULTS = 5.0


class Events:
    """The stream of a source's versions. ``most`` readers at once; others are told to poll."""

    def __init__(self, source: Source, most: int = 500) -> None:
        self._source, self._most = source, most
        self.readers = 0

    async def stream(self, request: Request) -> Response:
        if self.readers >= self._most:
            return Response("too many readers; ask again later\n", 503, {"Retry-After": "30"}, "text/plain")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._events(request), media_type="text/event-stream", headers=headers)

    async def _events(self, request: Request) -> t.AsyncIterator[bytes]:
        self.readers += 1
        began = said = time.monotonic()
        version = self._source.snapshot().version
        try:
            yield b"retry: 3000\n\n"
            while time.monotonic() - began < _LONGEST and not await request.is_disconnected():
                found = await self._source.changed(version, _RESULTS)
                now = time.monotonic()
                if found != version or now - said >= _RESULTS:
                    version, said = found, now
                    yield f"event: change\nid: {version}\ndata: {version}\n\n".encode()
                elif now - said > _QUIET:
                    said = now
                    yield b": still here\n\n"
        finally:
            self.readers -= 1
