"""Kubernetes quantities."""

from __future__ import annotations

import decimal
import time

import hypothesis
import pytest
from hypothesis import strategies as st

from htrflow_campaigns import quantities

GOOD = {
    "4": "4",
    "0.5": "0.5",
    "500m": "0.5",
    "1500m": "1.5",
    "1k": "1000",
    "16M": "16000000",
    "16Ki": "16384",
    "16Mi": "16777216",
    "16Gi": "17179869184",
    "1.5Gi": "1610612736",
    "2Ti": "2199023255552",
    "1Pi": "1125899906842624",
}
BAD = [
    "",
    "0",
    "0Gi",
    "0.0",
    "-1",
    "+1",
    "1 Gi",
    " 1",
    "1\n",
    "16gi",
    "16GB",
    "16GiB",
    "1K",
    "1e3",
    "1E",
    "0x10",
    "1_000",
]
BAD += [
    ".5",
    "1.",
    "1.2.3",
    "٣Gi",
    "１",
    "inf",
    "nan",
    "Gi",
    "m",
    "1mi",
    "1" * 13,
    "1." + "1" * 10,
    "4,5",
    "1Gi;id",
    "$(X)",
]


@pytest.mark.parametrize(("text", "amount"), GOOD.items())
def test_a_quantity_is_an_amount_in_base_units(text: str, amount: str) -> None:
    assert quantities.parse(text) == decimal.Decimal(amount)


@pytest.mark.parametrize("text", BAD)
def test_what_kubernetes_does_not_take_or_is_nothing_is_no_quantity(text: str) -> None:
    assert quantities.parse(text) is None


@hypothesis.settings(derandomize=True, max_examples=300, deadline=None)
@hypothesis.given(st.text(max_size=20) | st.text("0123456789.kmMGTPiEe+-", max_size=12))
def test_every_text_is_a_positive_amount_in_ascii_or_none(text: str) -> None:
    amount = quantities.parse(text)
    if amount is not None:
        assert 0 < amount < decimal.Decimal(10) ** 28
        assert text.isascii()
        assert text[:1].isdigit()


def test_a_long_run_of_digits_is_refused_at_once() -> None:
    start = time.process_time()
    assert quantities.parse("1" * 1_000_000) is None
    assert time.process_time() - start < 1
