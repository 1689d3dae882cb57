"""What the site knows of campaigns, as plain values. Where it is from is the business of :mod:`htrflow_status.sources`.

Nothing here is text for people: reasons are codes with their facts, and the pages word them in the reader's language.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

Moment: t.TypeAlias = datetime.datetime

#: A campaign, from its Job and its Workload. ``partial pages`` are campaigns whose volumes all came out and
#: some of whose pages did not, ``partial volumes`` those of which some volumes failed and others came out.
CampaignState = t.Literal[
    "running", "queued", "paused", "succeeded", "partial pages", "partial volumes", "failed", "unknown"
]
VolumeState = t.Literal["waiting", "running", "stalled", "done", "done with failures", "failed"]
#: Who can do something about a problem.
Owner = t.Literal["requester", "platform", "nobody"]


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """Why something is as it is: a code of the catalogue, with the facts that its sentence names."""

    code: str
    facts: t.Mapping[str, str | int] = dataclasses.field(default_factory=dict)
    owner: Owner = "nobody"


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """One pod of a volume. ``message`` is its own sentence, without secrets; ``reason`` is Kubernetes' word.

    ``stage`` is the one that its last words name.
    """

    pod: str
    state: t.Literal["waiting", "running", "succeeded", "failed", "evicted"]
    started: Moment | None = None
    finished: Moment | None = None
    exit_code: int | None = None
    stage: str = ""
    message: str = ""
    reason: str = ""
    node: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Pages:
    """Pages of a volume or of a campaign; ``total`` is None where nobody knows."""

    done: int = 0
    failed: int = 0
    total: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Volume:
    """One volume of a campaign: line ``index`` of its list. Exactly one of ``manifest`` and ``images`` is there."""

    index: int
    id: str
    state: VolumeState
    manifest: str | None = None
    images: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A model of a pipeline's step. ``revision`` is empty where it is not pinned."""

    name: str
    revision: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline, as its ConfigMap and its warm-up Job have it. ``warmup`` is None where its models are ready."""

    id: str
    yaml: str = ""
    image: str = ""
    models: tuple[Model, ...] = ()
    warmup: Reason | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """Volumes by state; together they are the volumes of a campaign."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.waiting + self.running + self.done + self.failed


@dataclasses.dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign, or one part of a large one; ``name`` is its Job's, and unique in its ``namespace``.

    ``waiting`` says why it does not run. ``removed`` says that its Job is gone and that this is its record. ``version``
    changes whenever anything of it does. ``campaign`` is the name of the campaign's file, ``part`` counts from 1 and is
    None where there is but one. ``pages`` are those of a record. ``problems`` say what of it cannot be read.
    """

    namespace: str
    name: str
    state: CampaignState
    version: str
    pipeline: Pipeline
    counts: Counts
    created: Moment | None = None
    started: Moment | None = None
    finished: Moment | None = None
    window: int = 0
    priority: str = ""
    waiting: tuple[Reason, ...] = ()
    removed: bool = False
    campaign: str = ""
    part: int | None = None
    pages: Pages | None = None
    problems: tuple[Reason, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Snapshot(t.Protocol):
    """Everything at one moment. Reading it asks no server."""

    #: Changes whenever anything does.
    version: str

    def campaigns(self) -> t.Sequence[Campaign]:
        """All campaigns, in no order that matters."""
        ...

    def campaign(self, namespace: str, name: str) -> Campaign | None: ...

    def volumes(self, campaign: Campaign, first: int = 0, most: int | None = None) -> t.Sequence[Volume]:
        """The campaign's volumes in the order of its list, from index ``first``."""
        ...

    def volume(self, campaign: Campaign, volume_id: str) -> Volume | None: ...

    def volumes_in(self, campaign: Campaign, state: VolumeState, most: int) -> t.Sequence[Volume]:
        """The first volumes of a state, at most so many. It costs what it gives, however long the list is."""
        ...

    def attempts(self, campaign: Campaign, index: int) -> t.Sequence[Attempt]:
        """The pods of a volume that are known, the oldest first."""
        ...

    def find(self, text: str, most: int = 50) -> t.Mapping[str, t.Sequence[str]]:
        """The ids of volumes that hold a text, in any case, by the campaign's key: of each campaign at most so many."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Trouble:
    """A part of what there should be that cannot be read: a namespace, a kind of object, or the whole server."""

    what: str
    reason: Reason
    since: Moment


class Source(t.Protocol):
    """Where snapshots come from."""

    def snapshot(self) -> Snapshot:
        """The newest. It costs nothing."""
        ...

    def troubles(self) -> t.Sequence[Trouble]:
        """What cannot be read now; the snapshot has what was last known of it."""
        ...

    async def changed(self, version: str, seconds: float) -> str:
        """Waits until the version is another than this one, but no longer; gives the version then."""
        ...
