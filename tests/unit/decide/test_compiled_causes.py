"""Causes in what the compiler did: guards, precision, caches, breaks and recompiles that are gone."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.causes import FINDERS
from gate.decide.explain.compiled import (
    find_cache_loss,
    find_code,
    find_fallbacks,
    find_guards,
    find_phases,
    find_recompiles,
)
from gate.decide.explain.inquiry import Inquiry
from gate.metrics import SPECS
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import CacheUse, CodeIdentity, GraphBreak, Recompile
from gate.records.verdict import Cause, Comparison, Estimate, Status, Verdict
from gate.report.words.facts import describe_cause
from tests.make import Situation, decide, make_change, make_row
from tests.words import describe_causes

from .one_case import inquire, make_moved

LATENCY, EAGER, CALLS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.COMPILE_CALLS
GRAPHS, GUARDS, MISSES = Metric.UNIQUE_GRAPHS, Metric.GUARDS, Metric.CACHE_MISSES
COLD, FALLBACKS = Metric.COLD_COMPILE_TIME, Metric.EAGER_FALLBACKS
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


def count(metric: Metric, before: float | None, after: float | None) -> Comparison:
    """The row of something that is counted, and does not decide; ``None``: unknown."""
    sides = {"baseline": before, "candidate": after}
    estimates: dict[str, Any] = {
        side: None if centre is None else Estimate(centre=centre, low=None, high=None, noise=None, n=1)
        for side, centre in sides.items()
    }
    change = make_change(after - before) if before is not None and after is not None else None
    return make_row("mlp/x", metric, decides=False, change=change, **estimates)


def weigh(causes: list[Cause]) -> list[tuple[Code, float]]:
    return [(cause.fact.code, cause.weight) for cause in causes]


@pytest.mark.parametrize("finder", FINDERS)
@pytest.mark.parametrize(
    "sides",
    [{}, {"before": {}}, {"trials": [{}]}, {"before": {}, "trials": [{}]}],
    ids=["nothing", "a baseline", "a trial", "an empty trial of either side"],
)
def test_what_was_not_recorded_is_no_cause(
    finder: Callable[[Inquiry], list[Cause]], sides: dict[str, Any]
) -> None:
    """Whatever moved, and where nothing did."""
    rows = [make_moved(metric, 3) for metric in SPECS if metric not in {LATENCY, EAGER}]
    for moved in (rows, [make_row("mlp/x", metric) for metric in SPECS], []):
        assert finder(inquire(*moved, **sides)) == []


GUARDED = {"identity": SAME}


@pytest.mark.parametrize(
    ("guards", "rows", "head", "weights"),
    [
        ((3.0, 6.0), [make_moved(CALLS, 10)], SAME, [0.77]),
        ((3.0, 6.0), [make_moved(CALLS, 30)], SAME, [0.385]),
        ((3.0, 6.0), [make_moved(CALLS, 30)], OTHER, [0.385]),
        ((3.0, 6.0), [make_moved(LATENCY, 30)], SAME, [0.385]),
        ((3.0, 6.0), [make_moved(LATENCY, 30)], OTHER, []),
        ((3.0, 9.0), [make_moved(CALLS, 10)], SAME, [0.77]),
        ((0.0, 2.0), [make_moved(CALLS, 30)], SAME, [0.385]),
        ((0.5, 2.0), [make_moved(CALLS, 30)], SAME, [0.385]),
        ((0.0, 1.0), [make_moved(CALLS, 30)], SAME, []),
        ((3.0, 2.0), [make_moved(CALLS, 30)], SAME, []),
        ((3.0, 3.0), [make_moved(CALLS, 30)], SAME, []),
        ((None, 6.0), [make_moved(CALLS, 30)], SAME, []),
        ((3.0, None), [make_moved(CALLS, 30)], SAME, []),
        ((3.0, 6.0), [make_moved(CALLS, -3, status=Status.IMPROVED)], SAME, []),
        ((3.0, 6.0), [make_moved(CALLS, 30), make_moved(Metric.DRIFT, 40)], SAME, []),
    ],
)
def test_guards_account_for_what_as_many_times_more_of_them_cost(
    guards: tuple[float | None, float | None],
    rows: list[Comparison],
    head: CodeIdentity,
    weights: list[float],
) -> None:
    """Twice as many are all of a compile twice as long, and half of one four times as long."""
    inquiry = inquire(count(GUARDS, *guards), *rows, before=GUARDED, trials=[{"identity": head}])
    assert weigh(find_guards(inquiry)) == [(Code.GUARDS_CHANGED, weight) for weight in weights]


@pytest.mark.parametrize(
    ("row", "limited", "codes"),
    [
        (make_moved(FALLBACKS, 10), False, [Code.LEFT_TO_EAGER]),
        (make_moved(FALLBACKS, 5), True, [Code.LEFT_TO_EAGER]),
        (make_moved(FALLBACKS, 0), False, []),
        (make_moved(FALLBACKS, -10, status=Status.IMPROVED), False, []),
        (replace(make_moved(FALLBACKS, 10), change=None), False, []),
        (make_moved(LATENCY, 10), False, []),
    ],
)
def test_frames_that_run_eagerly_are_a_cause_where_there_are_more_of_them(
    row: Comparison, limited: bool, codes: list[Code]
) -> None:
    """The recompile limit weighs 0.97 of others, as its guards come first."""
    reason = "recompile limit exceeded" if limited else "print"
    left = Fact(code=Code.LEFT_TO_EAGER, names=name_words(reason=reason))
    other = Fact(code=Code.GRAPH_DIFFERS)
    inquiry = inquire(row, trials=[{"warnings": (other, left)}])
    causes = find_fallbacks(inquiry)
    assert weigh(causes) == [(code, 0.9457 if limited else 0.975) for code in codes]
    assert find_fallbacks(replace(inquiry, moved=frozenset())) == []
    assert find_fallbacks(inquire(row)) == []


def test_the_only_side_with_recompiles_is_head_where_nothing_is_stored() -> None:
    """All that head made are new then, as often as the trial with most of them."""
    recompile = Recompile(guard="n == 2", code="n += 1", location="a.py:3")
    other = Recompile(guard="m == 2")
    trials: list[dict[str, Any]] = [
        {"recompile_reasons": (recompile,)},
        {"recompile_reasons": (recompile, other)},
    ]
    causes = find_recompiles(inquire(make_moved(Metric.RECOMPILES, 10), trials=trials))
    assert [cause.fact.names for cause in causes] == [
        {"reason": ("n == 2",), "location": ("a.py:3",), "line": ("n += 1",)},
        {"reason": ("m == 2",)},
    ]


FUSED = {"cpp_fused_add_0": "1", "cpp_fused_mul_1": "2"}


@pytest.mark.parametrize(
    ("before", "after", "operations", "causes"),
    [
        ({}, {"kernels": FUSED}, None, [(Code.CODE_CHANGED, 0.6)]),
        ({"kernels": FUSED}, {}, None, [(Code.CODE_CHANGED, 0.6)]),
        (
            {"kernels": FUSED},
            {"kernels": {"cpp_fused_add_0": "3", "cpp_fused_mul_1": "2"}},
            None,
            [(Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": FUSED},
            {"kernels": {"cpp_fused_add_mul_0": "3"}},
            None,
            [(Code.KERNELS_JOINED, 0.62), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": {"cpp_fused_add_mul_0": "3"}},
            {"kernels": FUSED},
            None,
            [(Code.KERNELS_SPLIT, 0.82), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": {"cpp_fused_add_mul_0": "3"}},
            {"kernels": FUSED},
            (5.0, 4.0),
            [(Code.KERNELS_SPLIT, 0.82), (Code.OPERATIONS_CHANGED, 0.78), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": {"cpp_fused_add_mul_0": "3"}},
            {"kernels": FUSED},
            (5.0, 6.0),
            [(Code.KERNELS_ADDED, 0.66), (Code.OPERATIONS_CHANGED, 0.78), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": {"cpp_fused_add_mul_0": "3"}},
            {"kernels": {**FUSED, "cpp_fused_exp_0": "4"}},
            None,
            [(Code.KERNELS_ADDED, 0.66), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": FUSED},
            {"kernels": {**FUSED, "cpp_fused_mul_1": "4"}, "calls": {"extern_kernels.mm": 2}},
            None,
            [(Code.CALLS_ADDED, 0.756), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": FUSED, "dtypes": {"float32": 1}},
            {
                "kernels": {**FUSED, "cpp_fused_mul_1": "4", "cpp_fused_add_0": "5"} | {"cpp_fused_0": "6"},
                "dtypes": {"float64": 1},
            },
            None,
            [(Code.PRECISION_CHANGED, 0.88), (Code.KERNELS_SPLIT, 0.82), (Code.CODE_CHANGED, 0.6)],
        ),
        (
            {"kernels": FUSED},
            {"kernels": {"cpp_fused_mul_1": "2"}, "calls": {"extern_kernels.add": 1}},
            None,
            [(Code.CALLS_ADDED, 0.84), (Code.KERNELS_JOINED, 0.62), (Code.CODE_CHANGED, 0.6)],
        ),
    ],
    ids=[
        "no kernels before",
        "no kernels after",
        "as many",
        "joined",
        "split",
        "split, of fewer operations",
        "more operations",
        "another operator",
        "a call more",
        "other types",
        "a call instead of a kernel",
    ],
)
def test_changed_code_is_described_by_what_changed_in_it(
    before: dict[str, Any],
    after: dict[str, Any],
    operations: tuple[float, float] | None,
    causes: list[tuple[Code, float]],
) -> None:
    """Its types, calls, kernels and operations; one that is the same on both sides is none."""
    rows = [count(Metric.CAPTURED_OPS, *operations)] if operations else []
    inquiry = inquire(
        *rows,
        before={"identity": CodeIdentity(digest="1", **before)},
        trials=[{}, {"identity": CodeIdentity(digest="2", **after)}],
    )
    assert weigh(find_code(inquiry)) == causes


def test_kernels_that_were_split_are_named_by_their_operators() -> None:
    """Those that kept their name are not, though their code changed; three of each side are."""
    before = {"cpp_fused_add_mul_0": "a", "cpp_fused_exp_1": "b", "cpp_fused_2": "c"}
    after = {f"cpp_fused_{name}_0": name for name in ("add", "div", "mul", "sub")} | {"cpp_fused_exp_1": "x"}
    sides = [CodeIdentity(digest=digest, kernels=side) for digest, side in (("1", before), ("2", after))]
    causes = find_code(inquire(before={"identity": sides[0]}, trials=[{"identity": sides[1]}]))
    (fact,) = (cause.fact for cause in causes if cause.fact.code is Code.KERNELS_ADDED)
    assert fact.numbers == {"before": 3, "after": 5}
    assert fact.names == {"was": ("add_mul",), "now": ("add", "div", "mul")}


def test_operations_are_no_cause_beside_the_same_code() -> None:
    """They are one where no code is known, and what the same code says is kept for a warm time."""
    rows = [make_moved(LATENCY, 3), count(Metric.CAPTURED_OPS, 5.0, 6.0)]
    assert weigh(find_code(inquire(*rows))) == [(Code.OPERATIONS_CHANGED, 0.78)]
    same: dict[str, Any] = {"before": {"identity": SAME}, "trials": [{"identity": SAME}]}
    assert find_code(inquire(*rows, **same)) == []
    assert weigh(find_code(inquire(rows[0], **same))) == [(Code.CODE_SAME, 0.5)]
    assert weigh(find_code(inquire(rows[0], count(Metric.CAPTURED_OPS, 5.0, 5.0), **same))) == [
        (Code.CODE_SAME, 0.5)
    ]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (
            {"float16": 1, "float32": 1},
            {"float64": 2, "bfloat16": 2},
            {"added": ("float64", "bfloat16"), "removed": ("float16", "float32")},
        ),
        (
            {"float32": 6, "float64": 1, "bfloat16": 1},
            {"float32": 4, "float64": 2, "bfloat16": 2},
            {"more": ("float64", "bfloat16")},
        ),
        ({"float32": 7, "float64": 1}, {"float32": 6, "float64": 2}, {"more": ("float64",)}),
        ({"float32": 8, "float64": 1}, {"float32": 7, "float64": 2}, {}),
        ({}, {"float64": 2}, {}),
        ({"float64": 2}, {}, {}),
    ],
    ids=[
        "new and gone",
        "twice as much of two",
        "just a quarter",
        "a fifth",
        "unknown before",
        "unknown after",
    ],
)
def test_types_are_named_in_the_order_of_the_code(
    before: Mapping[str, int], after: Mapping[str, int], names: dict[str, tuple[str, ...]]
) -> None:
    """New ones, those of twice the share and at least a quarter, and those that are gone."""
    sides = [
        CodeIdentity(digest=digest, kernels={"a": digest}, dtypes=types)
        for digest, types in (("1", before), ("2", after))
    ]
    causes = find_code(inquire(before={"identity": sides[0]}, trials=[{"identity": sides[1]}]))
    shown = [cause.fact.names for cause in causes if cause.fact.code is Code.PRECISION_CHANGED]
    assert shown == ([names] if names else [])


@pytest.mark.parametrize(
    ("before", "after", "numbers", "weight"),
    [
        ({"dynamo": 10.0}, {"dynamo": 12.0}, {"dynamo": (10.0, 12.0)}, 0.61),
        (
            {"dynamo": 10.0, "triton": 2.0},
            {"dynamo": 13.0, "cudagraph_capture": 4.0, "triton": 1.0},
            {"cudagraph_capture": (0.0, 4.0), "dynamo": (10.0, 13.0), "triton": (2.0, 1.0)},
            0.305,
        ),
        ({"dynamo": 10.0, "triton": 1.0}, {"dynamo": 10.0}, {"triton": (1.0, 0.0)}, 0.61),
        ({"dynamo": 10.0}, {"dynamo": 10.2}, None, 0.0),
        ({"dynamo": 10.0}, {"dynamo": 10.3}, {"dynamo": (10.0, 10.3)}, 0.61),
        ({"dynamo": 10.0, "triton": 1.0}, {"dynamo": 10.2, "triton": 1.6}, {"triton": (1.0, 1.6)}, 0.4575),
        ({}, {"dynamo": 10.0}, None, 0.0),
        ({"dynamo": 10.0}, {}, None, 0.0),
    ],
    ids=[
        "one",
        "half of all moves",
        "gone",
        "2 %",
        "3 %",
        "three quarters, less not named",
        "before",
        "after",
    ],
)
def test_phases_weigh_as_much_as_the_first_of_them_moved(
    before: dict[str, float],
    after: dict[str, float],
    numbers: dict[str, tuple[float, float]] | None,
    weight: float,
) -> None:
    """Of all moves, those that are too small to be named included; what a side lacks took no time."""
    stored = {"phases_s": before, "trials": {COLD: (1.0,)}}
    inquiry = inquire(make_moved(COLD, 3), before=stored, trials=[{"phases_s": after}])
    shown = {
        name + moment: seconds
        for name, sides in (numbers or {}).items()
        for moment, seconds in zip(("_before_s", "_after_s"), sides, strict=True)
    }
    expected = [shown] if shown else []
    causes = find_phases(inquiry)
    assert [cause.fact.numbers for cause in causes] == expected
    assert [cause.weight for cause in causes] == [pytest.approx(weight, abs=1e-4)] * len(expected)


MEASURED = {"samples": {MISSES: (1.0,)}}


@pytest.mark.parametrize(
    ("before", "after", "graphs", "causes"),
    [
        (use(3), use(2), None, [(2, 0, 0)]),
        (use(3), use(2), 0.0, [(2, 0, 0)]),
        (use(3), use(2), 0.5, [(2, 0, 0)]),
        (use(3), use(2), -1.0, []),
        (use(3), use(2), -0.5, []),
        (use(3), use(), -1.0, [(0, 0, 0)]),
        (use(3), use(3), None, []),
        (use(3), use(4), None, []),
        (use(1, 1, 1), use(2), None, [(2, 0, 0)]),
        (use(0, 2, 0), use(1), None, [(1, 0, 0)]),
        (use(0, 0, 2), use(1), None, [(1, 0, 0)]),
        (use(2), use(1, 1), None, [(1, 1, 0)]),
        (use(2, 1), use(1, 1, 1), None, [(1, 1, 1)]),
        (use(2, 1, 1), use(2, 1), None, [(2, 1, 0)]),
    ],
)
def test_a_cache_that_as_many_graphs_ask_less_is_lost(
    before: CacheUse, after: CacheUse, graphs: float | None, causes: list[tuple[int, int, int]]
) -> None:
    """And one with more misses; fewer graphs ask it less, unless they do not ask it at all."""
    rows = [] if graphs is None else [count(GRAPHS, 3.0, 3.0 + graphs)]
    sides: dict[str, Any] = {
        "before": {"caches": {"kernel": use(9), "fx_graph": before}},
        "trials": [{**MEASURED, "caches": {"kernel": use(9), "fx_graph": after}}, {}],
    }
    shown = find_cache_loss(inquire(*rows, **sides))
    assert weigh(shown) == [(Code.CACHE_MISSED, 0.96)] * len(causes)
    assert [cause.fact.names for cause in shown] == [{"cache": ("fx_graph",)}] * len(causes)
    was = {"hits_before": before.hits, "misses_before": before.misses, "bypasses_before": before.bypasses}
    assert [cause.fact.numbers for cause in shown] == [
        {"hits": hits, "misses": misses, "bypasses": bypasses, **was} for hits, misses, bypasses in causes
    ]
    if after.misses + after.bypasses == 0:
        unmeasured = [{**trial, "samples": {}} for trial in sides["trials"]]
        assert find_cache_loss(inquire(*rows, **{**sides, "trials": unmeasured})) == []


@pytest.mark.parametrize(
    ("row", "numbers"),
    [
        (count(MISSES, 0.0, 1.0), {"misses": 1.0}),
        (count(MISSES, 2.0, 5.0), {"misses": 5.0}),
        (count(MISSES, 2.0, 2.0), None),
        (count(MISSES, 2.0, 1.0), None),
        (count(MISSES, 2.0, None), None),
        (replace(count(MISSES, 2.0, 5.0), change=None), None),
        (replace(count(MISSES, 2.0, 5.0), candidate=None), None),
        (count(GRAPHS, 2.0, 5.0), None),
    ],
)
def test_misses_of_no_known_cache_are_counted(row: Comparison, numbers: dict[str, float] | None) -> None:
    """Where there are more of them; a cache that is known is named instead."""
    expected = [Fact(code=Code.CACHE_MISSED, numbers=numbers)] if numbers else []
    assert [cause.fact for cause in find_cache_loss(inquire(row))] == expected
    trials = [{"caches": {"kernel": use(misses=1)}}]
    (named,) = find_cache_loss(inquire(row, trials=trials))
    assert named.fact.names == {"cache": ("kernel",)}


def test_other_graphs_of_the_second_process_are_named_once() -> None:
    """Before the caches, where something was lost."""
    differs = Fact(code=Code.GRAPH_DIFFERS)
    trials: list[dict[str, Any]] = [
        {"warnings": (differs,)},
        {"warnings": (differs,), "caches": {"kernel": use(misses=1)}},
    ]
    assert weigh(find_cache_loss(inquire(trials=trials))) == [
        (Code.GRAPH_DIFFERS, 0.965),
        (Code.CACHE_MISSED, 0.96),
    ]
    assert find_cache_loss(inquire(trials=trials[:1])) == []
