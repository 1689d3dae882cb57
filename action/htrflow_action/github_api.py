"""GitHub's REST API, as far as it is needed here ("REST API endpoints for issue comments" in its documentation)."""

from __future__ import annotations

import json
import typing as t
import urllib.error
import urllib.request

_SECONDS = 30
_BYTES = 32 * 1024 * 1024
_VERSION = "2022-11-28"


class ApiError(Exception):
    """A request was not answered as it should be. The message is a clause; ``status`` is 0 when nobody answered."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the token would go along to wherever it leads."""

    def redirect_request(self, *_: t.Any, **__: t.Any) -> None:
        return None


class Api:
    """The API at ``address``, asked in the name of ``token``."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address.rstrip("/")
        self._token = token
        self._opener = urllib.request.build_opener(_NoRedirect)

    def request(self, method: str, path: str, body: t.Any = None) -> t.Any:
        """The answer's JSON. Raises :class:`ApiError`."""
        request = urllib.request.Request(  # noqa: S310 -- the runner gives the address
            f"{self._address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "User-Agent": "htrflow-campaigns",
                "X-GitHub-Api-Version": _VERSION,
            },
        )
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return json.loads(answer.read(_BYTES) or b"null")
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(f"GitHub answered {error.code} {error.reason}", error.code) from None
        except (OSError, ValueError) as error:
            raise ApiError(f"GitHub did not answer ({error})") from None
