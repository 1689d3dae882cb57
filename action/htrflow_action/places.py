"""From an object that a policy refuses back to the line that the user wrote.

An object is made of up to three files: a campaign's, its pipeline's and ``converter.yaml``. Which of their lines is at
fault follows from the policy where it is one of the chart's, else from what its message repeats of the files or speaks
of.
"""

from __future__ import annotations

import re
import typing as t

from htrflow_action.made import Sources
from htrflow_campaigns import load
from htrflow_campaigns.document import Document, Mapping, Path, Sequence
from htrflow_campaigns.problems import Position
from htrflow_campaigns.tree import Entry, Tree

_File = t.Literal["campaign", "pipeline", "converter"]

#: Policies of the chart that speak of one key.
_KEYS: t.Mapping[str, tuple[_File, Path]] = {
    "htr-image-digests": ("pipeline", ("image",)),
    "htr-image-repositories": ("pipeline", ("image",)),
    "htr-job-queue": ("converter", ("queue",)),
    "htr-apply-identity": ("converter", ("namespace",)),
}
#: Policies of the chart that name models, and where in a step's settings a name stands.
_MODELS: t.Mapping[str, tuple[str, ...]] = {
    "htr-models-pinned": ("model",),
    "htr-processors-pinned": ("processor", "model"),
}
#: Policies of the chart that number the steps.
_STEPS = ("htr-model-classes", "htr-pipeline-form")
_SETTINGS = "htr-model-settings"
#: What a message speaks of, and the first file that has such a key. The first word that is found decides.
_WORDS: tuple[tuple[str, tuple[tuple[_File, str], ...]], ...] = (
    (r"images?|registr(y|ies)", (("pipeline", "image"),)),
    (r"models?|revisions?|steps?|pipelines?", (("pipeline", "steps"),)),
    (r"priorit(y|ies)", (("campaign", "priority"), ("converter", "priority_classes"))),
    (r"queues?", (("converter", "queue"),)),
    (r"namespaces?", (("converter", "namespace"),)),
    (r"parallelism|window", (("campaign", "window"), ("converter", "window"))),
    (r"suspend(ed)?", (("campaign", "suspend"),)),
    (r"gpus?|cpu|memory|requests?|limits?|resources?", (("pipeline", "size"), ("converter", "default_size"))),
    (r"tolerations?|taints?", (("converter", "tolerations"),)),
    (r"nodeSelector|nodes?", (("converter", "node_selector"),)),
    (r"runtimeClass\w*", (("converter", "runtime_class"),)),
    (r"ttl\w*", (("pipeline", "ttl_seconds_after_finished"), ("converter", "ttl_seconds_after_finished"))),
    (r"deadline|activeDeadlineSeconds", (("pipeline", "max_seconds"), ("converter", "max_seconds"))),
    (r"volumes?|manifests?", (("campaign", "volumes"),)),
)
_SHORTEST = 3


class Place(t.NamedTuple):
    """A place in a user's file. ``text`` is what was recognised there, and ``step`` the step that it stands in."""

    position: Position
    text: str = ""
    step: int | None = None


class Places:
    """Reads the files that it needs, each once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._documents: dict[str, Document] = {}

    def find(self, policy: str, sources: Sources, message: str) -> list[Place]:
        """The places that ``policy`` means when it says ``message``; at least one."""
        said = message.partition(" — ")[0]
        found = self._of_chart(policy, sources, said)
        return found or [self._recognised(sources, said) or self._spoken_of(sources, said)]

    def step_at(self, position: Position) -> int | None:
        """The step of a pipeline that a position lies in, counted from 0."""
        document = self._documents.get(position.path)
        inside = None
        for index in range(len(_steps(document)) if document else 0):
            assert document is not None
            if document.at(("steps", index)) <= position:
                inside = index
        return inside

    def _of_chart(self, policy: str, sources: Sources, said: str) -> list[Place]:
        if policy in _KEYS:
            file, path = _KEYS[policy]
            if policy == "htr-apply-identity" and " to the queue " in said:
                path = ("queue",)
            return [Place(self._document(getattr(sources, file)).at(path))]
        document = self._document(sources.pipeline)
        if policy in _STEPS and "(counted from 1)" in said:
            listed = said.rpartition(": ")[2].partition(" (counted")[0].split(", ")
            numbers = [int(number) - 1 for number in listed if number.isascii() and number.isdecimal()]
            return [Place(document.at(("steps", index)), step=index) for index in numbers]
        found = []
        for index, step in enumerate(_steps(document)):
            settings = step.get("settings") if isinstance(step, Mapping) else None
            if not isinstance(settings, Mapping):
                continue
            if policy == _SETTINGS:
                beside = [key for key in settings if _mentions(said, key) and key not in ("model", "model_settings")]
                here: Path = ("steps", index, "settings")
                found += [Place(document.at((*here, key), key=True), key, index) for key in beside]
            model_settings = settings.get("model_settings")
            if not isinstance(model_settings, Mapping):
                continue
            for key in _MODELS.get(policy, ()):
                name = model_settings.get(key)
                if isinstance(name, str) and _mentions(said, name):
                    place = document.at(("steps", index, "settings", "model_settings", key))
                    found.append(Place(place, name, index))
                    break
        return found

    def _recognised(self, sources: Sources, said: str) -> Place | None:
        """The longest value of the files that the message repeats."""
        best: Place | None = None
        for entry in filter(None, sources):
            document = self._document(entry)
            for path, text in _leaves(document, (), document.root):
                if len(text) > len(best.text if best else "") and _mentions(said, text):
                    step = path[1] if path[0] == "steps" and len(path) > 1 and isinstance(path[1], int) else None
                    best = Place(document.at(path), text, step)
        return best

    def _spoken_of(self, sources: Sources, said: str) -> Place:
        first: tuple[int, Position] | None = None
        for words, choices in _WORDS:
            match = re.search(rf"(?<![\w-])(?:{words})(?![\w-])", said, re.IGNORECASE)
            if match is None or (first and first[0] <= match.start()):
                continue
            for file, key in choices:
                entry: Entry | None = getattr(sources, file)
                if entry and (place := self._key(entry, key)):
                    first = match.start(), place
                    break
        if first:
            return Place(first[1])
        nearest = sources.campaign or sources.pipeline
        return Place(self._document(nearest).at(()))

    def _key(self, entry: Entry, key: str) -> Position | None:
        document = self._document(entry)
        if isinstance(document.root, Mapping) and key in document.root:
            return document.at((key,))
        # A setting that is not written has its default, and would be written into this file.
        return document.at(()) if entry == self._tree.converter else None

    def _document(self, entry: Entry) -> Document:
        if entry.path not in self._documents:
            document, _ = load.read(self._tree, entry)
            self._documents[entry.path] = document or Document(entry.path, "")
        return self._documents[entry.path]


def _steps(document: Document) -> t.Sequence[t.Any]:
    steps = document.root.get("steps") if isinstance(document.root, Mapping) else None
    return steps if isinstance(steps, Sequence) else ()


def _leaves(document: Document, path: Path, value: t.Any) -> t.Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping | Sequence):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(document, (*path, key), item)
    elif path:
        text = value if isinstance(value, str) else document.source(path) or str(value)
        if len(text) >= _SHORTEST:
            yield path, text


def _mentions(said: str, text: str) -> bool:
    """Whether ``said`` repeats ``text`` as a whole, and not as a part of a longer name."""
    return text in said and re.search(rf"(?<![\w./@:-]){re.escape(text)}(?![\w/@:-]|\.\w)", said) is not None
