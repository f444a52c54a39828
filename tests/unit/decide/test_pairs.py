"""Pairs of trials: which belong together, a pair's change, and the rule for several."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gate.decide.constants import LIVE_PAIR_SD, LOOKS, POOLING_LOSS, PRIOR_DF
from gate.decide.evidence.gather import Question
from gate.decide.evidence.pairs import Pair, collect_paired, collect_processor, list_pairs
from gate.decide.judge.counted import NO_COUNT_RULES, CountRules, Repeats
from gate.decide.judge.interval import Bar, Reading, read_pairs
from gate.decide.judge.pairs import (
    NOT_SCREENED,
    CasePairs,
    PairRules,
    Screened,
    compare_paired,
    compute_further_pairs,
    compute_pair_detectable,
    decide_pairs,
    gather_case_pairs,
    make_pair_rules,
    read_metric,
)
from gate.decide.stats import Variance, compute_hodges_lehmann
from gate.metrics import SPECS
from gate.records.cases import Case, Metric, Threshold
from gate.records.run import Pairing, Trial
from gate.records.verdict import Reason, Status
from tests.make import POLICY, PairedCase, make_paired, make_run
from tests.make import pair_up as in_pairs

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD = Metric.COLD_COMPILE_TIME
PRIOR = Variance(value=LIVE_PAIR_SD**2, df=PRIOR_DF)
BAR = Bar(alpha=0.01 / 12, threshold=Threshold(relative=0.03, absolute=0.0))
STRICT = replace(BAR, alpha=0.01 / 240)  # of sixty suspects
WORSE, BETTER = (Status.REGRESSED, Reason.BEYOND_BAR), (Status.IMPROVED, Reason.BEYOND_BAR)
CLEAR, OPEN = (Status.UNCHANGED, Reason.BELOW_THRESHOLD), (Status.INCONCLUSIVE, Reason.UNSETTLED)
CHANGES = st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=16)


def make_trial(
    arm: str, index: int = 1, pairing: Pairing = Pairing.LIVE, **samples: Sequence[float]
) -> Trial:
    return Trial(
        case_id="a/x",
        index=index,
        arm=arm,
        pairing=pairing,
        samples={Metric(name): tuple(values) for name, values in samples.items()},
    )


def pair_up(base: Trial, head: Trial) -> Pair:
    return Pair(base=base, head=head)


def judge(changes: Sequence[float], metric: Metric = LATENCY) -> tuple[Status, Reason]:
    return decide_pairs(read_pairs(make_paired(changes, metric), PRIOR), BAR)


def compare(pair: Pair) -> Mapping[Metric, float]:
    """The changes of one pair."""
    return {metric: paired.changes[0] for metric, paired in collect_paired([pair]).items()}


# --- which trials are a pair ---


def test_trials_of_one_index_are_a_pair() -> None:
    """Index 2 has one arm only, and a trial alone belongs to no pair."""
    trials = (
        make_trial("head", 1),
        make_trial("base", 1),
        make_trial("head", 2),
        make_trial("head", 1, Pairing.ALONE),
    )
    assert list_pairs(trials) == {"a/x": (pair_up(trials[1], trials[0]),)}


def test_pairs_are_listed_by_case_and_index() -> None:
    """Trials may come in any order; those of an arm alone are none."""
    trials = [
        replace(make_trial(arm, index), case_id=case_id)
        for case_id, index in (("b/x", 1), ("a/x", 2), ("a/x", 1))
        for arm in ("head", "base")
    ]
    pairs = list_pairs([*trials, make_trial("head", 3), make_trial("base", 4)])
    assert list(pairs) == ["a/x", "b/x"]
    assert [pair.head.index for pair in pairs["a/x"]] == [1, 2]


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (Pairing.LIVE, Pairing.LIVE, True),
        (Pairing.LIVE, Pairing.TURNS, False),
        (Pairing.TURNS, Pairing.LIVE, False),
        (Pairing.TURNS, Pairing.TURNS, False),
    ],
)
def test_a_pair_is_live_where_both_arms_are(base: Pairing, head: Pairing, *, expected: bool) -> None:
    """Blocks of an arm that ran in turn belong to no others."""
    assert pair_up(make_trial("base", 1, base), make_trial("head", 1, head)).is_live is expected


@pytest.mark.parametrize(
    ("others", "is_screened", "expected"),
    [
        pytest.param([], True, ["live 1"], id="a suspect"),
        pytest.param([], False, ["alone 1", "live 1"], id="of no screening"),
        pytest.param([("base", 2)], True, ["live 1"], id="a base without a head"),
        pytest.param([("base", 1)], True, ["live 1"], id="a pair"),
        pytest.param([("base", 1)], False, ["live 1"], id="a pair of no screening"),
        pytest.param([("base", 1), ("head", 2)], True, ["live 1"], id="a pair and a head without a base"),
    ],
)
def test_heads_without_a_base_stand_for_a_case_without_pairs(
    others: list[tuple[str, int]], *, is_screened: bool, expected: list[str]
) -> None:
    """Of a suspect the trial alone was screened, and does not count."""
    trials = [
        make_trial("head", 1, Pairing.ALONE, compiled_latency=(0.01,)),
        *(make_trial(arm, index, compiled_latency=(0.01,)) for arm, index in [("head", 1), *others]),
    ]
    screened = {"a/x": NOT_SCREENED} if is_screened else None
    (side,) = gather_case_pairs(make_run(*trials, base=()), POLICY, screened)
    assert [f"{trial.pairing} {trial.index}" for trial in side.trials] == expected
    assert {trial.arm for trial in side.trials} == {"head"}


def test_the_trial_that_measured_most_comes_last() -> None:
    """Causes are read off it."""
    heads = (
        make_trial("head", 1, compiled_latency=(0.01,), cold_compile_time=(10.0,)),
        make_trial("head", 2, compiled_latency=(0.01,)),
    )
    (side,) = gather_case_pairs(make_run(*heads, base=()), POLICY)
    assert [trial.index for trial in side.trials] == [2, 1]


# --- the change of one pair ---


def test_what_one_side_lacks_is_not_compared() -> None:
    """The base timed a cold compile, and head eager calls."""
    base = make_trial("base", pairing=Pairing.TURNS, cold_compile_time=(10.0,))
    head = make_trial("head", pairing=Pairing.TURNS, eager_latency=(1.0,))
    assert compare(pair_up(base, head)) == {}


def test_half_the_speedup_is_a_change_of_log_two() -> None:
    """Eager takes 2 s on both sides, compiled 1 s and 2 s: more is worse of a latency, less of a speedup."""
    base, head = (
        make_trial(arm, pairing=Pairing.TURNS, eager_latency=(2.0,), compiled_latency=(seconds,))
        for arm, seconds in (("base", 1.0), ("head", 2.0))
    )
    changes = compare(pair_up(base, head))
    assert (changes[LATENCY], changes[SPEEDUP]) == (pytest.approx(math.log(2)), pytest.approx(math.log(2)))


def test_live_latency_is_compared_block_by_block() -> None:
    """The machine doubles its speed midway: blocks are 10 % slower, medians only 6.5 %."""
    base = make_trial("base", compiled_latency=(2.0, 2.0, 2.0, 1.0, 1.0, 1.0))
    head = make_trial("head", compiled_latency=(2.2, 2.2, 2.2, 1.1, 1.1, 1.1))
    changes = compare(pair_up(base, head))
    assert changes[LATENCY] == pytest.approx(math.log(1.1))


def test_blocks_that_one_arm_lost_are_no_pairs() -> None:
    """Without head's first super-block medians are compared: 2.2 and 2."""
    base = make_trial("base", compiled_latency=(3.0, 3.0, 2.0, 2.0, 1.0, 1.0))
    head = make_trial("head", compiled_latency=(3.3, 2.2, 2.2, 1.1))
    changes = compare(pair_up(base, head))
    assert changes[LATENCY] == pytest.approx(math.log(1.1))


