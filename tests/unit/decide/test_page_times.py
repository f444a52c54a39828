"""docs/decision.md on times: each row of its tables is the code's, for drawn values."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from gate.decide.evidence.compiles import Work
from gate.decide.evidence.pairs import Paired
from gate.decide.judge.interval import Bar, Reading, compute_edge, read_pairs, read_stored
from gate.decide.judge.machine import SESSION
from gate.decide.judge.pairs import assume_noise, decide_pairs
from gate.decide.judge.stored import Times, judge_time
from gate.decide.stats import NOTHING_KNOWN, Variance, compute_t_quantile, summarize_logs
from gate.decide.verdict import screen_run
from gate.metrics import SPECS
from gate.records.cases import Metric, Threshold
from gate.records.verdict import Reason, Status
from tests import decision_page
from tests.decision_page import holds, read_better, read_constant, read_ruling, read_rulings, read_table
from tests.make import POLICY, Situation, give_base, make_measured, make_stored

LATENCY, EAGER, RATIO = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD = Metric.COLD_COMPILE_TIME
THRESHOLD = Threshold(relative=0.05, absolute=0.0)
EDGE = math.log1p(THRESHOLD.relative)


# --- stored values ---


@given(
    factor=st.floats(0.8, 1.4),
    spread=st.floats(0.001, 0.03),
    has_base=st.booleans(),
)
def test_a_stored_time_is_judged_by_its_interval(factor: float, spread: float, has_base: bool) -> None:
    """A cold compile of which only the clock is known is judged by five stored ones."""
    stored = tuple(10.0 * math.exp(spread * step) for step in (-1.0, -0.5, 0.0, 0.5, 1.0))
    situation = Situation(before={COLD: stored}, after={COLD: (10.0 * factor,)})
    run = make_measured(situation)
    run = give_base(run) if has_base else run
    (row,) = screen_run(run, make_stored(situation), POLICY).comparisons

    arms = summarize_logs(stored, (10.0 * factor,))
    assert arms is not None
    reading = read_stored(COLD, arms, NOTHING_KNOWN, SESSION, 0.0)
    (beyond, low, worse), (clear, high, unchanged), (still, otherwise, unsettled) = read_table("reading")
    assert (beyond, clear, still, otherwise) == ("beyond", "clear", "open", "else")
    assert worse == "worse, unless a rule below says otherwise"
    formula, with_base, alone = re.fullmatch(r"(.+); k is (\w+) with a base, else (\w+)", high).groups()  # type: ignore[union-attr] # it matches
    threshold = SPECS[COLD].threshold
    values = {"d": reading.change, "e": math.log1p(compute_edge(threshold, reading.baseline))}
    values["k"] = read_constant(with_base if has_base else alone)
    values["high"] = reading.compute_bound(read_constant("CLEAR_CONFIDENCE"))
    values["low"] = reading.compute_bound(0.01)  # of one comparison, one look
    mirrored = values | {"d": -reading.change, "low": -reading.change - reading.change + values["low"]}
    if holds(low, **values):
        assert (row.status, row.reason) == (Status.REGRESSED, Reason.BEYOND_BAR)
    elif holds(low, **mirrored):
        assert (row.status, row.reason) == read_better()
    else:
        assert (row.status, row.reason) == read_ruling(unchanged if holds(formula, **values) else unsettled)


@dataclass(frozen=True)
class Calls:
    """Readings of compiled calls by the clock and by the ratio, and of eager."""

    clock: Reading
    ratio: Reading
    eager: Reading
    suite: float
    stored_code: bool

    def mirror(self) -> Calls:
        return replace(self, clock=self.clock.mirror(), ratio=self.ratio.mirror(), eager=self.eager.mirror())


def make_reading(change: float, error: float) -> Reading:
    return Reading(
        change=change,
        error=error,
        df=20.0,
        noise=Variance(value=error**2, df=20.0),
        baseline=1.0,
        candidate=math.exp(change),
        trials=3,
        baseline_trials=5,
    )


readings = st.builds(make_reading, st.floats(-0.2, 0.2), st.sampled_from([0.001, 0.01, 0.03]))
ALPHA = 0.001


def is_beyond(reading: Reading) -> bool:
    return holds("low > e", low=reading.compute_bound(ALPHA), e=EDGE)


def is_clear(reading: Reading) -> bool:
    formula = read_table("reading")[1][1].partition(";")[0]
    high = reading.compute_bound(read_constant("CLEAR_CONFIDENCE"))
    return holds(formula, d=reading.change, e=EDGE, high=high, k=1.0)


def is_estimated_beyond(reading: Reading) -> bool:
    return reading.change > EDGE


def is_eager_faster(calls: Calls) -> bool:
    """Eager fell by that share of what the ratio fell, which may be nothing."""
    return -calls.eager.change >= read_constant("SHARED_SHARE") * calls.ratio.change


def is_worse(calls: Calls) -> bool:
    both = is_estimated_beyond(calls.clock) and is_estimated_beyond(calls.ratio)
    return both and (is_beyond(calls.clock) or (is_beyond(calls.ratio) and not is_eager_faster(calls)))


def is_above_suite(calls: Calls) -> bool:
    low = calls.clock.compute_bound(1 - read_constant("CLEAR_CONFIDENCE"))
    return is_estimated_beyond(calls.clock) and low > max(calls.suite, 0.0)


# What the cells of the clock and of the ratio say, as the page has it.
CLOCK: Mapping[str, Callable[[Calls], bool]] = {
    (
        "both estimates beyond e, and the clock is beyond, or the ratio is and not because eager got faster"
    ): is_worse,
    "beyond": lambda calls: is_beyond(calls.clock),
    "the mirror image of worse": lambda calls: is_worse(calls.mirror()),
    "clear": lambda calls: is_clear(calls.clock),
    "not clear; d > e, and surely above the suite (above 0 with fewer cases)": lambda calls: (
        not is_clear(calls.clock) and is_above_suite(calls)
    ),
    "not clear; a call runs only the stored code": lambda calls: (
        not is_clear(calls.clock) and calls.stored_code
    ),
    "else": lambda _: True,
}
RATIO_SAYS: Mapping[str, Callable[[Calls], bool]] = {
    "": lambda _: True,
    "not estimated beyond e": lambda calls: not is_estimated_beyond(calls.ratio),
    "clear, or eager got faster by SHARED_SHARE of what it fell, as it did if that is nothing": (
        lambda calls: is_clear(calls.ratio) or is_eager_faster(calls)
    ),
    "clear": lambda calls: is_clear(calls.ratio),
}


def draw_calls(rng: random.Random) -> Calls:
    """Changes around 0 and around the edge, with small and large errors."""
    clock, ratio, eager = (
        make_reading(rng.choice((-0.1, 0.0, 0.0, 0.1)) + rng.gauss(0, 0.03), rng.choice((0.001, 0.01, 0.03)))
        for _ in range(3)
    )
    return Calls(clock, ratio, eager, rng.choice((-0.05, 0.0, 0.06)), stored_code=rng.random() < 0.5)


def test_a_latency_is_judged_by_the_clock_and_by_its_ratio() -> None:
    """The first row that holds decides 5,000 drawn readings, and each row decides some."""
    rows = read_table("clock")
    assert [clock for clock, _, _ in rows] == [*CLOCK]
    assert {ratio for _, ratio, _ in rows} == {*RATIO_SAYS}
    bar, rng, used = Bar(alpha=ALPHA, threshold=THRESHOLD), random.Random(1), set()  # noqa: S311 - repeatable
    for calls in (draw_calls(rng) for _ in range(5_000)):
        metrics = {LATENCY: calls.clock, RATIO: calls.ratio, EAGER: calls.eager}
        times = Times(
            readings=metrics,
            bars=dict.fromkeys(metrics, bar),
            work=Work(),
            stored_code=calls.stored_code,
            suite=calls.suite,
        )
        row = next(row for row in rows if CLOCK[row[0]](calls) and RATIO_SAYS[row[1]](calls))
        assert judge_time(LATENCY, times) == read_ruling(row[2])
        used.add(row[0])
    assert used == {*CLOCK}


compiles = st.builds(
    Work,
    calls=st.sampled_from([None, 0.0, 0.019, 0.021, -0.05]),
    processor=st.sampled_from([None, 0.0, 0.13, 0.15]),
    counts=st.booleans(),
)


def has_sign(metric: Metric, work: Work) -> bool:
    """Whether another count shows more work, or none can."""
    has_more_calls = work.calls is not None and work.calls > math.log1p(read_constant("MORE_WORK"))
    if metric is COLD and work.processor is not None:
        return has_more_calls or work.processor > math.log1p(read_constant("MORE_PROCESSOR"))
    return has_more_calls or work.counts or work.calls is None


def is_no_longer(metric: Metric, reading: Reading, work: Work, *, has_base: bool) -> bool:
    """Whether the compile may have done no more work."""
    if metric is not COLD:
        return not is_estimated_beyond(reading)
    is_longer = work.processor is None or work.processor > EDGE
    return not (has_base and is_longer and is_estimated_beyond(reading))


@given(
    metric=st.sampled_from([COLD, Metric.WARM_COMPILE_TIME]),
    reading=readings,
    work=compiles,
    has_base=st.booleans(),
)
def test_a_compile_time_needs_a_second_sign(
    metric: Metric, reading: Reading, work: Work, has_base: bool
) -> None:
    """The first of three rules that holds decides."""
    rule = re.compile(r"[123]\. (?:Beyond|Clear|Calls)")
    lines = list(filter(rule.match, decision_page.TEXT.splitlines()))
    assert [line.split()[1].strip(",:") for line in lines] == ["Beyond", "Clear", "Calls"]
    (proven, alone), (clear,), (same,) = map(read_rulings, lines)
    bar = Bar(alpha=ALPHA, threshold=THRESHOLD)
    times = Times(readings={metric: reading}, bars={metric: bar}, work=work, has_base=has_base)
    no_more = (
        work.calls is not None
        and work.calls <= math.log1p(read_constant("MORE_WORK"))
        and not work.counts
        and not has_sign(metric, work)
    )
    if is_beyond(reading):
        expected = proven if has_sign(metric, work) else alone
    elif is_beyond(reading.mirror()) and has_sign(metric, work.mirror()):
        expected = read_better()
    elif is_clear(reading):
        expected = clear
    elif no_more and is_no_longer(metric, reading, work, has_base=has_base):
        expected = same
    else:
        expected = read_ruling(read_table("reading")[2][2])
    assert judge_time(metric, times) == expected


# --- pairs ---


def draw_pairs(rng: random.Random) -> Paired:
    """One to eight pairs of a latency around no change or around the edge."""
    base, spread = rng.choice((-0.1, 0.0, 0.0, 0.04, 0.1)), rng.choice((0.003, 0.01, 0.05))
    changes = tuple(rng.gauss(base, spread) for _ in range(rng.randint(1, 8)))
    ones = (1.0,) * len(changes)
    return Paired(metric=LATENCY, changes=changes, base=ones, head=ones, is_live=True)


def test_pairs_are_judged_by_their_interval() -> None:
    """2,000 drawn live pairs, whose own noise counts too if it is larger."""
    rows = [(where, cell) for cell, where in read_table("verdict")]
    slower, mirror, clear, otherwise = (where for where, _ in rows)
    formula, first = re.fullmatch(r"(.+), from (\w+) on; also by its own noise, below", slower).groups()  # type: ignore[union-attr] # it matches
    edges, least, settling = re.fullmatch(
        r"clear, with k = (\d+), from (\w+) on; a latency of two speeds from (\w+) on", clear
    ).groups()  # type: ignore[union-attr] # it matches
    assert (mirror, settling) == ("the mirror image", "SETTLING_PAIRS")
    assert otherwise == "else; it gets pairs up to the next of LOOKS"
    bar, rng, used = Bar(alpha=ALPHA, threshold=THRESHOLD), random.Random(1), set()  # noqa: S311 - repeatable
    assert float(edges) == bar.edges
    own_p = max(ALPHA, read_constant("OWN_NOISE_P"))

    def is_confirmed(reading: Reading) -> bool:
        lows = [reading.compute_bound(ALPHA)]
        if reading.own_noise is not None:
            error = math.sqrt(reading.own_noise.value * read_constant("POOLING_LOSS") / reading.trials)
            lows.append(reading.change + compute_t_quantile(own_p, reading.own_noise.df) * error)
        values = {"d": reading.change, "e": EDGE, "low": min(lows)}
        return reading.trials >= read_constant(first) and holds(formula.replace(" and ", ", "), **values)

    for paired in (draw_pairs(rng) for _ in range(2_000)):
        reading = read_pairs(paired, assume_noise(LATENCY, is_live=True))
        conditions = (
            is_confirmed(reading),
            is_confirmed(reading.mirror()),
            reading.trials >= read_constant(least) and is_clear(reading),
            True,
        )
        where, cell = rows[conditions.index(True)]
        assert decide_pairs(reading, bar) == read_ruling(cell)
        used.add(where)
    assert used == {slower, mirror, clear, otherwise}
