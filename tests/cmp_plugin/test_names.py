"""Names of objects, label keys and label values."""

from __future__ import annotations

import re
import time
import typing as t

import hypothesis
import pytest
from hypothesis import strategies as st

from htrflow_campaigns import names

#: The rules as the Kubernetes documentation on object names and labels words them, one character at a time.
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_ANY = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NAMEISH = st.text("aB0-._/\n å", max_size=8) | st.text("ab-.", min_size=50, max_size=70) | st.text(max_size=8)


def _is_label(text: str) -> bool:
    return 0 < len(text) <= 63 and {*text} <= _LOWER | {"-"} and text[0] in _LOWER and text[-1] in _LOWER


def _is_label_value(text: str) -> bool:
    inside = {*text} <= _ANY | {"-", "_", "."}
    return not text or (len(text) <= 63 and inside and text[0] in _ANY and text[-1] in _ANY)


def _is_subdomain(text: str) -> bool:
    parts = text.split(".")
    return len(text) <= 253 and all(
        part and {*part} <= _LOWER | {"-"} and part[0] in _LOWER and part[-1] in _LOWER for part in parts
    )


@hypothesis.settings(derandomize=True, max_examples=400, deadline=None)
@hypothesis.given(_NAMEISH)
def test_names_are_those_that_the_kubernetes_documentation_describes(text: str) -> None:
    assert names.is_dns_label(text) == _is_label(text)
    assert names.is_subdomain(text) == _is_subdomain(text)
    assert names.is_label_value(text) == _is_label_value(text)
    assert names.is_pipeline_id(text) == (_is_subdomain(text) and len(text) <= 52)
    prefix, slash, name = text.rpartition("/")
    assert names.is_label_key(text) == (_is_label_value(name) and bool(name) and (not slash or _is_subdomain(prefix)))


@pytest.mark.parametrize("text", ["a\n", "\na", "a\n\n", "å", "ａ", "a\u200b", "a\x00", "٣"])
def test_no_line_break_and_no_letter_of_another_script_passes_for_a_name(text: str) -> None:
    checks = (names.is_dns_label, names.is_subdomain, names.is_pipeline_id, names.is_label_value, names.is_label_key)
    assert [check(text) for check in checks] == [False] * 5


@pytest.mark.parametrize("check", [names.is_dns_label, names.is_subdomain, names.is_label_value, names.is_label_key])
@pytest.mark.parametrize("unit", ["a", "a-", "a.", "-", ".", "a-.", "/", "a/", "_", "a_"])
def test_a_name_of_a_million_characters_is_refused_at_once(check: t.Callable[[str], bool], unit: str) -> None:
    start = time.process_time()
    assert not check(unit * (1_000_000 // len(unit)))
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("htr-warmup-demo", "the Jobs that download models"),
        ("letters-part2", "the parts of large campaigns"),
        ("letters-status", "the records of campaigns"),
    ],
)
def test_a_name_of_the_platforms_own_says_whose_it_is(name: str, owner: str) -> None:
    assert [reserved.owner for reserved in names.RESERVED_CAMPAIGN_NAMES if reserved.pattern.fullmatch(name)] == [owner]


@hypothesis.settings(derandomize=True, max_examples=100, deadline=None)
@hypothesis.given(st.from_regex("[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True), st.integers(1, 10_000))
def test_objects_of_a_campaign_and_of_a_pipeline_with_one_name_differ(name: str, count: int) -> None:
    made = [names.job(name, None), names.warmup_job(name)]
    hypothesis.assume(not any(reserved.pattern.fullmatch(name) for reserved in names.RESERVED_CAMPAIGN_NAMES))
    made += [names.job(name, number) for number in (1, 2, 10)]
    assert len({*made}) == len(made)
    maps = [names.campaign_config_map(job) for job in made] + [names.pipeline_config_map(name)]
    assert len({*maps}) == len(maps)
    assert re.fullmatch(r"[a-z0-9-]+-[0-9]+", names.last_pod(name, count))
