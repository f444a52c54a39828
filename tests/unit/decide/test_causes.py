import math
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.explain.causes import (
    find_definition,
    find_eager,
    find_first_cause,
    find_kept,
    find_machine,
    find_options,
    find_workload,
    rank_causes,
)
from gate.decide.explain.inquiry import CAUSES
from gate.decide.judge.machine import Machine
from gate.records.cases import Case, Metric, Threshold
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import CodeIdentity, GraphBreak, Recompile
from gate.records.verdict import Cause, CauseKind, Comparison, Outcome, Reason, Status, Verdict
from gate.report.words.facts import describe_cause
from tests.hosts import CPU_HOST
from tests.make import Situation, decide, make_change, make_row, make_verdict
from tests.words import describe_causes

from .one_case import inquire, make_moved

SAME_CODE = "The generated code is the same: look at the machine, or at Python code outside the graphs."
TUNED = (
    "The generated code is the same, but autotuning chose other configurations, which may differ in speed."
)
COLD, MEMORY = Metric.COLD_COMPILE_TIME, Metric.PEAK_MEMORY
LATENCY, EAGER, BREAKS = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.GRAPH_BREAKS
SLOW_BEFORE = {EAGER: (0.02,) * 5, LATENCY: (0.01,) * 5}
SLOW_AFTER = {EAGER: (0.02,) * 3, LATENCY: (0.013,) * 3}


def explain(verdict: Verdict, kind: str) -> list[str]:
    """Causes of a kind, with the count of those left out."""
    sentences, is_of_kind = [], False
    for fact in (cause.fact for cause in verdict.causes):
        is_of_kind = is_of_kind if fact.code is Code.MORE else CAUSES[fact.code][1] == kind
        sentences += [describe_cause(fact)] if is_of_kind else []
    return sentences


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ((-0.2, -0.02, 0.2), [Code.EAGER_ALONE]),
        ((-0.2, -0.04, 0.2), [Code.EAGER_TOO]),
        ((-0.03, 0.0, 0.03), [Code.EAGER_ALONE]),
        ((-0.04, -0.02, 0.03), [Code.EAGER_ALONE]),
        ((-0.04, -0.021, 0.03), []),
        ((-0.029, 0.0, 0.029), []),
        ((-0.2, -0.02), []),
        ((-0.2,), []),
    ],
    ids=[
        "alone",
        "too",
        "at the limit",
        "half as much",
        "more than half",
        "within the limit",
        "no speedup",
        "no compiled",
    ],
)
def test_eager_moves_a_ratio_alone_where_compiled_moves_by_less_than_its_limit(
    changes: tuple[float, ...], codes: list[Code]
) -> None:
    """Of eager, compiled and the speedup, which are all open; the limit is 3 %."""
    rows = [
        make_row(
            "mlp/x",
            metric,
            Status.INCONCLUSIVE,
            change=make_change(change),
            threshold=Threshold(relative=0.03, absolute=0.0),
        )
        for metric, change in zip((EAGER, LATENCY, Metric.WARM_SPEEDUP), changes, strict=False)
    ]
    assert [cause.fact.code for cause in find_eager(inquire(*rows))] == codes


@pytest.mark.parametrize(
    ("eager", "compiled", "status", "breaks", "codes"),
    [
        (0.1, 0.2, Status.REGRESSED, None, [Code.EAGER_TOO]),
        (0.09, 0.2, Status.REGRESSED, None, []),
        (0.3, 0.1, Status.REGRESSED, None, [Code.EAGER_TOO]),
        (0.3, 0.09, Status.INCONCLUSIVE, None, []),
        (-0.1, 0.2, Status.REGRESSED, None, []),
        (0.0, 0.2, Status.REGRESSED, None, []),
        (-0.1, -0.2, Status.IMPROVED, None, [Code.EAGER_TOO]),
        (-0.1, -0.2, Status.IMPROVED, Status.REGRESSED, []),
        (-0.1, -0.2, Status.IMPROVED, Status.INCONCLUSIVE, [Code.EAGER_TOO]),
        (0.1, 0.2, Status.INCONCLUSIVE, None, [Code.EAGER_TOO]),
        (0.1, 0.2, Status.INCONCLUSIVE, Status.REGRESSED, []),
        (0.1, 0.2, Status.ACCEPTED, Status.REGRESSED, [Code.EAGER_TOO]),
        (0.1, 0.2, Status.REGRESSED, Status.REGRESSED, [Code.EAGER_TOO]),
        (0.1, 0.2, Status.UNCHANGED, None, []),
    ],
)
def test_eager_moves_along_where_it_explains_half_of_what_compiled_did(
    eager: float, compiled: float, status: Status, breaks: Status | None, codes: list[Code]
) -> None:
    """To the same side, beyond the limit of 10 %, and as surely as a graph break that is new."""
    threshold = Threshold(relative=0.1, absolute=0.0)
    rows = [
        make_row("mlp/x", EAGER, status, change=make_change(eager), decides=False),
        make_row("mlp/x", LATENCY, status, change=make_change(compiled), threshold=threshold),
        *([make_row("mlp/x", BREAKS, breaks, change=make_change(1.0))] if breaks else []),
    ]
    causes = find_eager(inquire(*rows))
    assert [(cause.fact.code, cause.fact.numbers) for cause in causes] == [
        (code, {"eager": eager, "compiled": compiled}) for code in codes
    ]
    in_pairs = [replace(row, pairs=2) for row in rows]
    assert [cause.fact.numbers.get("in_pairs") for cause in find_eager(inquire(*in_pairs))] == [1.0] * len(
        codes
    )


