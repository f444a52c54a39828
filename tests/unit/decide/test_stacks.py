"""What is known of a comparison of two stacks, and of stored values that another software measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.notes import note_unchanged_code
from gate.decide.side_by_side import decide_side_by_side
from gate.devices import TARGET_KIND
from gate.fingerprint import compares_stacks
from gate.records.cases import Metric, Policy
from gate.records.run import CodeIdentity, Run
from gate.records.verdict import Outcome, PairBase, Reason, Status, Verdict
from gate.report.words.comparisons import complete_sentence
from tests.hosts import CPU_HOST

from .one_case import WARM, Find, Make, Pair, state

CALLS = Metric.COMPILE_CALLS
OLD, NEW = "/venvs/old/bin/python", "/venvs/new/bin/python"
NEWER_TORCH = replace(CPU_HOST, torch="2.14.1+cpu")
TARGET_HOST = replace(CPU_HOST, device_kind=TARGET_KIND)


def give_base(run: Run, **changes: Any) -> Run:
    """The same run, with another base."""
    assert run.base is not None
    return replace(run, base=replace(run.base, **changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"pythons": (OLD, OLD)}, False),
        ({"pythons": (OLD, NEW)}, True),
        ({"environment": NEWER_TORCH}, True),
    ],
)
def test_two_interpreters_are_two_stacks(
    pair_run: Pair, paired_case: Make, changes: dict[str, Any], expected: bool
) -> None:
    """Whatever is recorded of both; and in a run that does not name them, what is recorded tells."""
    assert compares_stacks(give_base(pair_run(paired_case()), **changes)) is expected


def test_what_has_no_base_compares_no_stacks(pair_run: Pair, paired_case: Make) -> None:
    """A run of trials alone."""
    assert not compares_stacks(replace(pair_run(paired_case()), base=None))


def test_a_verdict_names_both_interpreters(pair_run: Pair, paired_case: Make, policy: Policy) -> None:
    """As they were asked for, and whether they ran one directory."""
    run = give_base(pair_run(paired_case()), pythons=(OLD, NEW), one_code=True)
    expected = PairBase(
        label="main (1a2b3c4)", commit="1a2b3c4", other_stack=True, pythons=(OLD, NEW), one_code=True
    )
    assert decide_side_by_side(run, policy).base == expected


# 13 % longer in three pairs that vary by a fifth: below the limit of 15 %, and -38 to +107 % wide.
WIDE: dict[str, Any] = {"pairs": 3, "spread": (0.2, -0.2, 0.0), "head": {WARM: 3.39}}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({}, (Status.UNCHANGED, Reason.BELOW_THRESHOLD)),
        ({"pythons": (OLD, NEW)}, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        ({"environment": NEWER_TORCH}, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
    ],
)
def test_equal_calls_settle_no_compile_of_another_stack(  # noqa: PLR0913, PLR0917 - three fixtures
    pair_run: Pair,
    paired_case: Make,
    policy: Policy,
    find: Find,
    base: dict[str, Any],
    expected: tuple[Status, Reason],
) -> None:
    """Of one stack the same calls are the same work; of two they say nothing, and what was open stays so."""
    verdict = decide_side_by_side(give_base(pair_run(paired_case(**WIDE)), **base), policy)
    assert state(find(verdict, WARM)) == expected


def test_an_open_compile_of_another_stack_says_what_would_have_been_noticed(
    pair_run: Pair, paired_case: Make, policy: Policy, find: Find
) -> None:
    """Three pairs that vary so much would not have shown twice the time."""
    run = give_base(pair_run(paired_case(**WIDE)), pythons=(OLD, NEW))
    row = find(decide_side_by_side(run, policy), WARM)
    assert row.change is not None
    assert row.change.detectable > 1
    assert "No change could have been noticed from 3 pairs." in complete_sentence(row)


def test_a_compile_of_another_stack_is_clear_by_its_own_pairs(
    pair_run: Pair, paired_case: Make, policy: Policy, find: Find
) -> None:
    """The clock alone suffices where it is sure enough: equal times in 16 pairs that vary by 1 %."""
    run = give_base(pair_run(paired_case(pairs=16)), pythons=(OLD, NEW))
    assert state(find(decide_side_by_side(run, policy), WARM)) == (Status.UNCHANGED, Reason.BELOW_THRESHOLD)


@pytest.mark.parametrize(
    ("pythons", "expected"), [((), (True, Outcome.REGRESSION)), ((OLD, NEW), (False, Outcome.PASS))]
)
def test_calls_decide_within_a_stack_alone(  # noqa: PLR0913, PLR0917 - four fixtures
    pair_run: Pair,
    paired_case: Make,
    policy: Policy,
    find: Find,
    pythons: tuple[str, ...],
    expected: tuple[bool, Outcome],
) -> None:
    """A tenth more Python calls convict a change, and no other release of torch or Python."""
    run = give_base(pair_run(paired_case(pairs=16, head={CALLS: 4.4e6})), pythons=pythons)
    verdict: Verdict = decide_side_by_side(run, policy)
    row = find(verdict, CALLS)
    assert row.status is Status.REGRESSED
    assert (row.decides, verdict.outcome) == expected


@pytest.mark.parametrize(("pythons", "notes"), [((), 1), ((OLD, NEW), 0)])
def test_equal_code_of_two_stacks_spares_no_gpu(
    pair_run: Pair, paired_case: Make, pythons: tuple[str, ...], notes: int
) -> None:
    """What torch and triton make of the same code for a target may be something else."""
    run = give_base(pair_run(paired_case()), environment=TARGET_HOST, pythons=pythons)
    trials = tuple(replace(one, identity=CodeIdentity(digest="same")) for one in run.trials)
    assert len(note_unchanged_code(replace(run, environment=TARGET_HOST, trials=trials))) == notes
