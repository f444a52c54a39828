"""The machine's shift and its wandering, from canaries and eager."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.constants import SESSION_SD
from gate.decide.evidence.gather import Evidence, Question
from gate.decide.judge.machine import (
    Machine,
    explain_open,
    learn_session,
    learn_uneven,
    measure_uneven,
    name_shifts,
)
from gate.decide.judge.stored import JudgingRules, make_rules
from gate.decide.stats import Variance, summarize_logs
from gate.decide.verdict import decide_verdict, screen_run
from gate.metrics import SPECS
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.verdict import MachineShift, Reason, Status
from tests.hosts import CUDA_HOST
from tests.make import (
    POLICY,
    TYPICAL,
    PairedCase,
    Situation,
    decide,
    find_row,
    give_base,
    make_measured,
    make_stored,
    pair_up,
)
from tests.words import describe_comparison, write_notes

from .one_case import scale

LATENCY, EAGER, COLD = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.COLD_COMPILE_TIME
SPEEDUP, BREAKS = Metric.WARM_SPEEDUP, Metric.GRAPH_BREAKS
EXACT = (1.0, 1.0, 1.0)
ONE_PERCENT = (math.exp(-0.01), 1.0, math.exp(0.01))
TENTH = (math.exp(-0.1), 1.0, math.exp(0.1))
NINE = (0.990, 1.000, 1.010, 1.005, 0.995, 0.995, 1.005, 1.010, 0.990)

Canaries = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def with_canaries(canaries: Canaries, **changes: Any) -> Situation:
    """One case with these stored and new values of canaries."""
    values: dict[str, Any] = {"before": {COLD: (10.0,) * 3}, "after": {COLD: (10.0,)}}
    return Situation(
        canaries_before={name: before for name, (before, _) in canaries.items()},
        canaries_after={name: after for name, (_, after) in canaries.items()},
        **(values | changes),
    )


def compare(*situations: Situation) -> Machine:
    return screen_run(make_measured(*situations), make_stored(*situations), POLICY).machine


def make_cases(count: int, eager: float, compiled: float = 1.0) -> list[Situation]:
    """Cases whose stored trials vary by 1 %, with one new trial of these factors."""
    return [
        Situation(
            case_id=f"m{number}/x",
            before={
                EAGER: scale(0.020),
                LATENCY: scale(0.010),
            },
            after={EAGER: (0.020 * eager,), LATENCY: (0.010 * compiled,)},
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("moved", "middle"),
    [((1.1,), 1.1), ((1.5, 1.0, 1.1), 1.1), ((1.0, 1.21), 1.1), ((1.8, 0.9, 0.8, 1.6), 1.2)],
)
def test_the_machine_moved_as_its_middle_canary(moved: Sequence[float], middle: float) -> None:
    """The median of logarithms: of 0.9 and 1.6 it is 1.2."""
    machine = compare(with_canaries({f"c{i}": (EXACT, (seconds,)) for i, seconds in enumerate(moved)}))
    assert machine.canary == pytest.approx(math.log(middle))


def test_a_canary_moved_as_the_median_over_the_cases() -> None:
    """Three cases' canary is unmoved, 10 % and 50 % slower: 10 %."""
    cases = [with_canaries({"loop": (EXACT, (after,))}, case_id=f"m{after}/x") for after in (1.5, 1.0, 1.1)]
    assert compare(*cases).canary == pytest.approx(math.log(1.1))


@pytest.mark.parametrize(
    ("stored", "log", "is_sure"),
    [
        pytest.param(ONE_PERCENT, 0.0620, False, id="within its noise"),
        pytest.param(ONE_PERCENT, 0.0625, True, id="beyond its noise"),
        pytest.param(ONE_PERCENT, -0.0625, True, id="faster"),
        pytest.param(EXACT, math.log(1.001), True, id="beyond no noise at all"),
        pytest.param((1.0, 1.0), math.log(1.001), True, id="of two trials without noise"),
        pytest.param((1.0,), 0.5, False, id="of unknown noise"),
    ],
)
def test_a_shift_is_sure_beyond_its_own_noise(stored: Sequence[float], log: float, is_sure: bool) -> None:
    """Three trials at 1 %, one new: SE = sqrt((1 + 1/3) pi / 2) = 1.447 %, t(.975; 2) = 4.303: 6.23 %."""
    machine = compare(with_canaries({"loop": (stored, (math.exp(log),))}))
    assert machine.shift == pytest.approx(log if is_sure else 0.0)
    assert machine.wander == pytest.approx(0.01 if stored is ONE_PERCENT else 0.0)


