"""A comparison's sentence agrees with its change and interval."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.publish.submitted import Refusal
from gate.records.cases import Metric, Threshold
from gate.records.codes import Code
from gate.records.facts import Disturbance, Fact, name_words
from gate.records.run import FailureKind
from gate.records.verdict import Change, Comparison, Estimate, Outcome, Reason, Status
from gate.report.comparison_rows import make_row
from gate.report.words.comparisons import describe_comparison
from gate.report.words.templates import PHRASES, SENTENCES
from gate.sizes import MIB
from tests import make

LATENCY, SPEEDUP, COLD = Metric.COMPILED_LATENCY, Metric.WARM_SPEEDUP, Metric.COLD_COMPILE_TIME
MEMORY = Metric.PEAK_MEMORY
BY_PROCESSOR = Fact(code=Code.PROCESSOR_TIME, numbers={"change": 0.2})


def compare(
    reason: Reason,
    change: tuple[float, float, float] | None,
    metric: Metric = LATENCY,
    *,
    pairs: int = 0,
    remarks: tuple[Fact, ...] = (),
) -> Comparison:
    """A change of these lower bound, centre and upper bound, with a threshold of 5 %."""
    low, centre, high = change or (0.0, 0.0, 0.0)
    value = Estimate(centre=2.0, low=1.9, high=2.1, noise=0.01, n=3)
    return make.make_row(
        "a/x",
        metric,
        Status.UNCHANGED,
        reason=reason,
        baseline=value,
        candidate=value,
        change=Change(centre=centre, low=low, high=high, detectable=0.05) if change else None,
        threshold=Threshold(relative=0.05, absolute=0.0),
        pairs=pairs,
        remarks=remarks,
    )


def test_every_sentence_is_of_a_code() -> None:
    """Every key of a table is a code."""
    kinds = (Code, Reason, Status, Disturbance, FailureKind, Outcome)
    names = {member.value.lower() for kind in kinds for member in kind} | {
        refusal.name.lower() for refusal in Refusal
    }
    tables = (table for name, table in SENTENCES.items() if name != "phrases")
    assert {word for table in tables for key in table for word in key.split()} <= names


def test_every_phrase_is_chosen() -> None:
    """Every key is used in some module of words."""
    modules = Path(describe_comparison.__code__.co_filename).parent.glob("*.py")
    code = "".join(path.read_text(encoding="utf-8") for path in modules)
    assert [key for key in PHRASES if f'"{key}"' not in code and f"'{key}'" not in code] == []


def describe(row: Comparison) -> str:
    return describe_comparison(row, with_values=False)


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        (
            {"author": "ada", "expires": "2027-03-31", "reason": "#12"},
            "Accepted by ada until 2027-03-31: #12.",
        ),
        ({"author": "", "expires": "2027-03-31", "reason": "#12"}, "Accepted until 2027-03-31: #12."),
        ({}, "It was accepted."),
    ],
)
def test_what_was_accepted_says_until_when_and_why(names: dict[str, str], ending: str) -> None:
    """The author may be unknown; without quotes it is just accepted."""
    remark = Fact(code=Code.ACCEPTED_BY, names=name_words(**names))
    row = compare(Reason.BEYOND_BAR, (0.1, 0.2, 0.3), remarks=(remark,))
    assert describe(row).endswith(f"to be noise. {ending}")


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (MEMORY, "this run has no value of this metric"),
        (Metric.BREAK_EVEN_CALLS, "it has a value only where compiled calls are faster than eager's"),
    ],
)
def test_a_missing_value_says_why(metric: Metric, reason: str) -> None:
    """The reason is the metric's: of a break-even that compiling never pays back."""
    row = replace(compare(Reason.NOT_MEASURED, None, metric), status=Status.MISSING)
    assert describe(row) == f"Missing: {reason}."


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (compare(Reason.BELOW_THRESHOLD, None), "The same in every trial."),
        (compare(Reason.BELOW_THRESHOLD, (0.0, 0.0, 0.0), MEMORY), "The same in every trial."),
        (compare(Reason.BELOW_THRESHOLD, (-0.01, 0.01, 0.03)), "Within noise."),
        (compare(Reason.BELOW_THRESHOLD, (0.01, 0.02, 0.03)), "A change below the threshold of 5 %."),
        (compare(Reason.BELOW_THRESHOLD, (-0.03, -0.02, -0.01)), "A change below the threshold of 5 %."),
        (
            compare(Reason.BELOW_THRESHOLD, (-0.15, -0.08, -0.01)),
            "Not worse, and not surely better by more than the threshold of 5 %.",
        ),
        # Memory varies by more than its threshold from trial to trial of the baseline.
        (compare(Reason.BELOW_THRESHOLD, (0.06, 0.07, 0.08), MEMORY), "Within noise."),
        (
            compare(Reason.BELOW_THRESHOLD, (-0.15, -0.08, -0.01), pairs=3),
            (
                "Not worse, and not surely better by more than the threshold of 5 % in 3 pairs side by side"
                " with the base."
            ),
        ),
    ],
)
def test_what_is_unchanged_says_why(row: Comparison, sentence: str) -> None:
    """It was absent, is within noise, is small, or is better but not surely."""
    assert describe(row) == sentence


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            compare(Reason.BEYOND_BAR, (-0.10, 0.18, 0.46)),
            "Beyond the threshold of 5 %, and too large beside eager in the same processes to be noise.",
        ),
        (
            compare(Reason.BEYOND_BAR, (0.10, 0.18, 0.26)),
            "Beyond the threshold of 5 %, and too large to be noise.",
        ),
        (
            compare(Reason.BEYOND_BAR, (-0.02, 0.02, 0.06), COLD, pairs=6, remarks=(BY_PROCESSOR,)),
            (
                "CPU time is beyond the threshold of 5 % in 6 pairs side by side with the base, and too much"
                " to be noise (judged by CPU time, +20.0 %)."
            ),
        ),
        (
            compare(Reason.UNSETTLED, (-0.10, -0.01, 0.08)),
            "The trials vary too much to rule out a change beyond the threshold of 5 %.",
        ),
        (compare(Reason.UNSETTLED, (-0.02, 0.08, 0.18)), "It looks changed, but noise could explain it."),
        (
            compare(Reason.UNSETTLED, (-0.18, -0.08, -0.02), SPEEDUP),
            "It looks better, but compiled latency is inconclusive.",
        ),
        (
            compare(Reason.LEADER_STANDS, (-0.02, -0.01, 0.01), SPEEDUP),
            "Compiled latency itself is within its threshold.",
        ),
        (
            compare(Reason.LEADER_STANDS, (-0.18, -0.08, -0.02), SPEEDUP),
            "Compiled latency itself did not improve by its threshold.",
        ),
    ],
)
def test_a_sentence_says_what_its_interval_leaves_open(row: Comparison, sentence: str) -> None:
    """The sentence agrees with an interval that did not decide."""
    assert describe(row) == sentence