def test_processes_in_turn_are_compared_by_their_medians() -> None:
    """Pairs in turn are compared by medians: 3 and 2."""
    base = make_trial("base", 1, Pairing.TURNS, compiled_latency=(1.0, 2.0, 9.0))
    head = make_trial("head", 1, Pairing.TURNS, compiled_latency=(9.0, 3.0, 1.0))
    assert compare(pair_up(base, head)) == {LATENCY: pytest.approx(math.log(1.5))}


def test_speedup_of_a_live_pair_is_the_difference_of_both_latencies() -> None:
    """Compiled 20 % slower, eager 10 % slower: the speedup is ln(1.2 / 1.1) worse."""
    base = make_trial("base", compiled_latency=(1.0, 1.0), eager_latency=(2.0, 2.0))
    head = make_trial("head", compiled_latency=(1.2, 1.2), eager_latency=(2.2, 2.2))
    assert compare(pair_up(base, head))[SPEEDUP] == pytest.approx(math.log(1.2 / 1.1))


def test_noisy_metrics_alone_have_a_change() -> None:
    """Graph breaks and memory are counted, and compared as counts."""
    base, head = (
        make_trial(arm, compiled_latency=(1.0,), graph_breaks=(2.0,), peak_memory=(1e8,))
        for arm in ("base", "head")
    )
    assert compare(pair_up(base, head)) == {LATENCY: 0.0}


