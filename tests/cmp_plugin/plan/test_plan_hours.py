"""Pages times seconds: what must hold for every estimate."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_campaigns.plan import hours
from htrflow_campaigns.plan.hours import Range
from htrflow_campaigns.plan.workload import Workload

WORKLOAD = Workload(
    volumes=10,
    parts=1,
    asked=None,
    limit=4,
    window=4,
    gpu=1,
    gpus=4,
    cpu="4",
    memory="8Gi",
    size=None,
    max_seconds=3600,
)
COUNTS = st.lists(st.integers(1, 2000), min_size=1, max_size=60)
SECONDS = st.floats(0.1, 300)


def is_ordered(value: Range | None) -> bool:
    return value is not None and value.low <= value.middle * (1 + 1e-9) and value.middle <= value.high * (1 + 1e-9)


@given(COUNTS, SECONDS, st.integers(1, 50), st.integers(0, 8))
def test_work_is_pages_times_seconds_and_the_clock_is_never_less_than_the_largest_volume(
    pages: list[int], seconds: float, window: int, gpu: int
) -> None:
    workload = dataclasses.replace(WORKLOAD, window=window, gpu=gpu)
    found = hours.estimate(workload, pages, hours.given(seconds))
    assert found.pages == Range(*[sum(pages)] * 3)
    assert found.pod_hours is not None
    assert found.gpu_hours is not None
    assert found.clock is not None
    assert found.pod_hours.middle == pytest.approx(sum(pages) * seconds / 3600)
    assert found.gpu_hours.middle == pytest.approx(found.pod_hours.middle * gpu)
    assert found.clock.middle == pytest.approx(max(max(pages), sum(pages) / window) * seconds / 3600)
    assert all(map(is_ordered, (found.pod_hours, found.gpu_hours, found.clock, found.largest)))


def test_a_number_that_somebody_gives_may_be_off_by_a_third() -> None:
    assert hours.given(10).seconds == Range(7, 10, 13)


@given(COUNTS, st.integers(1, 1000))
def test_volumes_that_nobody_counted_are_taken_to_be_like_the_others_when_enough_are_known(
    known: list[int], missing: int
) -> None:
    pages: list[int | None] = [*known, *[None] * missing]
    found = hours.estimate(WORKLOAD, pages, hours.given(10), no_pages="not known")
    if len(known) >= 2 and (len(known) >= missing or len(known) >= 20):
        assert is_ordered(found.pages)
        assert found.pages is not None
        assert found.pages.low >= sum(known)
        assert found.pages.middle == pytest.approx(sum(known) * len(pages) / len(known))
        assert found.counted == len(known)
    else:
        assert (found.pages, found.gpu_hours, found.clock, found.unknown) == (None, None, None, "not known")


def test_without_a_rate_pages_are_known_and_hours_are_not() -> None:
    found = hours.estimate(WORKLOAD, [10, 20], None, no_rate="nobody knows")
    assert found.pages == Range(30, 30, 30)
    assert (found.gpu_hours, found.unknown) == (None, "nobody knows")


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0.1, 1e5)), max_size=20))
def test_few_volumes_measure_nothing_and_many_give_an_ordered_range(volumes: list[tuple[int, float]]) -> None:
    rate = hours.measured(volumes)
    if len(volumes) < 3 or sum(pages for pages, _ in volumes) < 30:
        assert rate is None
    else:
        assert rate is not None
        assert is_ordered(rate.seconds)
        each = [seconds / pages for pages, seconds in volumes]
        assert min(each) * (1 - 1e-9) <= rate.seconds.low
        assert rate.seconds.high <= max(each) * (1 + 1e-9)


def test_the_middle_is_that_of_all_pages_and_the_ends_are_those_of_volumes() -> None:
    volumes = [(100, float(100 * seconds)) for seconds in range(1, 12)]
    rate = hours.measured([*volumes, (1000, 3000.0)])
    assert rate is not None
    assert rate.seconds == pytest.approx(t.cast(t.Any, Range(2.1, 9600 / 2100, 9.9)))
    assert rate.source == "4.6 seconds a page, as measured on 2100 pages of 12 volumes"
