"""What holds for every answer, also for errors."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htrflow_status.looks import HEADERS, policy
from htrflow_status.metrics import Counted


def headers() -> dict[str, str]:
    """What every answer has that brings no other of these headers."""
    return {**HEADERS, "Content-Security-Policy": policy()}


class Everywhere:
    """ASGI middleware: adds the headers that an answer does not bring itself, and counts it."""

    def __init__(self, app: ASGIApp, counted: Counted) -> None:
        self._app, self._counted = app, counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                have = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((n.lower().encode(), v.encode()) for n, v in headers().items() if n.lower().encode() not in have),
                ]
                route = getattr(scope.get("route"), "path", "other")
                self._counted.add(str(route), int(message["status"]))
            await send(message)

        await self._app(scope, receive, sending)