@pytest.mark.parametrize(("log", "is_sure"), [(0.0198, False), (0.0204, True)])
def test_a_shift_of_more_trials_is_surer(log: float, *, is_sure: bool) -> None:
    """Three at 1 % and three alike: SE = sqrt((1 + 0) / 2 x 2 / 3 x pi / 2) = 0.724 %, t = 2.776: 2.01 %."""
    canaries = {"loop": (ONE_PERCENT, (math.exp(log),) * 3)}
    machine = compare(with_canaries(canaries, after={COLD: (10.0,) * 3}))
    assert machine.shift == pytest.approx(log if is_sure else 0.0)


@pytest.mark.parametrize(("log", "is_sure"), [(0.028, False), (0.029, True)])
def test_a_shift_of_more_cases_is_surer(log: float, *, is_sure: bool) -> None:
    """Two cases at 1 %: SE = sqrt((1 + 1/3) pi / 2 / 2) = 1.023 %, t(.975; 4) = 2.776: 2.84 %."""
    cases = [
        with_canaries({"loop": (ONE_PERCENT, (math.exp(log),))}, case_id=f"m{number}/x") for number in (0, 1)
    ]
    assert compare(*cases).shift == pytest.approx(log if is_sure else 0.0)


def test_noise_of_a_canary_is_learned_from_all_cases() -> None:
    """One stored value is enough if another case has more of the same canary."""
    first = with_canaries({"loop": ((1.0,), (1.1,))}, case_id="m0/x")
    second = with_canaries({"loop": (EXACT, (1.1,))}, case_id="m1/x")
    assert (compare(first).shift, compare(first, second).shift) == (0.0, pytest.approx(math.log(1.1)))


def test_a_canary_of_zero_is_left_out() -> None:
    """A canary of 0 s is left out; the other one counts."""
    machine = compare(with_canaries({"copy": ((0.0, 1.0, 1.0), (1.0,)), "loop": (EXACT, (1.1,))}))
    assert machine.canary == pytest.approx(math.log(1.1))


@pytest.mark.parametrize("canaries", [{}, {"loop": ((), (1.0,))}], ids=["none", "not stored"])
def test_without_canaries_nothing_is_known(canaries: Canaries) -> None:
    """Without canaries the record says that the shift is unknown."""
    situation = with_canaries(canaries)
    assert compare(situation) == Machine()
    assert not decide(situation).machine.known


@pytest.mark.parametrize(("stored", "sd"), [(TENTH, 0.1), (EXACT, 0.0)])
def test_the_wandering_of_the_canary_is_the_noise_of_a_session(stored: Sequence[float], sd: float) -> None:
    """Logarithms of -0.1, 0 and 0.1 have the variance 0.01."""
    session = compare(with_canaries({"loop": (stored, (1.0,))})).session
    assert (session.value, session.df) == (pytest.approx(sd**2), math.inf)


@pytest.mark.parametrize(("cases", "suite"), [(3, 0.0), (4, math.log(1.3))])
def test_eager_of_four_cases_shows_the_machines_shift(cases: int, suite: float) -> None:
    """Eager 30 % slower in four cases is the machine's shift, sure beyond 1 % of noise."""
    machine = compare(*make_cases(cases, eager=1.3))
    centre = math.log(0.02) - sum(map(math.log, scale(0.02))) / 9  # 2.7e-5
    assert machine.suite == (pytest.approx(suite + centre) if suite else 0.0)
    assert machine.suite_shift == machine.suite
    assert decide(*make_cases(cases, eager=1.3)).machine.suite == pytest.approx(math.expm1(suite), abs=1e-3)


