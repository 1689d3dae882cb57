"""What is counted, in Prometheus' text form (version 0.0.4)."""

from __future__ import annotations

import time
import typing as t

from starlette.responses import Response

from htrflow_status.events import Events
from htrflow_status.model import Source

_MEDIA_TYPE = "text/plain; version=0.0.4"


class Counted:
    """Requests since the start, by the route that answered and its status."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._requests: dict[tuple[str, int], int] = {}

    def add(self, route: str, status: int) -> None:
        self._requests[route, status] = self._requests.get((route, status), 0) + 1

    def answer(self, more: t.Iterable[str] = ()) -> Response:
        """All of it, with more lines."""
        lines = ["# TYPE htrflow_status_requests_total counter"]
        lines += [
            f'htrflow_status_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._requests.items())
        ]
        lines += ["# TYPE htrflow_status_uptime_seconds gauge"]
        lines += [f"htrflow_status_uptime_seconds {time.monotonic() - self._began:.0f}", *more]
        return Response("\n".join(lines) + "\n", media_type=_MEDIA_TYPE)


def of_site(source: Source, events: Events) -> t.Iterator[str]:
    """The lines about campaigns."""
    states: dict[str, int] = {}
    for campaign in source.snapshot().campaigns():
        states[campaign.state] = states.get(campaign.state, 0) + 1
    yield "# TYPE htrflow_status_campaigns gauge"
    yield from (f'htrflow_status_campaigns{{state="{state}"}} {count}' for state, count in sorted(states.items()))
    yield "# TYPE htrflow_status_troubles gauge"
    yield f"htrflow_status_troubles {len(source.troubles())}"
    yield "# TYPE htrflow_status_live_readers gauge"
    yield f"htrflow_status_live_readers {events.readers}"
