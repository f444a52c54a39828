from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gate.records import CodeIdentity, GraphBreak, Metric, Verdict

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
LATENCY, EAGER, BREAKS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.GRAPH_BREAKS
SLOW_BEFORE = {EAGER: (0.02,) * 5, LATENCY: (0.01,) * 5}
SLOW_AFTER = {EAGER: (0.02,) * 3, LATENCY: (0.013,) * 3}


def explain(verdict: Verdict, kind: str) -> list[str]:
    return [one.sentence for one in verdict.explanations if one.kind == kind]


def test_unchanged_case_needs_no_explanation(situation: Make, judge: Judge) -> None:
    """Nothing moved, nothing is said, even where the code is known to be the same."""
    code = CodeIdentity(digest="1")
    one = situation(before={BREAKS: (0.0,)}, after={BREAKS: (0.0,)}, code_before=code, code_after=code)
    assert judge(one).explanations == ()


def test_new_graph_break_is_told_with_its_line(situation: Make, judge: Judge) -> None:
    """Only the break that the baseline does not have, with file and line."""
    old = GraphBreak(reason="print", location="model.py:3")
    new = GraphBreak(reason="data-dependent\n  branch", location="model.py:12")
    one = situation(
        before={BREAKS: (1.0,)},
        after={BREAKS: (2.0,)},
        breaks_before=(old,),
        breaks_after=(old, new),
        code_before=CodeIdentity(digest="1"),
    )
    sentences = explain(judge(one), "graph_break")
    assert sentences == ["New graph break at model.py:12: data-dependent branch"]


def test_recompile_reason_is_told(situation: Make, judge: Judge) -> None:
    """The guard that failed."""
    metric = Metric.RECOMPILES
    one = situation(before={metric: (0.0,)}, after={metric: (1.0,)}, recompile_reasons=("size of x changed",))
    assert explain(judge(one), "recompile") == ["Recompiled because size of x changed"]


def test_same_code_points_away_from_the_compiler(situation: Make, judge: Judge) -> None:
    """Slower with the same generated code."""
    code = CodeIdentity(digest="1")
    one = situation(before=SLOW_BEFORE, after=SLOW_AFTER, code_before=code, code_after=code)
    (sentence,) = explain(judge(one), "identity")
    assert sentence.startswith("Same generated code: the compiled program is the same")


def test_changed_kernels_are_named(situation: Make, judge: Judge) -> None:
    """One kernel changed, one added, one removed."""
    one = situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        code_before=CodeIdentity(digest="1", kernels={"add": "a", "mul": "b", "old": "c"}),
        code_after=CodeIdentity(digest="2", kernels={"add": "a", "mul": "x", "new": "d"}),
    )
    assert explain(judge(one), "identity") == [
        "The generated code changed; of 3 kernels: 1 changed (mul), 1 added (new), 1 removed (old)."
    ]


def test_changed_model_is_told(situation: Make, judge: Judge) -> None:
    """More parameters than when the baseline was recorded."""
    one = situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        workload_before={"parameters": "100", "outputs": "1x10"},
        workload_after={"parameters": "200", "outputs": "1x10"},
    )
    assert explain(judge(one), "workload") == ["The measured model changed: parameters 100 -> 200."]


def test_both_arms_are_told(situation: Make, judge: Judge) -> None:
    """Which of the two moved."""
    verdict = judge(situation(before=SLOW_BEFORE, after=SLOW_AFTER))
    assert explain(verdict, "eager") == ["Eager moved by +0.0 %, compiled by +30.0 %."]


def test_longest_phases_of_a_slow_compile_are_told(situation: Make, judge: Judge) -> None:
    """Against a baseline without phases: the longest, each less the phase within it, processor time aside."""
    metric = Metric.COLD_COMPILE_TIME
    one = situation(
        before={metric: (10.0,) * 5},
        after={metric: (20.0,) * 3},
        phases_s={"dynamo": 20.0, "aot_autograd": 18.0, "inductor": 15.0, "cpu_self": 19.0},
    )
    assert explain(judge(one), "compile_phase") == [
        "Longest phases of the compile: inductor 15 s, aot_autograd 3 s, dynamo 2 s."
    ]


def test_phases_of_a_training_step_are_told(situation: Make, judge: Judge) -> None:
    """The backward pass is compiled beside the forward's autograd phase, within the same later ones."""
    metric = Metric.COLD_COMPILE_TIME
    phases_s = {
        "dynamo": 20.0,
        "aot_autograd": 17.0,
        "backward": 28.0,
        "inductor": 41.0,
        "code_generation": 39.0,
    }
    one = situation(before={metric: (10.0,) * 5}, after={metric: (20.0,) * 3}, phases_s=phases_s)
    # 17 s + 28 s less 41 s; 20 s less 17 s.
    assert explain(judge(one), "compile_phase") == [
        "Longest phases of the compile: code_generation 39 s, aot_autograd 4 s, dynamo 3 s."
    ]


def test_phases_that_moved_are_told(situation: Make, judge: Judge) -> None:
    """Against a baseline with phases: which took longer by itself, and what the compilers used beside it."""
    metric = Metric.COLD_COMPILE_TIME
    one = situation(
        before={metric: (10.0,) * 5},
        after={metric: (20.0,) * 3},
        phases_before_s={"dynamo": 10.0, "aot_autograd": 8.0, "inductor": 6.0, "cpu_children": 4.0},
        phases_s={"dynamo": 20.0, "aot_autograd": 17.9, "inductor": 14.5, "cpu_children": 3.5},
    )
    # Own times: dynamo 2 -> 2.1, aot_autograd 2 -> 3.4, inductor 6 -> 14.5; 2 % of 10 s is 0.2 s.
    assert explain(judge(one), "compile_phase") == [
        "Phases of the compile that moved: inductor by +8.5 s to 14.5 s, aot_autograd by +1.4 s to 3.4 s.",
        "Processor time of compilers that it started: -500 ms.",
    ]


def test_phases_that_stood_still_are_told(situation: Make, judge: Judge) -> None:
    """A compile that took longer elsewhere: no phase did."""
    metric = Metric.COLD_COMPILE_TIME
    phases_s = {"dynamo": 10.0, "aot_autograd": 8.0}
    one = situation(
        before={metric: (10.0,) * 5},
        after={metric: (20.0,) * 3},
        phases_before_s=phases_s,
        phases_s={**phases_s, "dynamo": 10.1},
    )
    assert explain(judge(one), "compile_phase") == ["No phase of the compile moved by more than 2 % of it."]


def test_cache_misses_are_told(situation: Make, judge: Judge) -> None:
    """The second process found less than all."""
    metric = Metric.CACHE_MISSES
    verdict = judge(situation(before={metric: (0.0,)}, after={metric: (3.0,)}))
    assert explain(verdict, "cache") == ["The second process missed the full compile cache 3 times."]


def test_machine_is_told_where_it_moved(situation: Make, judge: Judge) -> None:
    """Canaries 20 % slower, and the device throttled."""
    one = situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        canaries_before={"loop": (1.0,) * 5},
        canaries_after={"loop": (1.2,) * 3},
        throttled=("thermal",),
    )
    first, second = explain(judge(one), "machine")
    assert "canaries over the run +20.0 %" in first
    assert second == "The device lowered its clocks: thermal."
