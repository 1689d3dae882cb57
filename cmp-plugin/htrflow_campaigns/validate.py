"""Everything that is wrong with a campaigns repo."""

from __future__ import annotations

import typing as t

from htrflow_campaigns.chart_values import Values
from htrflow_campaigns.checks import chart
from htrflow_campaigns.checks.base import BaseComparison
from htrflow_campaigns.checks.shared import SharedVolumes
from htrflow_campaigns.document import Document
from htrflow_campaigns.load import Loaded, load
from htrflow_campaigns.model import Campaign
from htrflow_campaigns.problems import ordered
from htrflow_campaigns.reports import Outcome
from htrflow_campaigns.tree import Tree


def validate(
    tree: Tree,
    base: Tree | None = None,
    progress: t.Callable[[int, int], None] | None = None,
    values: Values | None = None,
) -> Outcome:
    """The problems and warnings of ``tree``, of the change from ``base`` to it, and of the differences to ``values``.

    ``progress`` is told, after each campaign, how many are done and how many there are.
    """
    loaded = load(tree)
    for _ in checked(loaded, base, progress, values):
        pass
    return Outcome(ordered(loaded.problems), loaded.files)


def checked(
    loaded: Loaded,
    base: Tree | None = None,
    progress: t.Callable[[int, int], None] | None = None,
    values: Values | None = None,
) -> t.Iterator[tuple[Campaign, Document]]:
    """Every good campaign and its document. At the end, ``loaded.problems`` holds all that :func:`validate` says."""
    tree = loaded.tree
    if values is not None and loaded.converter is not None and tree.converter is not None:
        loaded.problems += chart.check(loaded.documents[tree.converter.path], loaded.converter, values)
    shared = SharedVolumes()
    comparison = BaseComparison(loaded, base) if base else None
    if comparison:
        loaded.problems += comparison.start()
    for done, (campaign, document) in enumerate(loaded.campaigns(), 1):
        loaded.problems += shared.add(campaign, document)
        if comparison:
            loaded.problems += comparison.add(campaign, document)
        yield campaign, document
        if progress:
            progress(done, len(tree.campaigns))
    if comparison:
        loaded.problems += comparison.end()
