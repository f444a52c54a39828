"""What is known of a comparison of two stacks, and of stored values that another software measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.notes import note_unchanged_code
from gate.decide.side_by_side import decide_side_by_side
from gate.decide.verdict import decide_verdict
from gate.devices import TARGET_KIND
from gate.fingerprint import compares_stacks
from gate.records.cases import Metric, Policy
from gate.records.facts import Fact
from gate.records.run import CodeIdentity, Environment, Run
from gate.records.verdict import Outcome, PairBase, Reason, Status, Verdict
from gate.report.words.comparisons import complete_sentence
from gate.report.words.headline import write_why
from tests.hosts import CPU_HOST, CUDA_HOST

from .conftest import make_baselines, make_policy, make_run
from .one_case import EAGER, LATENCY, NINE, STORED, WARM, Find, Make, Pair, state

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


NEWER_DRIVER = replace(CUDA_HOST, driver="590.10")
# A trial of head is compared with nine stored ones, 0.7 % apart.
STORED_TIMES = {metric: tuple(value * one for one in NINE) for metric, value in STORED.items()}


def judge_upgraded(
    judge: Callable[..., Verdict],
    situation: Callable[..., Any],
    host: Environment,
    now: Environment,
    **factors: float,
) -> Verdict:
    """The verdict on one trial at ``now`` whose times are so many times those stored at ``host``."""
    after = {metric: (value * factors.get(metric, 1.0),) for metric, value in STORED.items()}
    one = situation(before=STORED_TIMES, after=after, host=host)
    verdict: Verdict = judge(one, environment=now)
    return verdict


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (2.0, (Status.INCONCLUSIVE, Reason.OTHER_ENVIRONMENT)),
        (1.07, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        (1.04, (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)),
        (0.5, (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)),
    ],
)
def test_a_time_that_is_worse_since_a_driver_is_inconclusive(
    judge: Callable[..., Verdict],
    situation: Callable[..., Any],
    find: Find,
    factor: float,
    expected: tuple[Status, Reason],
) -> None:
    """Beyond the limit of 5 %; what is within it, or better, stays as another host's."""
    verdict = judge_upgraded(judge, situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=factor)
    assert state(find(verdict, LATENCY)) == expected


def test_the_driver_is_the_first_reason(judge: Callable[..., Verdict], situation: Callable[..., Any]) -> None:
    """Twice the latency on the same card and stack: the report begins with both drivers."""
    verdict = judge_upgraded(judge, situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=2.0)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert write_why(verdict).startswith("Driver 580.95 -> 590.10 since the baseline was recorded, ")


def test_the_reason_needs_no_word_of_whoever_measured(
    judge: Callable[..., Verdict], situation: Callable[..., Any]
) -> None:
    """A comment drops both versions, and still says what kind of upgrade it was."""
    verdict = judge_upgraded(judge, situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=2.0)
    rows = tuple(replace(one, remarks=tuple(map(drop_names, one.remarks))) for one in verdict.comparisons)
    told = write_why(replace(verdict, comparisons=rows))
    assert told.startswith("Another driver, compiler or build since the baseline was recorded, ")


def drop_names(fact: Fact) -> Fact:
    return replace(fact, names={})


def test_equal_times_since_a_driver_compare_nothing(
    judge: Callable[..., Verdict], situation: Callable[..., Any]
) -> None:
    """A run that judged nothing else is told as one."""
    verdict = judge_upgraded(judge, situation, CUDA_HOST, NEWER_DRIVER)
    assert verdict.outcome is Outcome.NOTHING_COMPARED


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"compiler": "g++ 14.2.0"}, Status.INCONCLUSIVE),
        ({"torch": "2.13.0+cu130"}, Status.INCONCLUSIVE),
        ({"libraries": {"timm": "1.0.9+local"}}, Status.INCONCLUSIVE),
        ({"workers": "forked"}, Status.NOT_COMPARABLE),
        ({"allocator": "held"}, Status.NOT_COMPARABLE),
        ({"torch": "2.14.0", "driver": "590.10"}, Status.NOT_COMPARABLE),
        ({"clocks": "700 W", "driver": "590.10"}, Status.NOT_COMPARABLE),
        ({"cpu": "Intel Xeon", "driver": "590.10"}, Status.NOT_COMPARABLE),
    ],
)
def test_which_upgrades_of_a_host_are_told(
    judge: Callable[..., Verdict],
    situation: Callable[..., Any],
    find: Find,
    changes: dict[str, Any],
    expected: Status,
) -> None:
    """Builds and the compiler too; not another stack or card, nor what the gate itself does otherwise."""
    host = replace(CUDA_HOST, libraries={"timm": "1.0.9"})
    now = replace(host, **changes)
    verdict = judge_upgraded(judge, situation, host, now, compiled_latency=2.0)
    assert find(verdict, LATENCY).status is expected


def test_a_time_whose_trials_vary_that_much_is_not_worse_since_a_driver(
    judge: Callable[..., Verdict], situation: Callable[..., Any], find: Find
) -> None:
    """6 % above the mean of stored trials that vary by 10 % themselves."""
    stored = {LATENCY: (0.009, 0.010, 0.011, 0.0115, 0.0088)}
    one = situation(before=stored, after={LATENCY: (0.0106,)}, host=CUDA_HOST)
    verdict = judge(one, environment=NEWER_DRIVER)
    assert find(verdict, LATENCY).status is Status.NOT_COMPARABLE


def test_the_baseline_of_this_host_counts_before_that_of_an_older_driver(
    situation: Callable[..., Any], find: Find
) -> None:
    """Where both are stored, the one of this driver is compared, as ever."""
    here = {**STORED_TIMES, LATENCY: (0.020,) * 9}
    now = {LATENCY: (0.020,), EAGER: (0.020,)}
    old = situation(before=STORED_TIMES, host=CUDA_HOST, after=now)
    new = situation(before=here, host=NEWER_DRIVER, after=now)
    run, baselines = make_run(new, environment=NEWER_DRIVER), make_baselines(old, new)
    verdict = decide_verdict(run, baselines, make_policy())
    assert find(verdict, LATENCY).status is Status.UNCHANGED