def test_eager_alone_made_a_ratio_fall_that_stays() -> None:
    """A speedup that its leader explains, among rows that did not move."""
    fell = make_row(
        "mlp/x",
        Metric.WARM_SPEEDUP,
        Status.UNCHANGED,
        reason=Reason.LEADER_STANDS,
        change=make_change(0.5),
        remarks=(Fact(code=Code.EAGER_CHANGED, numbers={"change": -0.4}),),
    )
    rows = [
        make_row("mlp/x", metric, Status.UNCHANGED, change=make_change(change))
        for metric, change in ((EAGER, -0.4), (LATENCY, 0.0))
    ]
    (cause,) = find_eager(inquire(*rows, fell))
    assert cause.fact == Fact(code=Code.EAGER_ALONE, numbers={"eager": -0.4, "compiled": 0.0})
    assert rank_causes(inquire().evidence, [*rows, fell], Machine(), CPU_HOST) == (cause,)
    assert find_eager(inquire(*rows)) == find_eager(inquire(*rows, replace(fell, remarks=()))) == []
    assert find_eager(inquire(rows[0], fell)) == find_eager(inquire(rows[1], fell)) == []


@pytest.mark.parametrize(
    ("status", "change", "is_named"),
    [
        (Status.INCONCLUSIVE, 0.045, True),
        (Status.INCONCLUSIVE, 0.03, True),
        (Status.INCONCLUSIVE, 0.029, False),
        (Status.REGRESSED, 0.029, True),
    ],
)
def test_an_open_change_below_its_limit_has_no_first_cause(
    status: Status, change: float, *, is_named: bool
) -> None:
    """The limit is 3 %: what is open below it needs no explanation, and whatever regressed does."""
    threshold = Threshold(relative=0.03, absolute=0.0)
    row = make_row("mlp/x", LATENCY, status, change=make_change(change), threshold=threshold)
    cause = Cause(case_id="mlp/x", fact=Fact(code=Code.CODE_CHANGED), weight=0.6)
    verdict = make_verdict(row, causes=(cause,), outcome=Outcome.INCONCLUSIVE)
    assert find_first_cause(verdict, status) == (cause if is_named else None)


def test_unchanged_case_needs_no_cause() -> None:
    """An unchanged case has no cause, even with the same code."""
    code = CodeIdentity(digest="1")
    situation = Situation(before={BREAKS: (0.0,)}, after={BREAKS: (0.0,)}, code_before=code, code_after=code)
    assert decide(situation).causes == ()


def test_a_new_graph_break_is_named_with_its_line() -> None:
    """Only the break that the baseline lacks is a cause, with file and line."""
    old = GraphBreak(reason="print", location="model.py:3")
    new = GraphBreak(reason="data-dependent\n  branch", location="model.py:12")
    situation = Situation(
        before={BREAKS: (1.0,)},
        after={BREAKS: (2.0,)},
        breaks_before=(old,),
        breaks_after=(old, new),
        code_before=CodeIdentity(digest="1"),
    )
    sentences = explain(decide(situation), "graph_break")
    assert sentences == ["New graph break at model.py:12: data-dependent branch"]


def test_a_graph_break_whose_line_moved_is_not_new() -> None:
    """A break with the same reason on another line is not new."""
    situation = Situation(
        before={BREAKS: (1.0,)},
        after={BREAKS: (2.0,)},
        breaks_before=(GraphBreak(reason="print", location="model.py:3"),),
        breaks_after=(
            GraphBreak(reason="print", location="model.py:4"),
            GraphBreak(reason="item", location="model.py:2"),
        ),
        code_before=CodeIdentity(digest="1"),
    )
    assert explain(decide(situation), "graph_break") == ["New graph break at model.py:2: item"]


def test_which_of_two_equal_graph_breaks_is_new_is_not_guessed() -> None:
    """Of two equal breaks that both moved, both are named."""
    situation = Situation(
        before={BREAKS: (1.0,)},
        after={BREAKS: (2.0,)},
        breaks_before=(GraphBreak(reason="print", location="model.py:3"),),
        breaks_after=tuple(GraphBreak(reason="print", location=f"model.py:{line}") for line in (2, 4)),
        code_before=CodeIdentity(digest="1"),
    )
    assert explain(decide(situation), "graph_break") == [
        "New graph break at model.py:2: print",
        "New graph break at model.py:4: print",
    ]


def test_line_of_the_measured_code_comes_before_that_of_a_library() -> None:
    """A break names the line of the user's code, not the library's."""
    places = ("/usr/lib/python3/logging/__init__.py:2087", "model.py:12")
    situation = Situation(
        before={BREAKS: (0.0,)},
        after={BREAKS: (2.0,)},
        breaks_after=tuple(GraphBreak(reason="call", location=location) for location in places),
        code_before=CodeIdentity(digest="1"),
    )
    assert explain(decide(situation), "graph_break")[0] == "New graph break at model.py:12: call"


