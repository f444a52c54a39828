"""Causes in what the compiler did: guards, precision, caches, breaks and recompiles that are gone."""

from collections.abc import Mapping
from typing import Any

import pytest

from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.run import CacheUse, CodeIdentity, GraphBreak, Recompile
from gate.records.verdict import Cause, Verdict
from gate.report.words.facts import describe_cause
from tests.make import Situation, decide
from tests.words import describe_causes

LATENCY, EAGER, CALLS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.COMPILE_CALLS
GRAPHS, GUARDS, MISSES = Metric.UNIQUE_GRAPHS, Metric.GUARDS, Metric.CACHE_MISSES
SAME, OTHER = CodeIdentity(digest="1"), CodeIdentity(digest="2")
STEADY = {EAGER: (0.02,) * 5, LATENCY: (0.01,) * 5}
SLOWER = {EAGER: (0.02,) * 3, LATENCY: (0.013,) * 3}


def list_of(verdict: Verdict, code: Code) -> list[Cause]:
    return [cause for cause in verdict.causes if cause.fact.code is code]


@pytest.mark.parametrize(
    ("metric", "values", "weight"),
    [
        (Metric.PEAK_MEMORY, (20e6, 30e6), 0.93),
        (Metric.MEMORY_RATIO, (1.0, 2.0), 0.93),
        (CALLS, (1e6, 1.5e6), 0.93),
        (Metric.COLD_COMPILE_TIME, (10.0, 20.0), 0.93),
        (Metric.DRIFT, (0.0, 3.0), 0.93),
        (LATENCY, (0.01, 0.02), 0.093),
    ],
)
def test_a_graph_break_that_is_gone_is_a_full_cause_of_what_larger_graphs_harm(
    metric: Metric, values: tuple[float, float], weight: float
) -> None:
    """One larger graph explains memory, compile time and drift, and hardly a slower call."""
    situation = Situation(
        before={metric: values[:1] * 5, Metric.GRAPH_BREAKS: (1.0,) * 5},
        after={metric: values[1:] * 3, Metric.GRAPH_BREAKS: (0.0,) * 3},
        breaks_before=(GraphBreak(reason="graph_break()", location="net/model.py:32"),),
        code_before=SAME,
    )
    verdict = decide(situation)
    (gone,) = list_of(verdict, Code.GRAPH_BREAK_GONE)
    assert gone.weight == weight
    assert describe_cause(gone.fact) == (
        "A graph break is gone at net/model.py:32, which leaves a larger graph: graph_break()"
    )
    assert (verdict.causes[0] is gone) == (weight > 0.5)


@pytest.mark.parametrize(("code", "weight"), [(LATENCY, 0.91), (Metric.PEAK_MEMORY, 0.091)])
def test_a_guard_that_fails_no_more_may_make_calls_slower(code: Metric, weight: float) -> None:
    """A missing recompile explains slower calls, and hardly memory."""
    situation = Situation(
        before={code: (20e6,) * 5, Metric.RECOMPILES: (1.0,) * 5},
        after={code: (40e6,) * 3, Metric.RECOMPILES: (0.0,) * 3},
        recompiles_before=(Recompile(guard="x.size()[0] == 4", code="y = x + 1", location="a.py:3"),),
        code_before=SAME,
    )
    (gone,) = list_of(decide(situation), Code.RECOMPILED_NO_MORE)
    assert gone.weight == weight
    assert describe_cause(gone.fact) == (
        "One graph serves what was recompiled before, because x.size()[0] == 4 (made by `y = x + 1`) at"
        " a.py:3: its code may be slower."
    )


GUARDS_TOLD = "Guards went from 403 to 559. A compile makes each of them, and every call checks them."