@pytest.mark.parametrize(
    ("pairings", "is_live"),
    [
        ((Pairing.LIVE, Pairing.LIVE), True),
        ((Pairing.LIVE, Pairing.TURNS), False),
        ((Pairing.TURNS, Pairing.LIVE), False),
    ],
)
def test_latencies_are_live_where_all_of_their_pairs_are(
    pairings: Sequence[Pairing], *, is_live: bool
) -> None:
    """Processes in turn vary more."""
    pairs = [
        pair_up(*(make_trial(arm, index, pairing, compiled_latency=(1.0,)) for arm in ("base", "head")))
        for index, pairing in enumerate(pairings, 1)
    ]
    assert collect_paired(pairs)[LATENCY].is_live is is_live


def test_zero_has_no_ratio() -> None:
    """A compile time of zero has no change; other metrics have."""
    base = make_trial("base", cold_compile_time=(0.0,), warm_compile_time=(1.0,))
    head = make_trial("head", cold_compile_time=(1.0,), warm_compile_time=(1.0,))
    assert compare(pair_up(base, head)) == {Metric.WARM_COMPILE_TIME: 0.0}


def test_processor_time_that_one_side_lacks_is_not_compared() -> None:
    """Of three pairs one has some on both sides: 0.3 s after 0.2 s."""
    base, head = map(make_trial, ("base", "head"))
    pairs = [
        pair_up(replace(base, phases_s={"cpu_self": old}), replace(head, phases_s={"cpu_self": new}))
        for old, new in ((0.2, 0.3), (0.2, 0.0), (0.0, 0.2))
    ]
    processor = collect_processor(pairs)
    assert processor is not None
    assert processor.changes == (pytest.approx(math.log(1.5)),)
    assert (processor.metric, processor.base, processor.head, processor.is_live) == (
        COLD,
        (0.2,),
        (0.3,),
        False,
    )
    assert collect_processor(pairs[1:]) is None


def test_metrics_may_have_different_numbers_of_pairs() -> None:
    """The second pair has latencies only; a compile is never live."""
    full, short = (
        [make_trial(arm, compiled_latency=(1.0, 1.0), cold_compile_time=(10.0,)) for arm in ("base", "head")],
        [make_trial(arm, 2, compiled_latency=(1.0,)) for arm in ("base", "head")],
    )
    pairs = [pair_up(*full), pair_up(*short)]
    paired = collect_paired(pairs)
    assert [len(paired[metric].changes) for metric in (LATENCY, COLD)] == [2, 1]
    assert [paired[metric].is_live for metric in (LATENCY, COLD)] == [True, False]


