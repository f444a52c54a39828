"""Comparisons of two stacks, and with values stored under other software."""

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
from tests.words import describe_causes, describe_comparison

from .one_case import BREAKS, EAGER, LATENCY, STORED, STORED_CASE, STORED_TIMES, WARM, confirm, scale

OLD, NEW = "/venvs/old/bin/python", "/venvs/new/bin/python"
NEWER_TORCH = replace(CPU_HOST, torch="2.14.1+cpu")
TARGET_HOST = replace(CPU_HOST, device_kind=TARGET_KIND)


def give_base(run: Run, **changes: Any) -> Run:
    """The run with another base."""
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
    """Two named interpreters are two stacks; otherwise recorded versions decide."""
    assert compares_stacks(give_base(pair_up(PairedCase()), **changes)) is expected


def test_what_has_no_base_compares_no_stacks() -> None:
    assert not compares_stacks(replace(pair_up(PairedCase()), base=None))


def test_a_verdict_names_both_interpreters() -> None:
    """Both interpreters are named as on the command line."""
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
    """Equal Python calls clear a compile within one stack only."""
    verdict = decide_side_by_side(give_base(pair_up(PairedCase(**WIDE)), **base), POLICY)
    assert state(find_row(verdict, WARM)) == expected


def test_an_open_compile_of_another_stack_says_what_would_have_been_noticed() -> None:
    """Three noisy pairs could not show twice the time, and the sentence says so."""
    run = give_base(pair_up(PairedCase(**WIDE)), pythons=(OLD, NEW))
    row = find_row(decide_side_by_side(run, POLICY), WARM)
    assert row.change is not None
    assert row.change.detectable > 1
    assert "No change could have been noticed from 3 pairs." in complete_sentence(row)


def test_a_compile_of_another_stack_is_clear_by_its_own_pairs() -> None:
    """The clock alone clears equal times in 16 pairs that vary by 1 %."""
    run = give_base(pair_up(PairedCase(pairs=16)), pythons=(OLD, NEW))
    assert state(find_row(decide_side_by_side(run, POLICY), WARM)) == (
        Status.UNCHANGED,
        Reason.BELOW_THRESHOLD,
    )


@pytest.mark.parametrize(("pythons", "notes"), [((), 1), ((OLD, NEW), 0)])
def test_equal_code_of_two_stacks_spares_no_gpu(pythons: tuple[str, ...], notes: int) -> None:
    """Equal code of two stacks does not replace a measurement on a GPU."""
    run = give_base(pair_up(PairedCase()), environment=TARGET_HOST, pythons=pythons)
    trials = tuple(replace(trial, identity=CodeIdentity(digest="same")) for trial in run.trials)
    assert len(note_unchanged_code(replace(run, environment=TARGET_HOST, trials=trials))) == notes


NEWER_DRIVER = replace(CUDA_HOST, driver="590.10")
# A trial of head is compared with nine stored ones, 0.7 % apart.


def judge_upgraded(
    judge: Callable[..., Verdict],
    situation: Callable[..., Any],
    host: Environment,
    now: Environment,
    **factors: float,
) -> Verdict:
    """The verdict on one trial at ``now`` whose times are multiples of those stored at ``host``."""
    after = {metric: (value * factors.get(metric, 1.0),) for metric, value in STORED.items()}
    upgraded = situation(before=STORED_TIMES, after=after, host=host)
    verdict: Verdict = judge(upgraded, environment=now)
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
    """Beyond 5 % it is inconclusive; otherwise as with any other host."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=factor)
    assert state(find_row(verdict, LATENCY)) == expected


def test_a_time_that_may_be_no_worse_since_a_driver_is_not_compared() -> None:
    """7 % more than what varies by 10 % from trial to trial."""
    before = {LATENCY: scale(0.010, (0.9, 1.0, 1.1))}
    situation = Situation(before=before, after={LATENCY: (0.0107,)}, host=CUDA_HOST)
    row = find_row(decide(situation, environment=NEWER_DRIVER), LATENCY)
    assert state(row) == (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)


def test_the_driver_is_the_first_reason() -> None:
    """The report of twice the latency begins with both drivers."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=2.0)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert write_why(verdict).startswith("Driver 580.95 -> 590.10 since the baseline was recorded, ")


def test_the_reason_needs_no_word_of_whoever_measured() -> None:
    """A published comment names the kind of upgrade without its versions."""
    verdict = judge_upgraded(decide, Situation, CUDA_HOST, NEWER_DRIVER, compiled_latency=2.0)
    rows = tuple(replace(row, remarks=tuple(map(drop_names, row.remarks))) for row in verdict.comparisons)
    text = write_why(replace(verdict, comparisons=rows))
    assert text.startswith("Another driver, compiler or build since the baseline was recorded, ")


def drop_names(fact: Fact) -> Fact:
    return replace(fact, names={})


def test_equal_times_since_a_driver_compare_nothing() -> None:
    """Equal times under another driver are NOTHING_COMPARED."""
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
def test_which_upgrades_of_a_host_leave_slower_times_open(changes: dict[str, Any], expected: Status) -> None:
    """Builds and the compiler do; another stack, card or version of the gate is not comparable."""
    host = replace(CUDA_HOST, libraries={"timm": "1.0.9"})
    now = replace(host, **changes)
    verdict = judge_upgraded(decide, Situation, host, now, compiled_latency=2.0)
    assert find_row(verdict, LATENCY).status is expected


