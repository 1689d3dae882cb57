"""Who the user of a kubeconfig is to its API server, and the way there."""

from __future__ import annotations

import base64
import http.client
import pathlib
import ssl
import tempfile
import typing as t
import urllib.parse

import yaml

_Entry = dict[str, t.Any]


class Identity:
    """One cluster and one user, with a certificate, a token or a user to act as. For any number of threads."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        """Raises :class:`ValueError` of a user whom a plugin has to ask for."""
        self._kubeconfig = kubeconfig
        self._files = tempfile.TemporaryDirectory(prefix="testbed-identity-")
        cluster, user = _current(yaml.safe_load(kubeconfig.read_text(encoding="utf-8")))
        if "exec" in user or "auth-provider" in user:
            raise ValueError(f"{kubeconfig}: a user with a certificate or a token is needed, not one with a plugin")
        #: Without a slash at the end.
        self.server = t.cast(str, cluster["server"]).rstrip("/")
        #: The file with what signs the server's certificate; without one, what the machine trusts does.
        self.authority = self._file(cluster, "certificate-authority")
        certificate, key = self._file(user, "client-certificate"), self._file(user, "client-key")
        #: The files of the certificate and its key.
        self.certificate = (certificate, key) if certificate and key else None
        #: What goes with every request.
        self.headers = dict(_headers(user))

    def connect(self, timeout: float | None = None) -> http.client.HTTPConnection:
        """A connection of its own; its requests need :attr:`headers`."""
        url = urllib.parse.urlsplit(self.server)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout)
        context = ssl.create_default_context(cafile=self.authority)
        if self.certificate:
            context.load_cert_chain(*self.certificate)
        return http.client.HTTPSConnection(url.hostname or "", url.port, timeout=timeout, context=context)

    def close(self) -> None:
        """Removes the files."""
        self._files.cleanup()

    def _file(self, entry: _Entry, key: str) -> str | None:
        if f"{key}-data" in entry:
            file = pathlib.Path(self._files.name, key)
            file.touch(mode=0o600)
            file.write_bytes(base64.b64decode(entry[f"{key}-data"]))
            return str(file)
        return str(self._kubeconfig.parent / entry[key]) if key in entry else None


def _current(config: _Entry) -> tuple[_Entry, _Entry]:
    context = next(row["context"] for row in config["contexts"] if row["name"] == config["current-context"])
    cluster = next(row["cluster"] for row in config["clusters"] if row["name"] == context["cluster"])
    user = next(row["user"] for row in config["users"] if row["name"] == context["user"])
    return cluster, user or {}


def _headers(user: _Entry) -> t.Iterator[tuple[str, str]]:
    if "token" in user:
        yield "Authorization", f"Bearer {user['token']}"
    if "as" in user:
        yield "Impersonate-User", user["as"]
    if user.get("as-groups"):
        # The header may occur several times, which requests cannot write: names of groups have no comma.
        if len(user["as-groups"]) > 1:
            raise ValueError("only one group to act as")
        yield "Impersonate-Group", user["as-groups"][0]