@pytest.mark.parametrize(
    ("sides", "code", "expected"),
    [
        (({CALLS: (1e6,) * 5}, {CALLS: (1.087e6,) * 3}), OTHER, [GUARDS_TOLD]),
        ((STEADY, SLOWER), SAME, [GUARDS_TOLD]),
        ((STEADY, SLOWER), OTHER, []),
        (({Metric.PEAK_MEMORY: (20e6,) * 5}, {Metric.PEAK_MEMORY: (40e6,) * 3}), SAME, []),
        (({Metric.DRIFT: (0.0,) * 5}, {Metric.DRIFT: (3.0,) * 3}), SAME, []),
    ],
    ids=["longer compile", "slower, same code", "slower, other code", "more memory", "drift"],
)
def test_more_guards_explain_compile_time_and_calls(
    sides: tuple[Mapping[Metric, Any], Mapping[Metric, Any]], code: CodeIdentity, expected: list[str]
) -> None:
    """More guards explain compile time, and calls whose code is the same."""
    situation = Situation(
        before={**sides[0], GUARDS: (403.0,) * 5},
        after={**sides[1], GUARDS: (559.0,) * 3},
        code_before=SAME,
        code_after=code,
    )
    assert describe_causes(decide(situation), Code.GUARDS_CHANGED) == expected


def test_guards_weigh_as_much_as_they_account_for() -> None:
    """One guard more of 403, for 50 % more calls, is log(404/403) / log(1.5) = 0.0061; fewer are none."""

    def list_guard_causes(guards: float) -> list[Cause]:
        situation = Situation(
            before={CALLS: (1e6,) * 5, GUARDS: (403.0,) * 5},
            after={CALLS: (1.5e6,) * 3, GUARDS: (guards,) * 3},
            code_before=SAME,
            code_after=SAME,
        )
        return list_of(decide(situation), Code.GUARDS_CHANGED)

    assert [cause.weight for cause in list_guard_causes(404.0)] == [pytest.approx(0.77 * 0.0061, rel=0.02)]
    assert list_guard_causes(300.0) == []


def test_an_operator_that_left_its_kernel_is_named() -> None:
    """Two kernels became one and a library call, which is named."""
    situation = Situation(
        before=STEADY,
        after=SLOWER,
        code_before=CodeIdentity(
            digest="1", kernels={"cpp_fused_add_0": "1", "cpp_fused_mul_1": "2"}, dtypes={"float": 3}
        ),
        code_after=CodeIdentity(
            digest="2", kernels={"cpp_fused_mul_0": "2"}, dtypes={"float": 3}, calls={"extern_kernels.add": 1}
        ),
    )
    verdict = decide(situation)
    assert describe_causes(verdict, Code.CALLS_ADDED) == [
        "No longer fused: extern_kernels.add (1 extern call); no kernel fuses add any more."
    ]
    text = "Operators are in fewer kernels: 2 kernels before, 1 now."
    assert describe_causes(verdict, Code.KERNELS_JOINED) == [text]


def test_a_call_that_left_no_kernel_stands_behind_the_operations() -> None:
    """A call is one of three operations more: 0.9 times 0.84 is 0.756, which is less than their 0.78."""
    situation = Situation(
        before={**STEADY, Metric.CAPTURED_OPS: (10.0,) * 5},
        after={**SLOWER, Metric.CAPTURED_OPS: (13.0,) * 3},
        code_before=CodeIdentity(digest="1", kernels={"cpp_fused_add_0": "1"}),
        code_after=CodeIdentity(digest="2", kernels={"cpp_fused_add_0": "2"}, calls={"extern_kernels.mm": 1}),
    )
    operations, calls, *_ = decide(situation).causes
    assert [operations.fact.code, calls.fact.code] == [Code.OPERATIONS_CHANGED, Code.CALLS_ADDED]
    assert calls.weight == 0.756


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {"float32": 7},
            {"float32": 5, "float64": 25},
            ["The precision of the generated code changed; it now uses float64."],
        ),
        (
            {"float32": 8, "float64": 1},
            {"float32": 5, "float64": 25},
            ["The precision of the generated code changed; it uses far more of float64."],
        ),
        ({"float64": 20}, {"float64": 60}, []),
        ({"float32": 20, "bfloat16": 1}, {"float32": 19, "bfloat16": 2}, []),
        ({"float32": 8, "float64": 3}, {"float32": 6, "float64": 5}, []),
        (
            {"float32": 7, "float64": 2},
            {"bfloat16": 9, "float32": 7},
            ["The precision of the generated code changed; it now uses bfloat16; it no longer uses float64."],
        ),
    ],
    ids=[
        "new",
        "from a ninth to most",
        "as much of it as before",
        "twice, and few still",
        "five thirds of it",
        "lower",
    ],
)
def test_changed_precision_is_a_cause(
    before: Mapping[str, int], after: Mapping[str, int], expected: list[str]
) -> None:
    """A type is named if its share of the kernels doubled."""
    situation = Situation(
        before=STEADY,
        after=SLOWER,
        code_before=CodeIdentity(digest="1", kernels={"a": "1"}, dtypes=before),
        code_after=CodeIdentity(digest="2", kernels={"a": "2"}, dtypes=after),
    )
    assert describe_causes(decide(situation), Code.PRECISION_CHANGED) == expected