def test_one_slow_eager_of_four_is_no_shift() -> None:
    """The median of four is not moved by one."""
    cases = [*make_cases(3, eager=1.0), replace(make_cases(1, eager=2.0)[0], case_id="slow/x")]
    assert compare(*cases).suite_shift == 0.0


@pytest.mark.parametrize(
    ("canary", "expected"),
    [
        pytest.param(1.14, (Status.UNCHANGED, Reason.BELOW_THRESHOLD), id="as the canary"),
        pytest.param(1.0, (Status.REGRESSED, Reason.BEYOND_BAR), id="on a steady machine"),
        pytest.param(0.87, (Status.REGRESSED, Reason.BEYOND_BAR), id="on a faster one"),
    ],
)
def test_times_are_compared_less_the_shift(canary: float, expected: tuple[Status, Reason]) -> None:
    """A shift is subtracted from a compile that took 14 % longer."""
    situation = with_canaries(
        {"loop": ((1.0,) * 9, (canary,) * 9)},
        before={COLD: scale(100.0)},
        after={COLD: scale(114.0)},
    )
    row = find_row(decide(situation), COLD)
    assert (row.status, row.reason) == expected
    assert row.change is not None
    assert row.candidate is not None
    assert row.change.centre == pytest.approx(1.14 / canary - 1)
    assert row.candidate.centre == pytest.approx(114.0, rel=1e-4)  # as it was measured


@pytest.mark.parametrize(("canary", "speed"), [(1.2, "20 % slower"), (0.8, "25 % faster")])
def test_times_of_a_far_machine_are_not_compared(canary: float, speed: str) -> None:
    """Beyond 15 % counters and memory are compared and times are not, with the reason."""
    memory = Metric.COMPILE_PEAK_MEMORY
    situation = with_canaries(
        {"loop": (EXACT, (canary,))},
        before={COLD: (10.0,) * 3, BREAKS: (0.0,) * 3, memory: (1e9,) * 3},
        after={COLD: (30.0,), BREAKS: (1.0,), memory: (1e9,)},
    )
    verdict = decide(situation)
    row = find_row(verdict, COLD)
    assert (row.status, row.reason) == (Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT)
    assert f"this machine is {speed} than the one that recorded" in describe_comparison(row)
    assert find_row(verdict, BREAKS).status is Status.REGRESSED
    assert find_row(verdict, memory).status is Status.UNCHANGED
    assert any("machine" in note for note in write_notes(verdict))


@pytest.mark.parametrize(("base", "status"), [(True, Status.REGRESSED), (False, Status.NOT_COMPARABLE)])
def test_with_a_base_times_of_a_far_machine_are_compared(base: bool, status: Status) -> None:
    """On a machine 20 % slower three times the compile regresses in the screen only with a base."""
    situation = with_canaries({"loop": (EXACT, (1.2,))}, after={COLD: (30.0,)})
    run = make_measured(situation)
    screening = screen_run(give_base(run) if base else run, make_stored(situation), POLICY)
    assert [row.status for row in screening.comparisons if row.metric is COLD] == [status]


@pytest.mark.parametrize(
    ("python", "copy", "expected"),
    [
        (1.5, 1.0, {COLD: Status.NOT_COMPARABLE, LATENCY: Status.REGRESSED}),
        (1.0, 1.5, {COLD: Status.REGRESSED, LATENCY: Status.NOT_COMPARABLE}),
    ],
)
def test_compile_times_are_of_a_gpus_host_and_calls_of_the_card(
    python: float, copy: float, expected: Mapping[Metric, Status]
) -> None:
    """The host's canaries clear compile times, the card's clear calls."""
    situation = with_canaries(
        {"python": (EXACT, (python,) * 3), "copy": (EXACT, (copy,) * 3), "matmul": (EXACT, (copy,) * 3)},
        before={COLD: (10.0,) * 3, LATENCY: (0.010,) * 3},
        after={COLD: (15.0,) * 3, LATENCY: (0.015,) * 3},
        host=CUDA_HOST,
    )
    verdict = decide(situation, environment=CUDA_HOST)
    assert {metric: find_row(verdict, metric).status for metric in expected} == expected


