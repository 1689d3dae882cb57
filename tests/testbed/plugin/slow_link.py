"""A connection between a client and a server of this machine that can be slow, or broken."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

_CHUNK = 16 * 1024


class SlowLink:
    """Passes the bytes of each connection on to another port, and back."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        #: Seconds that each answer of the server waits.
        self.delay = 0.0
        #: Bytes a second of each connection, in each direction; 0 is as fast as it goes.
        self.pace = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Ends all connections there are."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends all connections and takes no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for source, target, answers in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, target, answers), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if answers and self.delay:
                    time.sleep(self.delay)
                if self.pace:
                    time.sleep(len(chunk) / self.pace)
                target.sendall(chunk)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
        if answers:
            with self._lock:
                self._open -= {source, target}
            source.close()
            target.close()
