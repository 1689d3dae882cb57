"""What happened in the repository on GitHub, as far as it matters here.

The keys are those of the webhook payloads in the GitHub documentation, "Webhook events and payloads".
"""

from __future__ import annotations

import json
import pathlib
import typing as t


class Event(t.NamedTuple):
    """``base`` and ``head`` are commits, and ``number`` is of the pull request; each is empty or None without one."""

    base: str = ""
    head: str = ""
    number: int | None = None
    is_fork: bool = False


def read(environment: t.Mapping[str, str]) -> Event:
    """The event that the runner describes; an empty one when it describes none."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        payload = json.loads(pathlib.Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        payload = {}
    if isinstance(payload.get("merge_group"), dict):
        group = payload["merge_group"]
        return Event(str(group.get("base_sha") or ""), str(group.get("head_sha") or ""))
    request = payload.get("pull_request")
    if not isinstance(request, dict):
        return Event()
    base, head = request.get("base") or {}, request.get("head") or {}
    number = request.get("number") or payload.get("number")
    names = [(side.get("repo") or {}).get("full_name") for side in (base, head)]
    return Event(
        str(base.get("sha") or ""),
        str(head.get("sha") or ""),
        number if isinstance(number, int) else None,
        names[0] is not None and names[0] != names[1],
    )