BUSY = Metric.DEVICE_UTILIZATION
QUARTER = (0.8, 1.0, 1.25)


def with_host(launch: tuple[Sequence[float], Sequence[float]], busy: float) -> Situation:
    """A case on a steady card whose calls are 10 % slower, with these launch times."""
    return with_canaries(
        {"matmul": (EXACT, EXACT), "copy": (EXACT, EXACT), "python": launch, "launch": launch},
        before={LATENCY: (0.010,) * 3, BUSY: (busy,) * 3},
        after={LATENCY: (0.011,) * 3, BUSY: (busy,) * 3},
        host=CUDA_HOST,
    )


@pytest.mark.parametrize(
    ("busy", "launch", "expected", "words"),
    [
        (0.9, (EXACT, (1.25,) * 3), Status.REGRESSED, ""),
        (0.9, (QUARTER, QUARTER), Status.REGRESSED, ""),
        (0.89, (EXACT, (1.25,) * 3), Status.NOT_COMPARABLE, "25 % slower"),
        (0.89, (EXACT, EXACT), Status.REGRESSED, ""),
        (0.2, (QUARTER, QUARTER), Status.INCONCLUSIVE, "The GPU computes for 20 % of a call"),
        (0.2, (QUARTER, QUARTER), Status.INCONCLUSIVE, "The host itself varies by 25 % from trial to trial."),
    ],
)
def test_a_slow_host_clears_calls_that_wait_for_it(
    busy: float, launch: tuple[Sequence[float], Sequence[float]], expected: Status, words: str
) -> None:
    """Calls that wait for a slow host are cleared; calls that fill the card are judged by the card."""
    situation = with_host(launch, busy)
    row = find_row(decide(situation, environment=CUDA_HOST), LATENCY)
    assert row.status is expected
    assert words in describe_comparison(row)


def test_eager_that_waits_for_the_host_shows_no_shift_of_the_card() -> None:
    """Eager 30 % slower in all cases is no shift of compiled calls that fill the card."""
    cases = [
        replace(
            situation,
            host=CUDA_HOST,
            before={**(situation.before or {}), BUSY: (0.95,) * 9},
            after={**situation.after, BUSY: (0.95,)},
        )
        for situation in make_cases(6, eager=1.3)
    ]
    verdict = decide(*cases, environment=CUDA_HOST)
    assert {find_row(verdict, LATENCY, situation.case_id).status for situation in cases} == {Status.UNCHANGED}


@pytest.mark.parametrize(
    ("ratio", "wander", "is_far", "sd"),
    [
        (1.2, 0.01, True, 0.1823),
        (1.16, 0.01, True, 0.1484),
        (0.8, 0.01, True, 0.2231),
        (0.84, 0.01, True, 0.1744),
        (1.2, 0.3, True, 0.3),
        (1.14, 0.01, False, 0.01),
        (0.86, 0.01, False, 0.01),
    ],
)
def test_a_far_shift_is_as_uncertain_as_it_is_large(
    ratio: float, wander: float, *, is_far: bool, sd: float
) -> None:
    """Beyond 15 % its logarithm is the session's SD, if that of a canary's trials is not larger."""
    machine = Machine(shift=math.log(ratio), wander=wander)
    assert machine.is_far is is_far
    assert math.sqrt(machine.session.value) == pytest.approx(sd, abs=1e-4)
    assert machine.session.df == math.inf


def test_a_machine_that_is_slower_by_the_limit_is_not_far() -> None:
    """15 % are the most that is compared."""
    assert not Machine(shift=math.log1p(0.15)).is_far