@given(
    blocks=st.lists(st.tuples(st.floats(1e-4, 1.0), st.floats(1e-4, 1.0)), min_size=1, max_size=20),
    factor=st.floats(0.01, 100.0),
)
def test_exchanging_the_arms_turns_the_change_around(
    blocks: list[tuple[float, float]], factor: float
) -> None:
    """Exchanged arms change the sign only, and units change nothing."""
    first, second = zip(*blocks, strict=True)
    there = compare(
        pair_up(make_trial("base", compiled_latency=first), make_trial("head", compiled_latency=second))
    )
    back = compare(
        pair_up(make_trial("base", compiled_latency=second), make_trial("head", compiled_latency=first))
    )
    scaled = compare(
        pair_up(
            make_trial("base", compiled_latency=[factor * value for value in first]),
            make_trial("head", compiled_latency=[factor * value for value in second]),
        )
    )
    assert there[LATENCY] == pytest.approx(-back[LATENCY], abs=1e-9)
    assert there[LATENCY] == pytest.approx(scaled[LATENCY], abs=1e-9)


# --- pooling ---


def test_error_by_hand() -> None:
    """Four pairs at 0, 0, 2 and 2 %: s^2 is 4/3, moderated (4 x 1.6^2 + 3 x 4/3) / 7, times 1.08 / 4."""
    reading = read_pairs(make_paired([0.0, 0.0, 0.02, 0.02]), PRIOR)
    moderated = (4 * 1.6**2 + 3 * 4 / 3) / 7
    assert reading.noise.df == 7.0
    assert reading.change == pytest.approx(0.01)
    assert reading.error == pytest.approx(0.01 * math.sqrt(moderated * 1.08 / 4))


@given(changes=CHANGES)
def test_mirror_image_has_the_mirrored_status(changes: list[float]) -> None:
    """What is REGRESSED one way is IMPROVED the other way."""
    there, back = judge(changes)[0], judge([-change for change in changes])[0]
    assert (there is Status.REGRESSED) == (back is Status.IMPROVED)


@given(changes=CHANGES, slower=st.floats(0.0, 0.5))
def test_slower_is_never_judged_better(changes: list[float], slower: float) -> None:
    """A slowdown added to every pair never improves the status."""
    order = [Status.IMPROVED, Status.UNCHANGED, Status.INCONCLUSIVE, Status.REGRESSED]
    before, after = judge(changes)[0], judge([change + slower for change in changes])[0]
    assert order.index(after) >= order.index(before)


@given(changes=CHANGES, base=st.floats(1e-6, 10.0))
def test_unit_does_not_matter(changes: list[float], base: float) -> None:
    """Without an absolute threshold the base's value does not count."""
    scaled = replace(make_paired(changes), base=(base,) * len(changes))
    assert decide_pairs(read_pairs(scaled, PRIOR), BAR) == judge(changes)


# --- the rule ---


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([0.08, 0.07, 0.085, 0.075, 0.08, 0.08], WORSE, id="six near 8 % slower"),
        pytest.param([0.08, 0.075, 0.085] * 3 + [-1.1], WORSE, id="a stray among ten"),
        pytest.param([0.015, 0.014, 0.016] * 4, CLEAR, id="surely slower, and below the edge"),
        pytest.param([0.028, 0.029, 0.030] * 2, OPEN, id="at the edge"),
        pytest.param([0.0] * 9 + [1.1], CLEAR, id="one of ten strays"),
        pytest.param([0.0] * 5 + [1.1], OPEN, id="one of six strays"),
        pytest.param([1.0], OPEN, id="one pair convicts nobody"),
        pytest.param([0.0], OPEN, id="one pair clears nothing"),
        pytest.param([-0.01, -0.01], CLEAR, id="two clear"),
        pytest.param([1.0, 1.0], OPEN, id="two convict nobody"),
        pytest.param([1.0, 1.0, 1.0], WORSE, id="three convict"),
        pytest.param([-1.0, -1.0, -1.0], BETTER, id="three show a gain"),
        pytest.param([-0.2, 0.2, -0.2], OPEN, id="low by luck"),
    ],
)
def test_what_pairs_say_by_themselves(changes: list[float], expected: tuple[Status, Reason]) -> None:
    """The edge is ln 1.03: the estimate must exceed it, and the lower bound must exceed 0."""
    assert judge(changes) == expected


