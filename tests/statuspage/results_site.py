"""The results proxy alone, before a real store."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import json
import typing as t

import requests
from starlette.applications import Starlette

from htrflow_status.results import proxy
from htrflow_status.results.places import Places
from htrflow_status.results.s3_place import S3Place
from tests.statuspage.served import served
from tests.testbed.plugin.s3 import Account, Store

_T = t.TypeVar("_T")
PREFIX = "htr-batch"
FOLDER = f"{PREFIX}/demo-v1/R0001203"


def place(store: Store, **settings: t.Any) -> S3Place:
    known = {"bucket": store.bucket, "places": Places([PREFIX]), "endpoint": store.url}
    return S3Place(**{**known, **settings})


@dataclasses.dataclass(frozen=True)
class Site:
    """A site that is served, and what it was made of."""

    url: str
    proxy: proxy.Proxy | None

    def login(self, account: Account, browser: requests.Session | None = None, **headers: str) -> requests.Response:
        """Logs in as a page of the site does; the browser keeps the cookie."""
        fields = {"username": account.access, "password": account.secret}
        browser = browser or requests.Session()
        with_origin = {"Origin": self.url, **headers}
        return browser.post(f"{self.url}/results/_login", json=fields, headers=with_origin, timeout=60)

    @contextlib.contextmanager
    def browser(self, account: Account) -> t.Iterator[requests.Session]:
        """A browser in which somebody has logged in."""
        with requests.Session() as browser:
            answer = self.login(account, browser)
            assert answer.status_code == 200, answer.text
            yield browser

    def at(self, key: str) -> str:
        return f"{self.url}/results/{key}"


@contextlib.contextmanager
def site(where: S3Place, **settings: t.Any) -> t.Iterator[Site]:
    """The proxy of a bucket."""
    made: list[proxy.Proxy] = []

    def application(url: str) -> Starlette:
        made.append(proxy.of_bucket(proxy.Settings(**{"place": where, "addresses": [url], **settings})))
        return application_of(made[0])

    with served(application) as url:
        yield Site(url, made[0])
    made[0].close()


@contextlib.contextmanager
def before(where: S3Place, **settings: t.Any) -> t.Iterator[Site]:
    """The proxy of a bucket as a service of its own, and the site before it, which has no keys."""
    with contextlib.ExitStack() as stack:

        def application(url: str) -> Starlette:
            behind = stack.enter_context(site(where, addresses=[url], trusted_hops=1, **settings))
            parts = proxy.of_service(behind.url)
            stack.callback(parts.close)
            return application_of(parts)

        with served(application) as url:
            yield Site(url, None)


def application_of(parts: proxy.Proxy) -> Starlette:
    return Starlette(routes=list(parts.routes), middleware=list(parts.middleware))


def put(store: Store, key: str, content: bytes, content_type: str = "application/json") -> str:
    """Writes an object as whoever owns the server, and gives its key."""
    with contextlib.closing(store.client(store.root)) as client:
        client.put_object(Bucket=store.bucket, Key=key, Body=content, ContentType=content_type)
    return key


def allow(store: Store, rights: t.Mapping[str, t.Sequence[str]]) -> None:
    """Lets accounts, by access key, list the bucket and read what is below some prefixes, and nobody else anything."""
    whole = f"arn:aws:s3:::{store.bucket}"
    statements: list[dict[str, t.Any]] = []
    for who, prefixes in rights.items():
        statements.append({"Effect": "Allow", "Principal": who, "Action": "s3:ListBucket", "Resource": whole})
        below = [f"{whole}/{prefix}*" for prefix in prefixes]
        if below:
            statements.append({"Effect": "Allow", "Principal": who, "Action": "s3:GetObject", "Resource": below})
    with contextlib.closing(store.client(store.root)) as client:
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        client.put_bucket_policy(Bucket=store.bucket, Policy=policy)


def awaited(work: t.Coroutine[t.Any, t.Any, _T]) -> _T:
    """What a coroutine gives, in a thread: a browser keeps a loop of its own in the one of the tests."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