def test_a_machine_without_a_canary_is_not_known() -> None:
    """A canary that did not move is."""
    assert Machine(suite=math.log(2)).since_recorded == MachineShift(
        canary=0.0, suite=math.expm1(math.log(2)), known=False
    )
    assert Machine(canary=0.0).since_recorded == MachineShift(canary=0.0, suite=0.0, known=True)
    assert Machine(canary=math.log(1.2)).since_recorded.canary == pytest.approx(0.2)


HOST, LAUNCHES = Machine(shift=0.4, is_host=True), Machine(shift=0.3, is_host=True)
GPU = Machine(shift=0.2, suite_shift=0.1, host=HOST, launches=LAUNCHES)


@pytest.mark.parametrize(
    ("metric", "fills", "part", "shifts"),
    [
        (COLD, False, HOST, (0.4, 0.4)),
        (COLD, True, HOST, (0.4, 0.4)),
        (LATENCY, False, LAUNCHES, (0.3, 0.1)),
        (LATENCY, True, GPU, (0.2, 0.2)),
        (EAGER, False, LAUNCHES, (0.3, 0.1)),
        (SPEEDUP, False, GPU, (0.0, 0.0)),
        (SPEEDUP, True, GPU, (0.0, 0.0)),
        (BREAKS, False, GPU, (0.0, 0.0)),
    ],
)
def test_a_time_is_shifted_as_the_part_that_it_waits_for(
    metric: Metric, *, fills: bool, part: Machine, shifts: tuple[float, float]
) -> None:
    """Compiles wait for the host; calls for the start of kernels, or the card that they fill.

    Without a base, calls that do not fill it are shifted as the suite.
    """
    assert GPU.get_part(metric, fills=fills) is part
    assert tuple(GPU.compute_shift(metric, has_base=base, fills=fills) for base in (True, False)) == shifts


@pytest.mark.parametrize("metric", [COLD, LATENCY])
def test_a_machine_of_one_part_is_shifted_as_a_whole(metric: Metric) -> None:
    """Its host is what starts kernels, too, and a suite that did not move says nothing."""
    cpu = Machine(shift=0.2)
    assert cpu.get_part(metric, fills=False) is cpu
    assert cpu.compute_shift(metric, has_base=False) == 0.2


@pytest.mark.parametrize(
    ("metric", "busy", "part", "expected"),
    [
        (LATENCY, (0.2, 0.4), None, {Code.WAITS_FOR_HOST: 0.3}),
        (EAGER, (0.2, 0.4), None, {Code.WAITS_FOR_HOST: 0.3}),
        (LATENCY, (0.9, 0.9), None, {}),
        (LATENCY, (), None, {}),
        (COLD, (0.2, 0.4), None, {}),
        (COLD, (), Machine(wander=0.04, is_host=True), {Code.HOST_VARIES: math.expm1(0.04)}),
        (COLD, (), Machine(wander=0.03, is_host=True), {}),
        (COLD, (), Machine(wander=0.04), {}),
        (
            LATENCY,
            (0.2, 0.4),
            Machine(wander=0.04, is_host=True),
            {Code.WAITS_FOR_HOST: 0.3, Code.HOST_VARIES: math.expm1(0.04)},
        ),
    ],
)
def test_what_is_open_names_the_host_that_it_waits_for(
    metric: Metric, busy: tuple[float, ...], part: Machine | None, expected: Mapping[Code, float]
) -> None:
    """Calls that do not fill their card wait for the host; a host is named if it varies by more than 3 %."""
    evidence = Evidence(
        case=Case(id="m/x", model="m", definition="d"),
        trials=(),
        failures=(),
        values={BUSY: busy} if busy else {},
        stored=(),
    )
    facts = explain_open(evidence, metric, part)
    assert {fact.code: next(iter(fact.numbers.values())) for fact in facts} == {
        code: pytest.approx(number) for code, number in expected.items()
    }


@pytest.mark.parametrize(("suite", "convicted"), [(1.1, False), (1.0, True)])
def test_calls_are_compared_less_what_all_cases_lost(suite: float, convicted: bool) -> None:
    """Without canaries eager's 10 % in all cases are subtracted from one case's 18 %."""
    alone = Situation(
        case_id="one/x",
        before={LATENCY: scale(0.010)},
        after={LATENCY: scale(0.0118)},
    )
    verdict = decide(alone, *make_cases(6, eager=suite, compiled=suite))
    row = find_row(verdict, LATENCY, "one/x")
    assert (row.status is Status.REGRESSED) is convicted


