"""``campaigns/*.yaml``: what to run."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

NAME = Rule(
    "HTR301",
    "campaign-name",
    "A campaign's file name is a possible Job name",
    "{name} cannot be the name of a campaign",
    "rename the file: lower-case letters, digits and '-', with a letter or digit at both ends, at most 63 characters before the ending",
)
NAME_RESERVED = Rule(
    "HTR302",
    "campaign-name-reserved",
    "A campaign's name is not one that the platform uses itself",
    "a campaign cannot be called {name}: names that {taken} belong to {owner}",
    "rename the file",
)
NAME_TOO_LONG = Rule(
    "HTR303",
    "campaign-name-too-long",
    "The names of a campaign's pods fit in 63 characters",
    "with {volumes} the last pod would be called {pod}, which is {length} characters long and more than the 63 that Kubernetes takes",
    "make the file's name {excess} shorter",
)
PIPELINE_UNKNOWN = Rule(
    "HTR304",
    "pipeline-unknown",
    "A campaign names a pipeline that exists",
    "there is no pipeline {pipeline} in pipelines/",
    "{instead}",
)
VOLUME_ID = Rule(
    "HTR305",
    "volume-id",
    "A volume id is safe as a file name",
    "{id} cannot be a volume id: {reason}",
    "use letters a-z and A-Z, digits, '.', '_' and '-', with a letter or digit at both ends, at most 63 characters",
)
REFERENCE_CODE = Rule(
    "HTR306",
    "volume-id-reference-code",
    "A volume id is not an archival reference",
    "{id} is a reference code with slashes (a referenskod), and a volume is named by its own id",
    "look the volume up at the archive and write its id, such as R0001203, or give it an id and a manifest",
)
VOLUME_TWICE = Rule(
    "HTR307",
    "volume-twice",
    "A volume stands once in a campaign",
    "the volume {id} is listed twice, on line {first} and here",
    "delete one of the two",
)
URL = Rule("HTR308", "url", "Addresses are ones that a browser can open", "{key} {reason}", "{instead}")
LINE_TOO_LONG = Rule(
    "HTR309",
    "volume-too-long",
    "A volume's addresses fit in 100 KiB",
    "the addresses of the volume {id} take {size} bytes, and a pod can be told at most {limit}",
    "split the images over several volumes, or give the volume a IIIF manifest",
)
SOURCE_TEMPLATE_MISSING = Rule(
    "HTR310",
    "source-template-missing",
    "Bare reference codes need source_template",
    "{id} is a bare reference code, and converter.yaml has no source_template that would turn it into an address",
    "set source_template in converter.yaml, or write the volume with id: and manifest:",
)
PRIORITY_UNKNOWN = Rule(
    "HTR311",
    "priority-unknown",
    "A priority is one of priority_classes",
    "{priority} is not one of the priority classes; Kueue would never start such a campaign and not say why",
    "{instead}",
)
WINDOW_CLAMPED = Rule(
    "HTR312",
    "window-clamped",
    "A window is within the platform's",
    "the window {window} is above the {limit} that converter.yaml allows, and {limit} is used",
    "write a window of at most {limit}, or delete the line",
    level="warning",
)
VOLUME_SHARED = Rule(
    "HTR313",
    "volume-shared",
    "A volume is run once by a pipeline",
    "the volume {id} is also in {other} on line {line}, with the same pipeline, and both write the same results",
    "delete it from one of the two, unless it is meant to run again",
    level="warning",
)
TOO_MANY_VOLUMES = Rule(
    "HTR314",
    "too-many-volumes",
    "A campaign has at most 100 000 volumes",
    "there are {count} volumes here, and a campaign holds at most {limit}",
    "put the volumes from here on into another file in campaigns/",
)
