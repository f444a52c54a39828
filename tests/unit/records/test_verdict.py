"""What a comparison says of itself."""

from typing import Any

import pytest

from gate.records.cases import Metric, Threshold
from gate.records.verdict import RED, CaseEvidence, Estimate, Outcome, Reason, SideEvidence, Status
from tests.make import make_change, make_row, make_verdict


@pytest.mark.parametrize(
    ("status", "more_pairs", "expected"),
    [
        (Status.INCONCLUSIVE, 3, True),
        (Status.INCONCLUSIVE, 0, True),
        (Status.INCONCLUSIVE, None, False),
        (Status.REGRESSED, 3, False),
    ],
)
def test_only_an_inconclusive_row_waits_for_pairs(
    status: Status, more_pairs: int | None, *, expected: bool
) -> None:
    """And only where their number is known, be it none."""
    row = make_row("a/b", Metric.DRIFT, status, more_pairs=more_pairs)
    assert row.waits_for_pairs is expected


@pytest.mark.parametrize(
    ("status", "decides", "expected"),
    [
        (Status.NEW, True, True),
        (Status.NOT_COMPARABLE, True, True),
        (Status.NEW, False, False),
        (Status.UNCHANGED, True, False),
        (Status.FAILED, True, False),
    ],
)
def test_only_a_row_that_decides_can_be_incomparable(
    status: Status, *, decides: bool, expected: bool
) -> None:
    """A control without a baseline is nobody's concern."""
    assert make_row("a/b", Metric.DRIFT, status, decides=decides).is_incomparable is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 4.0),
        ({"status": Status.IMPROVED, "change": make_change(-0.2)}, -4.0),
        ({"threshold": Threshold(relative=0.0, absolute=0.04)}, 5.0),
        ({"threshold": Threshold(relative=0.0, absolute=0.0)}, 2.0),
        ({"threshold": None}, 2.0),
        ({"decides": False}, 0.0),
        ({"status": Status.UNCHANGED}, 0.0),
        ({"change": None}, 0.0),
    ],
)
def test_severity_is_the_change_in_thresholds(fields: dict[str, Any], expected: float) -> None:
    """Without one a unit is as grave as ten; what does not decide or did not change is not grave."""
    usual = {"change": make_change(0.2), "threshold": Threshold(relative=0.05, absolute=0.01)}
    row = make_row("a/b", Metric.COMPILED_LATENCY, **{**usual, **fields})
    assert row.severity == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reason", "fields", "expected"),
    [
        (Reason.BEYOND_BAR, {}, True),
        (Reason.BEYOND_BAR, {"decides": False}, False),
        (Reason.BEYOND_BAR, {"status": Status.NEW}, False),
        (Reason.UNPAIRED, {"status": Status.INCONCLUSIVE}, False),
        (Reason.ACCEPTED, {"status": Status.ACCEPTED}, False),
    ],
)
def test_a_row_is_judged_that_was_compared_and_decides(
    reason: Reason, fields: dict[str, Any], *, expected: bool
) -> None:
    """Without a baseline neither an acceptance nor a lack of pairs judges it."""
    assert make_row("a/b", Metric.DRIFT, reason=reason, **fields).is_judged is expected


def test_red_is_what_somebody_has_to_fix() -> None:
    """What is worse, and what could not be measured."""
    assert {Status.REGRESSED, Status.FAILED, Status.MISSING} == RED


def test_a_case_without_stored_evidence_has_an_empty_side_before() -> None:
    """A reader finds two sides."""
    after = SideEvidence()
    assert CaseEvidence(case_id="a/b", after=after).sides == (SideEvidence(), after)


STORED = Estimate(centre=1.0, low=None, high=None, noise=None, n=3)


@pytest.mark.parametrize(
    ("rows", "uses"),
    [
        ((), False),
        (({"baseline": STORED},), True),
        (({"baseline": STORED, "pairs": 2},), False),
        (({},), False),
        (({"pairs": 2}, {"baseline": STORED}), True),
    ],
)
def test_a_verdict_uses_baselines_where_no_pairs_decide(
    rows: tuple[dict[str, Any], ...], *, uses: bool
) -> None:
    """One comparison with a stored value suffices."""
    comparisons = [make_row(f"case{number}/x", Metric.DRIFT, **fields) for number, fields in enumerate(rows)]
    assert make_verdict(*comparisons, outcome=Outcome.PASS).uses_baselines is uses
