"""Reads a campaigns repo file by file and holds each to its rules."""

from __future__ import annotations

import dataclasses
import typing as t

from htrflow_campaigns import limits, yamldoc
from htrflow_campaigns.checks import campaign as campaign_checks
from htrflow_campaigns.checks import converter as converter_checks
from htrflow_campaigns.checks import pipeline as pipeline_checks
from htrflow_campaigns.document import Document
from htrflow_campaigns.model import Campaign, Converter, Pipeline
from htrflow_campaigns.problems import Problem, ordered
from htrflow_campaigns.rules import files as rules
from htrflow_campaigns.tree import Entry, Tree


def read(tree: Tree, entry: Entry) -> tuple[Document | None, list[Problem]]:
    """The data of one file, or None, and the problems of its bytes and YAML."""
    content = tree.read(entry.path)
    if isinstance(content, Problem):
        return None, [content]
    return yamldoc.parse(entry.path, content)


def _first(found: t.Sequence[Problem]) -> t.Sequence[Problem]:
    """What is said of the problems of one file."""
    if len(found) <= limits.FILE_PROBLEMS:
        return found
    said = ordered(found)[: limits.FILE_PROBLEMS + 1]
    return [*said[: limits.FILE_PROBLEMS], rules.TOO_MANY_PROBLEMS.at(said[-1].position, limit=limits.FILE_PROBLEMS)]


@dataclasses.dataclass
class Loaded:
    """A campaigns repo whose settings and pipelines are read.

    Campaigns are read one at a time by :meth:`campaigns`, so that a repo of any size takes the memory of its largest
    file. ``problems`` grows while they are.
    """

    tree: Tree
    converter: Converter | None
    pipelines: dict[str, Pipeline]
    problems: list[Problem]
    documents: dict[str, Document] = dataclasses.field(default_factory=dict)

    @property
    def files(self) -> int:
        return len(self.tree.campaigns) + len(self.tree.pipelines) + (self.tree.converter is not None)

    def is_good(self) -> bool:
        return not any(problem.rule.level == "problem" for problem in self.problems)

    def campaigns(self) -> t.Iterator[tuple[Campaign, Document]]:
        """Every good campaign and its document, in the order of the names."""
        context = campaign_checks.Context(self.converter, {entry.name for entry in self.tree.pipelines})
        for entry in self.tree.campaigns:
            document, problems = read(self.tree, entry)
            if document is None:
                self.problems += _first([*problems, *campaign_checks.check_name(entry.path, entry.name)])
                continue
            campaign, found = campaign_checks.check(document, entry.name, context)
            self.problems += _first([*problems, *found])
            if campaign is not None:
                yield campaign, document


def load(tree: Tree) -> Loaded:
    """The settings and pipelines of a campaigns repo."""
    problems = [*tree.problems]
    documents: dict[str, Document] = {}
    converter: Converter | None = None
    if tree.converter is not None:
        document, found = read(tree, tree.converter)
        if document is not None:
            documents[document.path] = document
            converter, more = converter_checks.check(document)
            found = [*found, *more]
        problems += _first(found)
    pipelines: dict[str, Pipeline] = {}
    for entry in tree.pipelines:
        document, found = read(tree, entry)
        pipeline = None
        if document is not None:
            documents[document.path] = document
            pipeline, more = pipeline_checks.check(document, entry.name, converter)
            found = [*found, *more]
        problems += _first(found)
        if pipeline is not None:
            pipelines[entry.name] = pipeline
    return Loaded(tree, converter, pipelines, problems, documents)