def test_a_recompile_names_its_guard() -> None:
    """The cause names the guard that failed."""
    metric = Metric.RECOMPILES
    situation = Situation(
        before={metric: (0.0,)},
        after={metric: (1.0,)},
        recompile_reasons=(Recompile(guard="size of x changed"),),
    )
    assert explain(decide(situation), "recompile") == ["Recompiled because size of x changed"]


ODD = Recompile(guard="self.odd == False", code="if self.odd:", location="net/model.py:17")
CALLS = Recompile(guard="self.calls == 2", code="self.calls += 1", location="net/model.py:20")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ((ODD, CALLS), ["Recompiled because self.calls == 2 (made by `self.calls += 1`) at net/model.py:20"]),
        (
            (replace(ODD, location="net/model.py:18"), CALLS),
            ["Recompiled because self.calls == 2 (made by `self.calls += 1`) at net/model.py:20"],
        ),
        (
            (replace(ODD, location="net/model.py:18"),) * 2,
            ["Recompiled because self.odd == False (made by `if self.odd:`) at net/model.py:18"],
        ),
        (
            (replace(ODD, location="net/moved.py:3"), replace(ODD, code="if not self.odd:"), CALLS),
            [
                "Recompiled because self.calls == 2 (made by `self.calls += 1`) at net/model.py:20",
                "Recompiled because self.odd == False (made by `if not self.odd:`) at net/model.py:17",
            ],
        ),
    ],
    ids=["where it was", "moved by a line", "once more", "in another file, and once more by another line"],
)
def test_a_guard_that_failed_before_is_no_cause(after: tuple[Recompile, ...], expected: list[str]) -> None:
    """Recompiles are equal if guard and code are, whatever the line; additional ones count."""
    metric = Metric.RECOMPILES
    situation = Situation(
        before={metric: (1.0,)},
        after={metric: (9.0,)},
        recompiles_before=(ODD,),
        recompile_reasons=after,
        code_before=CodeIdentity(digest="1"),
    )
    assert explain(decide(situation), "recompile") == expected


def test_same_code_points_away_from_the_compiler() -> None:
    """Slower calls of the same code have the cause "same code"."""
    code = CodeIdentity(digest="1")
    situation = Situation(before=SLOW_BEFORE, after=SLOW_AFTER, code_before=code, code_after=code)
    assert explain(decide(situation), CauseKind.UNCHANGED_CODE) == [SAME_CODE]


def test_noise_that_hides_no_change_is_not_explained_by_the_code() -> None:
    """An open latency whose trials scatter around the baseline has no cause."""
    code = CodeIdentity(digest="1")
    after = {**SLOW_AFTER, Metric.COMPILED_LATENCY: (0.0120, 0.0084, 0.0100)}
    verdict = decide(Situation(before=SLOW_BEFORE, after=after, code_before=code, code_after=code))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert explain(verdict, CauseKind.UNCHANGED_CODE) == []


@pytest.mark.parametrize("tuned", ["", "b"])
def test_code_that_is_tuned_otherwise_does_not_blame_the_machine(tuned: str) -> None:
    """On a GPU the same code may be autotuned differently."""
    before, after = CodeIdentity(digest="1", tuned=tuned), CodeIdentity(digest="1", tuned="a")
    situation = Situation(before=SLOW_BEFORE, after=SLOW_AFTER, code_before=before, code_after=after)
    assert explain(decide(situation), CauseKind.UNCHANGED_CODE) == []
    assert explain(decide(situation), CauseKind.TUNING) == [TUNED]
    same = Situation(before=SLOW_BEFORE, after=SLOW_AFTER, code_before=after, code_after=after)
    assert explain(decide(same), CauseKind.UNCHANGED_CODE) == [SAME_CODE]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({**SLOW_BEFORE, BREAKS: (0.0,)}, {**SLOW_AFTER, BREAKS: (2.0,)}),
        ({BREAKS: (0.0,)}, {BREAKS: (2.0,)}),
        ({Metric.PEAK_MEMORY: (1e9,)}, {Metric.PEAK_MEMORY: (2e9,)}),
    ],
    ids=["slower, and new breaks", "new breaks", "more memory"],
)
def test_the_same_code_explains_warm_times_alone(before: dict[Metric, Any], after: dict[Metric, Any]) -> None:
    """The same kernels explain neither a new graph break nor memory."""
    code = CodeIdentity(digest="1")
    verdict = decide(Situation(before=before, after=after, code_before=code, code_after=code))
    assert verdict.outcome is Outcome.REGRESSION
    assert explain(verdict, CauseKind.UNCHANGED_CODE) == []


def test_a_new_break_between_the_same_kernels_is_the_only_cause() -> None:
    """A new graph break between unchanged kernels is the only cause."""
    code = CodeIdentity(digest="1")
    situation = Situation(
        before={BREAKS: (0.0,)},
        after={BREAKS: (1.0,)},
        breaks_after=(GraphBreak(reason="print", location="model.py:3"),),
        code_before=code,
        code_after=code,
    )
    assert [cause.fact.code for cause in decide(situation).causes] == [Code.GRAPH_BREAK]


def test_changed_kernels_are_named() -> None:
    """The cause counts kernels that changed, came and went."""
    situation = Situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        code_before=CodeIdentity(digest="1", kernels={"add": "a", "mul": "b", "old": "c"}),
        code_after=CodeIdentity(digest="2", kernels={"add": "a", "mul": "x", "new": "d"}),
    )
    assert explain(decide(situation), CauseKind.CHANGED_CODE) == [
        "The generated code changed; of 3 kernels, 1 changed (mul), 1 added (new), 1 removed (old)."
    ]


