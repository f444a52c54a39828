"""What a verdict says of cases that got no further trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gate.decide import note_unrepeated
from gate.records import Code, Fact, MachineShift, Metric, Reason, Status, Verdict
from tests.told import tell_notes

Make = Callable[..., Any]
Judge = Callable[..., Verdict]
CASE = "mlp/inference-float32-smoke-default"
LATENCY = Metric.COMPILED_LATENCY
SETTLE = Fact(code=Code.SETTLE, cases=("a/x", "b/x"))
REPEAT = Fact(code=Code.SETTLE_BY_TRIALS, cases=("a/x", "b/x"))


def make_verdict(situation: Make, judge: Judge, reason: Reason) -> Verdict:
    """Two cases whose latency is open for this reason, on a machine that is 28 % faster."""
    cases = [
        situation(case_id=one, before={LATENCY: (0.010,) * 5}, after={LATENCY: (0.010,)})
        for one in ("a/x", "b/x")
    ]
    verdict = judge(*cases)
    rows = tuple(replace(one, status=Status.INCONCLUSIVE, reason=reason) for one in verdict.comparisons)
    machine = MachineShift(canary=-0.28, known=True)
    return replace(verdict, comparisons=rows, notes=(), next_steps=(SETTLE, REPEAT), machine=machine)


def test_open_case_that_was_left_out_is_named(situation: Make, judge: Judge) -> None:
    """Of two open cases one was left out: it is noted, and more trials are advised of the other alone."""
    verdict = make_verdict(situation, judge, Reason.NOISE_TOO_HIGH)
    noted = note_unrepeated(verdict, {"a/x"}, 3)
    assert noted.notes == (Fact(code=Code.UNREPEATED, numbers={"trials": 3}, cases=("a/x",)),)
    (told,) = tell_notes(noted)
    assert told.startswith("No further trials of a/x: even 3 could hardly settle it against what is stored.")
    assert noted.next_steps == (SETTLE, replace(REPEAT, cases=("b/x",)))


def test_machine_that_moved_is_the_reason(situation: Make, judge: Judge) -> None:
    """Where its shift leaves all open, the note has the shift, and nobody advises more trials."""
    verdict = make_verdict(situation, judge, Reason.MACHINE_SHIFT)
    noted = note_unrepeated(verdict, {"a/x", "b/x"}, 3)
    told = Fact(code=Code.UNREPEATED_MACHINE, numbers={"canary": -0.28}, cases=("a/x", "b/x"))
    assert (noted.notes, noted.next_steps) == ((told,), (SETTLE,))
    (sentence,) = tell_notes(noted)
    assert "the machine changed (fixed test programs -28.0 % (faster)), and more trials" in sentence


def test_settled_case_is_not_noted(situation: Make, judge: Judge) -> None:
    """A case that got no further trial since nothing of it is open is no news."""
    verdict = judge(situation(before={LATENCY: (0.010,) * 5}, after={LATENCY: (0.010,)}))
    assert note_unrepeated(verdict, {CASE}, 3) == verdict
