"""What is known of a comparison of two stacks, and of stored values that another software measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.evidence.baseline import make_baselines as make_recorded
from gate.decide.explain.notes import note_unchanged_code
from gate.decide.side_by_side import decide_side_by_side
from gate.decide.verdict import decide_verdict
from gate.devices import TARGET_KIND
from gate.fingerprint import compares_stacks
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import CodeIdentity, Environment, Provenance, Run
from gate.records.verdict import Outcome, PairBase, Reason, Status, Verdict
from gate.report.words.comparisons import complete_sentence
from gate.report.words.facts import describe_cause
from gate.report.words.headline import write_why
from tests.hosts import CPU_HOST, CUDA_HOST
from tests.make import (
    POLICY,
    PairedCase,
    Situation,
    decide,
    find_row,
    make_measured,
    make_stored,
    pair_up,
    state,
)
from tests.told import tell_row

from .one_case import BREAKS, EAGER, LATENCY, NINE, STORED, STORED_CASE, WARM, confirm

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
def test_two_interpreters_are_two_stacks(changes: dict[str, Any], expected: bool) -> None:
    """Whatever is recorded of both; and in a run that does not name them, what is recorded tells."""
    assert compares_stacks(give_base(pair_up(PairedCase()), **changes)) is expected


def test_what_has_no_base_compares_no_stacks() -> None:
    """A run of trials alone."""
    assert not compares_stacks(replace(pair_up(PairedCase()), base=None))


def test_a_verdict_names_both_interpreters() -> None:
    """As they were asked for."""
    run = give_base(pair_up(PairedCase()), pythons=(OLD, NEW))
    expected = PairBase(label="main (1a2b3c4)", commit="1a2b3c4", other_stack=True, pythons=(OLD, NEW))
    assert decide_side_by_side(run, POLICY).base == expected


# 13 % longer in three pairs that vary by a fifth: below the threshold of 15 %, and -38 to +107 % wide.
WIDE: dict[str, Any] = {"pairs": 3, "spread": (0.2, -0.2, 0.0), "head": {WARM: 3.39}}


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ({}, (Status.UNCHANGED, Reason.BELOW_THRESHOLD)),
        ({"pythons": (OLD, NEW)}, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        ({"environment": NEWER_TORCH}, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
    ],
)
def test_equal_calls_settle_no_compile_of_another_stack(
    base: dict[str, Any], expected: tuple[Status, Reason]
) -> None:
    """Of one stack the same calls are the same work; of two they say nothing, and what was open stays so."""
    verdict = decide_side_by_side(give_base(pair_up(PairedCase(**WIDE)), **base), POLICY)
    assert state(find_row(verdict, WARM)) == expected


def test_an_open_compile_of_another_stack_says_what_would_have_been_noticed() -> None:
    """Three pairs that vary so much would not have shown twice the time."""
    run = give_base(pair_up(PairedCase(**WIDE)), pythons=(OLD, NEW))
    row = find_row(decide_side_by_side(run, POLICY), WARM)
    assert row.change is not None
    assert row.change.detectable > 1
    assert "No change could have been noticed from 3 pairs." in complete_sentence(row)


def test_a_compile_of_another_stack_is_clear_by_its_own_pairs() -> None:
    """The clock alone suffices where it is sure enough: equal times in 16 pairs that vary by 1 %."""
    run = give_base(pair_up(PairedCase(pairs=16)), pythons=(OLD, NEW))
    assert state(find_row(decide_side_by_side(run, POLICY), WARM)) == (
        Status.UNCHANGED,
        Reason.BELOW_THRESHOLD,
    )


@pytest.mark.parametrize(("pythons", "notes"), [((), 1), ((OLD, NEW), 0)])
def test_equal_code_of_two_stacks_spares_no_gpu(pythons: tuple[str, ...], notes: int) -> None:
    """What torch and triton make of the same code for a target may be something else."""
    run = give_base(pair_up(PairedCase()), environment=TARGET_HOST, pythons=pythons)
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
    factor: float, expected: tuple[Status, Reason]
) -> None:
    """Beyond the threshold of 5 %; what is within it, or better, stays as another host's."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=factor)
    assert state(find_row(verdict, LATENCY)) == expected