def test_a_changed_model_is_a_cause() -> None:
    """More parameters than the baseline's are a cause."""
    situation = Situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        workload_before={"parameters": "100", "outputs": "1x10"},
        workload_after={"parameters": "200", "outputs": "1x10"},
    )
    assert explain(decide(situation), "workload") == [
        "The model computes something else: parameters 100 -> 200."
    ]


@pytest.mark.parametrize(
    ("eager", "compiled", "expected"),
    [
        (0.0198, 0.00990, False),
        (0.0260, 0.0130, True),
        (0.0204, 0.0130, False),
    ],
    ids=["both by a percent", "both by a third", "compiled alone"],
)
def test_eager_that_changed_as_well_is_a_cause(eager: float, compiled: float, expected: bool) -> None:
    """Eager is a cause if it changed by half as much as compiled, or more."""
    spread = (0.9, 1.0, 1.1)
    after = {EAGER: [factor * eager for factor in spread], LATENCY: [factor * compiled for factor in spread]}
    verdict = decide(Situation(before=SLOW_BEFORE, after=after))
    assert any("Eager changed too" in cause for cause in explain(verdict, CauseKind.EAGER)) == expected


@pytest.mark.parametrize(
    ("latencies", "breaks", "expected"),
    [
        ((0.0100, 0.0099), 0.0, [Code.EAGER_ALONE]),
        ((0.0100, 0.0130), 0.0, []),
        ((0.0196, 0.0103), 0.0, []),
        ((0.0100, 0.0099), 1.0, []),
    ],
    ids=["twice as fast", "twice as fast, compiled slower", "by less than compiled", "beside what is sure"],
)
def test_eager_changed_alone_where_compiled_stayed_within_its_limit(
    latencies: tuple[float, float], breaks: float, expected: list[Code]
) -> None:
    """Eager is named if compiled moved by 1 % of a limit of 5 %."""
    eager, compiled = latencies
    situation = Situation(
        before={EAGER: (0.02,) * 2, LATENCY: (0.01,) * 2, BREAKS: (0.0,) * 2},
        after={
            EAGER: (eager,) * 3,
            LATENCY: (compiled,) * 3,
            Metric.WARM_SPEEDUP: (eager / compiled,) * 3,
            BREAKS: (breaks,) * 3,
        },
    )
    codes = [cause.fact.code for cause in decide(situation).causes]
    assert [code for code in codes if CAUSES[code][1] is CauseKind.EAGER] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), []),
        (("model.py",), ["It imports 1 file that has changed since the base: model.py."]),
        (
            ("a.py", "b.py", "c.py", "d.py", "e.py"),
            ["It imports 5 files that have changed since the base: a.py, b.py, c.py and 2 more."],
        ),
    ],
)
def test_changed_files_that_the_case_imports_are_named(files: tuple[str, ...], expected: list[str]) -> None:
    """Changed files that the case imports are its first cause unless a better one is known."""
    verdict = decide(Situation(before=SLOW_BEFORE, after=SLOW_AFTER, changed_imports=files))
    assert [line for line in explain(verdict, "workload") if "imports" in line] == expected
    assert (verdict.causes[0].fact.code is Code.IMPORTS_CHANGED) == bool(files)


def test_kernels_that_take_longer_are_named() -> None:
    """One kernel takes 2 of 10 ms more, one is new with 1.5 % of them, and 0.9 % more is not named."""
    situation = Situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        kernels_before_s={"gemm": 8e-3, "triton_poi_0": 2e-3},
        kernels_s={"gemm": 8.09e-3, "triton_poi_0": 4e-3, "triton_red_1": 0.15e-3},
    )
    (kernels,) = explain(decide(situation), CauseKind.KERNELS)
    assert kernels == (
        "Kernels of a call, 10.0 ms -> 12.2 ms in all:"
        " triton_poi_0 2.00 ms -> 4.00 ms, triton_red_1 is new with 150 µs."
    )


def test_what_a_device_made_of_a_call_explains_warm_times_alone() -> None:
    """Slower kernels do not explain a new graph break."""
    kernels = {"gemm": 8e-3}
    situation = Situation(
        before={BREAKS: (0.0,)},
        after={BREAKS: (2.0,)},
        kernels_before_s=kernels,
        kernels_s={"gemm": 9e-3},
    )
    assert explain(decide(situation), CauseKind.KERNELS) == []


def test_phases_of_a_training_step_are_named() -> None:
    """A training step's phases include the backward compile."""
    metric = Metric.COLD_COMPILE_TIME
    phases_s = {
        "dynamo": 20.0,
        "aot_autograd": 17.0,
        "backward": 28.0,
        "inductor": 41.0,
        "code_generation": 39.0,
    }
    situation = Situation(
        before={metric: (10.0,) * 5},
        after={metric: (20.0,) * 3},
        phases_before_s=dict.fromkeys(phases_s, 0.0),
        phases_s=phases_s,
    )
    # 17 s + 28 s less 41 s; 20 s less 17 s.
    assert explain(decide(situation), "compile_phase") == [
        (
            "Phases of the compile that changed: code_generation by +39.0 s to 39.0 s,"
            " aot_autograd by +4.00 s to 4.00 s, dynamo by +3.00 s to 3.00 s."
        )
    ]


