"""The readiness probe of the plugin's container: does the plugin server answer on its socket?"""

from __future__ import annotations

import pathlib
import socket

SOCKETS = pathlib.Path("/home/argocd/cmp-server/plugins")
PLUGIN = "htrflow-campaigns"
_SECONDS = 2.0


def probe(folder: pathlib.Path, name: str) -> str | None:
    """What is wrong with the plugin server's socket, in one sentence, or None when it accepts a connection."""
    path = folder / f"{name}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(str(path))
        except FileNotFoundError:
            return f"there is no socket {path} yet — argocd-cmp-server has not started"
        except (OSError, UnicodeError, ValueError) as error:
            return f"nothing answers on {path} ({error}) — argocd-cmp-server is not running"
    return None
