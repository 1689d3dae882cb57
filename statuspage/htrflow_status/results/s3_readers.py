"""A reader for each session, made of the keys in its cookie."""

from __future__ import annotations

import collections

import anyio
from starlette.requests import HTTPConnection

from htrflow_status.results.accounts import Account
from htrflow_status.results.cache import Cache
from htrflow_status.results.refusal import Refusal
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results.s3_reader import S3Reader, admitted
from htrflow_status.results.session import Session
from htrflow_status.results.session_middleware import session_of

#: Of all readers together, and of all logins together.
_THREADS, _LOGIN_THREADS = 32, 4


class S3Readers:
    """The readers of the sessions that were used last, ``most`` of them; another one is made again when it is back.

    ``age`` is that of their cache, in seconds. Raises ``ValueError`` if the place's endpoint is no address.
    """

    def __init__(self, place: S3Place, *, most: int = 100, age: float = 2.0) -> None:
        self._place, self._most, self._age = place, most, age
        self._cache = Cache()
        self._threads, self._logins = anyio.CapacityLimiter(_THREADS), anyio.CapacityLimiter(_LOGIN_THREADS)
        self._readers: collections.OrderedDict[str, S3Reader] = collections.OrderedDict()
        # The first client takes long, and shows whether there can be one.
        place.connected(Account("nobody", "nobody", "nothing")).close()

    def of(self, connection: HTTPConnection) -> S3Reader | Refusal:
        session = session_of(connection)
        return self.of_session(session) if session else Refusal("login_needed")

    def of_session(self, session: Session) -> S3Reader:
        """The reader of a session: it belongs to it alone, though another one may be of the same account."""
        reader = self._readers.get(session.id)
        if reader is None or reader.account != session.account:
            self.drop(session)
            reader = self._readers[session.id] = S3Reader(
                self._place, session.account, session.id, self._cache, self._threads, self._age
            )
        self._readers.move_to_end(session.id)
        while len(self._readers) > self._most:
            self._readers.popitem(last=False)[1].close()
        return reader

    def drop(self, session: Session) -> None:
        """Forgets a session, and what was read in it."""
        if reader := self._readers.pop(session.id, None):
            reader.close()

    async def admits(self, account: Account) -> Refusal | None:
        """Whether the store lets this account read; None if so."""
        return await admitted(self._place, account, self._logins)

    def close(self) -> None:
        """Ends all connections."""
        while self._readers:
            self._readers.popitem()[1].close()