def test_phases_that_moved_are_named() -> None:
    """Phases that took longer by themselves are named."""
    metric = Metric.COLD_COMPILE_TIME
    situation = Situation(
        before={metric: (10.0,) * 5},
        after={metric: (20.0,) * 3},
        phases_before_s={"dynamo": 10.0, "aot_autograd": 8.0, "inductor": 6.0},
        phases_s={"dynamo": 20.0, "aot_autograd": 17.9, "inductor": 14.5},
    )
    changed = "inductor by +8.50 s to 14.5 s, aot_autograd by +1.40 s to 3.40 s"
    # Own times: dynamo 2 -> 2.1, aot_autograd 2 -> 3.4, inductor 6 -> 14.5; 2 % of 10 s is 0.2 s.
    assert explain(decide(situation), "compile_phase") == [f"Phases of the compile that changed: {changed}."]


def test_phases_that_stood_still_are_no_cause() -> None:
    """Phases that moved by less than 2 % of the compile are no cause."""
    metric = Metric.COLD_COMPILE_TIME
    phases_s = {"dynamo": 10.0, "aot_autograd": 8.0}
    situation = Situation(
        before={metric: (10.0,) * 5},
        after={metric: (20.0,) * 3},
        phases_before_s=phases_s,
        phases_s={**phases_s, "dynamo": 10.1},
    )
    assert explain(decide(situation), "compile_phase") == []


def test_cache_misses_are_a_cause() -> None:
    """The cause counts the second process's cache misses."""
    metric = Metric.CACHE_MISSES
    verdict = decide(Situation(before={metric: (0.0,)}, after={metric: (3.0,)}))
    assert explain(verdict, "cache") == [
        "The second process does not find everything in the compile cache: 3 missed."
    ]


@pytest.mark.parametrize(
    ("eager", "ending"), [(69632.0, "each eager call keeps 68.0 KiB"), (0.0, "eager calls keep nothing")]
)
def test_the_line_that_keeps_memory_is_named(eager: float, ending: str) -> None:
    """The cause names the line that keeps memory, and whether eager keeps it too."""
    growth = Metric.MEMORY_GROWTH
    fact = Fact(
        code=Code.MEMORY_KEPT,
        numbers={"bytes": 69632.0, "calls": 4081.0, "eager": eager},
        names=name_words(location="net/model.py:15"),
    )
    situation = Situation(before={growth: (0.0,)}, after={growth: (69632.0,)}, warnings=(fact,))
    sentence = (
        f"Each compiled call keeps 68.0 KiB more, still after 4,081 calls, made at net/model.py:15; {ending}."
    )
    assert explain(decide(situation), "kept") == [sentence]
    assert explain(decide(Situation(before={}, after={growth: (69632.0,)}, warnings=(fact,))), "kept") == []


@pytest.mark.parametrize("breaks", [0.0, 1.0])
def test_eager_is_no_cause_of_an_open_latency_if_a_break_is_certain(breaks: float) -> None:
    """Eager is not named for an open latency if a graph break is certain."""
    before = {Metric.COMPILED_LATENCY: (0.01,) * 2, Metric.EAGER_LATENCY: (0.02,) * 2}
    after = {Metric.COMPILED_LATENCY: (0.013,) * 3, Metric.EAGER_LATENCY: (0.026,) * 3}
    situation = Situation(
        before={**before, Metric.GRAPH_BREAKS: (0.0,) * 2},
        after={**after, Metric.GRAPH_BREAKS: (breaks,) * 3},
    )
    codes = [cause.fact.code for cause in decide(situation).causes]
    assert (Code.EAGER_TOO in codes) == (breaks == 0.0)


def test_a_frame_that_runs_eagerly_is_named_with_its_line() -> None:
    """The first cause names the line that could not be traced."""
    metric = Metric.EAGER_FALLBACKS
    names = name_words(reason="Failed to trace builtin operator: print", location="net/model.py:54")
    left = (Fact(code=Code.LEFT_TO_EAGER, names=names),)
    verdict = decide(Situation(before={metric: (0.0,)}, after={metric: (1.0,)}, warnings=left))
    sentence = "Fell back to eager at net/model.py:54: Failed to trace builtin operator: print."
    assert explain(verdict, "graph_break") == [sentence]
    assert verdict.causes[0].fact.code is Code.LEFT_TO_EAGER
    for before in ({}, {metric: (1.0,)}):
        same = decide(Situation(before=before, after={metric: (1.0,)}, warnings=left))
        assert explain(same, "graph_break") == []


def test_the_recompile_limit_comes_behind_the_guard_that_failed() -> None:
    """The guard is the cause of the recompile limit, so it comes first; that of another frame does too."""
    before, after = {Metric.EAGER_FALLBACKS: (0.0,)}, {Metric.EAGER_FALLBACKS: (2.0,)}
    reasons = ("Dynamo recompile limit exceeded", "Failed to trace builtin operator: print")
    left = tuple(Fact(code=Code.LEFT_TO_EAGER, names=name_words(reason=reason)) for reason in reasons)
    situation = Situation(
        before={**before, Metric.RECOMPILES: (0.0,)},
        after={**after, Metric.RECOMPILES: (8.0,)},
        recompile_reasons=(Recompile(guard="self.calls == 2"),),
        warnings=left,
    )
    assert describe_causes(decide(situation)) == [
        "Fell back to eager: Failed to trace builtin operator: print.",
        "Recompiled because self.calls == 2",
        "Fell back to eager: Dynamo recompile limit exceeded.",
    ]


