"""Every sentence that the converter can say about a campaigns repo, each with a stable id.

The first digit of an id tells what it speaks of: 0 the files and their YAML, 1 their structure, 2 ``converter.yaml``,
3 campaigns, 4 pipelines, 5 the change against a base revision, 6 what is rendered, 7 the values of the chart, 8 what
``plan --fetch`` finds of manifests (:mod:`htrflow_campaigns.plan.rules`). An id is never used again.
"""

from __future__ import annotations

from htrflow_campaigns.problems import Rule
from htrflow_campaigns.rules import base, campaign, chart, converter, delivery, files, pipeline, structure

MODULES = (files, structure, converter, campaign, pipeline, base, delivery, chart)

#: Every rule by its id, in the order of the ids.
RULES: dict[str, Rule] = {
    rule.id: rule
    for module in MODULES
    for rule in sorted((value for value in vars(module).values() if isinstance(value, Rule)), key=lambda rule: rule.id)
}