@pytest.mark.parametrize(("sign", "expected"), [(1, WORSE), (-1, OPEN)])
def test_conviction_by_hand(sign: int, expected: tuple[Status, Reason]) -> None:
    """Four pairs that agree: s2 = 4 x 1.6^2 / 7, SE = s sqrt(1.08 / 4), and t(1 - 0.01 / 12; 7) = 4.936."""
    least = 4.936 * 0.016 * math.sqrt(4 / 7 * 1.08 / 4)
    assert judge([least + sign * 1e-4] * 4) == expected


@pytest.mark.parametrize(("sign", "expected"), [(-1, CLEAR), (1, OPEN)])
def test_clearing_by_hand(sign: int, expected: tuple[Status, Reason]) -> None:
    """Two pairs that agree: s2 = 4 x 1.6^2 / 5, SE = s sqrt(1.08 / 2), and t(.90; 5) = 1.4759."""
    most = math.log(1.03) - 1.4759 * 0.016 * math.sqrt(4 / 5 * 1.08 / 2)
    assert judge([most + sign * 1e-4] * 2) == expected


def test_twenty_microseconds_do_not_matter() -> None:
    """10 of 100 us are below the absolute threshold of 20 us."""
    bar = Bar(alpha=BAR.alpha, threshold=Threshold(relative=0.03, absolute=20e-6))
    paired = replace(make_paired([0.1] * 16), base=(100e-6,) * 16)
    assert decide_pairs(read_pairs(paired, PRIOR), bar) == CLEAR