@pytest.mark.parametrize(("stored", "convicted"), [(EXACT, True), (TENTH, False)])
def test_a_machine_that_wanders_convicts_nobody(stored: Sequence[float], convicted: bool) -> None:
    """30 % more regress if canaries agree, and not if they vary by 10 % between trials."""
    situation = with_canaries(
        {"loop": (stored, stored)},
        before={LATENCY: scale(0.010)},
        after={LATENCY: scale(0.013, NINE[:3])},
    )
    assert (find_row(decide(situation), LATENCY).status is Status.REGRESSED) is convicted


def test_with_a_base_calls_of_all_cases_show_no_shift() -> None:
    """With a base 10 % in all five cases are not subtracted: the change may have done it."""
    slower = {EAGER: (TYPICAL[EAGER] * 1.1,), LATENCY: (TYPICAL[LATENCY] * 1.1,)}
    run = pair_up(*(PairedCase(case_id=f"m{n}/x", pairs=0, alone=slower) for n in range(5)))
    baselines = make_stored(*make_cases(5, eager=1.0))
    for checked, centre in ((run, 0.1), (replace(run, base=None), 0.0)):
        rows = screen_run(checked, baselines, POLICY).comparisons
        (row,) = (row for row in rows if row.metric is LATENCY and row.case_id == "m0/x")
        assert row.change is not None
        assert row.change.centre == pytest.approx(centre, abs=1e-3)


@pytest.mark.parametrize(
    ("speedups", "expected"),
    [
        pytest.param((2.0, 2.0, 2.0, 2.0), 0.0, id="none"),
        pytest.param((2.0, 2.0, 2.0, 1.0), 0.0, id="one that is slower is the change's"),
        pytest.param((2.12, 1.88, 2.06, 1.94), 0.0658, id="all"),
        pytest.param((2.12, 1.88, 2.06), 0.0, id="too few cases"),
    ],
)
def test_speedups_that_differ_between_sessions(speedups: Sequence[float], expected: float) -> None:
    """From 2.00 in five trials each: 1.4826 times 4.44 %, the median of 3.0, 3.0, 5.9 and 6.1 %."""
    questions = [
        Question(
            case=Case(id=f"m{number}/x", model="m", factory="m:f", definition="d"),
            metric=SPEEDUP,
            before=(2.0,) * 5,
            after=(after,),
            threshold=SPECS[SPEEDUP].threshold,
            logs=summarize_logs((2.0,) * 5, (after,)),
        )
        for number, after in enumerate(speedups)
    ]
    assert math.sqrt(measure_uneven(questions).value) == pytest.approx(expected, abs=5e-4)
    noisy = [
        replace(question, logs=summarize_logs((1.8, 2.2) * 3, (after,)))
        for question, after in zip(questions, speedups, strict=True)
    ]
    assert measure_uneven(noisy).value == 0.0  # trials that vary by 11 % differ by more


def test_what_trials_vary_by_is_no_difference_between_sessions() -> None:
    """Trials that vary by 2 % explain 0.02^2 (1 + 1/5) of the 6.58 %^2 of one value after five."""
    questions = [
        Question(
            case=Case(id=f"m{number}/x", model="m", factory="m:f", definition="d"),
            metric=SPEEDUP,
            before=(2.0,) * 5,
            after=(after,),
            threshold=SPECS[SPEEDUP].threshold,
            logs=summarize_logs([2.0 * math.exp(0.02 * step) for step in (-1, -1, 0, 1, 1)], (after,)),
        )
        for number, after in enumerate((2.12, 1.88, 2.06, 1.94))
    ]
    expected = math.sqrt(0.0658**2 - 0.02**2 * 1.2)
    assert math.sqrt(measure_uneven(questions).value) == pytest.approx(expected, abs=5e-4)


