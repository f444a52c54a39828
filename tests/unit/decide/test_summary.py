"""A suite's means, break-even, and modes."""

from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.suite_summary import compute_geometric_mean, summarize_suite
from gate.decide.evidence.values import compute_paying_calls
from gate.kinds import name_family
from gate.records.cases import Case, Kind, Metric, Mode, Task
from gate.records.verdict import Comparison, Estimate, Reason, Status, SuiteSummary
from tests.make import make_row

CNN = Case(id="a/i", model="a", tags=("smoke", "cnn"))
LLM = Case(id="b/i", model="b", tags=("llm",))
OTHER = Case(id="c/i", model="c")


def measure(case: Case, **values: float) -> tuple[Comparison, ...]:
    """Comparisons of a case with these values."""
    return tuple(
        make_row(
            case.id,
            Metric(name),
            Status.NEW,
            reason=Reason.NO_BASELINE,
            candidate=Estimate(centre=value, low=None, high=None, noise=None, n=1),
        )
        for name, value in values.items()
    )


FAST = measure(
    CNN,
    warm_speedup=4.0,
    eager_latency=0.004,
    compiled_latency=0.001,
    cold_compile_time=30.0,
    warm_compile_time=2.0,
    memory_ratio=0.5,
)
SLOW = measure(
    LLM,
    warm_speedup=1.0,
    eager_latency=0.004,
    compiled_latency=0.004,
    cold_compile_time=10.0,
    warm_compile_time=8.0,
    memory_ratio=2.0,
)


def test_means_of_all_and_of_each_family() -> None:
    """Speedups 4 and 1 have the mean 2; 30 s over 3 ms a call are 10,000 calls, and the other never pays."""
    (whole, cnn, llm) = summarize_suite((CNN, LLM), (*FAST, *SLOW)).rows

    assert (whole.task, whole.mode, whole.family) == (Task.INFERENCE, Mode.DEFAULT, "")
    assert (whole.cases, whole.never_paid) == (2, 1)
    assert whole.speedup == pytest.approx(2.0)
    assert whole.cold_compile_s == pytest.approx(300**0.5)
    assert whole.warm_compile_s == pytest.approx(4.0)
    assert whole.memory_ratio == pytest.approx(1.0)
    assert whole.break_even_calls == pytest.approx(10_000.0)
    assert (cnn.family, cnn.cases, cnn.speedup, cnn.never_paid) == ("cnn", 1, pytest.approx(4.0), 0)
    assert (llm.family, llm.break_even_calls, llm.never_paid) == ("llm", None, 1)


def test_tasks_and_modes_have_rows_of_their_own() -> None:
    """Neither tasks nor modes are averaged together."""
    training = replace(CNN, id="a/t", task=Task.TRAINING)
    tuned = replace(CNN, id="a/m", mode=Mode.MAX_AUTOTUNE)
    rows = summarize_suite(
        (CNN, training, tuned),
        (*FAST, *measure(training, warm_speedup=2.0), *measure(tuned, warm_speedup=3.0)),
    ).rows

    assert [(row.task, row.mode, row.speedup) for row in rows if not row.family] == [
        (Task.INFERENCE, Mode.DEFAULT, pytest.approx(4.0)),
        (Task.TRAINING, Mode.DEFAULT, pytest.approx(2.0)),
        (Task.INFERENCE, Mode.MAX_AUTOTUNE, pytest.approx(3.0)),
    ]
    assert rows[2].cold_compile_s is None
    assert (rows[2].break_even_calls, rows[2].never_paid) == (None, 0)


@pytest.mark.parametrize(
    "case",
    [replace(CNN, kind=Kind.SERVING), replace(CNN, backend="eager")],
    ids=["another kind", "another backend"],
)
def test_cases_of_no_model_are_left_out(case: Case) -> None:
    """A case of another kind, or of a backend without code, is in no mean."""
    assert summarize_suite((case,), FAST) == SuiteSummary()


