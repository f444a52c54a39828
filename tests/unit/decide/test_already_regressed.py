"""What pairs left open of a case that has regressed is not asked for again."""

from dataclasses import replace

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
    told = remark_regressed_anyway(rows)
    return [describe_comparison(one, with_values=False) for one in told if one.reason is Reason.UNSETTLED]


def test_what_is_open_of_a_case_that_regressed_says_so() -> None:
    """Three pairs more would settle it, and nobody ran them: the case is red without them."""
    beside = "Inconclusive in 3 pairs side by side with the base (needs 3 more pairs"

    assert describe_open(CONVICTED, OPEN, OPEN_ALONE) == [
        f"{beside}; the case has already regressed).",
        f"{beside}).",
    ]


def test_an_accepted_change_or_a_quarantined_one_makes_no_case_red() -> None:
    """What is open then still decides."""
    accepted = replace(CONVICTED, status=Status.ACCEPTED)
    set_apart = replace(CONVICTED, decides=False)

    for one in (accepted, set_apart):
        assert remark_regressed_anyway((one, OPEN)) == (one, OPEN)


def test_only_what_can_turn_a_case_is_to_be_settled() -> None:
    """What regressed is to be fixed first, and all of it is judged again then."""
    rows = (CONVICTED, OPEN, OPEN_ALONE)

    (asked,) = suggest_settling((OPEN, OPEN_ALONE), rows)
    assert asked.cases == ("cnn/x",)
    assert suggest_settling((OPEN,), rows) == ()


@pytest.mark.parametrize(
    ("pairs", "code"), [(1, Code.SETTLE_WITH_PAIRS), (10, Code.SETTLE_WITH_PAIRS), (16, Code.SETTLE_QUIETLY)]
)
def test_a_quiet_machine_is_asked_for_once_all_pairs_were_had(pairs: int, code: Code) -> None:
    """What one pair left open for want of time needs more of them; what 16 left open, less noise."""
    left = replace(OPEN_ALONE, pairs=pairs)

    assert suggest_settling((left,), (left,)) == (Fact(code=code, cases=("cnn/x",)),)