@pytest.mark.parametrize(("after", "expected"), [(72.0, [Code.OPERATIONS_CHANGED]), (14.0, [])])
def test_operations_are_compared_where_no_code_is_generated(after: float, expected: list[Code]) -> None:
    """Under ``aot_eager`` operations are compared: 72 instead of 14."""
    situation = Situation(
        before={Metric.COMPILE_CALLS: (1e6,) * 5, Metric.CAPTURED_OPS: (14.0,) * 5},
        after={Metric.COMPILE_CALLS: (3.12e6,) * 3, Metric.CAPTURED_OPS: (after,) * 3},
    )
    causes = decide(situation).causes
    assert [cause.fact.code for cause in causes if cause.fact.code is not Code.UNEXPLAINED] == expected
    assert not expected or describe_cause(causes[0].fact) == (
        "The compiler captured 72 operations, 14 before."
    )


def test_how_workers_were_started_is_no_cause() -> None:
    """Forked and unforked workers are no cause of a change in memory."""
    fresh = replace(CPU_HOST, workers="")
    memory = {Metric.PEAK_MEMORY: (1e8,)}, {Metric.PEAK_MEMORY: (2e8,)}
    situation = Situation(before=memory[0], after=memory[1], host=fresh)
    forked = replace(CPU_HOST, workers="forked")
    assert explain(decide(situation, environment=forked), CauseKind.STACK) == []
    other = replace(forked, compiler="another")
    (stack,) = explain(decide(situation, environment=other), CauseKind.STACK)
    assert "compiler" in stack
    assert "workers" not in stack


def test_a_graph_that_differs_between_processes_is_named() -> None:
    """The cause of a cache miss says whether the second process compiled another graph."""
    metric = Metric.CACHE_MISSES
    warnings = (Fact(code=Code.GRAPH_DIFFERS),)
    situation = Situation(before={metric: (0.0,)}, after={metric: (3.0,)}, warnings=warnings)
    assert explain(decide(situation), "cache")[0] == (
        "The second process compiles other graphs than the first, and finds none of them in the caches:"
        " something in them differs between processes, as the order of a set of strings (another hash seed),"
        " an object id or a time."
    )


def test_a_machine_that_is_slower_is_a_cause() -> None:
    """Fixed test programs 10 % slower are a cause."""
    situation = Situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        canaries_before={"loop": (1.0,) * 5},
        canaries_after={"loop": (1.1,) * 3},
    )
    (text,) = explain(decide(situation), "machine")
    assert "fixed test programs +10.0 % (slower)" in text


def test_a_slower_machine_is_no_cause_of_a_time_without_a_ratio() -> None:
    """A compile time that was zero says nothing of how much slower the machine is."""
    situation = Situation(
        before={Metric.COLD_COMPILE_TIME: (0.0,) * 5},
        after={Metric.COLD_COMPILE_TIME: (30.0,) * 3},
        canaries_before={"loop": (1.0,) * 5},
        canaries_after={"loop": (1.1,) * 3},
    )
    assert explain(decide(situation), "machine") == []


@pytest.mark.parametrize(
    ("machine", "changes", "weights"),
    [
        (Machine(canary=math.log(1.1)), (0.3, 0.5), [0.2022]),
        (Machine(canary=math.log(1.05), suite=math.log(1.1)), (0.3, 0.5), [0.2022]),
        (Machine(canary=math.log(1.1)), (0.6, 0.5), [0.1744]),
        (Machine(canary=math.log(1.5)), (0.3, 0.4), [0.86]),
        (Machine(canary=math.log(0.9)), (0.3, 0.5), []),
        (Machine(canary=math.log(0.9)), (-0.3, -0.2), [0.254]),
        (Machine(canary=math.log(0.9)), (-0.3, -1.0), [0.254]),
        (Machine(canary=math.log(1.1)), (-0.3, 0.1), []),
        (Machine(canary=math.log(1.1)), (0.0, 0.0), []),
        (Machine(canary=math.log(1.1)), (-1.0, -1.0), []),
        (Machine(canary=-50.0), (0.3, 0.5), []),
        (Machine(canary=-50.0), (-0.3, -0.5), []),
        (Machine(canary=math.log(1.02)), (0.3, 0.5), []),
    ],
    ids=[
        "slower",
        "eager even slower",
        "latency more than compile",
        "more than all of it",
        "faster",
        "all faster",
        "a time that is gone",
        "the other way",
        "no change",
        "all times are gone",
        "no such machine",
        "no such machine, all faster",
        "not notable",
    ],
)
def test_a_machine_weighs_as_much_as_it_accounts_for(
    machine: Machine, changes: tuple[float, float], weights: list[float]
) -> None:
    """Of a compile 50 % longer: 0.86 log(1.1) / log(1.5) = 0.2022, of a latency +60 % 0.1744."""
    status = Status.REGRESSED if min(changes) > 0 else Status.IMPROVED
    rows = [
        make_row("mlp/x", metric, status, change=make_change(change))
        for metric, change in zip((LATENCY, Metric.COLD_COMPILE_TIME), changes, strict=True)
    ]
    inquiry = inquire(*rows, machine=machine)
    assert [cause.weight for cause in find_machine(inquiry)] == weights
    assert find_machine(replace(inquiry, moved=frozenset())) == []
    assert find_machine(inquire(*(replace(row, pairs=1) for row in rows), machine=machine)) == []
    counted = make_row("mlp/x", BREAKS, change=make_change(1.0))
    assert find_machine(inquire(*rows, counted, machine=machine)) == []


