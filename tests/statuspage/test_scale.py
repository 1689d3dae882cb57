"""What holds however many campaigns and volumes there are: what cards say, their order, and what reading costs."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import pathlib
import time
import typing as t

import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from htrflow_campaigns.local.site import Site
from htrflow_status import views
from htrflow_status.model import Campaign, CampaignState, Counts, Pipeline
from htrflow_status.once import Once
from htrflow_status.order import Filters, Order
from htrflow_status.progress import Progress, Tally
from htrflow_status.sources import indexes
from htrflow_status.sources.cache import Cache
from htrflow_status.sources.intake import Intake
from htrflow_status.words import LANGUAGES, Words
from tests.statuspage import object_cases

_NUMBERS = st.integers(0, 2000)
Object = dict[str, t.Any]
#: Of the states of a campaign that its Job tells: status and fields of such a Job.
_STATUSES: t.Final[t.Mapping[str, tuple[Object, Object]]] = {
    "running": ({}, {}),
    "queued": ({}, {"suspend": True}),
    "paused": ({}, {"parallelism": 0}),
    "unknown": ({}, {"completions": 0}),
    "succeeded": ({"completedIndexes": "0-2", "conditions": [{"type": "Complete", "status": "True"}]}, {}),
    "failed": ({"failedIndexes": "0-2", "conditions": [{"type": "Failed", "status": "True"}]}, {}),
    "partial volumes": (
        {"completedIndexes": "0", "failedIndexes": "1-2", "conditions": [{"type": "Failed", "status": "True"}]},
        {},
    ),
}


@settings(deadline=None)
@given(done=_NUMBERS, failed=_NUMBERS, left=_NUMBERS, ended=st.booleans())
def test_failed_is_never_said_of_a_campaign_of_which_most_came_out(
    done: int, failed: int, left: int, ended: bool
) -> None:
    status: Object = {"completedIndexes": f"0-{done - 1}" if done else ""}
    if failed:
        status["failedIndexes"] = f"{done}-{done + failed - 1}"
    if ended:
        status["conditions"] = [{"type": "Failed" if failed else "Complete", "status": "True"}]
    total = done + failed + (0 if ended else left)
    (campaign,) = object_cases.read([_job("letters", status, completions=total)]).snapshot().campaigns()

    for language in LANGUAGES:
        w = Words(language)
        card = views.card(campaign, [], Tally(), [], w)
        assert (card["volumes"]["done"], card["volumes"]["failed"]) == (done, failed)
        said_failed = w(f"state.{card['state']}") == w("state.failed")
        assert said_failed == (ended and failed > 0 and not done)


_PROGRESS = st.builds(
    Progress,
    condition=st.sampled_from(["running", "stopped", "failed", "finished", ""]),
    total=st.none() | st.integers(1, 500),
    done=st.integers(0, 300),
    failed=st.integers(0, 100),
    pages_per_hour=st.none() | st.integers(1, 1000).map(float),
)


@settings(deadline=None)
@given(st.lists(_PROGRESS), st.lists(_PROGRESS))
def test_what_is_known_of_volumes_together_does_not_depend_on_what_was_known_before(
    kept: list[Progress], gone: list[Progress]
) -> None:
    tally = Tally.of([*kept, *gone])
    for one in gone:
        tally.add(one, -1)

    assert tally == Tally.of(kept)
    assert tally.volumes == len(kept)
    assert tally.total == sum(one.total or 0 for one in kept)


@settings(deadline=None)
@given(st.lists(_PROGRESS, max_size=20), st.integers(0, 100), st.integers(0, 100))
def test_time_left_is_a_range_or_unknown(known: list[Progress], waiting: int, running: int) -> None:
    campaign = _made("running", Counts(waiting, running, 3, 0))

    found = views.time_left(campaign, Tally.of(known))

    measured = any(one.condition == "running" and one.pages_per_hour for one in known)
    assert (found is None) == (not (measured and any(one.total for one in known)))
    if found is not None:
        assert 0 <= found["low"] <= found["high"]


def test_time_left_counts_the_volumes_that_run_and_are_not_read_as_those_that_are() -> None:
    one = Progress(condition="running", total=100, done=50, pages_per_hour=100.0)
    all_read = views.time_left(_made("running", Counts(0, 4, 0, 0)), Tally.of([one] * 4))
    some_read = views.time_left(_made("running", Counts(0, 4, 0, 0)), Tally.of([one] * 2))

    assert all_read == {"low": 1260, "high": 2340}
    assert some_read is not None
    assert some_read["low"] < 0.75 * 3600 * 300 / 400 < some_read["high"]
    assert some_read["high"] - some_read["low"] > all_read["high"] - all_read["low"]


def test_a_card_names_failed_volumes_wherever_they_are(tmp_path: pathlib.Path) -> None:
    job = _job("long", {"completedIndexes": "0-9994,9996-9998", "failedIndexes": "9995,9999"}, completions=10_000)
    with _site(tmp_path, [job]) as url:
        (card,) = requests.get(f"{url}/campaigns.json", timeout=30).json()["campaigns"]
        page = requests.get(f"{url}/campaigns/htr-batch/long.json", timeout=30).json()

    for shown in (card, page["card"]):
        assert [problem["facts"]["volume"] for problem in shown["problems"]] == ["R009995", "R009999"]
    assert [row["id"] for row in card["shown"] if row["state"] == "failed"] == ["R009995", "R009999"]
    assert page["volumes"][0]["id"] == "R000000"


def test_a_card_says_of_how_many_volumes_its_pages_are(tmp_path: pathlib.Path) -> None:
    job = _job("letters", {"completedIndexes": "0-2"}, completions=8)
    for index in range(2):
        _write(tmp_path / "results/htr-batch/demo-v1" / f"R{index:06}", {"total": 10, "done": 9, "failed": 1})
    with _site(tmp_path, [job]) as url:
        (card,) = requests.get(f"{url}/campaigns.json", timeout=30).json()["campaigns"]
        text = requests.get(f"{url}/?lang=en", timeout=30).text

    assert card["pages"] == {"done": 18, "failed": 2, "total": 20, "volumes_known": 2}
    assert "18 of 20" in text
    assert "Pages of 2 of 8 volumes" in text


def test_a_volume_that_stands_still_says_so_in_its_row_on_its_card_and_to_programs(tmp_path: pathlib.Path) -> None:
    job = _job("letters", {}, completions=3)
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    long_ago = {"state": "running", "advanced": "2026-01-05T11:00:00Z", "updated": now}
    _write(tmp_path / "results/htr-batch/demo-v1/R000002", {"total": 10, "done": 3}, **long_ago)
    with _site(tmp_path, [job], running=["0", "2"]) as url:
        # What was not read yet can stand still only from the next answer on.
        requests.get(f"{url}/campaigns.json", timeout=30)
        (card,) = requests.get(f"{url}/campaigns.json", timeout=30).json()["campaigns"]
        page = requests.get(f"{url}/campaigns/htr-batch/letters.json", timeout=30).json()
        volume = requests.get(f"{url}/campaigns/htr-batch/letters/R000002.json", timeout=30).json()
        texts = [
            requests.get(f"{url}{path}?lang=en", timeout=30).text for path in ("/", "/campaigns/htr-batch/letters")
        ]

    assert [(row["id"], row["state"]) for row in card["shown"]][:2] == [("R000002", "stalled"), ("R000000", "running")]
    assert card["volumes"]["stalled"] == page["card"]["volumes"]["stalled"] == 1
    assert [row["state"] for row in page["volumes"]] == ["running", "waiting", "stalled"]
    assert volume["volume"]["state"] == "stalled"
    for text in texts:
        assert "1 volume stalled" in text
        assert text.count("state-stalled") == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(sorted(_STATUSES)), max_size=80))
def test_cards_come_with_what_runs_first_then_what_is_wrong_then_finished_then_not_started(states: list[str]) -> None:
    ranks = [["running"], ["failed", "partial volumes", "unknown"], ["succeeded"], ["paused", "queued"]]
    jobs = [_job(f"c{number}", *_STATUSES[state]) for number, state in enumerate(states)]
    order, snapshot = Order(), object_cases.read(jobs).snapshot()

    last = order.found(snapshot, Filters()).pages
    pages = [order.found(snapshot, Filters(page=number)) for number in range(1, last + 1)]

    shown = [campaign for found in pages for campaign in found.campaigns]
    assert {one.name: one.state for one in shown} == {f"c{number}": state for number, state in enumerate(states)}
    places = [next(place for place, rank in enumerate(ranks) if one.state in rank) for one in shown]
    assert places == sorted(places)


def test_what_was_found_is_kept_only_until_something_changes() -> None:
    order = Order()
    cache = object_cases.read([object_cases.base("Job")])
    before = order.found(cache.snapshot(), Filters())
    assert order.found(cache.snapshot(), Filters()).campaigns is before.campaigns

    other = object_cases.base("Job")
    other["metadata"] |= {"name": "diaries", "uid": "job-2"}
    Intake(cache, object_cases.NAMESPACE).put("jobs", other)

    assert [one.name for one in before.campaigns] == ["letters"]
    assert order.found(cache.snapshot(), Filters()).total == 2


def test_a_part_is_rendered_once_for_the_same_data_and_again_for_any_other() -> None:
    calls: list[str] = []
    once = Once(most=3)

    def part(w: Words, data: t.Any) -> t.Any:
        calls.append(f"{w.language} {data}")
        return f"{w.language} {data}"

    shown = [once(part, Words(language), {"n": n}) for n, language in itertools.product((1, 2, 1), LANGUAGES)]

    assert shown == ["sv {'n': 1}", "en {'n': 1}", "sv {'n': 2}", "en {'n': 2}", "sv {'n': 1}", "en {'n': 1}"]
    assert calls == [*shown[:4], *shown[:2]]
    assert once(part, Words("en"), {"n": 1}) == "en {'n': 1}"
    assert len(calls) == 6


def test_a_page_that_is_the_same_is_not_sent_again(tmp_path: pathlib.Path) -> None:
    with _site(tmp_path, [_job("letters", {"completedIndexes": "0-2"})]) as url:
        for path in ("/accessibility", "/campaigns.json", "/campaigns/htr-batch/letters.json"):
            first = requests.get(f"{url}{path}", timeout=30)
            again = requests.get(f"{url}{path}", headers={"If-None-Match": first.headers["ETag"]}, timeout=30)
            other = requests.get(f"{url}{path}", headers={"If-None-Match": 'W/"other"'}, timeout=30)

            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["ETag"] == first.headers["ETag"]
            assert again.headers["Cache-Control"] == first.headers["Cache-Control"] == "private, no-cache"
            assert "Cookie" in again.headers["Vary"]
            assert (other.status_code, other.content) == (200, first.content)
        assert "ETag" not in requests.get(f"{url}/no", timeout=30).headers


_SETS = st.sets(st.integers(0, 60))


@settings(deadline=None)
@given(_SETS, _SETS, st.integers(0, 70))
def test_sets_of_indexes_are_taken_apart_and_together_as_sets_are(one: set[int], other: set[int], size: int) -> None:
    first, second = (indexes.read(",".join(map(str, some)), 100)[0] for some in (one, other))

    assert set(first.without(second).all()) == one - other
    assert set(indexes.joined(first, second).all()) == one | other
    assert [n for start, end in first.gaps(size) for n in range(start, end + 1)] == sorted({*range(size)} - one)


def test_a_snapshot_of_100_000_volumes_gives_some_of_a_state_without_looking_at_all() -> None:
    status = {"completedIndexes": "0-59999,60001-99989", "failedIndexes": "60000"}
    job = _job("long", status, completions=100_000)
    cache = object_cases.read([job, _volumes(job)])
    snapshot = cache.snapshot()
    (campaign,) = snapshot.campaigns()

    began = time.process_time()
    found = {
        state: [volume.index for volume in snapshot.volumes_in(campaign, state, 3)]
        for state in ("waiting", "running", "failed", "done")
    }
    took = time.process_time() - began

    assert found == {"waiting": [99_990, 99_991, 99_992], "running": [], "failed": [60_000], "done": [0, 1, 2]}
    assert took < 0.02


def test_a_search_among_100_000_volumes_takes_no_time_that_a_reader_would_notice() -> None:
    shot = _large().snapshot()
    shot.campaigns()

    for text, campaigns in (("R", 100), ("r0995", 1), ("R099999", 1), ("https", 0), ("nothing", 0)):
        took = []
        for _ in range(3):
            began = time.process_time()
            found = shot.find(text, 6)
            took.append(time.process_time() - began)
        assert len(found) == campaigns
        assert all(len(ids) <= 6 for ids in found.values())
        assert min(took) < 0.1


def _large() -> Cache:
    jobs = [_job(f"c{number}", {}, completions=1000) for number in range(100)]
    maps = [_volumes(job, number * 1000) for number, job in enumerate(jobs)]
    return object_cases.read([*jobs, *maps])


def _made(state: CampaignState, counts: Counts) -> Campaign:
    return Campaign("htr-batch", "letters", state, "1", Pipeline("demo-v1"), counts)


def _job(name: str, status: Object, spec: Object | None = None, *, completions: int = 3) -> Object:
    job = object_cases.base("Job")
    job["metadata"] |= {"name": name, "uid": f"uid-{name}"}
    job["metadata"]["labels"]["htrflow.riksarkivet.se/campaign"] = name
    return {**job, "spec": {**job["spec"], "completions": completions, **(spec or {})}, "status": status}


def _volumes(job: Object, first: int = 0) -> Object:
    name = f"campaign-{job['metadata']['name']}"
    ids = [f"R{first + index:06}" for index in range(job["spec"]["completions"])]
    text = "".join(f"{id_}\thttps://example.org/{id_}\n" for id_ in ids)
    metadata = {**object_cases.base("ConfigMap")["metadata"], "name": name, "uid": name}
    return {"kind": "ConfigMap", "metadata": metadata, "data": {"volumes.txt": text}}


@contextlib.contextmanager
def _site(folder: pathlib.Path, jobs: t.Sequence[Object], running: t.Sequence[str] = ()) -> t.Iterator[str]:
    """The site with these Jobs in its folder, the first of which has pods of some indexes that run."""
    for name in ("jobs", "config-maps", "pods", "results"):
        (folder / name).mkdir(exist_ok=True)
    for job in jobs:
        name = job["metadata"]["name"]
        (folder / f"jobs/{name}.json").write_text(json.dumps({"job": job}), encoding="utf-8")
        (folder / f"config-maps/{name}.json").write_text(json.dumps({"items": [_volumes(job)]}), encoding="utf-8")
    for index in running:
        pod = object_cases.base("Pod")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": jobs[0]["metadata"]["name"], "controller": True}
        pod["metadata"] |= {"name": f"pod-{index}", "uid": f"pod-{index}", "ownerReferences": [owner]}
        pod["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": index}
        (folder / f"pods/pod-{index}").mkdir()
        (folder / f"pods/pod-{index}/pod.json").write_text(json.dumps(pod, default=str), encoding="utf-8")
    with Site(0, folder, folder / "results", object_cases.NAMESPACE, 1) as served:
        yield served.url


def _write(folder: pathlib.Path, counts: t.Mapping[str, int], **more: str) -> None:
    folder.mkdir(parents=True)
    text = json.dumps({"state": "finished", "counts": counts, **more})
    (folder / "progress.json").write_text(text, encoding="utf-8")
