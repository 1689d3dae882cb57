"""What ``/api/v1`` answers. The description that is published is made of these types, and so is every answer."""

from __future__ import annotations

import typing as t

from htrflow_status import progress, urls
from htrflow_status.downloads import Kind
from htrflow_status.model import Attempt as AttemptOfModel
from htrflow_status.model import CampaignState, Model, Owner, VolumeState
from htrflow_status.model import Pages as Counts
from htrflow_status.progress import FailedPage
from htrflow_status.shaping import From, More, Through

#: A time, in UTC.
Moment = t.Annotated[str, More(format="date-time", examples=["2026-09-14T11:05:09Z"])]
#: An address of this API in place of that of the page which shows the same.
Link = t.Annotated[str, Through(urls.api), More(format="uri-reference")]
Address = t.Annotated[str, More(format="uri-reference")]
_PAGE_STATES = (*dict.fromkeys(progress.STATES.values()), "active")
_PageState = t.Annotated[str, More(enum=list(_PAGE_STATES))]
_AttemptState = t.Annotated[str, More(enum=list(t.get_args(t.get_type_hints(AttemptOfModel)["state"])))]


def _points(text: str) -> list[list[int]]:
    return [[int(number) for number in pair.split(",")] for pair in text.split()]


class Reason(t.TypedDict):
    """Why something is as it is. The code and its facts are for programs, the text is for people."""

    code: t.Annotated[str, "A word that stays the same, such as `quota`."]
    facts: t.Annotated[dict[str, str | int], "What the sentence names: a queue, a resource, a number."]
    owner: t.Annotated[Owner, "Who can do something about it."]
    text: t.Annotated[str, "One sentence, in the language of `Accept-Language`: Swedish or English."]


class VolumeCounts(t.TypedDict):
    """Volumes of a campaign by state."""

    total: t.Annotated[int, "All volumes of the campaign."]
    done: t.Annotated[int, "Those whose results are whole."]
    failed: t.Annotated[int, "Those that ended without results."]
    running: t.Annotated[int, "Those with a pod that works."]
    waiting: t.Annotated[int, "Those that have not begun."]
    stalled: t.Annotated[
        int, "Those of the running ones in which no page was finished for 15 minutes, as far as is known."
    ]


class PageCounts(t.TypedDict):
    """Pages of the volumes whose progress this answer knows; `volumes_known` says of how many."""

    done: t.Annotated[int, "Pages with results."]
    failed: t.Annotated[int, "Pages that failed for good."]
    total: t.Annotated[int | None, "Pages of these volumes, or null where nothing is known."]
    volumes_known: t.Annotated[int, "How many volumes are counted here."]


class TimeLeft(t.TypedDict):
    """Seconds until the campaign is done, as a range."""

    low: t.Annotated[int, "At the least."]
    high: t.Annotated[int, "At the most."]


class Pipeline(t.TypedDict):
    """The recipe of a campaign."""

    id: t.Annotated[str, "The file's name without its ending."]
    image: t.Annotated[str, "The container image, pinned by its digest; empty where it is not known."]
    models: t.Annotated[list[Model], "The models at their revisions; an empty revision is not pinned."]
    warmup: t.Annotated[Reason | None, "Why the models are not ready, or null where they are."]


class Volume(t.TypedDict):
    """A volume of a campaign."""

    index: t.Annotated[int, "Its line in the campaign's list, from 0."]
    id: t.Annotated[str, "Its id: a reference code such as `R0001203`."]
    state: t.Annotated[VolumeState, "Running volumes in which no page was finished for 15 minutes are `stalled`."]
    stage: t.Annotated[str, "What its pod does, such as `load` or `stream`; empty where that is not known."]
    url: t.Annotated[Link, "The volume in this API."]
    html_url: t.Annotated[Address, From("url"), "The volume's page for people."]
    log: t.Annotated[Link, "Its run log in this API."]
    viewer_url: t.Annotated[Address, From("viewer"), "Its pages in a viewer, for people."]
    manifest: t.Annotated[
        str | None, "The IIIF manifest it is read from, or null where its images are listed one by one."
    ]
    pages: t.Annotated[Counts, "Its pages by state; the total is null where nothing is known."]
    problem: t.Annotated[Reason | None, "Why it failed, or null."]


