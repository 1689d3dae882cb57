"""``pipelines/*.yaml``: how to run it."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

ID = Rule(
    "HTR401",
    "pipeline-id",
    "A pipeline's file name is a possible id",
    "{id} cannot be the id of a pipeline",
    "rename the file: lower-case letters, digits, '-' and '.', with a letter or digit at both ends and beside every '.', at most 52 characters before the ending",
)
IMAGE = Rule(
    "HTR402",
    "image-not-pinned",
    "An image is pinned by its digest",
    "image is {value}, which {reason}",
    "write <registry>/<repository>@sha256:<64 hexadecimal digits>, without a tag",
)
SIZE_UNKNOWN = Rule(
    "HTR403", "size-unknown", "A size is one of sizes", "there is no size {size} in converter.yaml", "{instead}"
)
STEP_UNKNOWN = Rule(
    "HTR404", "step-unknown", "A step is one that htrflow has", "htrflow has no step {step}", "{instead}"
)
STEP_REFUSED = Rule("HTR405", "step-refused", "A step can run in a pod", "the step {step} {reason}", "{instead}")
READER_WITHOUT_LINES = Rule(
    "HTR406",
    "reader-without-lines",
    "A line reader has lines inside regions to read",
    "{model} reads lines, and {count} before it: ALTO and PAGE hold a line's text only inside a region, so every page would come out empty",
    "put two Segmentation steps before it, one that finds regions and one that finds the lines within them",
)
SETTINGS_BESIDE = Rule(
    "HTR407",
    "settings-beside-model-settings",
    "A model's settings stand under model_settings",
    "{key} stands beside model_settings, where htrflow lets it override what model_settings says",
    "move it under model_settings or generation_settings",
)
REVISION_TEXT = Rule(
    "HTR408",
    "revision-not-text",
    "A revision is a text",
    "YAML reads the revision {source} as {read}",
    "put it in quotes: {quoted}",
    fixable=True,
)
MODEL_NOT_PINNED = Rule(
    "HTR409",
    "model-not-pinned",
    "A model is pinned to a commit",
    "{model} is not pinned by {where}: the same pipeline gives other text when its author uploads it again",
    "write the 40 hexadecimal digits of a commit as {where} under model_settings",
    level="warning",
)
MODEL_UNKNOWN = Rule(
    "HTR410",
    "model-unknown",
    "A model class is one that htrflow has",
    "htrflow has no model class {model}",
    "{instead}",
)
MODEL_MISSING = Rule(
    "HTR411",
    "model-missing",
    "A step that runs a model names it",
    "the step {step} runs a model, and this one has no {key}",
    "add {example}",
)
PIPELINE_TOO_LARGE = Rule(
    "HTR412",
    "pipeline-too-large",
    "A pipeline fits in a ConfigMap",
    "the steps take {size} bytes, and {limit} fit in a ConfigMap",
    "shorten the steps",
)
ID_RESERVED = Rule(
    "HTR413",
    "pipeline-id-reserved",
    "A pipeline's id is not a folder that the bucket has already",
    "a pipeline cannot be called {id}: beside the pipelines' results, the bucket has a folder of that name",
    "rename the file",
)
MODEL_WITHOUT_PIN = Rule(
    "HTR414",
    "model-cannot-be-pinned",
    "A model's class takes a revision",
    "the class {model} has no place for a revision, so that its weights cannot be pinned to a commit",
    "use a model of another class; the platform's policies may refuse this one",
    level="warning",
)
