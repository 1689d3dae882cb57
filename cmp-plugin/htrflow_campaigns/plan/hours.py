"""How long a campaign takes: its pages times the seconds a page, with a range."""

from __future__ import annotations

import dataclasses
import statistics
import typing as t

from htrflow_campaigns.model import Campaign
from htrflow_campaigns.plan.workload import Workload

#: How far off a number that somebody gave may be.
_GIVEN_SPREAD = 0.3
#: Fewer measured volumes, or pages in them, say too little.
LEAST_VOLUMES, LEAST_PAGES = 3, 30
#: Volumes whose pages must be known, of all or in number, before the others are taken to be like them.
_LEAST_SHARE, _LEAST_KNOWN = 0.5, 20


class Range(t.NamedTuple):
    """A number that is not known exactly: nine of ten times at least ``low``, nine of ten times at most ``high``."""

    low: float
    middle: float
    high: float

    def times(self, other: Range) -> Range:
        return Range(*(mine * its for mine, its in zip(self, other, strict=True)))

    def by(self, factor: float) -> Range:
        return Range(*(value * factor for value in self))


@dataclasses.dataclass(frozen=True)
class Rate:
    """Seconds a page on one pod, and where the number is from, in words."""

    seconds: Range
    source: str


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a campaign takes, in hours. ``clock`` counts from its start and leaves out the time in the queue;
    ``largest`` is what the largest volume takes.

    What is not known is None, and ``unknown`` says why in words. ``counted`` volumes have pages that are known.
    """

    counted: int
    pages: Range | None
    pod_hours: Range | None = None
    gpu_hours: Range | None = None
    clock: Range | None = None
    largest: Range | None = None
    rate: str = ""
    unknown: str = ""


def given(seconds: float) -> Rate:
    """The rate that somebody gives."""
    spread = Range(seconds * (1 - _GIVEN_SPREAD), seconds, seconds * (1 + _GIVEN_SPREAD))
    return Rate(spread, f"{seconds:g} seconds a page, give or take {_GIVEN_SPREAD:.0%}")


def measured(volumes: t.Sequence[tuple[int, float]]) -> Rate | None:
    """The rate of volumes that were read, as pairs of pages and seconds; None when they are too few.

    The middle is that of all pages together, the ends are the 10th and 90th percentile of the volumes.
    """
    pages = sum(count for count, _ in volumes)
    if len(volumes) < LEAST_VOLUMES or pages < LEAST_PAGES:
        return None
    each = sorted(seconds / count for count, seconds in volumes)
    cuts = statistics.quantiles(each, n=10, method="inclusive")
    middle = sum(seconds for _, seconds in volumes) / pages
    spread = Range(min(cuts[0], middle), middle, max(cuts[-1], middle))
    return Rate(spread, f"{middle:.1f} seconds a page, as measured on {pages} pages of {len(volumes)} volumes")


def pages_of(campaign: Campaign, counted: t.Mapping[str, int]) -> list[int | None]:
    """The pages of each volume, None where they are not known. ``counted`` are those of manifests, by address."""
    return [
        len(volume.images) if volume.manifest is None else counted.get(volume.manifest) for volume in campaign.volumes
    ]


def estimate(
    workload: Workload, pages: t.Sequence[int | None], rate: Rate | None, *, no_pages: str = "", no_rate: str = ""
) -> Estimate:
    """What a campaign takes whose volumes have so many pages. ``no_pages`` and ``no_rate`` say why one is not known."""
    known = sorted(count for count in pages if count is not None)
    total = _total(known, len(pages))
    if total is None:
        return Estimate(len(known), None, unknown=no_pages)
    if rate is None:
        return Estimate(len(known), total, unknown=no_rate)
    pod_hours = total.times(rate.seconds).by(1 / 3600)
    # No campaign is done before its largest volume is.
    largest = rate.seconds.by(known[-1] / 3600)
    clock = Range(*(max(all_ / workload.window, one) for all_, one in zip(pod_hours, largest, strict=True)))
    return Estimate(len(known), total, pod_hours, pod_hours.by(workload.gpu), clock, largest, rate.source)


def _total(known: t.Sequence[int], volumes: int) -> Range | None:
    missing = volumes - len(known)
    if not missing:
        return Range(*[float(sum(known))] * 3)
    if len(known) < 2 or (len(known) < volumes * _LEAST_SHARE and len(known) < _LEAST_KNOWN):
        return None
    # The mean of so many others varies less than one of them does.
    mean, error = statistics.mean(known), 1.3 * statistics.stdev(known) * (1 / missing + 1 / len(known)) ** 0.5
    return Range(*(sum(known) + missing * max(0.0, mean + part * error) for part in (-1, 0, 1)))