def test_a_case_without_a_speedup_counts_nowhere() -> None:
    """A failed case, or one without a value, is in no mean."""
    failed = replace(FAST[0], candidate=None)

    assert summarize_suite((CNN, LLM), (failed, *FAST[1:])) == SuiteSummary()


def test_which_mode_pays_back() -> None:
    """15 s more for 0.5 ms saved a call pay back after 30,000 calls; a slower mode never does."""
    # What a case needs and how long it takes is no part of what is run.
    figures: dict[str, Any] = {"expected_s": 300.0, "gpu_memory_gib": 22.0, "needs": ("torchao",)}
    tuned = replace(CNN, id="a/max", mode=Mode.MAX_AUTOTUNE, tags=(), **figures)
    graphs = replace(CNN, id="a/graphs", mode=Mode.REDUCE_OVERHEAD)
    both = (
        *measure(
            tuned, warm_speedup=8.0, eager_latency=0.004, compiled_latency=0.0005, cold_compile_time=45.0
        ),
        *measure(
            graphs, warm_speedup=0.8, eager_latency=0.004, compiled_latency=0.005, cold_compile_time=10.0
        ),
    )

    default_row, tuned_row, graphs_row = summarize_suite((CNN, tuned, graphs), (*FAST, *both)).modes
    assert (default_row.case_id, default_row.default_id) == ("a/i", "a/i")
    assert (default_row.cold_compile_s, default_row.compiled_s) == (30.0, 0.001)
    assert default_row.break_even_calls == pytest.approx(10_000.0)
    assert default_row.over_default_calls is None
    assert tuned_row.default_id == "a/i"
    assert tuned_row.break_even_calls == pytest.approx(45 / 0.0035)
    assert tuned_row.over_default_calls == pytest.approx(30_000.0)
    assert (graphs_row.break_even_calls, graphs_row.over_default_calls) == (None, None)


def test_modes_without_the_default() -> None:
    """Without the default two modes are compared with eager only."""
    values = {
        "warm_speedup": 2.0,
        "eager_latency": 0.002,
        "compiled_latency": 0.001,
        "cold_compile_time": 5.0,
    }
    modes = [replace(CNN, id=f"a/{mode}", mode=mode) for mode in (Mode.MAX_AUTOTUNE, Mode.REDUCE_OVERHEAD)]
    rows = summarize_suite(modes, [trial for case in modes for trial in measure(case, **values)]).modes

    assert [(row.default_id, row.break_even_calls) for row in rows] == [("", pytest.approx(5000.0))] * 2


def test_one_mode_is_no_table() -> None:
    """Two sizes of one mode make no table of modes."""
    other = replace(CNN, id="a/full", size="full")

    assert (
        summarize_suite((CNN, other), (*FAST, *(replace(trial, case_id="a/full") for trial in FAST))).modes
        == ()
    )


def test_what_a_scope_saves_of_a_cold_compile() -> None:
    """6 s of 30 s are a fifth, for a speedup of 2 instead of 4; its own ratio is 1."""
    blocks = replace(CNN, id="a/blocks", kind=Kind.SCOPE, settings={"part": "blocks"}, tags=())
    lone = replace(LLM, id="b/blocks", kind=Kind.SCOPE, settings={"part": "blocks"})
    measured = measure(blocks, warm_speedup=2.0, cold_compile_time=6.0)

    whole_row, row = summarize_suite((blocks, CNN, lone), (*FAST, *measured, *SLOW)).scopes
    assert (whole_row.case_id, whole_row.whole_id, whole_row.cold_ratio) == ("a/i", "a/i", 1.0)
    assert (row.case_id, row.whole_id) == ("a/blocks", "a/i")
    assert (row.cold_compile_s, row.cold_ratio, row.speedup) == (6.0, pytest.approx(0.2), 2.0)


@pytest.mark.parametrize(
    "change",
    [{"size": "full"}, {"mode": Mode.MAX_AUTOTUNE}, {"backend": "aot_eager"}],
    ids=["another size", "another mode", "another backend"],
)
def test_a_scope_is_compared_with_the_same_case_only(change: dict[str, Any]) -> None:
    """Sizes, modes and backends are not compared."""
    blocks = replace(CNN, id="a/blocks", kind=Kind.SCOPE, settings={"part": "blocks"}, **change)

    assert (
        summarize_suite(
            (CNN, blocks), (*FAST, *measure(blocks, warm_speedup=2.0, cold_compile_time=6.0))
        ).scopes
        == ()
    )


