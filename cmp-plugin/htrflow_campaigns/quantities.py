"""Kubernetes quantities, as far as a pod size needs them."""

from __future__ import annotations

import decimal
import re

_QUANTITY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(m|[kMGTP]|[KMGTP]i)?", re.ASCII)
_FACTORS = {"m": decimal.Decimal("0.001"), "": decimal.Decimal(1)}
_FACTORS |= {unit: decimal.Decimal(1000) ** power for power, unit in enumerate("kMGTP", 1)}
_FACTORS |= {f"{unit}i": decimal.Decimal(1024) ** power for power, unit in enumerate("KMGTP", 1)}


def parse(text: str) -> decimal.Decimal | None:
    """The amount in base units (cores, bytes), or None when ``text`` is no positive quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    return decimal.Decimal(match[1]) * _FACTORS[match[2] or ""] or None