@pytest.mark.parametrize(("centre", "plain"), [(-0.03, True), (-0.08, False)])
def test_an_unsure_improvement_is_explained(centre: float, plain: bool) -> None:
    """A change beyond its threshold that is UNCHANGED has a reason."""
    row = compare(Reason.BELOW_THRESHOLD, (centre - 0.02, centre, centre + 0.02))
    assert (not make_row([row]).sentence) is plain


@pytest.mark.parametrize(("mebibytes", "expected"), [(4.0, "6 MiB (150 %)"), (400.0, "3 %")])
def test_the_part_of_a_threshold_that_is_in_force_is_shown(mebibytes: float, expected: str) -> None:
    """Of 4 MiB 6 MiB are 150 %, of 400 MiB 3 % are more."""
    row = replace(
        compare(Reason.BELOW_THRESHOLD, (-0.02, -0.02, -0.02), MEMORY),
        threshold=Threshold(relative=0.03, absolute=6 * MIB),
        baseline=Estimate(centre=mebibytes * MIB, low=None, high=None, noise=None, n=3),
    )
    assert make_row([row]).threshold == expected


def test_what_only_explains_and_moved_is_called_changed() -> None:
    """Two more operations are "changed", not worse."""
    row = compare(Reason.BEYOND_BAR, (2.0, 2.0, 2.0), Metric.CAPTURED_OPS)
    more = make_row([replace(row, status=Status.UNCHANGED, decides=False)])
    assert (more.label, more.change, more.sentence) == ("(changed)", "+2", "")


@pytest.mark.parametrize(
    "edited",
    [
        {"baseline": Estimate(centre=0.0, low=0.0, high=0.0, noise=0.0, n=3)},
        {"change": Change(centre=-1.0, low=-1.0, high=-1.0, detectable=0.05)},
    ],
)
def test_an_impossible_time_in_an_edited_verdict_is_no_error(edited: dict[str, Any]) -> None:
    """A time of 0 s in an edited file is no error."""
    row = replace(compare(Reason.BELOW_THRESHOLD, (-0.15, -0.08, -0.01), pairs=3), **edited)
    assert describe(row).endswith(" in 3 pairs side by side with the base.")
