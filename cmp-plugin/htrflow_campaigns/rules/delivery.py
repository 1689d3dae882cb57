"""What is rendered, and what may be delivered."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

NOTHING = Rule(
    "HTR601",
    "nothing-to-render",
    "There is something to render",
    "there is no campaign and no pipeline here, and delivering nothing would delete everything that runs",
    "check the folder; if it is meant to be empty, set {variable}=true in the plugin's container",
)
NAMESPACE_REFUSED = Rule(
    "HTR602",
    "namespace-refused",
    "A plugin renders only into its namespaces",
    "the namespace {namespace} is not one that this plugin may render into ({allowed})",
    "write an allowed namespace, or ask the platform team to add it to {variable}",
)
TOO_MUCH = Rule(
    "HTR603",
    "too-much-output",
    "What is generated fits in one answer",
    "the objects take {size} MiB, and Argo CD takes at most {limit} MiB in one answer",
    "move finished campaigns out of the repo, or raise {variable} together with Argo CD's own limit",
)
SAME_OBJECT = Rule(
    "HTR604",
    "same-object",
    "No two files make the same object",
    "{object} is also made by {other}, and only one of the two would exist",
    "rename the file",
)
