"""What a manifest that was asked for can turn out to be. Said only by ``plan --fetch``, since it takes the network."""

from __future__ import annotations

from htrflow_campaigns.problems import Rule

NO_MANIFEST = Rule(
    "HTR801",
    "no-manifest",
    "An address under manifest leads to a IIIF manifest",
    "the volume {id} has no manifest that can be read: {reason}",
    "{instead}",
)
FORBIDDEN = Rule(
    "HTR802",
    "manifest-forbidden",
    "A manifest may be read by everyone",
    "the manifest of the volume {id} may not be read from here: {reason}",
    "open it from the cluster's network; if it is closed there too, ask its owner",
    level="warning",
)
UNREACHABLE = Rule(
    "HTR803",
    "manifest-unreachable",
    "A manifest can be reached",
    "the manifest of the volume {id} cannot be had right now: {reason}",
    "run the check again later",
    level="warning",
)
PRIVATE = Rule(
    "HTR804",
    "manifest-private",
    "A manifest is not asked for in a private network",
    "the manifest of the volume {id} was not asked for: {reason}",
    "run plan inside that network with --fetch-private, or leave it to the cluster",
    level="warning",
)
