"""Kyverno's reports, as they are printed."""

from __future__ import annotations

import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htrflow_action import report

FOLDER = pathlib.Path(__file__).with_name("reports")
WHOLE = sorted((FOLDER / "whole").glob("*.txt"), key=lambda path: path.name)
BROKEN = sorted((FOLDER / "broken").glob("*.txt"), key=lambda path: path.name)


def test_there_are_reports_of_both_kinds() -> None:
    assert len(WHOLE) >= 7
    assert len(BROKEN) >= 6


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_whole_report_is_read_to_its_last_row(path: pathlib.Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rows = report.rows(path.read_text(encoding="utf-8"))
    assert [[row.policy, *row.of, row.result, row.message] for row in rows] == expected


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_report_that_is_not_whole_is_refused_with_a_reason(path: pathlib.Path) -> None:
    expected = path.with_suffix(".error").read_text(encoding="utf-8").rstrip("\n")
    with pytest.raises(report.ReportError) as refused:
        report.rows(path.read_text(encoding="utf-8"))
    assert str(refused.value) == expected


@given(st.data())
def test_no_cut_of_a_report_passes_for_a_whole_one(data: st.DataObject) -> None:
    printed = (FOLDER / "whole" / "two-reports.txt").read_text(encoding="utf-8").rstrip("\n")
    whole = report.rows(printed)
    end = data.draw(st.integers(0, len(printed) - 1))
    try:
        rows = report.rows(printed[:end])
    except report.ReportError:
        return
    # Where one report ends and the next has not begun.
    assert printed[end:].lstrip("\n-").startswith("{")
    assert {row.policy for row in rows} < {row.policy for row in whole}


@given(st.permutations(range(6)))
def test_the_order_of_the_rows_makes_no_difference(order: list[int]) -> None:
    printed = (FOLDER / "whole" / "every-result.txt").read_text(encoding="utf-8")
    data = json.loads(printed)
    assert len(data["results"]) == 6
    shuffled = {**data, "results": [data["results"][index] for index in order]}
    assert report.rows(json.dumps(shuffled)) == report.rows(printed)


@given(st.text())
def test_any_text_is_a_report_or_refused(text: str) -> None:
    try:
        rows = report.rows(text)
    except report.ReportError:
        return
    assert rows == []
