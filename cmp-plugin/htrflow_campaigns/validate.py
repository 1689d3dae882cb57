"""Everything that is wrong with a campaigns repo."""

from __future__ import annotations

import typing as t

from htrflow_campaigns.checks.base import BaseComparison
from htrflow_campaigns.checks.shared import SharedVolumes
from htrflow_campaigns.load import load
from htrflow_campaigns.problems import ordered
from htrflow_campaigns.reports import Outcome
from htrflow_campaigns.tree import Tree


def validate(tree: Tree, base: Tree | None = None, progress: t.Callable[[int, int], None] | None = None) -> Outcome:
    """The problems and warnings of ``tree``, and those of the change from ``base`` to it.

    ``progress`` is told, after each campaign, how many are done and how many there are.
    """
    loaded = load(tree)
    shared = SharedVolumes()
    comparison = BaseComparison(loaded, base) if base else None
    if comparison:
        loaded.problems += comparison.start()
    for done, (campaign, document) in enumerate(loaded.campaigns(), 1):
        loaded.problems += shared.add(campaign, document)
        if comparison:
            loaded.problems += comparison.add(campaign, document)
        if progress:
            progress(done, len(tree.campaigns))
    if comparison:
        loaded.problems += comparison.end()
    return Outcome(ordered(loaded.problems), loaded.files)