def test_the_driver_is_the_first_reason() -> None:
    """Twice the latency on the same card and stack: the report begins with both drivers."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=2.0)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert write_why(verdict).startswith("Driver 580.95 -> 590.10 since the baseline was recorded, ")


def test_the_reason_needs_no_word_of_whoever_measured() -> None:
    """A comment drops both versions, and still says what kind of upgrade it was."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=2.0)
    rows = tuple(replace(one, remarks=tuple(map(drop_names, one.remarks))) for one in verdict.comparisons)
    told = write_why(replace(verdict, comparisons=rows))
    assert told.startswith("Another driver, compiler or build since the baseline was recorded, ")


def drop_names(fact: Fact) -> Fact:
    return replace(fact, names={})


def test_equal_times_since_a_driver_compare_nothing() -> None:
    """A run that judged nothing else is told as one."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER)
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
def test_which_upgrades_of_a_host_are_told(changes: dict[str, Any], expected: Status) -> None:
    """Builds and the compiler too; not another stack or card, nor what the gate itself does otherwise."""
    host = replace(CUDA_HOST, libraries={"timm": "1.0.9"})
    now = replace(host, **changes)
    verdict = judge_upgraded(decide, Situation, host, now, compiled_latency=2.0)
    assert find_row(verdict, LATENCY).status is expected


def test_a_time_whose_trials_vary_that_much_is_not_worse_since_a_driver() -> None:
    """6 % above the mean of stored trials that vary by 10 % themselves."""
    stored = {LATENCY: (0.009, 0.010, 0.011, 0.0115, 0.0088)}
    one = Situation(before=stored, after={LATENCY: (0.0106,)}, host=CUDA_HOST)
    verdict = decide(one, environment=NEWER_DRIVER)
    assert find_row(verdict, LATENCY).status is Status.NOT_COMPARABLE


def test_the_baseline_of_this_host_counts_before_that_of_an_older_driver() -> None:
    """Where both are stored, the one of this driver is compared, as ever."""
    here = {**STORED_TIMES, LATENCY: (0.020,) * 9}
    now = {LATENCY: (0.020,), EAGER: (0.020,)}
    old = Situation(before=STORED_TIMES, host=CUDA_HOST, after=now)
    new = Situation(before=here, host=NEWER_DRIVER, after=now)
    run, baselines = make_measured(new, environment=NEWER_DRIVER), make_stored(old, new)
    verdict = decide_verdict(run, baselines, POLICY)
    assert find_row(verdict, LATENCY).status is Status.UNCHANGED


def judge_packages(
    before: Mapping[str, str],
    after: Mapping[str, str],
    stored: Mapping[Metric, Sequence[float]] | None = None,
    **changes: Sequence[float],
) -> tuple[Verdict, Run]:
    """The verdict on one case whose baseline imported other packages, by what is stored alone."""
    now: dict[Metric, Sequence[float]] = {metric: (value,) for metric, value in STORED.items()}
    now[BREAKS] = (0.0,)
    now |= {Metric(name): values for name, values in changes.items()}
    one = Situation(before={**STORED_TIMES, BREAKS: (0.0,) * 9, **(stored or {})}, after=now)
    run = make_measured(one)
    run = replace(run, trials=tuple(replace(trial, packages=after) for trial in run.trials))
    baselines = tuple(replace(baseline, packages=before) for baseline in make_stored(one))
    return decide_verdict(run, baselines, POLICY), run


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"einops": "0.8.0"}, {"einops": "0.8.1"}, (Status.INCONCLUSIVE, Reason.UNSETTLED)),
        ({"einops": "0.8.0"}, {"einops": "0.8.0"}, (Status.REGRESSED, Reason.BEYOND_BAR)),
        ({}, {"einops": "0.8.1"}, (Status.REGRESSED, Reason.BEYOND_BAR)),
        ({"peft": "0.1"}, {"einops": "0.8.1"}, (Status.REGRESSED, Reason.BEYOND_BAR)),
    ],
    ids=["another version", "the same", "nothing recorded", "another package"],
)
@pytest.mark.parametrize("metric", [LATENCY, BREAKS])
def test_another_version_of_an_imported_package_convicts_nobody(
    before: dict[str, str], after: dict[str, str], expected: tuple[Status, Reason], metric: Metric
) -> None:
    """Twice as slow, and a graph break more: neither time nor count is the change's alone."""
    verdict, _ = judge_packages(before, after, compiled_latency=(0.020,), graph_breaks=(1.0,))
    assert state(find_row(verdict, metric)) == expected