def extend(reading: Reading, pairs: int) -> bool:
    """Whether so many pairs with this estimate and noise settle it; a tenth a side is winsorized."""
    now, then = (count - 1 - 3 * (count // 10) for count in (reading.trials, pairs))
    error = math.sqrt(reading.noise.value * 1.08 / pairs)
    noise = replace(reading.noise, df=reading.noise.df + then - now)
    own_noise = reading.own_noise and replace(reading.own_noise, df=reading.own_noise.df * then / now)
    longer = replace(reading, trials=pairs, noise=noise, error=error, df=noise.df, own_noise=own_noise)
    return decide_pairs(longer, STRICT) != OPEN


@given(changes=CHANGES)
@example(changes=[0.00, 0.02, 0.03])
@example(changes=[0.017, 0.026, 0.014, 0.034, 0.045, 0.024, 0.045, 0.06])  # nine settle, ten do not
def test_further_pairs_are_the_fewest_that_settle(changes: list[float]) -> None:
    """As many pairs as forecast settle it, and fewer do not."""
    reading = read_pairs(make_paired(changes), PRIOR)
    further = compute_further_pairs(reading, STRICT)
    numbers = range(1, 100)
    enough = [more for more in numbers if extend(reading, len(changes) + more)]
    assert further == (enough[0] if enough else None)


@pytest.mark.parametrize(("count", "loss"), [(3, 1.02), (6, 1.08), (16, 1.06)])
def test_price_of_the_robust_estimate(count: int, loss: float) -> None:
    """The variance of 20,000 estimates of normal values, times their number, is the table's +-0.03."""
    rng = random.Random(count)  # noqa: S311 - repeatable, not secret
    squares = [compute_hodges_lehmann([rng.gauss(0, 1) for _ in range(count)]) ** 2 for _ in range(20_000)]
    assert count * sum(squares) / len(squares) == pytest.approx(loss, abs=0.03)
    assert loss <= POOLING_LOSS


# --- the case's own noise ---


def test_luck_of_few_pairs_convicts_nobody() -> None:
    """Three pairs agree to 0.1 % by chance: eager in the same blocks varies by 6 %."""
    paired = make_paired([0.049, 0.050, 0.051])
    twin = make_paired([0.06, -0.06, 0.0], Metric.EAGER_LATENCY)
    assert decide_pairs(read_pairs(paired, PRIOR), BAR) == WORSE
    assert decide_pairs(read_pairs(paired, PRIOR, twin), BAR) == OPEN


def test_own_noise_by_hand() -> None:
    """Variances of 1 and 16 with 2 df each give 8.5 with 4 df; a quieter twin does not count.

    A compile time has no twin, and one pair has no noise of its own.
    """
    changes, loud, quiet = [0.0, 0.01, 0.02], [0.0, 0.04, 0.08], [0.0, 0.0, 0.0]
    joined = [read_pairs(make_paired(changes), PRIOR, make_paired(twin)).own_noise for twin in (loud, quiet)]
    assert [(noise.value, noise.df) for noise in joined if noise] == [
        (pytest.approx(0.00085), 4.0),
        (pytest.approx(0.0001), 2.0),
    ]
    assert read_pairs(make_paired(changes), PRIOR).own_noise == joined[1]
    assert read_pairs(make_paired([0.1]), PRIOR, make_paired([0.2])).own_noise is None


@pytest.mark.parametrize(
    ("metric", "eager_is_live", "variance"),
    [
        pytest.param(LATENCY, True, 0.00085, id="timed by the same blocks"),
        pytest.param(LATENCY, False, 0.0001, id="timed in turn"),
        pytest.param(LATENCY, None, 0.0001, id="not timed"),
        pytest.param(SPEEDUP, True, 0.0001, id="of a ratio"),
    ],
)
def test_only_compiled_latency_has_eager_as_its_twin(
    metric: Metric, *, eager_is_live: bool | None, variance: float
) -> None:
    """Eager's variance of 16 raises that of 1 to 8.5, where both were timed alike."""
    paired = {metric: make_paired([0.0, 0.01, 0.02], metric)}
    if eager_is_live is not None:
        paired[EAGER] = replace(make_paired([0.0, 0.04, 0.08], EAGER), is_live=eager_is_live)
    case = Case(id="a/x", model="a", definition="d1")
    side = CasePairs(case=case, trials=(), failures=(), values={}, stored=(), paired=paired, processor=None)
    priors = {(metric, True): {case.id: PRIOR}}
    rules = PairRules(alpha=0.001, priors=priors, processor={}, counts=NO_COUNT_RULES)
    own_noise = read_metric(side, metric, rules).own_noise
    assert own_noise is not None
    assert own_noise.value == pytest.approx(variance)


def test_further_pairs_measure_the_own_noise_better() -> None:
    """Three pairs have 2 degrees of freedom; of sixteen two are winsorized, which leaves 12."""
    reading = read_pairs(make_paired([0.0, 0.01, 0.02]), PRIOR, make_paired([0.0] * 3)).extend(16)
    assert reading.own_noise is not None
    assert (reading.own_noise.value, reading.own_noise.df) == (pytest.approx(0.0001), 12.0)
    assert (reading.trials, reading.noise.df) == (16, 16.0)
    assert reading.error == pytest.approx(math.sqrt(reading.noise.value * 1.08 / 16))


@pytest.mark.parametrize(("sd", "twin_sd"), [(0.032, 1.0), (0.048, 1.0), (0.048, 0.5), (0.08, 1.0)])
def test_one_noisy_suspect_is_seldom_a_false_alarm(sd: float, twin_sd: float) -> None:
    """At most 1 % of 1,500 single suspects without a change regress at any look."""
    rng = random.Random(f"{sd} {twin_sd}")  # noqa: S311 - repeatable, not secret
    bar = replace(BAR, alpha=0.01 / 6)
    red = 0
    for _ in range(1500):
        changes, twin = ([rng.gauss(0, spread) for _ in range(16)] for spread in (sd, twin_sd * sd))
        for look in LOOKS:
            reading = read_pairs(make_paired(changes[:look]), PRIOR, make_paired(twin[:look]))
            ruling = decide_pairs(reading, bar)
            if ruling != OPEN:
                break
        red += ruling == WORSE
    assert red / 1500 <= 0.01


def test_no_number_of_pairs_settles_the_threshold_itself() -> None:
    """An estimate 0.01 % below the threshold stays open."""
    assert compute_further_pairs(read_pairs(make_paired([math.log(1.03) - 1e-4] * 6), PRIOR), BAR) is None


@pytest.mark.parametrize(("below", "expected"), [(1.401e-3, 99), (1.394e-3, None)])
def test_no_more_than_99_pairs_are_forecast(below: float, expected: int | None) -> None:
    """Six pairs that agree, and 99 more: s2 = 4 x 1.6^2 / 9, SE = s sqrt(1.08 / 105), t(.90; 78) = 1.2921.

    105 pairs leave 1.398e-3 to the upper bound, 104 leave 1.405e-3, and 106 leave 1.391e-3.
    """
    reading = read_pairs(make_paired([math.log(1.03) - below] * 6), PRIOR)
    assert compute_further_pairs(reading, BAR) == expected


# --- counts ---

BREAKS = Metric.GRAPH_BREAKS
ONCE = OPEN, 1, 1  # seen in one pair, and to be in one more
FLICKERING = CountRules(alpha=0.01, flickering=frozenset({BREAKS}))


@pytest.mark.parametrize(
    ("before", "after", "seen", "expected"),
    [
        pytest.param((0.0,), (0.0,), None, (CLEAR, 1, None), id="the same"),
        pytest.param((0.0,), (1.0,), None, ONCE, id="more, once"),
        pytest.param((0.0,), (1.0,), Status.REGRESSED, (WORSE, 1, None), id="stored values convict it too"),
        pytest.param((0.0,), (1.0,), 1.0, (WORSE, 1, None), id="head alone counted as many"),
        pytest.param((0.0,), (1.0,), 2.0, ONCE, id="head alone counted others"),
        pytest.param((0.0,), (1.0,), Status.IMPROVED, ONCE, id="less than is stored"),
        pytest.param((1.0,), (0.0,), None, ONCE, id="fewer, once"),
        pytest.param((1.0,), (0.0,), Status.IMPROVED, (BETTER, 1, None), id="less than is stored, too"),
        pytest.param((1.0,), (0.0,), 0.0, ONCE, id="as few in head alone"),
        pytest.param((0.0,) * 2, (1.0,) * 2, None, (WORSE, 2, None), id="more, twice"),
        pytest.param((0.0,), (1.0,) * 2, None, ONCE, id="one value of the base"),
        pytest.param((0.0,) * 2, (1.0,), None, ONCE, id="one value of head"),
        pytest.param((0.0,) * 2, (0.0, 1.0), None, (OPEN, 2, None), id="differs in head"),
    ],
)
def test_a_count_that_changed_stands_once_it_was_seen_again(
    before: Sequence[float],
    after: Sequence[float],
    seen: Status | float | None,
    expected: tuple[tuple[Status, Reason], int, int | None],
) -> None:
    """By a second pair, by what is stored, or, where it is worse, by the same count in head's own trials."""
    screened = Screened(seen={} if seen is None else {BREAKS: seen})
    assert judge_count(before, after, screened) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected", "more_pairs"),
    [
        ((0.0,), (1.0,), OPEN, 3),
        ((0.0,) * 3, (1.0,) * 3, OPEN, 1),
        ((0.0, 1.0, 0.0, 0.0), (1.0, 2.0, 1.0, 1.0), OPEN, 1),
        ((0.0,) * 4, (1.0,) * 4, WORSE, None),
    ],
)
def test_a_count_that_flickers_needs_the_pairs_that_convict_it(
    before: Sequence[float], after: Sequence[float], expected: tuple[Status, Reason], more_pairs: int | None
) -> None:
    """Four that are apart are luck in 1 of 256, of 1 % that are allowed; what needs others needs one more."""
    judged = judge_count(before, after, rules=FLICKERING)
    assert judged == (expected, len(before), more_pairs)


def judge_count(
    before: Sequence[float],
    after: Sequence[float],
    screened: Screened = NOT_SCREENED,
    rules: CountRules = NO_COUNT_RULES,
) -> tuple[tuple[Status, Reason], int, int | None]:
    """The state of graph breaks with these values in pairs, the number of pairs, and of those it needs."""
    case, threshold = Case(id="a/x", model="a", definition="d1"), SPECS[BREAKS].threshold
    question = Question(case=case, metric=BREAKS, before=before, after=after, threshold=threshold)
    side = CasePairs(
        case=case,
        trials=(make_trial("head"),),
        failures=(),
        values={BREAKS: tuple(after)},
        stored=(),
        questions={BREAKS: question},
        paired={},
        processor=None,
        screened=screened,
    )
    (row,) = compare_paired(side, PairRules(alpha=0.001, priors={}, processor={}, counts=rules))
    return (row.status, row.reason), row.pairs, row.more_pairs


# --- frequencies on synthetic pairs with known truth ---


def draw_pairs(rng: random.Random, count: int, true: float) -> list[float]:
    """Pairs whose noise is drawn from the prior."""
    chi_square = rng.gammavariate(PRIOR_DF / 2, 2.0)
    sd = LIVE_PAIR_SD * math.sqrt(PRIOR_DF / chi_square)
    return [true + rng.gauss(0, sd) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 3, 6, 16])