def test_a_time_whose_trials_vary_that_much_is_not_worse_since_a_driver() -> None:
    """6 % above stored trials that vary by 10 % is not worse."""
    stored = {LATENCY: (0.009, 0.010, 0.011, 0.0115, 0.0088)}
    situation = Situation(before=stored, after={LATENCY: (0.0106,)}, host=CUDA_HOST)
    verdict = decide(situation, environment=NEWER_DRIVER)
    assert find_row(verdict, LATENCY).status is Status.NOT_COMPARABLE


def test_the_baseline_of_this_host_counts_before_that_of_an_older_driver() -> None:
    """Of two baselines that of this driver counts."""
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
    """The verdict on one case whose baseline imported other packages, without pairs."""
    now: dict[Metric, Sequence[float]] = {metric: (value,) for metric, value in STORED.items()}
    now[BREAKS] = (0.0,)
    now |= {Metric(name): values for name, values in changes.items()}
    situation = Situation(before={**STORED_TIMES, BREAKS: (0.0,) * 9, **(stored or {})}, after=now)
    run = make_measured(situation)
    run = replace(run, trials=tuple(replace(trial, packages=after) for trial in run.trials))
    baselines = tuple(replace(baseline, packages=before) for baseline in make_stored(situation))
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
    """Neither twice the time nor a new graph break regresses."""
    verdict, _ = judge_packages(before, after, compiled_latency=(0.020,), graph_breaks=(1.0,))
    assert state(find_row(verdict, metric)) == expected


def test_a_package_that_differs_is_named_and_is_a_cause() -> None:
    """Sentence and cause have both versions."""
    verdict, _ = judge_packages({"einops": "0.8.0"}, {"einops": "0.8.1"}, compiled_latency=(0.020,))
    sentence = describe_comparison(find_row(verdict, LATENCY))
    assert "(package einops 0.8.0 -> 0.8.1): compare in pairs." in sentence
    assert "package einops 0.8.0 -> 0.8.1" in describe_causes(verdict)[0]


def test_a_limit_of_drift_holds_whatever_was_imported() -> None:
    """Drift from 0.9 to 1.3 exceeds the float32 limit of 1.0, with and without a baseline."""
    packages = {"einops": "0.8.0"}, {"einops": "0.8.1"}
    verdict, _ = judge_packages(*packages, stored={Metric.DRIFT: (0.9,) * 9}, drift=(1.3,))
    assert state(find_row(verdict, Metric.DRIFT)) == (Status.REGRESSED, Reason.LIMIT_EXCEEDED)


def test_pairs_decide_whatever_the_baseline_imported() -> None:
    """8 % slower in pairs regresses."""
    trials = {LATENCY: (0.0108,), EAGER: (0.020,)}
    other = replace(STORED_CASE, packages={"einops": "0.8.0"})
    verdict = confirm(trials, baselines=(other,), head={LATENCY: 0.0108})
    assert state(find_row(verdict, LATENCY)) == (Status.REGRESSED, Reason.BEYOND_BAR)


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
    """All packages that differ are named, imported ones first; without one the weight halves."""
    run = pair_up(PairedCase(head={LATENCY: 0.012}))
    new = {"peft": "0.2", "same": "1", "zarr": "3.0.0"}
    run = replace(run, environment=replace(CPU_HOST, packages=new))
    base = replace(CPU_HOST, packages={"peft": "0.1", "same": "1", "zarr": "2.0.0"})
    run = give_base(run, environment=base, pythons=(OLD, NEW))
    sides = {"base": dict.fromkeys(imported, "2.0.0"), "head": imported}
    run = replace(run, trials=tuple(replace(trial, packages=sides[trial.arm]) for trial in run.trials))
    verdict = decide_side_by_side(run, POLICY)
    (cause,) = (cause for cause in verdict.causes if cause.fact.code is Code.STACK_CHANGED)
    assert describe_cause(cause.fact) == f"The software or the machine differs: {first}."
    assert cause.weight == pytest.approx(weight)


def test_a_baseline_keeps_what_its_case_imports_and_no_more() -> None:
    """A baseline keeps only packages that its case imports."""
    _, run = judge_packages({}, {"einops": "0.8.1"})
    run = replace(run, environment=replace(CPU_HOST, packages={"einops": "0.8.1", "zarr": "3.0.0"}))
    (baseline,) = make_recorded(run, Provenance(commit="def"))
    assert (baseline.packages, baseline.environment.packages) == ({"einops": "0.8.1"}, {})


def test_what_an_older_driver_measured_of_another_definition_is_stale() -> None:
    """Another definition is stale, not a doubtful regression."""
    situation = Situation(
        before=STORED_TIMES, after={LATENCY: (0.020,)}, host=CUDA_HOST, definition_before="another"
    )
    assert find_row(decide(situation, environment=NEWER_DRIVER), LATENCY).status is Status.NOT_COMPARABLE


def test_six_packages_that_differ_are_named() -> None:
    """Of eight all are counted."""
    old, new = ({f"p{number}": version for number in range(8)} for version in ("1", "2"))
    run = replace(pair_up(PairedCase(head={LATENCY: 0.012})), environment=replace(CPU_HOST, packages=new))
    run = give_base(run, environment=replace(CPU_HOST, packages=old), pythons=(OLD, NEW))
    causes = decide_side_by_side(run, POLICY).causes
    (fact,) = (cause.fact for cause in causes if cause.fact.code is Code.STACK_CHANGED)
    assert (len(fact.names["differences"]), fact.numbers["differences"]) == (6, 8)