def test_another_result_alone_stands_below_other_code() -> None:
    """And above the files that the case imports."""
    situation = Situation(
        before=SLOW_BEFORE,
        after=SLOW_AFTER,
        workload_before={"reference": "1"},
        workload_after={"reference": "2"},
        code_before=CodeIdentity(digest="1"),
        code_after=CodeIdentity(digest="2"),
        changed_imports=("a.py",),
    )
    codes = [cause.fact.code for cause in decide(situation).causes]
    assert codes == [Code.CODE_CHANGED, Code.WORKLOAD_CHANGED, Code.IMPORTS_CHANGED]


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([make_moved(LATENCY, 2)], "a"),
        ([make_moved(LATENCY, 2), make_moved(COLD, 3, case_id="b")], "b"),
        ([make_moved(LATENCY, 4), make_moved(COLD, 3, case_id="b")], "a"),
        ([make_moved(LATENCY, 2), make_moved(COLD, 3, case_id="b", decides=False)], "a"),
        ([make_moved(LATENCY, 2), make_moved(COLD, 3, case_id="b", status=Status.ACCEPTED)], "a"),
        ([make_moved(LATENCY, 2), make_moved(COLD, 3, case_id="c")], "a"),
        ([make_moved(COLD, 3, case_id="c")], None),
        ([make_moved(COLD, 3, case_id="d")], None),
        ([make_moved(LATENCY, 2, decides=False)], None),
        ([], None),
    ],
    ids=[
        "alone",
        "the worst",
        "the worst first",
        "one that does not decide",
        "one of another status",
        "the worst has no likely cause",
        "no likely cause",
        "no cause",
        "none decides",
        "none",
    ],
)
def test_the_first_cause_is_that_of_the_worst_regression_with_a_likely_one(
    rows: list[Comparison], named: str | None
) -> None:
    """A cause is likely from a weight of 0.3 on: that of c is just below."""
    causes = tuple(
        Cause(case_id=case, fact=Fact(code=Code.CODE_CHANGED), weight=weight)
        for case, weight in (("c", 0.29), ("b", 0.3), ("b", 0.9), ("mlp/x", 0.3))
    )
    verdict = make_verdict(*rows, causes=causes, outcome=Outcome.REGRESSION)
    cause = find_first_cause(verdict)
    assert cause == {"a": causes[3], "b": causes[1], None: None}[named]


@pytest.mark.parametrize(
    ("count", "more", "named"),
    [(1, 0, ["a"]), (3, 0, ["a", "b", "c"]), (4, 1, ["a", "b", "c"]), (6, 3, ["a", "b", "c"])],
)
def test_three_options_that_differ_are_named(count: int, more: int, named: list[str]) -> None:
    """The others are counted."""
    old, new = (dict.fromkeys("abcdef"[:count], value) for value in ("1", "2"))
    (cause,) = find_options(inquire(before={"options": old}, trials=[{"options": new}]))
    assert (cause.fact.numbers, [*cause.fact.names]) == ({"more": more}, named)
    assert set(cause.fact.names.values()) == {("1", "2")}
    assert find_options(inquire(before={"options": old}, trials=[{"options": old}])) == []


@pytest.mark.parametrize(
    ("after", "same_drift", "codes", "weight"),
    [
        ({"reference": "2", "inputs": "8"}, True, ["reference"], 0.58),
        ({"reference": "2", "inputs": "16"}, True, ["inputs", "reference"], 0.92),
        ({"reference": "2", "inputs": "16"}, False, ["inputs"], 0.92),
        ({"reference": "2", "inputs": "8"}, False, [], 0.0),
        ({"reference": "1", "inputs": "16"}, True, ["inputs"], 0.92),
        ({}, True, [], 0.0),
    ],
)
def test_another_workload_is_named_with_its_result_last(
    after: dict[str, str], same_drift: bool, codes: list[str], weight: float
) -> None:
    """A result alone weighs less, and nothing where drift was of other calls."""
    before = {"workload": {"reference": "1", "inputs": "8"}, "drift_definition": 1 if same_drift else 0}
    causes = find_workload(inquire(before=before, trials=[{"workload": after}]))
    assert [(cause.weight, [*cause.fact.names]) for cause in causes] == ([(weight, codes)] if codes else [])


def test_memory_that_is_kept_is_that_of_the_last_trial() -> None:
    """Which made as many calls as any."""
    first, last = (Fact(code=Code.MEMORY_KEPT, numbers={"bytes": number}) for number in (1.0, 2.0))
    inquiry = inquire(trials=[{"warnings": (first,)}, {"warnings": (last,)}, {}])
    assert [cause.fact for cause in find_kept(inquiry)] == [last]