MISSES_SOME = "does not find everything in the compile cache"


def use(hits: int = 0, misses: int = 0, bypasses: int = 0) -> CacheUse:
    return CacheUse(hits=hits, misses=misses, bypasses=bypasses)


@pytest.mark.parametrize(
    ("before", "after", "endings"),
    [
        (
            {"aot_autograd": use(1), "fx_graph": use(1)},
            {"aot_autograd": use(bypasses=1), "fx_graph": use(1)},
            [f"{MISSES_SOME} aot_autograd: 1 bypassed (1 found before)."],
        ),
        (
            {"aot_autograd": use(3), "fx_graph": use(6)},
            {"aot_autograd": use(1, 2), "fx_graph": use(4, 2)},
            [
                f"{MISSES_SOME} aot_autograd: 1 found, 2 missed (3 found before).",
                f"{MISSES_SOME} fx_graph: 4 found, 2 missed (6 found before).",
            ],
        ),
        (
            {"aot_autograd": use(3)},
            {},
            ["no longer asks the compile cache aot_autograd, which is turned off (3 found before)."],
        ),
        (
            {"aot_autograd": use(3)},
            {"aot_autograd": use(2)},
            [f"{MISSES_SOME} aot_autograd: 2 found (3 found before)."],
        ),
        ({"aot_autograd": use(1), "fx_graph": use(1)}, {"aot_autograd": use(1)}, []),
        ({"fx_graph": use(1, 1)}, {"aot_autograd": use(1), "fx_graph": use(1, 1)}, []),
        (
            {"kernel": use(9), "aot_autograd": use(1)},
            {"kernel": use(7, 2), "aot_autograd": use(1)},
            [f"{MISSES_SOME} kernel: 7 found, 2 missed (9 found before)."],
        ),
    ],
    ids=[
        "bypassed",
        "missed in both",
        "turned off",
        "asked less for as many graphs",
        "no backward",
        "missed as before",
        "kernels",
    ],
)
def test_lost_cache_hits_are_named_by_cache(
    before: Mapping[str, CacheUse], after: Mapping[str, CacheUse], endings: list[str]
) -> None:
    """A cache that lost hits is named with its misses; a disabled cache has none."""
    warm = Metric.WARM_COMPILE_TIME
    situation = Situation(
        before={warm: (4.0,) * 5, GRAPHS: (3.0,) * 5, MISSES: (0.0,) * 5},
        after={warm: (8.0,) * 3, GRAPHS: (3.0,) * 3, MISSES: (0.0,) * 3},
        caches_before=before,
        caches_after=after,
        code_before=SAME,
    )
    assert describe_causes(decide(situation), Code.CACHE_MISSED) == [
        f"The second process {end}" for end in endings
    ]


@pytest.mark.parametrize(
    ("after", "endings"),
    [
        ({"aot_autograd": use(1), "fx_graph": use(2)}, []),
        ({}, ["no longer asks the compile cache aot_autograd, which is turned off (3 found before)."]),
    ],
    ids=["all that there are", "turned off"],
)
def test_fewer_graphs_are_no_lost_cache(after: Mapping[str, CacheUse], endings: list[str]) -> None:
    """One graph instead of three has fewer hits, and loses none."""
    warm = Metric.WARM_COMPILE_TIME
    situation = Situation(
        before={warm: (4.0,) * 5, GRAPHS: (3.0,) * 5, MISSES: (0.0,) * 5},
        after={warm: (8.0,) * 3, GRAPHS: (1.0,) * 3, MISSES: (0.0,) * 3},
        caches_before={"aot_autograd": use(3), "fx_graph": use(6)},
        caches_after=after,
        code_before=SAME,
    )
    assert describe_causes(decide(situation), Code.CACHE_MISSED) == [
        f"The second process {end}" for end in endings
    ]
