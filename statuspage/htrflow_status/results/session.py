"""A reader's session: an account's keys in an encrypted cookie, and nowhere else."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import json
import secrets
import time

from cryptography.fernet import InvalidToken

from htrflow_status.results.accounts import Account
from htrflow_status.results.session_keys import SessionKeys

_COOKIE_BYTES = 4096
#: The cookie's name at https and at http. A browser takes one with this prefix from nobody but the site itself, and
#: over https only.
COOKIES = ("__Host-htrflow-session", "htrflow-session")
#: How many ended sessions are remembered until they would have ended by themselves.
_ENDED = 10_000
_KIND = "htrflow results 1"


@dataclasses.dataclass(frozen=True, slots=True)
class Session:
    """One login. Times are in seconds since 1970; ``used`` is when its cookie was made."""

    id: str = dataclasses.field(repr=False)
    account: Account
    began: int
    used: int
    #: Whether the newest key encrypts its cookie.
    current: bool = True


class Sessions:
    """Makes and reads the cookies of sessions.

    A session ends when it is not used for ``idle``, when it is as old as ``longest``, when its key is removed, and in
    this process when its reader logs out. A cookie is encrypted and authenticated by Fernet
    (https://github.com/fernet/spec), whose time stamp says when it was made. ``secure`` is for a site at https.
    """

    def __init__(
        self,
        keys: SessionKeys,
        *,
        secure: bool,
        idle: datetime.timedelta = datetime.timedelta(hours=12),
        longest: datetime.timedelta = datetime.timedelta(days=7),
    ) -> None:
        self._keys = keys
        self._secure = secure
        self._idle, self._longest = int(idle.total_seconds()), int(longest.total_seconds())
        self._ended: collections.OrderedDict[str, None] = collections.OrderedDict()
        self.name = COOKIES[0] if secure else COOKIES[1]

    def begin(self, account: Account, now: float | None = None) -> Session:
        """A session that nobody had before."""
        at = _seconds(now)
        return Session(secrets.token_urlsafe(16), account, at, at)

    def end(self, session: Session) -> None:
        """Makes all cookies of a session worthless, here."""
        self._ended[session.id] = None
        while len(self._ended) > _ENDED:
            self._ended.popitem(last=False)

    def ended(self, session: Session) -> bool:
        return session.id in self._ended

    def sealed(self, session: Session, now: float | None = None) -> str | None:
        """The cookie's value, or None while there is no key."""
        keys = self._keys.all()
        if not keys:
            return None
        account = session.account
        content = [_KIND, session.id, session.began, account.username, account.access, account.secret]
        return keys[0].encrypt_at_time(json.dumps(content, ensure_ascii=False).encode(), _seconds(now)).decode()

    def opened(self, value: str, now: float | None = None) -> Session | None:
        """The session of a cookie's value, or None if there is none or it has ended."""
        at = _seconds(now)
        if not value.isascii() or len(value) > _COOKIE_BYTES:
            return None
        for number, key in enumerate(self._keys.all()):
            try:
                content = key.decrypt_at_time(value.encode(), self._idle, at)
                used = key.extract_timestamp(value.encode())
            except InvalidToken:
                continue
            session = _session(content, used, current=number == 0)
            if session and at < session.began + self._longest and not self.ended(session):
                return session
            return None
        return None

    def due(self, session: Session, now: float | None = None) -> bool:
        """Whether its cookie should be made anew: a twelfth of the idle time is over, or a newer key is there."""
        return not session.current or _seconds(now) - session.used >= self._idle / 12

    def cookie(self, session: Session, now: float | None = None) -> str | None:
        """The value of ``Set-Cookie`` for a session, or None while there is no key."""
        value = self.sealed(session, now)
        left = min(self._idle, session.began + self._longest - _seconds(now))
        return None if value is None else self._header(value, left)

    def removal(self) -> str:
        """The value of ``Set-Cookie`` that takes the cookie away."""
        return self._header("", 0)

    def expires(self, session: Session) -> datetime.datetime:
        """When a session ends at the latest."""
        return datetime.datetime.fromtimestamp(session.began + self._longest, datetime.UTC)

    def _header(self, value: str, seconds: int) -> str:
        attributes = f"HttpOnly; Max-Age={max(0, seconds)}; Path=/; SameSite=Lax"
        return f"{self.name}={value}; {attributes}{'; Secure' if self._secure else ''}"


def _session(content: bytes, used: int, *, current: bool) -> Session | None:
    """What a cookie of ours holds, or None for anything else under the same key."""
    try:
        kind, identity, began, username, access, secret = json.loads(content)
    except (ValueError, TypeError):
        return None
    texts = (identity, username, access, secret)
    if kind != _KIND or not isinstance(began, int) or not all(isinstance(text, str) for text in texts):
        return None
    return Session(identity, Account(username, access, secret), began, used, current)


def _seconds(now: float | None) -> int:
    return int(time.time() if now is None else now)