def test_interval_covers_the_truth(count: int) -> None:
    """94 to 97.5 % of 4,000 intervals at 95 % cover a change of 5 %; few pairs are a little conservative."""
    rng = random.Random(count)  # noqa: S311 - repeatable, not secret
    covered = 0
    for _ in range(4000):
        change = read_pairs(make_paired(draw_pairs(rng, count, math.log(1.05))), PRIOR).make_change(0.0)
        covered += change.low <= 0.05 <= change.high
    assert 0.94 <= covered / 4000 <= 0.975


def test_detectable_change_is_confirmed_in_95_of_100() -> None:
    """Estimates are drawn around the detectable change with the reading's error."""
    rng = random.Random(4)  # noqa: S311 - repeatable, not secret
    reading = read_pairs(make_paired([0.0, 0.015, -0.015, 0.01, -0.01, 0.0] * 20), PRIOR)
    true = math.log1p(compute_pair_detectable(reading, BAR))
    drawn = (replace(reading, change=rng.gauss(true, reading.error)) for _ in range(4000))
    confirmed = sum(decide_pairs(reading, BAR)[0] is Status.REGRESSED for reading in drawn)
    assert 0.94 <= confirmed / 4000 <= 0.96


# --- what is gathered of a case, and with how much error its pairs may be judged ---