class Campaign(t.TypedDict):
    """A campaign."""

    namespace: t.Annotated[str, "The namespace it runs in."]
    name: t.Annotated[str, "Its name: that of its file, with `-part2` and so on for the parts of a long one."]
    url: t.Annotated[Link, "The campaign in this API."]
    html_url: t.Annotated[Address, From("url"), "The campaign's page for people."]
    version: t.Annotated[str, "Changes whenever something of it does."]
    state: t.Annotated[
        CampaignState, "`partial pages`: all volumes came out, and some pages failed. `partial volumes`: some failed."
    ]
    removed: t.Annotated[bool, "Whether its Job is gone, and this is what the record says."]
    created: t.Annotated[Moment | None, "When its Job was made."]
    started: t.Annotated[Moment | None, "When it was admitted."]
    finished: t.Annotated[Moment | None, "When its last volume ended."]
    window: t.Annotated[int, "How many volumes run at once."]
    priority: t.Annotated[str, "Its priority class; empty where it has none."]
    waiting: t.Annotated[list[Reason], "Why it does not run, or not wholly."]
    problems: t.Annotated[list[Reason], "What is wrong, of at most five volumes."]
    volumes: t.Annotated[VolumeCounts, "Its volumes by state."]
    pages: t.Annotated[PageCounts, "Its pages, as far as this answer knows them."]
    time_left: t.Annotated[TimeLeft | None, "How long it takes yet, or null where nothing is measured."]
    pipeline: t.Annotated[Pipeline, "What reads it."]


class ListedCampaign(Campaign):
    """A campaign in the list of all."""

    shown: t.Annotated[
        list[Volume], "At most six volumes: those that were searched for, or those that run or failed first."
    ]


class Answer(t.TypedDict):
    troubles: t.Annotated[
        list[Reason], "What could not be read for this answer: a namespace, the store. It may lack that."
    ]


class Campaigns(Answer):
    """Campaigns, thirty at a time: those that run first, then what is wrong, finished and not begun."""

    campaigns: t.Annotated[list[ListedCampaign], "The campaigns."]
    total: t.Annotated[int, "All campaigns that fit the filters."]
    page: t.Annotated[int, "Which part this is, from 1."]
    pages: t.Annotated[int, "How many parts there are."]
    states: t.Annotated[
        dict[CampaignState, int], "How many campaigns there are of each state, whatever `state` asks for."
    ]
    pipelines: t.Annotated[list[str], "All pipelines, to filter by."]
    previous: t.Annotated[Link | None, "The part before, or null."]
    following: t.Annotated[Link | None, "The next part, or null."]


class OneCampaign(Answer):
    """A campaign with its volumes, a hundred at a time."""

    campaign: t.Annotated[Campaign, From("card"), "The campaign."]
    volumes: t.Annotated[list[Volume], "Its volumes, in the order of its file."]
    page: t.Annotated[int, "Which part this is, from 1."]
    pages: t.Annotated[int, "How many parts there are."]
    previous: t.Annotated[Link | None, "The part before, or null."]
    following: t.Annotated[Link | None, "The next part, or null."]


class Cell(t.TypedDict):
    """A page of a volume."""

    page: t.Annotated[int, "Its number, from 1."]
    state: t.Annotated[_PageState, "How far it is."]
    seconds: t.Annotated[float | None, "How long it took, or null."]
    confidence: t.Annotated[float | None, "How sure the model is of its text, from 0 to 1, or null."]
    url: t.Annotated[Link | None, "Its text in this API, or null while there is none."]


class Attempt(t.TypedDict):
    """A pod of a volume."""

    pod: t.Annotated[str, "Its name."]
    state: t.Annotated[_AttemptState, "How it stands."]
    started: t.Annotated[Moment | None, "When it began, or null."]
    finished: t.Annotated[Moment | None, "When it ended, or null."]
    exit_code: t.Annotated[int | None, "13 is for good: it is not tried again."]
    stage: t.Annotated[str, "In which stage it ended, if it says so."]
    message: t.Annotated[str, "Its own sentence, in English; may be empty."]
    reason: t.Annotated[str, "Kubernetes' word, such as `OOMKilled`; may be empty."]
    node: t.Annotated[str, "Where it runs or ran; may be empty."]


class Download(t.TypedDict):
    """A file to have of a volume."""

    kind: t.Annotated[
        Kind | t.Literal["manifest"], "ALTO or PAGE as a zip, plain text, or what the wrapper says of its work."
    ]
    url: t.Annotated[Address, "Where it is."]


class OneVolume(Answer):
    """A volume: its pages, its attempts, what can be had of it."""

    campaign: t.Annotated[Campaign, From("card"), "Its campaign, with the pages of this volume."]
    volume: t.Annotated[Volume, "The volume."]
    page_list: t.Annotated[list[Cell], From("cells"), "Its pages, in order."]
    failed_pages: t.Annotated[list[FailedPage], "The pages that failed: why, and from where they are."]
    attempts: t.Annotated[list[Attempt], "Its pods that are known, the oldest first."]
    downloads: t.Annotated[list[Download], "Files. Before the volume is done, they hold the pages that are."]


