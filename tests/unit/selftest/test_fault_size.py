"""The size of a planted fault, and the case that carries it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.files.codec import decode, encode
from gate.records.cases import Case, Mode, Task, Threshold
from gate.records.studies import FaultKind
from gate.selftest.catalog import FaultSize, choose_size, is_fitting, measure_size, plant_case
from tests.faults import find_fault

MIB = 1024 * 1024
CASE = Case(
    id="bert/inference-float32-smoke-default",
    model="bert",
    factory="package.module:build",
    arguments={"batch": 2, "sizes": [1, 2], "deep": {"width": 4}},
    definition="0123456789abcdef",
)


def test_slowdown_is_a_fraction_of_the_bases_median() -> None:
    """5 % of a median of 10 ms is 0.5 ms, and beyond a threshold of 3 % by two thirds: asked for."""
    chosen = choose_size(
        find_fault(FaultKind.SLOWDOWN, 0.05), (0.009, 0.010, 0.020), Threshold(relative=0.03, absolute=20e-6)
    )
    assert pytest.approx(0.0005) == chosen.amount
    assert (pytest.approx(0.05), True) == (chosen.planted, chosen.is_asked)


@pytest.mark.parametrize(
    ("size", "centre_s", "threshold"),
    [
        pytest.param(0.03, 0.010, Threshold(relative=0.03, absolute=0.0), id="at the threshold"),
        pytest.param(0.05, 0.0003, Threshold(relative=0.03, absolute=20e-6), id="15 us, the floor is 20"),
        pytest.param(0.05, 0.010, Threshold(relative=0.10, absolute=0.0), id="a user's own threshold"),
    ],
)
def test_what_the_threshold_hides_is_not_asked_for(
    size: float, centre_s: float, threshold: Threshold
) -> None:
    """It is planted unchanged, and the gate need not catch it."""
    chosen = choose_size(find_fault(FaultKind.SLOWDOWN, size), (centre_s,), threshold)
    assert (pytest.approx(size), False) == (chosen.planted, chosen.is_asked)


def test_memory_is_lifted_above_the_floor() -> None:
    """A tenth of 16 MiB is below the floor of 4 MiB: 6 MiB are planted, 37.5 %, and must be caught."""
    threshold = Threshold(relative=0.03, absolute=4 * MIB)
    chosen = choose_size(find_fault(FaultKind.MEMORY, 0.10), (16 * MIB,), threshold)
    assert (6 * MIB, 0.375, True) == (chosen.amount, chosen.planted, chosen.is_asked)


def test_memory_below_the_threshold_stays_what_it_is() -> None:
    """2 % is below 3 %: it is planted as 2 % and not asked for."""
    threshold = Threshold(relative=0.03, absolute=4 * MIB)
    chosen = choose_size(find_fault(FaultKind.MEMORY, 0.02), (16 * MIB,), threshold)
    assert (pytest.approx(0.02), False) == (chosen.planted, chosen.is_asked)


def test_compile_time_is_lifted_above_the_floor() -> None:
    """15 % of 2 s is 0.3 s, below the floor of 0.5 s: 0.75 s are planted; 15 % of 8 s is enough as it is."""
    fault, threshold = find_fault(FaultKind.COLD_COMPILE, 0.15), Threshold(relative=0.10, absolute=0.5)
    assert pytest.approx(0.75) == choose_size(fault, (2.0,), threshold).amount
    large = choose_size(fault, (8.0,), threshold)
    assert (pytest.approx(1.2), True) == (large.amount, large.is_asked)


def test_size_is_compared_with_the_trials_of_the_same_pairs() -> None:
    """0.5 ms of 10 ms were 5 %; of 20 ms they are 2.5 %, which nobody asks the gate to catch."""
    threshold = Threshold(relative=0.03, absolute=20e-6)
    assert FaultSize(amount=0.0005, planted=0.025, is_asked=False) == measure_size(
        0.0005, (0.020,), threshold
    )


@given(
    size=st.sampled_from([0.02, 0.03, 0.05, 0.10, 0.30]),
    values=st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=9),
    scale=st.floats(0.01, 100.0),
)
def test_planted_share_does_not_depend_on_the_unit(size: float, values: list[float], scale: float) -> None:
    """A size grows with the base's values, and its share stays."""
    fault, threshold = find_fault(FaultKind.SLOWDOWN, size), Threshold(relative=0.03, absolute=0.0)
    chosen = choose_size(fault, values, threshold)
    scaled = choose_size(fault, [scale * value for value in values], threshold)
    assert pytest.approx(scale * chosen.amount) == scaled.amount
    assert (pytest.approx(chosen.planted), chosen.is_asked) == (scaled.planted, scaled.is_asked)


def test_planted_case_is_compared_as_the_original() -> None:
    """It has the original's id and definition, so it is not stale; the factory is ours."""
    planted = plant_case(CASE, find_fault(FaultKind.SLOWDOWN, 0.05), FaultSize(amount=0.0005))
    arguments = {
        "factory": "package.module:build",
        "arguments": {"batch": 2, "sizes": [1, 2], "deep": {"width": 4}},
        "fault": "slowdown",
        "amount": 0.0005,
    }
    assert replace(CASE, factory="gate.selftest.planted:plant", arguments=arguments) == planted
    assert (CASE.id, CASE.definition) == (planted.id, planted.definition)


def test_planted_case_survives_the_way_to_a_worker() -> None:
    """It is encoded and decoded like any case."""
    planted = plant_case(CASE, find_fault(FaultKind.MEMORY, 0.10), FaultSize(amount=6.0 * MIB))
    assert encode(planted) == encode(decode(Case, encode(planted), "request"))


def test_vanished_factory() -> None:
    """The head's module lacks the function; nothing else of the case differs."""
    vanished = plant_case(CASE, find_fault(FaultKind.VANISHED), FaultSize())
    assert replace(CASE, factory="package.module:build_is_gone") == vanished


@pytest.mark.parametrize(
    ("case", "fitting"),
    [
        pytest.param(CASE, True, id="inference"),
        pytest.param(replace(CASE, task=Task.TRAINING), False, id="training"),
        pytest.param(replace(CASE, mode=Mode.REDUCE_OVERHEAD), False, id="CUDA graphs"),
        pytest.param(replace(CASE, factory="", node="test_x.py::test_y"), False, id="a user's own test"),
    ],
)
def test_where_memory_fits(case: Case, fitting: bool) -> None:
    """A buffer that lives as long as the forward is the peak of an inference only."""
    assert fitting is is_fitting(find_fault(FaultKind.MEMORY, 0.10), case)


@pytest.mark.parametrize(
    "changes",
    [{"fullgraph": True}, {"backend": "aot_eager"}, {"options": {"max_autotune": True}}],
    ids=str,
)
def test_unusual_compiles_get_no_fault(changes: dict[str, object]) -> None:
    """Faults show otherwise there: a graph break is an error with ``fullgraph``."""
    case = replace(CASE, **changes)  # type: ignore[arg-type] # a mapping of fields
    assert not is_fitting(find_fault(FaultKind.GRAPH_BREAK, 0.0), case)


def test_slowdown_fits_a_training_step() -> None:
    """It only needs a factory and the default mode."""
    assert is_fitting(find_fault(FaultKind.SLOWDOWN, 0.05), replace(CASE, task=Task.TRAINING))
