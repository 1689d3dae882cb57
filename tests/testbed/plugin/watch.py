"""The changes of objects in the Kubernetes API, as they come."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
import typing as t
import urllib.parse

Object = dict[str, t.Any]


class Watch:
    """A stream of the changes of a list of objects. Another thread may close it."""

    def __init__(
        self,
        connect: t.Callable[[], http.client.HTTPConnection],
        path: str,
        selectors: t.Mapping[str, str],
        headers: t.Mapping[str, t.Any],
    ) -> None:
        self._connect, self._path, self._selectors = connect, path, selectors
        self._headers = {**headers, "Accept": "application/json", "Accept-Encoding": "identity"}
        self._connection = connect()
        self._closed = False

    def __iter__(self) -> t.Iterator[tuple[str, Object]]:
        try:
            yield from self._changes()
        finally:
            self._connection.close()

    def close(self) -> None:
        """Ends the iteration."""
        self._closed = True
        if self._connection.sock:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)

    def _changes(self) -> t.Iterator[tuple[str, Object]]:
        version = ""
        while not self._closed:
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                if not version:
                    with self._open({}) as answer:
                        known = json.load(answer)
                    version = known["metadata"]["resourceVersion"]
                    for item in known["items"]:
                        yield "ADDED", item
                with self._open({"watch": "true", "resourceVersion": version}) as answer:
                    for line in answer:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            version = ""
                            break
                        version = event["object"]["metadata"]["resourceVersion"]
                        yield event["type"], event["object"]
            if not self._closed:
                time.sleep(0.2)

    def _open(self, options: t.Mapping[str, str]) -> http.client.HTTPResponse:
        self._connection.close()
        self._connection = self._connect()
        query = urllib.parse.urlencode({**self._selectors, **options})
        self._connection.request("GET", f"{self._path}?{query}", headers=self._headers)
        if self._closed:
            # Closed before there was a connection to end.
            self._connection.close()
            raise ConnectionError
        return self._connection.getresponse()
