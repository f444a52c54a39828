import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.decide.evidence.values import (
    collect_medians,
    collect_values,
    compute_speedup,
    compute_values,
    find_worst_output,
)
from gate.records.cases import Metric
from gate.records.run import Trial, Worst


def make_trial(samples: Mapping[Metric, tuple[float, ...]]) -> Trial:
    return Trial(case_id="m/a", index=0, samples=samples)


def test_latency_is_the_median_of_its_blocks() -> None:
    """One slow block of five does not count."""
    values = compute_values(make_trial({Metric.COMPILED_LATENCY: (1.0, 2.0, 3.0, 4.0, 100.0)}))
    assert values == {Metric.COMPILED_LATENCY: 3.0}


@pytest.mark.parametrize(("blocks", "expected"), [((2.0,), 2.0), ((1.0, 3.0), 2.0)])
def test_the_median_of_few_blocks_is_their_middle(blocks: tuple[float, ...], expected: float) -> None:
    """One block is its own median, and two have their mean."""
    assert compute_values(make_trial({Metric.COMPILED_LATENCY: blocks})) == {
        Metric.COMPILED_LATENCY: expected
    }


def test_drift_is_the_mean_over_seeds() -> None:
    assert compute_values(make_trial({Metric.DRIFT: (0.1, 0.2, 0.6)}))[Metric.DRIFT] == pytest.approx(0.3)


def test_speedup_is_the_median_ratio_of_super_blocks() -> None:
    """Super-blocks of 2x, 3x and 50x have the median 3x; that of the medians is another."""
    eager = (3.0, 3.0, 50.0, 50.0, 2.0, 2.0)
    assert compute_speedup(eager, (1.0,) * 6) == pytest.approx(3.0)


def test_speedup_of_an_even_number_is_the_root_of_the_middle_two() -> None:
    """The middle of 2x and 8x is 4x."""
    eager = (8.0, 8.0, 1.0, 1.0, 100.0, 100.0, 2.0, 2.0)
    assert compute_speedup(eager, (1.0,) * 8) == 4.0


def test_speedup_cancels_a_steady_drift_within_a_super_block() -> None:
    """E C C E that slow down by d a block read 2/d and 2d: the super-block is 2."""
    d = 1.1
    eager, compiled = (2.0, 2.0 * d**3), (1.0 * d, 1.0 * d**2)
    assert compute_speedup(eager, compiled) == pytest.approx(2.0)


def test_speedup_of_an_odd_pair_counts_the_pair_alone() -> None:
    """Blocks of 2x, 2x and a lone 4x: super-blocks 2 and 4, whose geometric middle is sqrt(8)."""
    assert compute_speedup((2.0, 2.0, 4.0), (1.0, 1.0, 1.0)) == pytest.approx(math.sqrt(8.0))


@pytest.mark.parametrize(
    ("eager", "compiled"), [((), ()), ((1.0,), ()), ((0.0,), (1.0,)), ((1.0,), (0.0,)), ((1.0,), (-1.0,))]
)
def test_speedup_without_a_pair_is_unknown(eager: tuple[float, ...], compiled: tuple[float, ...]) -> None:
    assert compute_speedup(eager, compiled) is None


@given(
    pairs=st.lists(st.tuples(st.floats(1e-6, 10), st.floats(1e-6, 10)), min_size=1, max_size=40),
    factor=st.floats(0.01, 100),
)
def test_speedup_does_not_depend_on_the_machine(pairs: list[tuple[float, float]], factor: float) -> None:
    """A slower machine has the same speedup."""
    eager, compiled = zip(*pairs, strict=True)
    slower = compute_speedup([factor * e for e in eager], [factor * c for c in compiled])
    assert slower == pytest.approx(compute_speedup(eager, compiled))


def test_break_even_counts_the_calls_that_pay_for_the_compile() -> None:
    """10 s at 5 ms saved a call are 2,000 calls."""
    trial = make_trial(
        {
            Metric.COLD_COMPILE_TIME: (10.0,),
            Metric.EAGER_LATENCY: (0.015,),
            Metric.COMPILED_LATENCY: (0.010,),
        }
    )
    assert compute_values(trial)[Metric.BREAK_EVEN_CALLS] == pytest.approx(2000.0)


def test_break_even_is_absent_where_compiling_never_pays() -> None:
    """Compiled no faster than eager has no break-even."""
    trial = make_trial(
        {
            Metric.COLD_COMPILE_TIME: (10.0,),
            Metric.EAGER_LATENCY: (0.010,),
            Metric.COMPILED_LATENCY: (0.010,),
        }
    )
    assert Metric.BREAK_EVEN_CALLS not in compute_values(trial)


def test_collecting_keeps_one_value_per_trial_that_has_it() -> None:
    """A trial without the metric has no value."""
    trials = [
        make_trial({Metric.GRAPH_BREAKS: (1.0,), Metric.PEAK_MEMORY: (5.0,)}),
        make_trial({Metric.GRAPH_BREAKS: (2.0,)}),
    ]
    assert collect_values(trials) == {Metric.GRAPH_BREAKS: (1.0, 2.0), Metric.PEAK_MEMORY: (5.0,)}


def test_a_name_that_one_table_lacks_counts_as_nothing_in_it() -> None:
    """The median of 4 and 0 is 2; a table without any name is none."""
    assert collect_medians([{"a": 2.0, "b": 4.0}, {}, {"a": 5.0}]) == {"a": 3.5, "b": 2.0}


def test_no_samples_are_no_value() -> None:
    assert compute_values(make_trial({Metric.GUARDS: ()})) == {}


def test_the_worst_output_is_of_the_trial_with_the_most_drift_of_any_seed() -> None:
    """A seed of the first drifts by 0.9 bits, and none of the second by more than 0.5."""
    trials = [
        replace(make_trial({Metric.DRIFT: samples}), worst={Metric.DRIFT: Worst(output=output)})
        for samples, output in (((0.5, 0.5), "a"), ((0.1, 0.9), "b"), ((), "c"))
    ]
    worst = find_worst_output(trials, Metric.DRIFT)
    assert worst is not None
    assert worst.name("output") == "b"
    assert find_worst_output(trials[2:], Metric.DRIFT) is None
    blank = replace(trials[0], worst={Metric.DRIFT: Worst(output="")})
    assert find_worst_output([blank], Metric.DRIFT) is None