def climb(steps: int, step: float) -> list[float]:
    """Days that are each slower by this logarithm than the day before."""
    return [math.exp(step * number) for number in range(-steps, steps + 1)]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param(climb(2, 0.0005), 0.00112, id="five days differ by little"),
        pytest.param(climb(2, 0.003), SESSION_SD, id="five days say too little for a narrower interval"),
        pytest.param(climb(10, 0.001), 0.00877, id="21 days say more"),
        pytest.param(climb(1, 0.0), SESSION_SD, id="three days say nothing"),
        pytest.param([1.0] * 10 + [1.2] * 10, SESSION_SD, id="other code was measured meanwhile"),
        pytest.param(climb(10, 0.1), SESSION_SD, id="most days differ by much"),
    ],
)
def test_sessions_differ_as_the_days_of_the_history_do(days: Sequence[float], expected: float) -> None:
    """Logarithms -2, -1, 0, 1, 2 have the variance 2.5, and -10 to 10 38.5: sessions differ by twice that.

    At 0.0025 the quantile of five days is 5.60 and that of 21 days 3.15, and 2.81 where it is assumed.
    """
    assert math.sqrt(learn_session(days, 0.0025).value) == pytest.approx(expected, abs=5e-6)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param(climb(10, 0.1), 0.14825, id="every day"),
        pytest.param(climb(2, 0.1), 0.14825, id="every one of five days"),
        pytest.param([1.0] * 10 + [1.2] * 10, 0.0, id="one day"),
        pytest.param(climb(2, 0.1)[:4], 0.0, id="four days"),
    ],
)
def test_speedups_that_differ_every_day_are_uneven(days: Sequence[float], expected: float) -> None:
    """What differs by 0.1 from the day before has the variance 0.01 / 0.455."""
    assert math.sqrt(learn_uneven(days).value) == pytest.approx(expected, abs=5e-6)


def test_a_day_without_a_value_teaches_nothing() -> None:
    days = (1.0, 0.0, *(1.0,) * 9)
    assert learn_session(days, 0.0025).value == SESSION_SD**2
    assert learn_uneven(days).value == 0.0


@pytest.mark.parametrize(("has_days", "status"), [(True, Status.REGRESSED), (False, Status.INCONCLUSIVE)])
def test_a_machine_known_to_repeat_convicts_a_smaller_slowdown(*, has_days: bool, status: Status) -> None:
    """+7 % is 1.9 % above the edge of 4.9 %: less than 2.81 times 1 %, more than days of 0.01 % leave."""
    slower = Situation(
        before={EAGER: (0.020,) * 5, LATENCY: (0.010, 0.010001, 0.009999, 0.010, 0.010)},
        after={EAGER: (0.020,), LATENCY: (0.0107,)},
    )
    other_days = {slower.case_id: {LATENCY: (0.010, 0.010001) * 10, SPEEDUP: (2.0, 2.0002) * 10}}
    policy = replace(POLICY, days=other_days if has_days else {})
    verdict = decide_verdict(make_measured(slower), make_stored(slower), policy)
    assert find_row(verdict, LATENCY).status is status


def test_a_card_that_was_always_full_is_no_division_by_zero() -> None:
    """A utilization of 1 in all trials has no noise."""
    full = Situation(before={BUSY: (1.0,) * 5}, after={BUSY: (1.0,)}, host=CUDA_HOST)
    policy = replace(POLICY, days={full.case_id: {BUSY: (1.0,) * 20}})
    run = make_measured(full, environment=CUDA_HOST)
    row = find_row(decide_verdict(run, make_stored(full), policy), BUSY)
    assert row.status is Status.UNCHANGED


@pytest.mark.parametrize(
    ("shift", "named"),
    [
        (MachineShift(canary=0.03, suite=-0.03), {}),
        (MachineShift(canary=0.5, suite=0.0), {"canary": 0.5}),
        (MachineShift(canary=0.001, suite=-0.5), {"canary": 0.001, "suite": -0.5}),
    ],
)
def test_a_shift_beyond_what_is_notable_is_named(shift: MachineShift, named: Mapping[str, float]) -> None:
    """Both are named where one is beyond 3 %, but for what is not known."""
    assert name_shifts(shift) == named