def test_the_error_budget_is_divided_by_comparisons_and_looks() -> None:
    """Six of the looks may convict. A count that flickers, here recompiles, is one more of each case."""
    policy = replace(POLICY, error_budget=0.012)
    rules = make_pair_rules((), policy, {}, times=3, cases=2)
    assert rules.alpha == pytest.approx(0.012 / 3 / 6)
    assert rules.counts.alpha == pytest.approx(0.012 / 3)
    assert make_pair_rules((), policy, {}, times=0, cases=2).counts.alpha == 0.012
    flickers = {Metric.RECOMPILES: Repeats(agreed=3, differs=True)}
    rules = make_pair_rules((), policy, flickers, times=3, cases=2)
    assert rules.alpha == pytest.approx(0.012 / 5 / 6)
    assert rules.counts.flickering == rules.counts.varied == {Metric.RECOMPILES}


def test_memory_is_presumed_to_flicker_until_it_has_agreed_often_enough() -> None:
    """Sixteen values are; what is presumed was not seen to vary."""
    memory = Metric.PEAK_MEMORY
    for agreed, flickering in ((15, {memory}), (16, set())):
        counts = make_pair_rules((), POLICY, {memory: Repeats(agreed=agreed)}, times=1, cases=1).counts
        assert (counts.flickering, counts.varied) == (flickering, set())


@pytest.mark.parametrize(
    ("base_definition", "has_base", "absence", "is_alike"),
    [
        ("d1", True, Reason.UNPAIRED, True),
        ("d2", True, Reason.STALE_DEFINITION, False),
        ("d1", False, Reason.NO_BASELINE, False),
    ],
)
def test_a_case_without_a_pair_says_why(
    base_definition: str, *, has_base: bool, absence: Reason, is_alike: bool
) -> None:
    """The base defines it alike, otherwise, or not at all."""
    run = in_pairs(PairedCase(pairs=0, base_definition=base_definition))
    assert run.base is not None
    run = run if has_base else replace(run, base=replace(run.base, cases=()))
    (side,) = gather_case_pairs(run, POLICY)
    assert (side.absence, side.is_alike_in_base) == (absence, is_alike)
