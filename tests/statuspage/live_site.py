"""The site of a data folder with Universal Viewer, as it is served on one machine."""

from __future__ import annotations

import contextlib
import json
import pathlib
import typing as t

from htrflow_campaigns.local.site import Site
from tests.statuspage import local_data
from tests.testbed.plugin.misbehaving_http import Answer, MisbehavingHttp
from tests.wrapper import pods

LETTERS = "/campaigns/demo/letters"
VOLUME = f"{LETTERS}/{local_data.VOLUME}"
VIEWER = f"{VOLUME}/viewer"


def make(folder: pathlib.Path, http: MisbehavingHttp) -> pathlib.Path:
    """The data of :mod:`tests.statuspage.local_data`; its archive lets pages of other sites draw its images."""
    data = local_data.make(folder, http)
    for number in range(1, local_data.PAGES + 1):
        if number != 5:
            http.put(
                f"/volume/{number}.jpg", Answer(pods.picture(number), headers={"Access-Control-Allow-Origin": "*"})
            )
    return data


@contextlib.contextmanager
def serve(data: pathlib.Path, viewer: pathlib.Path | None, port: int = 0) -> t.Iterator[str]:
    """Serves the folder, and gives the site's address."""
    with Site(port, data, data / "results", local_data.NAMESPACE, 1, viewer) as site:
        yield site.url


def iiif(data: pathlib.Path) -> pathlib.Path:
    """The file of the volume's ``iiif.json``."""
    return data / f"results/{local_data.NAMESPACE}/{local_data.PIPELINE}/{local_data.VOLUME}/iiif.json"


def cut(data: pathlib.Path, pages: int) -> None:
    """Leaves the first pages of the volume, as when it still runs."""
    path = iiif(data)
    found = json.loads(path.read_text(encoding="utf-8"))
    found["items"] = found["items"][:pages]
    path.write_text(json.dumps(found), encoding="utf-8")
