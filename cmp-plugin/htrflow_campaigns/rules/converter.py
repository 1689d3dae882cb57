"""``converter.yaml``: what the platform team sets once."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

KUBERNETES_NAME = Rule(
    "HTR201",
    "kubernetes-name",
    "Names of Kubernetes objects are possible names",
    "{key} is {value}, which cannot be the name of a Kubernetes object",
    "use lower-case letters, digits and '-'{dots}, with a letter or digit at both ends, at most {limit} characters",
)
RESULTS_URL = Rule(
    "HTR202",
    "results-url",
    "results_url ends in /results",
    "results_url is {value}, which does not end in /results",
    "write the address under which browsers read the results, such as https://htr.example.org/results",
)
SOURCE_TEMPLATE = Rule(
    "HTR203",
    "source-template",
    "source_template holds {ref} once",
    "source_template {reason}",
    "write an address with the reference code's place marked once as {{ref}}, such as https://example.org/{{ref}}/manifest",
)
TOLERATION_KEY = Rule(
    "HTR204",
    "toleration-without-key",
    "A toleration names its taint",
    "this toleration has no key and so tolerates every taint of the cluster",
    "name the taint's key, such as key: nvidia.com/gpu",
)
TOLERATION_CONTROL_PLANE = Rule(
    "HTR205",
    "toleration-control-plane",
    "Campaigns stay off the control plane",
    "this toleration lets campaigns run on the control plane's nodes",
    "delete it; on a cluster of one node, take the taint off the node instead",
)
TOLERATION_SHAPE = Rule(
    "HTR206",
    "toleration-shape",
    "A toleration is one that Kubernetes takes",
    "{reason}, and Kubernetes refuses such a toleration",
    "{instead}",
)
NODE_LABEL = Rule(
    "HTR207",
    "node-label",
    "Node labels are possible labels",
    "{value} cannot be the {part} of a node label",
    "copy the label from kubectl get nodes --show-labels",
)
FLAVOR_UNKNOWN = Rule(
    "HTR208",
    "flavor-unknown",
    "A size's flavor is one of flavors",
    "the size {size} names the flavor {flavor}, which flavors does not have",
    "{instead}",
)
QUANTITY = Rule(
    "HTR209",
    "quantity",
    "Amounts are Kubernetes quantities",
    "{key} is {value}, which {reason}",
    "write {example}",
)
DEFAULT_SIZE = Rule(
    "HTR210",
    "default-size-unknown",
    "default_size is one of sizes",
    "default_size is {value}, which sizes does not have",
    "{instead}",
)
WORKDIR_MEMORY = Rule(
    "HTR211",
    "workdir-too-large",
    "A size's workdir fits in its memory",
    "the workdir of the size {size} is {workdir} and its memory {memory}; the workdir lies in that memory and leaves no room for the models",
    "make memory at least twice workdir",
)
