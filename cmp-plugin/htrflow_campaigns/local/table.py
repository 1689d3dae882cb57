"""What a person at a terminal sees: a table that is kept up to date, or a line for each change in a pipe."""

from __future__ import annotations

import sys
import time
import typing as t

import rich.box
import rich.console
import rich.live
import rich.table
import rich.text

from htrflow_campaigns.local.overview import Campaign, Volume

#: Seconds over which pages a minute are measured.
_SPAN = 120.0
_STYLES = {
    "running": "cyan",
    "succeeded": "green",
    "done": "green",
    "failed": "red",
    "partially succeeded": "yellow",
    "partially failed": "yellow",
}


class Pace:
    """Pages a minute, over the last two minutes."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def note(self, now: float, pages: int) -> None:
        if not self._seen or pages != self._seen[-1][1]:
            self._seen.append((now, pages))
        while len(self._seen) > 2 and self._seen[1][0] < now - _SPAN:
            self._seen.pop(0)

    def a_minute(self, now: float) -> float | None:
        """None as long as it would be a guess."""
        if len(self._seen) < 2:
            return None
        (since, before), (_, pages) = self._seen[0], self._seen[-1]
        return 60 * (pages - before) / (now - since) if now - since > 1 and pages > before else None


class Table:
    """The overview on a terminal. In a pipe it writes a line when a campaign or a volume changes its state."""

    def __init__(self, stream: t.TextIO = sys.stdout) -> None:
        self._console = rich.console.Console(file=stream, highlight=False)
        self._live = rich.live.Live(console=self._console, auto_refresh=False, transient=True)
        self._paces: dict[str, Pace] = {}
        self._said: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Table:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def say(self, sentence: str, style: str = "") -> None:
        """A sentence above the table."""
        self._console.print(sentence, style=style, markup=False, soft_wrap=True)

    def show(self, campaigns: t.Sequence[Campaign]) -> None:
        """The state of everything."""
        now = time.monotonic()
        for campaign in campaigns:
            self._paces.setdefault(campaign.name, Pace()).note(now, sum(campaign.pages[:2]))
        if self._console.is_terminal:
            self._live.update(self._table(campaigns, now), refresh=True)
            return
        for campaign in campaigns:
            self._changed((campaign.name, ""), campaign.state, f"{campaign.name}: {_reason(campaign)}")
            for volume in campaign.volumes:
                said = f"{campaign.name}: {volume.id} is {volume.state}, {_pages(volume)}"
                self._changed(
                    (campaign.name, volume.id), volume.state, said + (f": {volume.error}" * bool(volume.error))
                )

    def summary(self, campaigns: t.Sequence[Campaign], where: str, address: str) -> None:
        """What came out: ``where`` and ``address`` are what the volumes' folders are below."""
        table = rich.table.Table(box=rich.box.SIMPLE)
        for heading in ("campaign", "volume", "state", "pages", "failed", "results"):
            table.add_column(heading, justify="right" if heading in ("pages", "failed") else "left", overflow="fold")
        for campaign in campaigns:
            for volume in campaign.volumes:
                pages = f"{volume.done} of {'?' if volume.total is None else volume.total}"
                failed = str(volume.failed or "")
                _add(table, campaign.name, volume.id, _styled(volume.state), pages, failed, volume.folder)
        self._console.print(table)
        self.say(f"results are below {where} and {address}")

    def _changed(self, what: tuple[str, str], state: str, sentence: str) -> None:
        if self._said.get(what, "waiting") != state:
            self.say(sentence)
        self._said[what] = state

    def _table(self, campaigns: t.Sequence[Campaign], now: float) -> rich.table.Table:
        table = rich.table.Table(box=rich.box.SIMPLE)
        for heading in ("campaign", "state", "volumes", "pages", "failed", "pages/min", "time left"):
            words = heading in ("campaign", "state", "time left")
            justify: t.Literal["left", "right"] = "left" if words else "right"
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=not words)
        for campaign in campaigns:
            done, failed, total = campaign.pages
            pace = self._paces[campaign.name].a_minute(now)
            running = campaign.state == "running"
            _add(
                table,
                campaign.name,
                _styled(campaign.state).append(f" {campaign.note}" if campaign.note else "", ""),
                f"{campaign.ended} of {len(campaign.volumes)}",
                f"{done} of {total or '?'}",
                str(failed) if failed else "",
                f"{pace:.0f}" if pace and running else "",
                _left(campaign, pace) if running else "",
            )
            for volume in campaign.volumes:
                if volume.state == "running":
                    pages = f"{volume.done} of {volume.total or '?'}"
                    _add(table, f"  {volume.id}", "", "", pages, str(volume.failed or ""), "", "")
        return table


def _left(campaign: Campaign, pace: float | None) -> str:
    """The time until the pages that are known of are read; volumes that were not begun count as the others do."""
    done, failed, total = campaign.pages
    known = [volume.total for volume in campaign.volumes if volume.total]
    if not pace or not known:
        return "not enough data yet"
    whole = total + (len(campaign.volumes) - len(known)) * sum(known) / len(known)
    minutes = max(0.0, whole - done - failed) / pace
    return f"about {minutes * 60:.0f} s" if minutes < 1.5 else f"about {minutes:.0f} min"


def _pages(volume: Volume) -> str:
    return f"{volume.done} of {volume.total} pages" if volume.total else "no page yet"


def _reason(campaign: Campaign) -> str:
    return f"{campaign.state}, {campaign.note}" if campaign.note else campaign.state


def _styled(state: str) -> rich.text.Text:
    return rich.text.Text(state, _STYLES.get(state, ""))


def _add(table: rich.table.Table, *cells: str | rich.text.Text) -> None:
    # Names and notes may have what rich takes for its markup.
    table.add_row(*(rich.text.Text(cell) if isinstance(cell, str) else cell for cell in cells))