class Slow(t.TypedDict):
    """One of the pages that took longest."""

    page: t.Annotated[int, "Its number, from 1."]
    state: t.Annotated[_PageState, "How it ended."]
    seconds: t.Annotated[float, "How long it took."]
    url: t.Annotated[Link, "Its text in this API."]


class LogLine(t.TypedDict):
    """A line of a run log."""

    number: t.Annotated[int, "Its number in the file, from 1."]
    time: t.Annotated[Moment | None, From("at"), "When it was written; null for the further lines of a message."]
    level: t.Annotated[t.Literal["DEBUG", "INFO", "WARN", "ERROR"], "How bad it is."]
    text: t.Annotated[str, "What it says, in English."]
    htrflow: t.Annotated[bool, "Whether htrflow said it, and not the wrapper."]
    hit: t.Annotated[bool, "Whether it holds the text that was searched for."]


class LogGroup(t.TypedDict):
    """Lines of one stage that follow each other, or the beginning of an attempt."""

    kind: t.Annotated[
        t.Literal["stage", "attempt", "left out"], "What it is. `left out` says how many bytes were dropped."
    ]
    name: t.Annotated[str, "The stage; when the attempt began; the number of bytes."]
    lines: t.Annotated[list[LogLine], "The lines."]


class Log(Answer):
    """A volume's run log."""

    campaign: t.Annotated[Campaign, From("card"), "Its campaign, with the pages of this volume."]
    volume: t.Annotated[Volume, "The volume."]
    slowest: t.Annotated[list[Slow], "The pages that took longest."]
    groups: t.Annotated[list[LogGroup], "The log in its order; none where there is no log yet."]
    query: t.Annotated[str, "The text that was searched for."]
    hits: t.Annotated[int, "How many lines hold it."]
    raw: t.Annotated[Address | None, "The log as a file, or null."]


class TextLine(t.TypedDict):
    """A line of a page."""

    text: t.Annotated[str, "Its text."]
    points: t.Annotated[
        list[list[int]],
        Through(_points),
        More(items={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        "The corners of its outline, `[x, y]` in pixels of the image.",
    ]
    confidence: t.Annotated[float | None, "How sure the model is, from 0 to 1, or null."]


class OnePage(Answer):
    """A page's text. Where there is none, `problem` says why, and there are no lines."""

    campaign: t.Annotated[Campaign, From("card"), "Its campaign, with the pages of this volume."]
    volume: t.Annotated[Volume, "Its volume."]
    page: t.Annotated[int, "Its number, from 1."]
    total: t.Annotated[int, "The pages of the volume."]
    state: t.Annotated[
        str | None, More(enum=[*_PAGE_STATES, None]), "How far it is; null where nothing is known of it."
    ]
    problem: t.Annotated[str | None, "Why there is no text, in a sentence, or null."]
    image: t.Annotated[str | None, More(format="uri"), "The image it was read from, or null where that is not known."]
    width: t.Annotated[int | None, "The image's, in pixels."]
    height: t.Annotated[int | None, "The image's, in pixels."]
    lines: t.Annotated[list[TextLine], "Its lines in reading order."]
    previous: t.Annotated[Link | None, "The page before, or null."]
    following: t.Annotated[Link | None, "The next page, or null."]


class Version(t.TypedDict):
    """Which version the site has, and which its state."""

    version: t.Annotated[str, "The site's."]
    state: t.Annotated[str, "Changes whenever something of any campaign does."]


class Error(t.TypedDict):
    """Why it cannot be answered."""

    error: t.Annotated[str, "One sentence, in the language of `Accept-Language`."]


class Refused(t.TypedDict):
    """Why a login or a result is refused."""

    code: t.Annotated[str, "A word that stays the same."]
    message: t.Annotated[str, "One sentence, in English."]


class Welcome(t.TypedDict):
    """A session has begun."""

    username: t.Annotated[str, "Whose it is."]
    ends: t.Annotated[Moment, "When it ends at the latest; it ends before if it is not used for twelve hours."]


class Login(t.TypedDict):
    """An account of the store."""

    username: t.Annotated[str, More(minLength=1), "The user name, or the access key."]
    password: t.Annotated[str, More(minLength=1), "The password, or the secret key."]


class Health(t.TypedDict):
    """The process is well."""

    status: t.Literal["ok"]
    troubles: t.Annotated[int, "How many parts of the state cannot be read now."]
