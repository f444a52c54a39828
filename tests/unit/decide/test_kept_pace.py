"""Calls of the baseline's own code that kept pace with eager's: what only the machine's speed moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gate.decide import Screening, list_suspects
from gate.metrics import SPECS
from gate.records import CodeIdentity, Comparison, Kind, Metric, Reason, Status, Task, Threshold, Verdict
from tests.told import tell_notes

LATENCY, EAGER, SPEEDUP = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.WARM_SPEEDUP
COLD = Metric.COLD_COMPILE_TIME
BREAKS, FALLBACKS = Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS
# Stored trials of a machine whose speed wanders by 7 %, of eager and compiled alike, and of a steady one.
WANDERING = (0.92, 1.0, 1.1, 1.04, 0.94)
STEADY = (0.995, 1.0, 1.005, 1.0, 1.0)
INPUTS = {
    "inputs": "float32[64, 8]",
    "parameters": "64",
    "settings": "float32 products highest",
    "runtime": "2 threads",
}
# Compiled latency alone, of 10 ms and of 11.5.
ALONE = {"before": tuple(0.01 * one for one in WANDERING), "after": (0.0115,)}
COUNTED = {BREAKS: (0.0,), FALLBACKS: (0.0,)}
SIDES = {"before": WANDERING, "after": (1.15,)}
CODE = CodeIdentity(digest="a", calls={"extern_kernels.mm": 2, "torch.ops.aten._softmax": 1})
KNOWN: dict[str, Any] = {
    "code_before": CODE,
    "code_after": CODE,
    "workload_before": INPUTS,
    "workload_after": INPUTS,
}
CUSTOM = replace(CODE, calls={"torch.ops.mine.attention": 1})

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
Find = Callable[..., Comparison]


def drop(name: str) -> dict[str, str]:
    return {key: value for key, value in INPUTS.items() if key != name}


def measure(*spread: float, ratio: float = 1.0, breaks: float = 0.0) -> dict[Metric, tuple[float, ...]]:
    """Trials of 20 ms in eager and 10 ms compiled times ``ratio``, each moved by one of ``spread``."""
    count = len(spread)
    return {
        EAGER: tuple(0.020 * one for one in spread),
        LATENCY: tuple(0.010 * ratio * one for one in spread),
        BREAKS: (breaks,) * count,
        FALLBACKS: (0.0,) * count,
    }


@pytest.fixture
def judge_latency(situation: Make, judge: Judge, find: Find) -> Callable[..., tuple[Status, Reason]]:
    """Status and reason of compiled latency, by what is stored and what came of one trial."""

    def judge_one(**changes: object) -> tuple[Status, Reason]:
        known = {**KNOWN, "before": measure(*WANDERING), "after": measure(1.15)}
        row = find(judge(situation(**{**known, **changes})), LATENCY)
        return row.status, row.reason

    return judge_one


@pytest.mark.parametrize("moved", [1.15, 1.0, 0.9], ids=["slower", "as before", "faster"])
def test_the_same_code_that_kept_pace_with_eager_is_clear(judge_latency: Make, moved: float) -> None:
    """One trial, both arms moved alike: by latency alone it is suspect, or a change of 30 % could hide."""
    assert judge_latency(after=measure(moved)) == (Status.UNCHANGED, Reason.KEPT_PACE)


@pytest.mark.parametrize(
    "changes",
    [
        {"code_after": replace(CODE, digest="b")},
        {"code_before": replace(CODE, digest="")},
        {"code_before": CUSTOM, "code_after": CUSTOM},
        {"code_before": replace(CODE, tuned="x"), "code_after": replace(CODE, tuned="y")},
        {"before": measure(*WANDERING, breaks=1.0), "after": measure(1.15, breaks=1.0)},
        {"before": {name: values for name, values in measure(*WANDERING).items() if name is not FALLBACKS}},
        {"code_after": replace(CODE, tuned="x")},
        {"code_after": replace(CODE, calls={**CODE.calls, **CUSTOM.calls})},
        {"workload_after": INPUTS | {"inputs": "float32[70, 8]"}},
        {"workload_after": INPUTS | {"runtime": "1 thread"}},
        *({"workload_before": drop(name)} for name in INPUTS),
        *({"workload_after": drop(name)} for name in INPUTS),
        {side: {LATENCY: values, **COUNTED} for side, values in ALONE.items()},
        {"task": Task.TRAINING},
        {"kind": Kind.SERVING},
        {"after": measure(1.15, ratio=1.03)},
        {"before": measure(*WANDERING) | {EAGER: (0.0220, 0.0184, 0.0188, 0.0200, 0.0208)}},
    ],
    ids=[
        "other code",
        "unknown code",
        "an operator of one's own",
        "tuned otherwise",
        "a graph break",
        "fallbacks unknown",
        "tuned where the baseline was not",
        "an operator of one's own, in head alone",
        "larger inputs, of sizes that the code leaves open",
        "fewer threads",
        *(f"{name} unknown before" for name in INPUTS),
        *(f"{name} unknown" for name in INPUTS),
        "eager unknown",
        "a training step",
        "another kind of call",
        "the ratio moved",
        "a ratio too noisy to tell",
    ],
)
def test_nothing_less_clears(judge_latency: Make, changes: dict[str, object]) -> None:
    """Each of these could slow a call, or hide that it is slower: the latency stays open."""
    status, _ = judge_latency(**changes)
    assert status is Status.INCONCLUSIVE


def test_what_is_surely_slower_is_not_cleared(judge_latency: Make) -> None:
    """On a steady machine 30 % are no wandering, though eager shares them: nobody knows why."""
    found = judge_latency(before=measure(*STEADY), after=measure(1.3))
    assert found == (Status.INCONCLUSIVE, Reason.SHARED_SHIFT)


@pytest.mark.parametrize("slower", [1.3, 3.0])
def test_what_slows_all_cases_is_not_cleared_by_eager_twice(
    situation: Make, judge: Judge, find: Find, slower: float
) -> None:
    """Four steady cases, all slower in eager and compiled alike while the canary stands still."""
    steady: dict[str, Any] = {"canaries_before": {"copy": (1e-3,) * 5}, "canaries_after": {"copy": (1e-3,)}}
    one: dict[str, Any] = {"before": measure(*STEADY), "after": measure(slower), **KNOWN, **steady}
    verdict = judge(*(situation(case_id=f"model{number}/x", **one) for number in range(4)))
    found = [find(verdict, LATENCY, f"model{number}/x") for number in range(4)]
    assert [(row.status, row.reason) for row in found] == [(Status.INCONCLUSIVE, Reason.MACHINE_SHIFT)] * 4


def test_whatever_gets_no_pairs_is_in_the_note(situation: Make, judge: Judge) -> None:
    """Five cases, all 7 % slower in eager and compiled alike: that all moved is told, not passed over."""
    one: dict[str, Any] = {"before": measure(*STEADY), "after": measure(1.07), **KNOWN}
    verdict = judge(*(situation(case_id=f"model{number}/x", **one) for number in range(5)))
    rows = [row for row in verdict.comparisons if row.metric is LATENCY]
    assert [row.reason for row in rows] == [Reason.KEPT_PACE] * 5
    (note,) = (one for one in tell_notes(verdict) if "kept pace" in one)
    assert "model0" in note


def test_a_loose_threshold_of_the_ratio_is_none_of_the_latency(
    situation: Make, judge: Judge, find: Find
) -> None:
    """Compiled alone 9 % slower: a ratio that may fall by 15 % says nothing of 5 % of latency."""
    thresholds = {metric: spec.threshold for metric, spec in SPECS.items()}
    thresholds[SPEEDUP] = Threshold(relative=0.15, absolute=0.0)
    one = situation(before=measure(*WANDERING), after=measure(1.15, ratio=1.09), **KNOWN)
    row = find(judge(one, thresholds=thresholds), LATENCY)
    assert row.status is Status.INCONCLUSIVE


def test_a_steady_latency_speaks_for_itself(judge_latency: Make) -> None:
    """A change of 10 % would have shown, so nothing else is asked."""
    found = judge_latency(before=measure(*STEADY), after=measure(1.0))
    assert found == (Status.UNCHANGED, Reason.WITHIN_NOISE)


@pytest.mark.parametrize(("moved", "hidden"), [(1.0, 17), (1.15, 33)])
def test_a_note_says_what_could_hide(
    situation: Make, judge: Judge, find: Find, moved: float, hidden: int
) -> None:
    """It names the case, by how much both could be slower, and who would show it.

    As before: what would have been noticed, 17 %. 15 % slower already: the upper end of its interval, 33 %.
    """
    verdict = judge(situation(before=measure(*WANDERING), after=measure(moved), **KNOWN))
    change = find(verdict, LATENCY).change
    (note,) = (one for one in tell_notes(verdict) if "kept pace" in one)
    assert change is not None
    assert f"A slowdown of both by up to {hidden} % could hide: `compile-gate ab` would show it." in note
    assert "mlp" in note


@pytest.mark.parametrize(("thorough", "expected"), [(False, []), (True, [(SPEEDUP, LATENCY)])])
def test_it_gets_pairs_only_where_all_is_to_be_measured(
    screened: Callable[..., Screening], *, thorough: bool, expected: list[tuple[Metric, ...]]
) -> None:
    """`check --base` asks for none, `check --base --thorough` does."""
    screening = screened(before=measure(*WANDERING), after=measure(1.15), **KNOWN)
    assert [one.metrics for one in list_suspects(screening, thorough=thorough)] == expected


def test_pairs_for_something_else_judge_the_latency_too(screened: Callable[..., Screening]) -> None:
    """A compile of 15 s instead of 10, with as many calls unknown: what times it times calls as well."""
    compiles: dict[str, dict[Metric, tuple[float, ...]]]
    compiles = {"before": {COLD: (10.0,) * 5}, "after": {COLD: (15.0,)}}
    changes = {side: measure(*spread) | compiles[side] for side, spread in SIDES.items()}
    (found,) = list_suspects(screened(**changes, **KNOWN))
    assert found.metrics == (SPEEDUP, LATENCY, COLD)


def test_other_code_gets_pairs(screened: Callable[..., Screening]) -> None:
    """The same latencies, and code of which nothing is known."""
    (found,) = list_suspects(screened(before=measure(*WANDERING), after=measure(1.0)))
    assert found.metrics == (SPEEDUP, LATENCY)
