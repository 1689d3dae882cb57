"""What the platform team sets in the environment of the plugin's container.

Only there: Argo CD lets a file in git override an application's own environment and parameters, all of which reach a
plugin under names that start with ``ARGOCD_`` or ``PARAM_``.
"""

from __future__ import annotations

import typing as t

from htrflow_campaigns import limits

NAMESPACES = "HTRFLOW_CAMPAIGNS_NAMESPACES"
ALLOW_EMPTY = "HTRFLOW_CAMPAIGNS_ALLOW_EMPTY"
MAX_MIB = "HTRFLOW_CAMPAIGNS_MAX_MIB"


class SettingError(Exception):
    """A setting has a value that makes no sense. The message is one sentence."""


class Settings(t.NamedTuple):
    """The limits of a plugin.

    ``namespaces`` is None when every namespace is allowed; ``max_bytes`` is of the whole output.
    """

    namespaces: frozenset[str] | None = None
    allow_empty: bool = False
    max_bytes: int = limits.GENERATED_BYTES


def from_environment(environment: t.Mapping[str, str]) -> Settings:
    namespaces = frozenset(filter(None, (name.strip() for name in environment.get(NAMESPACES, "").split(","))))
    empty = environment.get(ALLOW_EMPTY, "").strip().lower()
    if empty not in ("", "true", "false"):
        raise SettingError(f"{ALLOW_EMPTY} is {empty!r} — write true or false")
    size = environment.get(MAX_MIB, "").strip()
    if size and not (size.isascii() and size.isdigit() and 0 < int(size[:10]) <= limits.INT32_MAX):
        raise SettingError(f"{MAX_MIB} is {size!r} — write a whole number of MiB, such as 100")
    max_bytes = int(size) * limits.MIB if size else limits.GENERATED_BYTES
    return Settings(namespaces or None, empty == "true", max_bytes)
