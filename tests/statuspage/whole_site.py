"""The whole site on the data of one machine: before its folder, or as two programs before a real store."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import requests
from starlette.types import ASGIApp

from htrflow_status.app import Site
from htrflow_status.model import Source
from htrflow_status.results import proxy
from htrflow_status.results.places import Places
from htrflow_status.results.s3_place import S3Place
from htrflow_status.results_app import Results
from htrflow_status.sources.folder import FolderSource
from tests.statuspage import local_data, results_site
from tests.statuspage.served import served
from tests.testbed.plugin.misbehaving_http import MisbehavingHttp
from tests.testbed.plugin.s3 import Store


def data(folder: pathlib.Path) -> pathlib.Path:
    """The data folder, made below ``folder``. The archive of its images is gone."""
    with contextlib.closing(MisbehavingHttp()) as http:
        return local_data.make(folder, http)


@contextlib.contextmanager
def of_folder(data: pathlib.Path, source: Source | None = None) -> t.Iterator[str]:
    """The site of a data folder, to which nobody logs in; with another source of state if there is one."""
    with contextlib.ExitStack() as stack:
        found = source or _source(stack, data)
        places = Places([local_data.NAMESPACE])
        site = Site(found, lambda looks: proxy.of_folder(data / "results", places, looks.refused))
        stack.callback(site.close)
        yield stack.enter_context(served(lambda _: site.application()))


@contextlib.contextmanager
def of_store(data: pathlib.Path, store: Store, **settings: t.Any) -> t.Iterator[results_site.Site]:
    """The site of a data folder whose results are in a store. ``settings`` are those of the results proxy.

    As in a cluster, the pages and the proxy are two servers, and only the second one has a way to the store.
    """
    upload(data, store)
    with contextlib.ExitStack() as stack:
        source = _source(stack, data)

        def application(url: str) -> ASGIApp:
            place = S3Place(store.bucket, Places([local_data.NAMESPACE]), endpoint=store.url)
            results = Results(proxy.Settings(**{"place": place, "addresses": [url], **settings}))
            stack.callback(results.close)
            service = stack.enter_context(served(lambda _: results.application()))
            site = Site(source, lambda looks: proxy.of_service(service, looks.refused))
            stack.callback(site.close)
            return site.application()

        yield results_site.Site(stack.enter_context(served(application)), None)


def upload(data: pathlib.Path, store: Store) -> None:
    """Puts the results of a data folder into the store."""
    results = data / "results"
    with contextlib.closing(store.client(store.root)) as client:
        for file in sorted((results / local_data.NAMESPACE).rglob("*.*")):
            client.put_object(Bucket=store.bucket, Key=str(file.relative_to(results)), Body=file.read_bytes())


def get(browser: requests.Session, url: str, **headers: str) -> requests.Response:
    """An answer of the site in English, where a redirect is one."""
    wanted = {"Accept-Language": "en", **headers}
    return browser.get(url, headers=wanted, timeout=60, allow_redirects=False)


def _source(stack: contextlib.ExitStack, data: pathlib.Path) -> FolderSource:
    source = FolderSource(data, 1)
    stack.callback(source.close)
    source.start()
    return source
