"""htrflow 0.2.6 as an engine. No other module knows the library, whose next release has another interface."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import pathlib
import typing as t

import yaml

from htrflow_batch.engine import EngineError, Paths, Read, Unread
from htrflow_batch.run import Model

# Read by the libraries when they are imported.
os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_AUTOINSTALL", "false")
os.environ.setdefault("TQDM_DISABLE", "1")
# It logs a traceback for each family of models that is not installed.
logging.getLogger("htrflow.models.importer").setLevel(logging.CRITICAL)

from htrflow.pipeline.pipeline import Pipeline  # noqa: E402
from htrflow.pipeline.steps import Inference  # noqa: E402
from htrflow.results import Result, Segment  # noqa: E402
from htrflow.serialization import get_serializer  # noqa: E402
from htrflow.volume.volume import Collection, ImageNode, PageNode  # noqa: E402

_LOG = logging.getLogger(__name__)
#: What the library raises for settings that it does not have.
_WRONG = (KeyError, TypeError, ValueError, AttributeError, NotImplementedError)


class Pages(Collection):  # type: ignore[misc]
    """A collection in which a page's result does not depend on the pages beside it.

    The library runs each step on the deepest leaves of the whole collection. A page on which nothing was found is left
    out of the next step in company, and read whole, as if it were one line, when it is alone. Here a step runs on what
    the segmentation before it found, and on nothing else.
    """

    def __init__(self, pages: list[PageNode]) -> None:
        self.pages = pages
        self.label = "volume"
        self._found: list[ImageNode] = list(pages)

    def active_leaves(self) -> t.Iterator[ImageNode]:
        found = set(map(id, self._found))
        yield from (leaf for leaf in self.leaves() if id(leaf) in found)

    def update(self, results: list[Result]) -> None:
        read = list(self.active_leaves())
        super().update(results)
        # What a segmentation gives holds no data: neither a text nor a class.
        if not any(result.data for result in results):
            self._found = [child for leaf in read for child in leaf.children]


class DecodedPage(PageNode):  # type: ignore[misc]
    """A page whose image is decoded once. The library drops it when regions are found, and reads the file again.

    Where a step has put another file in the place of the page's, the library is to read that one.
    """

    _image: t.Any

    def __init__(self, number: int, path: pathlib.Path) -> None:
        super().__init__(str(path))
        # Every id in the results begins with it, and an XML name does not begin with a digit.
        self._label = f"page_{number:04}"

    def create_segments(self, segments: t.Sequence[Segment]) -> None:
        image = self._image if self.path == self.get("image_path") else None
        super().create_segments(segments)
        self._image = image


class HtrflowEngine:
    """A pipeline of htrflow. See :class:`htrflow_batch.engine.Engine`."""

    def __init__(self, steps: dict[str, t.Any]) -> None:
        try:
            self._pipeline = Pipeline.from_config(steps)
        except _WRONG as error:
            raise EngineError(
                f"the pipeline cannot be built: {_said(error)} — correct its steps under a new id", permanent=True
            ) from error
        self.name = f"htrflow {importlib.metadata.version('htrflow')}"
        self._alto, self._page = get_serializer("alto"), get_serializer("page")

    def load(self) -> tuple[Model, ...]:
        found: dict[Model, None] = {}
        for number, step in enumerate(self._pipeline.steps, 1):
            if not isinstance(step, Inference):
                continue
            name = (step.model_kwargs or {}).get("model", "its model")
            try:
                # The library would load it at the step's first run, and tell nobody before that what is missing.
                step._init_model()
            except Exception as error:
                permanent = isinstance(error, _WRONG) and not isinstance(error, OSError)
                reason = _said(_of_the_hub(error) or error)
                raise EngineError(
                    f"step {number}, {step}, cannot load {name}: {reason}", permanent=permanent
                ) from error
            found.update(dict.fromkeys(_models(step.metadata.settings)))
        return tuple(found)

    def prepare(self, paths: Paths) -> dict[int, PageNode]:
        return {number: DecodedPage(number, path) for number, path in paths.items()}

    def infer(self, group: dict[int, PageNode]) -> dict[int, PageNode]:
        made = self._pipeline.run(Pages(list(group.values())))
        if made is None or list(made.pages) != list(group.values()):
            raise RuntimeError("a step of the pipeline returned other pages than it was given")
        return group

    def export(self, group: dict[int, PageNode]) -> list[Read | Unread]:
        return [self._export(number, page) for number, page in group.items()]

    def _export(self, number: int, page: PageNode) -> Read | Unread:
        try:
            lines = tuple(line.text for line in page.traverse(_is_line))
            # One line without text makes the library leave out its whole region.
            page.prune(_is_empty)
            page.prune(lambda node: node.is_leaf() and node.depth != page.max_depth())
            page.relabel()
            alto = self._alto.serialize(page, processing_steps=self._pipeline.metadata())
            return Read(number, alto, self._page.serialize(page), lines)
        except Exception as error:
            _LOG.exception("page %s cannot be written", number)
            return Unread(number, f"htrflow cannot write its result: {_said(error)}")


def create(pipeline: bytes) -> HtrflowEngine:
    """The engine of a ``pipeline.yaml``. Raises :class:`EngineError`."""
    try:
        config = yaml.safe_load(pipeline)
    except yaml.YAMLError as error:
        raise EngineError(f"pipeline.yaml is no YAML: {_said(error)}", permanent=True) from error
    if not isinstance(config, dict) or not isinstance(config.get("steps"), list):
        raise EngineError("pipeline.yaml has no list of steps — see the ConfigMap that it comes from", permanent=True)
    return HtrflowEngine(config)


def _of_the_hub(error: BaseException) -> BaseException | None:
    """What the Hub said, which the loaders wrap in errors of their own."""
    seen: BaseException | None = error
    while seen is not None:
        if type(seen).__module__ == "huggingface_hub.errors":
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _is_line(node: ImageNode) -> bool:
    return bool(node.text) and not (node.parent and node.parent.text)


def _is_empty(node: ImageNode) -> bool:
    return node.parent is not None and node.is_leaf() and node.get("text_result") is not None and not node.text


def _models(settings: dict[str, t.Any]) -> t.Iterator[Model]:
    for kind in ("model", "processor"):
        if name := settings.get(kind):
            yield Model(str(name), str(settings.get(f"{kind}_version") or ""))


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return f"{type(error).__name__}: {text[:300]}"