def test_a_package_that_differs_is_told_and_is_a_cause() -> None:
    """Both versions stand in the doubt and among the causes."""
    verdict, _ = judge_packages({"einops": "0.8.0"}, {"einops": "0.8.1"}, compiled_latency=(0.020,))
    assert "(package einops 0.8.0 -> 0.8.1): compare in pairs." in tell_row(find_row(verdict, LATENCY))
    assert "package einops 0.8.0 -> 0.8.1" in tell_causes(verdict)[0]


def test_a_limit_of_drift_holds_whatever_was_imported() -> None:
    """From 0.9 to 1.3 is beyond the threshold of float32, 1.0, with a baseline or without."""
    packages = {"einops": "0.8.0"}, {"einops": "0.8.1"}
    verdict, _ = judge_packages(*packages, stored={Metric.DRIFT: (0.9,) * 9}, drift=(1.3,))
    assert state(find_row(verdict, Metric.DRIFT)) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def test_pairs_decide_whatever_the_baseline_imported() -> None:
    """8 % slower than the base, side by side: both have the same packages."""
    trials = {LATENCY: (0.0108,), EAGER: (0.020,)}
    other = replace(STORED_CASE, packages={"einops": "0.8.0"})
    verdict = confirm(trials, baselines=(other,), head={LATENCY: 0.0108})
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)


def tell_causes(verdict: Verdict) -> list[str]:
    return [describe_cause(one.fact) for one in verdict.causes]


@pytest.mark.parametrize(
    ("imported", "first", "weight"),
    [
        ({"zarr": "3.0.0"}, "package zarr 2.0.0 -> 3.0.0, package peft 0.1 -> 0.2", 0.9),
        ({}, "package peft 0.1 -> 0.2, package zarr 2.0.0 -> 3.0.0", 0.45),
    ],
)
def test_packages_of_two_interpreters_are_a_cause(
    imported: dict[str, str], first: str, weight: float
) -> None:
    """All that differ, first what the case imports; where it imports none of them it is half as likely."""
    run = pair_up(PairedCase(head={LATENCY: 0.012}))
    new = {"peft": "0.2", "same": "1", "zarr": "3.0.0"}
    run = replace(run, environment=replace(CPU_HOST, packages=new))
    base = replace(CPU_HOST, packages={"peft": "0.1", "same": "1", "zarr": "2.0.0"})
    run = give_base(run, environment=base, pythons=(OLD, NEW))
    sides = {"base": dict.fromkeys(imported, "2.0.0"), "head": imported}
    run = replace(run, trials=tuple(replace(one, packages=sides[one.arm]) for one in run.trials))
    verdict = decide_side_by_side(run, POLICY)
    (cause,) = (one for one in verdict.causes if one.fact.code is Code.STACK_CHANGED)
    assert describe_cause(cause.fact) == f"The software or the machine differs: {first}."
    assert cause.weight == pytest.approx(weight)


def test_a_baseline_keeps_what_its_case_imports_and_no_more() -> None:
    """Hundreds of packages may be installed, and each case has a file of its own."""
    _, run = judge_packages({}, {"einops": "0.8.1"})
    run = replace(run, environment=replace(CPU_HOST, packages={"einops": "0.8.1", "zarr": "3.0.0"}))
    (baseline,) = make_recorded(run, Provenance(commit="def"))
    assert (baseline.packages, baseline.environment.packages) == ({"einops": "0.8.1"}, {})


def test_what_an_older_driver_measured_of_another_definition_is_stale() -> None:
    """Twice the time of another program is nothing to doubt."""
    one = Situation(
        before=STORED_TIMES, after={LATENCY: (0.020,)}, host=CUDA_HOST, definition_before="another"
    )
    assert find_row(decide(one, environment=NEWER_DRIVER), LATENCY).status is Status.NOT_COMPARABLE
