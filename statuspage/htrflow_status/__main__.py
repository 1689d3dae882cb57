"""``python -m htrflow_status web`` and ``results``: the programs of the two Deployments."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import typing as t

import uvicorn
from starlette.types import ASGIApp

from htrflow_status import settings
from htrflow_status.app import Site
from htrflow_status.results import proxy
from htrflow_status.results_app import Results
from htrflow_status.settings import SettingsError
from htrflow_status.sources.kubernetes import KubernetesSource
from htrflow_status.sources.record_writer import RecordWriter

_USAGE = "usage: python -m htrflow_status web|results — the settings are variables, see docs/statuspage.md"
#: What open pages wait for is ended, so that a new version takes over soon.
_SECONDS_TO_END = 5


def main(arguments: t.Sequence[str] | None = None, environ: t.Mapping[str, str] = os.environ) -> int:
    """Serves until it is told to end. 2 is wrong usage or a setting that cannot be."""
    names = sys.argv[1:] if arguments is None else arguments
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    programs = {"web": _web, "results": _results}
    if len(names) != 1 or names[0] not in programs:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        programs[names[0]](environ)
    except SettingsError as error:
        print(f"{names[0]} cannot start: {error}", file=sys.stderr)
        return 2
    return 0


def _web(environ: t.Mapping[str, str]) -> None:
    found = settings.web(environ)
    with contextlib.ExitStack() as open_:
        source = KubernetesSource(found.connection, found.namespaces)
        open_.callback(source.close)
        source.start()
        if found.write_records:
            writer = RecordWriter(source.facts, found.connection)
            open_.callback(writer.close)
            writer.start()
        site = Site(source, lambda looks: proxy.of_service(found.results, looks.refused), found.viewer)
        open_.callback(site.close)
        _serve(site.application(), found.port)


def _results(environ: t.Mapping[str, str]) -> None:
    found = settings.results(environ)
    try:
        made = Results(found.settings)
    except ValueError as error:
        raise SettingsError(f"S3_ENDPOINT cannot be used: {error}") from None
    with contextlib.closing(made):
        _serve(made.application(), found.port)


def _serve(application: ASGIApp, port: int) -> None:
    # What a client says of itself in X-Forwarded-For counts only as far as the results proxy trusts it.
    uvicorn.run(
        application,
        host="",
        port=port,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        ws="none",
        access_log=False,
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )


if __name__ == "__main__":
    sys.exit(main())