@pytest.mark.parametrize(
    ("base", "reasons", "before", "names"),
    [
        ("d0", [Reason.BEYOND_BAR], {"inputs": "8"}, {"size": ("none", "full")}),
        ("d1", [Reason.BEYOND_BAR], {"inputs": "8"}, None),
        ("d1", [Reason.BEYOND_BAR, Reason.STALE_DEFINITION], {"inputs": "8"}, {"inputs": ("8", "16")}),
        ("", [Reason.BEYOND_BAR, Reason.STALE_DEFINITION], {"inputs": "8"}, {"inputs": ("8", "16")}),
        ("", [Reason.STALE_DEFINITION], {"inputs": "16"}, {}),
        ("", [Reason.BEYOND_BAR], {"inputs": "8"}, None),
    ],
    ids=["the base's", "the base's is the same", "stored too", "stored", "no trace", "neither"],
)
def test_another_definition_is_named_by_what_is_known_of_it(
    base: str, reasons: list[Reason], before: dict[str, str], names: dict[str, tuple[str, str]] | None
) -> None:
    """The keys of gate.yml where the base has it otherwise, else what resulted from it."""
    rows = [
        make_row("mlp/x", metric, reason=reason)
        for metric, reason in zip((LATENCY, COLD), reasons, strict=False)
    ]
    stored = [{"workload": before}, {"workload": {"inputs": "4"}}]
    inquiries = [inquire(*rows, before=side, trials=[{"workload": {"inputs": "16"}}]) for side in stored]
    matches = [replace(inquiry.evidence.stored[0], same_definition=False) for inquiry in inquiries]
    case = Case(id="mlp/x", model="mlp", definition="d1", size="full")
    evidence = replace(
        inquiries[0].evidence,
        case=case,
        base_case=replace(case, definition=base, size="") if base else None,
        stored=tuple(matches),
    )
    inquiry = replace(inquiries[0], evidence=evidence)
    causes = find_definition(inquiry)
    assert [cause.fact.names for cause in causes] == ([] if names is None else [names])
    same = replace(evidence, stored=(matches[0], replace(matches[1], same_definition=True)))
    assert find_definition(replace(inquiry, evidence=same)) == []
    unmeasured = replace(evidence, trials=())
    assert len(find_definition(replace(inquiry, evidence=unmeasured))) == (base == "d0")


def rank(*rows: Comparison, machine: Machine | None = None, **sides: Any) -> list[Code]:
    """The codes of the causes of a case, which imports a changed file unless its trials are given."""
    trials = [{"changed_imports": ("a.py",)}] if not sides else sides.pop("trials")
    inquiry = inquire(*rows, trials=trials, **sides)
    causes = rank_causes(inquiry.evidence, rows, machine or Machine(), CPU_HOST)
    return [cause.fact.code for cause in causes]


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        (make_moved(MEMORY, 2), [Code.IMPORTS_CHANGED]),
        (make_moved(MEMORY, 2, status=Status.INCONCLUSIVE), [Code.IMPORTS_CHANGED]),
        (make_row("mlp/x", MEMORY, Status.FAILED), [Code.IMPORTS_CHANGED]),
        (make_moved(MEMORY, 2, status=Status.UNCHANGED), []),
        (make_moved(MEMORY, 2, decides=False), []),
        (make_row("mlp/x", MEMORY, Status.NEW), []),
    ],
)
def test_a_case_needs_a_cause_where_something_that_decides_moved_or_failed(
    row: Comparison, codes: list[Code]
) -> None:
    """Not where it stayed, or was compared with nothing."""
    assert rank(row) == codes
    assert rank(make_moved(LATENCY, 0, status=Status.UNCHANGED), row) == codes


def test_finders_of_a_kind_are_asked_where_such_a_metric_moved() -> None:
    """Kernels explain calls, not memory, whatever a trial holds of them."""
    sides: dict[str, Any] = {
        "before": {"kernels_s": {"gemm": 1.0}, "trials": {LATENCY: (1.0,)}},
        "trials": [{"kernels_s": {"gemm": 2.0}}],
    }
    assert rank(make_moved(LATENCY, 2), **sides) == [Code.UNEXPLAINED, Code.KERNELS_MOVED]
    assert rank(make_moved(MEMORY, 2), **sides) == [Code.UNEXPLAINED]
    assert rank(make_moved(MEMORY, -2, status=Status.IMPROVED), **sides) == []


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (0.3142, [Code.MACHINE_CHANGED]),
        (0.3145, [Code.UNEXPLAINED, Code.MACHINE_CHANGED]),
    ],
)
def test_a_cause_that_weighs_three_tenths_explains_a_change(change: float, codes: list[Code]) -> None:
    """0.86 log(1.1) / log(1.3142) is 0.3, and less of a larger change."""
    row = make_row("mlp/x", COLD, change=make_change(change))
    assert rank(row, machine=Machine(canary=math.log(1.1)), trials=[]) == codes


def test_only_another_definition_explains_what_was_not_compared() -> None:
    """Its files that changed are no cause of what nobody saw."""
    row = make_row("mlp/x", COLD, Status.NOT_COMPARABLE, reason=Reason.STALE_DEFINITION)
    inquiry = inquire(row, before={"workload": {}}, trials=[{"changed_imports": ("a.py",)}])
    stored = tuple(replace(match, same_definition=False) for match in inquiry.evidence.stored)
    evidence = replace(inquiry.evidence, stored=stored)
    causes = rank_causes(evidence, [row], Machine(), CPU_HOST)
    assert [cause.fact.code for cause in causes] == [Code.DEFINITION_CHANGED]
