"""What a change may do to campaigns that already run, against a base revision."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

VOLUMES_CHANGED = Rule(
    "HTR501",
    "volumes-changed",
    "A campaign's volumes stay as they are",
    "the volumes of the campaign {campaign} have changed ({change}), and a campaign's list is fixed when it starts",
    "undo the change here, and put new volumes into a new file in campaigns/",
)
PIPELINE_CHANGED = Rule(
    "HTR502",
    "pipeline-changed",
    "A campaign's pipeline stays as it is",
    "the campaign {campaign} ran with the pipeline {before} and now names {after}",
    "write pipeline: {before_plain} again, and run the volumes with the other pipeline in a new file in campaigns/",
)
RECIPE_CHANGED = Rule(
    "HTR503",
    "recipe-changed",
    "A pipeline that is in use stays as it is",
    "the {part} of the pipeline {pipeline} changed, and {campaigns} ran with it: one id would stand for two recipes",
    "undo the change, and put the new recipe into a new file in pipelines/",
)
WINDOW_CHANGED = Rule(
    "HTR504",
    "window-changed",
    "A running campaign keeps its window",
    "the window of {campaigns} changes from {before} to {after}: of a running campaign Kueue stops every pod and queues it again",
    "leave the window as it was, unless that is meant",
    level="warning",
)
STEPS_REPLACED = Rule(
    "HTR507",
    "steps-replaced",
    "A pipeline's steps are changed under a new id",
    "the steps of the pipeline {pipeline} change; no campaign uses it yet, but what Argo CD has delivered of it cannot be changed",
    "put the new steps into a new file in pipelines/, unless the pipeline was never delivered by Argo CD",
    level="warning",
)
SOURCES_CHANGED = Rule(
    "HTR505",
    "sources-changed",
    "source_template does not move running campaigns",
    "source_template changes the addresses of volumes in {campaigns}, and a campaign's list is fixed when it starts",
    "leave source_template as it was; new campaigns can name their manifests",
)
NAMESPACE_CHANGED = Rule(
    "HTR506",
    "namespace-changed",
    "Campaigns stay in their namespace",
    "the namespace changes from {before} to {after}: every campaign is created again there and runs again from its first volume",
    "leave the namespace as it was, unless that is meant",
    level="warning",
)
PRIORITY_REMOVED = Rule(
    "HTR508",
    "priority-removed",
    "A campaign that has a priority keeps one",
    "the campaign {campaign} loses its priority {before}, and Kueue lets no priority be removed: every sync would fail",
    "write priority: {before_plain} again, or another one",
)
PRIORITY_ADDED = Rule(
    "HTR509",
    "priority-added",
    "A running campaign gets no priority",
    "the campaign {campaign} gets the priority {after}, which Kueue takes while the campaign waits and refuses while it runs",
    "delete the line if the campaign runs",
    level="warning",
)