def test_a_cold_compile_may_take_less_than_a_second_and_no_time() -> None:
    """Of 0.5 s one that was no longer than a later call is nothing."""
    blocks = replace(CNN, id="a/blocks", kind=Kind.SCOPE, settings={"part": "blocks"})
    whole = measure(CNN, warm_speedup=2.0, cold_compile_time=0.5)
    part = measure(blocks, warm_speedup=2.0, cold_compile_time=-0.1)

    _, row = summarize_suite((CNN, blocks), (*whole, *part)).scopes
    assert (row.cold_compile_s, row.cold_ratio) == (0.0, 0.0)


def test_a_mode_whose_cold_compile_takes_no_time_pays_at_once() -> None:
    """It was no longer than a later call."""
    tuned = replace(CNN, id="a/max", mode=Mode.MAX_AUTOTUNE)
    times = {"warm_speedup": 2.0, "eager_latency": 0.004, "compiled_latency": 0.002}
    measured = measure(tuned, **times, cold_compile_time=-0.1)

    _, row = summarize_suite((CNN, tuned), (*FAST, *measured)).modes
    assert (row.cold_compile_s, row.break_even_calls) == (0.0, 0.0)


@pytest.mark.parametrize("lack", ["eager_latency", "compiled_latency", "cold_compile_time"])
def test_a_case_without_all_of_its_times_is_not_said_never_to_pay(lack: str) -> None:
    """Nor has its mode a row, without which the other one is alone."""
    tuned = replace(CNN, id="a/max", mode=Mode.MAX_AUTOTUNE)
    times = {"eager_latency": 0.001, "compiled_latency": 0.002, "cold_compile_time": 5.0}
    del times[lack]
    measured = measure(tuned, warm_speedup=0.5, **times)

    summary = summarize_suite((CNN, tuned), (*FAST, *measured))
    assert [(row.mode, row.never_paid) for row in summary.rows if not row.family] == [
        (Mode.DEFAULT, 0),
        (Mode.MAX_AUTOTUNE, 0),
    ]
    assert summary.modes == ()


@pytest.mark.parametrize("side", ["whole", "part", "all of the whole"])
def test_a_scope_without_a_cold_compile_has_no_row(side: str) -> None:
    """Without a cold compile of each side, longer than later calls, there is no row."""
    blocks = replace(CNN, id="a/blocks", kind=Kind.SCOPE, settings={"part": "blocks"})
    values = {"warm_speedup": 2.0, "cold_compile_time": 6.0}
    whole = measure(CNN, **(values | ({"cold_compile_time": 0.0} if side == "whole" else {})))
    whole = whole[:1] if side == "all of the whole" else whole
    part = measure(blocks, **({"warm_speedup": 2.0} if side == "part" else values))

    assert summarize_suite((CNN, blocks), (*whole, *part)).scopes == ()


def test_break_even() -> None:
    """A compile of no time pays back at once; one that saves nothing never does."""
    assert compute_paying_calls(6.0, 0.5, 0.2) == pytest.approx(20.0)
    assert compute_paying_calls(-0.1, 0.5, 0.2) == 0.0
    assert compute_paying_calls(6.0, 0.2, 0.2) is None
    assert compute_paying_calls(6.0, 5e-324, 0.0) is None  # more calls than there are numbers


def test_geometric_mean() -> None:
    """Zero and less are left out."""
    assert compute_geometric_mean([2.0, 8.0, 0.0]) == pytest.approx(4.0)
    assert compute_geometric_mean([0.0]) is None
    assert compute_geometric_mean([]) is None


def test_family_of_a_case() -> None:
    """The family is the first tag that is one, else the model."""
    assert [name_family(case) for case in (CNN, LLM, OTHER)] == ["cnn", "llm", "c"]
