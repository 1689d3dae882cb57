"""Puts the parts of the results proxy together."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import typing as t

from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.routing import Route

from htrflow_status.results import answers
from htrflow_status.results.accounts import Derivation
from htrflow_status.results.folder_reader import FolderReader, FolderReaders
from htrflow_status.results.forwarding import Forwarding
from htrflow_status.results.login import Limits, Login
from htrflow_status.results.origins import Origins
from htrflow_status.results.places import Places
from htrflow_status.results.reader import Readers
from htrflow_status.results.routes import routes
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results.s3_readers import S3Readers
from htrflow_status.results.service import Service
from htrflow_status.results.service_session import ServiceSessionMiddleware, ServiceSessions
from htrflow_status.results.session import Sessions
from htrflow_status.results.session_keys import SessionKeys
from htrflow_status.results.session_middleware import SessionMiddleware, session_of


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the results proxy of a bucket has to know."""

    place: S3Place
    #: Where browsers reach the site, such as ``https://htr.example.org``.
    addresses: t.Sequence[str]
    #: See :class:`SessionKeys`; without it, sessions end with the process and there can be one process only.
    session_keys: pathlib.Path | None = None
    derivation: Derivation = "none"
    #: How many proxies before the site say in ``X-Forwarded-For`` whom they heard from.
    trusted_hops: int = 0
    idle: datetime.timedelta = datetime.timedelta(hours=12)
    longest: datetime.timedelta = datetime.timedelta(days=7)
    limits: Limits = dataclasses.field(default_factory=Limits)
    #: Seconds that an answer of the store is used again by the pages.
    cache_age: float = 2.0


class Proxy(t.NamedTuple):
    """What the site takes: its routes, its middleware, and the readers that its pages ask. Close it at the end.

    ``sessions`` is None where nobody logs in here. ``account`` is the user name of whoever asks, or nothing.
    """

    routes: t.Sequence[Route]
    middleware: t.Sequence[Middleware]
    readers: Readers
    sessions: Sessions | None
    account: t.Callable[[HTTPConnection], str]
    close: t.Callable[[], None]


def of_bucket(
    settings: Settings, said: answers.Said = answers.said, form_said: answers.FormSaid = answers.form_said
) -> Proxy:
    """The proxy of a bucket, with logins. ``said`` and ``form_said`` show refusals.

    Raises ``ValueError`` for settings that cannot be.
    """
    origins = Origins(settings.addresses)
    keys = SessionKeys(settings.session_keys)
    sessions = Sessions(keys, secure=origins.secure, idle=settings.idle, longest=settings.longest)
    readers = S3Readers(settings.place, age=settings.cache_age)
    login = Login(
        sessions,
        readers,
        origins,
        derivation=settings.derivation,
        trusted_hops=settings.trusted_hops,
        limits=settings.limits,
        form_said=form_said,
    )
    middleware = Middleware(SessionMiddleware, sessions=sessions)
    return Proxy(routes(readers, login, said), [middleware], readers, sessions, _account, readers.close)


def of_folder(folder: pathlib.Path, places: Places, said: answers.Said = answers.said) -> Proxy:
    """The proxy of a folder on this machine, without logins."""
    readers = FolderReaders(FolderReader(folder, places))
    return Proxy(routes(readers, None, said), [], readers, None, _nobody, _nothing)


def of_service(address: str, said: answers.Said = answers.said) -> Proxy:
    """The proxy where it is a service of its own: requests are handed on to it, and pages read through it.

    Raises ``ValueError`` for an address that is none.
    """
    service = Service(address)
    sessions = ServiceSessions(service)
    middleware = Middleware(ServiceSessionMiddleware, sessions=sessions)
    forwarding = Forwarding(service, sessions, said)
    return Proxy(forwarding.routes(), [middleware], sessions, None, sessions.account, service.close)


def _account(connection: HTTPConnection) -> str:
    session = session_of(connection)
    return session.account.username if session else ""


def _nobody(connection: HTTPConnection) -> str:
    return ""


def _nothing() -> None:
    """There is nothing to close."""