@pytest.mark.parametrize(
    ("metric", "has_days", "wander", "sd"),
    [
        (LATENCY, False, 0.0, 0.03),
        (SPEEDUP, False, 0.0, 0.03),
        (EAGER, False, 0.0, SESSION_SD),
        (COLD, False, 0.0, SESSION_SD),
        (LATENCY, True, 0.0, 0.05 / math.sqrt(0.455)),
        (COLD, True, 0.0, SESSION_SD),
        (LATENCY, False, 0.2, 0.2),
        (COLD, False, 0.2, 0.2),
        (SPEEDUP, False, 0.2, 0.03),
    ],
)
def test_calls_differ_between_sessions_as_the_speedups_do(
    metric: Metric, *, has_days: bool, wander: float, sd: float
) -> None:
    """Those of all cases differ by 3 %, and this case's changes by 5 % from each day to the next.

    What the clock measures also differs as a machine does whose canaries wander; a ratio does not.
    """
    days = {"mlp/x": {SPEEDUP: tuple(2.0 * math.exp(0.05 * (day % 2)) for day in range(6))}}
    uneven = Variance(value=0.03**2, df=math.inf)
    rules = JudgingRules(alpha=0.0025, priors={}, uneven=uneven, days=days if has_days else {})
    session = rules.choose_session("mlp/x", metric, Machine(wander=wander))
    assert math.sqrt(session.value) == pytest.approx(sd)


@pytest.mark.parametrize(
    ("factors", "canary"),
    [((1.2, 1.0, 1.1), 0.1), ((1.3, 1.0, 1.1, 1.2), 0.1489), ((0.9,), -0.1)],
)
def test_the_machine_moved_as_the_canary_in_the_middle(factors: tuple[float, ...], canary: float) -> None:
    """Whatever their order; of four as the geometric mean of two: sqrt(1.1 * 1.2) = 1.1489."""
    canaries = {str(number): (EXACT, (factor,) * 3) for number, factor in enumerate(factors)}
    assert compare(with_canaries(canaries)).canary == pytest.approx(math.log1p(canary), abs=0.001)


@pytest.mark.parametrize(
    ("before", "after", "shift"), [((1.0, 1.0001), (1.5,), math.log(1.5)), ((1.0,), (1.5,), 0.0)]
)
def test_a_canary_of_one_value_on_each_side_shifts_nothing(
    before: tuple[float, ...], after: tuple[float, ...], shift: float
) -> None:
    """With a second value its noise is known, if badly."""
    machine = compare(with_canaries({"loop": (before, after)}))
    assert machine.shift == pytest.approx(shift, abs=0.001)


@pytest.mark.parametrize(("judged", "cases"), [(1, 1), (1, 2), (4, 2)])
def test_the_error_budget_is_divided_by_what_can_be_falsely_red(judged: int, cases: int) -> None:
    """By both latencies' ratio and compiled latency of each case; eager's does not decide.

    What is judged several times has its share of each. A count that flickers, here recompiles, is one more
    of each case.
    """
    times = {LATENCY: (0.01,) * 3, EAGER: (0.02,) * 3, Metric.RECOMPILES: (1.0, 2.0, 1.0)}
    situations = [Situation(case_id=f"a/{number}", before=times, after=times) for number in range(cases)]
    run, policy = make_measured(*situations), replace(POLICY, error_budget=0.012, times_judged=judged)
    evidence = screen_run(run, make_stored(*situations), policy).evidence
    rules = make_rules(evidence, policy, has_base=False)
    assert rules.alpha == pytest.approx(0.012 / (3 * cases * judged))
    assert rules.counts.alpha == pytest.approx(0.012 / (3 * cases))
    nothing = make_rules((), policy, has_base=False)
    assert (nothing.alpha, nothing.counts.alpha) == (0.012 / judged, 0.012)
