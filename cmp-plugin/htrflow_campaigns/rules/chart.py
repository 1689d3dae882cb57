"""``converter.yaml`` and the values of the chart, where both name the same thing."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

DIFFERENT = Rule(
    "HTR701",
    "chart-differs",
    "converter.yaml and the chart say the same",
    "{key} is {value}, and in the chart's values {other} is {installed}",
    "make the two equal, here or there",
)
TEAM = Rule(
    "HTR702",
    "chart-has-no-team",
    "The chart has a team with this namespace",
    "namespace is {value}, and no team of the chart's values has it",
    "{instead}",
)
UNKNOWN = Rule(
    "HTR703",
    "chart-does-not-have",
    "What converter.yaml names is installed",
    "{key} has {value}, which {other} in the chart's values does not have",
    "{instead}",
)
