"""Nothing more is measured of a case that has already regressed."""

from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.outcome import remark_regressed_anyway
from gate.decide.explain.advice import suggest_settling
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import Change, Comparison, Reason, Status
from gate.report.words.comparisons import describe_comparison
from tests.make import make_row

CHANGE = Change(centre=0.056, low=0.044, high=0.067, detectable=0.04)
CONVICTED = make_row("mlp/x", Metric.COMPILED_LATENCY, change=CHANGE, pairs=3)
OPEN = replace(
    CONVICTED,
    metric=Metric.COLD_COMPILE_TIME,
    status=Status.INCONCLUSIVE,
    reason=Reason.UNSETTLED,
    more_pairs=3,
)
OPEN_ALONE = replace(OPEN, case_id="cnn/x")


def describe_open(*rows: Comparison) -> list[str]:
    remarked = remark_regressed_anyway(rows)
    return [describe_comparison(row, with_values=False) for row in remarked if row.reason is Reason.UNSETTLED]


def test_what_is_open_of_a_case_that_regressed_says_so() -> None:
    """The sentence of an open metric adds that its case has already regressed."""
    text = "Inconclusive in 3 pairs side by side with the base (needs 3 more pairs"

    assert describe_open(CONVICTED, OPEN, OPEN_ALONE) == [
        f"{text}; the case has already regressed).",
        f"{text}).",
    ]


@pytest.mark.parametrize(
    ("changes", "is_remarked"),
    [
        ({}, True),
        ({"more_pairs": 0}, False),
        ({"more_pairs": None}, False),
        ({"status": Status.MISSING, "reason": Reason.NOT_MEASURED}, False),
        ({"decides": False}, False),
        ({"case_id": "cnn/x"}, False),
    ],
)
def test_a_row_that_more_pairs_would_settle_says_that_its_case_has_regressed(
    changes: dict[str, Any], *, is_remarked: bool
) -> None:
    """It decides, is open, and is of the case that regressed."""
    row = replace(OPEN, **changes)
    _, remarked = remark_regressed_anyway((CONVICTED, row))
    assert remarked.has_remark(Code.ALREADY_REGRESSED) is is_remarked


def test_an_accepted_change_or_a_quarantined_one_makes_no_case_red() -> None:
    """With an accepted or quarantined change the open metric still decides."""
    accepted = replace(CONVICTED, status=Status.ACCEPTED)
    set_apart = replace(CONVICTED, decides=False)

    for row in (accepted, set_apart):
        assert remark_regressed_anyway((row, OPEN)) == (row, OPEN)


def test_only_what_can_turn_a_case_is_to_be_settled() -> None:
    """The next step names only open metrics of cases that have not regressed."""
    rows = (CONVICTED, OPEN, OPEN_ALONE)

    (asked,) = suggest_settling((OPEN, OPEN_ALONE), rows)
    assert asked.cases == ("cnn/x",)
    assert suggest_settling((OPEN,), rows) == ()


@pytest.mark.parametrize(
    ("pairs", "code"), [(1, Code.SETTLE_WITH_PAIRS), (10, Code.SETTLE_WITH_PAIRS), (16, Code.SETTLE_QUIETLY)]
)
def test_a_quieter_machine_is_suggested_after_all_pairs(pairs: int, code: Code) -> None:
    """After one pair more pairs are suggested; after all 16, a quieter machine."""
    left = replace(OPEN_ALONE, pairs=pairs)

    assert suggest_settling((left,), (left,)) == (Fact(code=code, cases=("cnn/x",)),)
