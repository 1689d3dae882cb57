"""The addresses of the site's pages. No other module and no template builds one."""

from __future__ import annotations

import functools
import urllib.parse

from htrflow_status.model import Campaign
from htrflow_status.order import Filters


def campaigns(filters: Filters | None = None, **other: object) -> str:
    query = urllib.parse.urlencode((filters or Filters()).query(**other))
    return f"/?{query}" if query else "/"


def campaign(campaign: Campaign, page: int = 1) -> str:
    start = f"/campaigns/{_part(campaign.namespace)}/{_part(campaign.name)}"
    return f"{start}?page={page}" if page > 1 else start


def volume(of: Campaign, volume_id: str) -> str:
    return f"{campaign(of)}/{_part(volume_id)}"


def log(of: Campaign, volume_id: str) -> str:
    return f"{volume(of, volume_id)}/log"


def read(of: Campaign, volume_id: str, page: int) -> str:
    return f"{volume(of, volume_id)}/pages/{page}"


def viewer(of: Campaign, volume_id: str) -> str:
    return f"{volume(of, volume_id)}/viewer"


def download(of: Campaign, volume_id: str, kind: str) -> str:
    return f"{volume(of, volume_id)}/download/{kind}"


def search(of: Campaign, volume_id: str) -> str:
    return f"{volume(of, volume_id)}/search"


def result(key: str) -> str:
    return f"/results/{urllib.parse.quote(key)}"


def api(page: str) -> str:
    """The address in ``/api/v1`` of what a page shows."""
    return f"/api/v1{page}" if page.startswith("/campaigns/") else f"/api/v1/campaigns{page.removeprefix('/')}"


def login(then: str = "") -> str:
    return f"/login?{urllib.parse.urlencode({'next': then})}" if then and then != "/" else "/login"


def outside(address: str | None) -> str | None:
    """An address of another site that a link may lead to."""
    return address if address and address.startswith(("http://", "https://")) else None


@functools.lru_cache(8192)
def _part(text: str) -> str:
    return urllib.parse.quote(text, safe="")
