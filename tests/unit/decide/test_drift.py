from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.records import (
    Acceptance,
    Comparison,
    DType,
    Environment,
    Metric,
    Outcome,
    Reason,
    Status,
    Verdict,
)
from tests.told import tell_notes, tell_steps

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
Find = Callable[..., Comparison]
DRIFT, FLOAT32 = Metric.DRIFT, Metric.DRIFT_FLOAT32


@pytest.mark.parametrize(
    ("before", "after", "status", "reason"),
    [
        ((0.02, 0.02, 0.02), (0.03,), Status.UNCHANGED, Reason.WITHIN_NOISE),
        ((0.02, 0.02, 0.02), (0.50,), Status.UNCHANGED, Reason.BELOW_THRESHOLD),
        ((0.02, 0.02, 0.02), (0.61,), Status.REGRESSED, Reason.BEYOND_BAR),
        ((0.80, 0.80, 0.80), (0.10,), Status.IMPROVED, Reason.BEYOND_BAR),
        ((-0.5, 0.0, 0.5), (0.65,), Status.INCONCLUSIVE, Reason.SUSPECT),  # SD 0.5: 3 errors are 1.7
        ((-0.5, 0.0, 0.5), (0.10,), Status.INCONCLUSIVE, Reason.NOISE_TOO_HIGH),
        ((0.80, 0.80, 0.80), (1.10,), Status.REGRESSED, Reason.LIMIT_EXCEEDED),  # +0.3 over the limit of 1
        ((0.95, 0.95, 0.95), (1.02,), Status.UNCHANGED, Reason.WITHIN_NOISE),  # crossed by a hair
        ((1.40, 1.40, 1.40), (1.50,), Status.UNCHANGED, Reason.WITHIN_NOISE),  # was beyond it before
        ((1.40, 1.40, 1.40), (2.10,), Status.REGRESSED, Reason.BEYOND_BAR),
    ],
)
def test_drift_against_a_baseline(  # noqa: PLR0913, PLR0917 - a table of situations and three fixtures
    situation: Make,
    judge: Judge,
    find: Find,
    before: Sequence[float],
    after: Sequence[float],
    status: Status,
    reason: Reason,
) -> None:
    """Drift regresses by 0.58 beyond three errors, or by crossing its limit clearly."""
    found = find(judge(situation(before={DRIFT: before}, after={DRIFT: after})), DRIFT)
    assert (found.status, found.reason) == (status, reason)


@pytest.mark.parametrize(
    ("metric", "dtype", "value", "status"),
    [
        (DRIFT, DType.FLOAT32, 0.99, Status.NEW),
        (DRIFT, DType.FLOAT32, 1.01, Status.REGRESSED),
        (DRIFT, DType.BFLOAT16, 1.57, Status.NEW),
        (DRIFT, DType.BFLOAT16, 1.59, Status.REGRESSED),
        (FLOAT32, DType.BFLOAT16, 1.01, Status.REGRESSED),
        (DRIFT, DType.FLOAT16, 1.57, Status.NEW),
        (DRIFT, DType.FLOAT16, 1.59, Status.REGRESSED),
    ],
)
def test_limit_without_a_baseline(  # noqa: PLR0913, PLR0917 - a table of situations and three fixtures
    situation: Make,
    judge: Judge,
    find: Find,
    metric: Metric,
    dtype: DType,
    value: float,
    status: Status,
) -> None:
    """A new case regresses beyond its dtype's limit; the float32 run has the float32 limit."""
    verdict = judge(situation(dtype=dtype, after={metric: (value,)}))
    assert find(verdict, metric).status is status
    assert verdict.outcome is (Outcome.REGRESSION if status is Status.REGRESSED else Outcome.NOTHING_COMPARED)


def test_limit_is_waived_by_a_baseline_of_another_stack(
    situation: Make, judge: Judge, find: Find, host: Environment
) -> None:
    """A model that is beyond the limit under another torch too is like that: not comparable, with a note."""
    other = replace(host, torch="2.11.0")
    verdict = judge(situation(before={DRIFT: (1.3,)}, after={DRIFT: (1.4,)}, host=other))
    assert find(verdict, DRIFT).status is Status.NOT_COMPARABLE
    assert any("limit" in note for note in tell_notes(verdict))


def test_waived_limit_has_a_note(situation: Make, judge: Judge) -> None:
    """Beyond the limit as its baseline is: passed by its change, and said."""
    verdict = judge(situation(before={DRIFT: (1.4,) * 3}, after={DRIFT: (1.45,)}))
    assert verdict.outcome is Outcome.PASS
    assert [note for note in tell_notes(verdict) if "only the change counts" in note]


@pytest.mark.parametrize(("allowance", "status"), [(0.39, Status.REGRESSED), (0.41, Status.ACCEPTED)])
def test_limit_without_a_baseline_can_be_accepted(
    situation: Make, judge: Judge, find: Find, allowance: float, status: Status
) -> None:
    """The allowance is held against what is beyond the limit: 1.4 less 1.0."""
    known = Acceptance(
        case="mlp/*",
        metric=DRIFT,
        allowance=allowance,
        reason="an exp in half",
        author="a",
        expires="2026-03-31",
    )
    one = situation(after={DRIFT: (1.3, 1.4, 1.5)})
    verdict = judge(one, acceptances=(known,))
    assert find(verdict, DRIFT).status is status
    accepted = status is Status.ACCEPTED
    assert verdict.outcome is (Outcome.NOTHING_COMPARED if accepted else Outcome.REGRESSION)
    before = judge(one)
    assert before.outcome is Outcome.REGRESSION
    change = find(before, DRIFT).change
    assert change is not None
    assert change.centre == pytest.approx(0.4)
    assert [
        step for step in tell_steps(before) if "accept 'mlp/inference-float32-smoke-default' drift" in step
    ]
