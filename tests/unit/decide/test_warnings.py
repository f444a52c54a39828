"""Warnings of workers, each noted once with its cases."""

from dataclasses import replace

import pytest

from gate.decide.explain.notes import note_lanes, note_warnings
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import Conditions, Place, Run, Trial
from tests.make import make_failure, make_run
from tests.words import make_warnings, write_note


def run_warned(*warned: tuple[str, str]) -> Run:
    """A run with a trial for each case and warning."""
    trials = (Trial(case_id=case, index=1, warnings=make_warnings(text)) for case, text in warned)
    return make_run(*trials)


def _describe_warnings(run: Run) -> tuple[str, ...]:
    return tuple(map(write_note, note_warnings(run)))


def test_a_warning_is_noted_once_with_its_cases() -> None:
    """The same warning of several cases is one note; three of four cases are named."""
    run = run_warned(("a", "slow"), ("b", "slow"), ("a", "slow"), ("c", "slow"), ("d", "slow"), ("b", "odd"))
    assert _describe_warnings(run) == (
        "a, b, c and 1 more: flops not measured: slow.",
        "b: flops not measured: odd.",
    )


def test_many_warnings_are_counted() -> None:
    """Five of seven warnings are noted, or of six, or all five; a run without any has no note."""
    runs = [run_warned(*(("a", f"number {index}") for index in range(count))) for count in (7, 6, 5, 0)]
    assert _describe_warnings(runs[0])[4:] == (
        "a: flops not measured: number 4.",
        "2 more warnings of trials are in run.json.",
    )
    (more,) = note_warnings(runs[1])[5:]
    assert (more.code, more.numbers) == (Code.MORE_WARNINGS, {"warnings": 1})
    assert note_warnings(runs[2])[5:] == note_warnings(runs[3]) == ()


def test_the_warning_of_most_cases_comes_first() -> None:
    """The warning of all cases comes before that of one."""
    run = run_warned(*(("a", f"number {index}") for index in range(6)), ("a", "blind"), ("b", "blind"))
    assert _describe_warnings(run)[0] == "a, b: flops not measured: blind."


def test_failures_before_a_run_was_continued_are_noted_first_and_once() -> None:
    """A case that failed twice and then ran has one note; one that failed again is a failure."""
    failures = tuple(make_failure(case) for case in ("a", "a", "b"))
    run = replace(run_warned(("a", "slow")), retried=failures, failures=failures[2:])
    assert _describe_warnings(run) == (
        "a: failed (crash at compile) before the run was continued, and was tried again.",
        "a: flops not measured: slow.",
    )


def test_a_slow_lane_is_named_by_host() -> None:
    """One of four lanes takes 30 and 50 % longer for two test programs and is named; one with 20 % is not."""
    seconds = {"GPU-1": (1.0, 2.0), "GPU-2": (1.0, 2.0), "GPU-3": (1.3, 3.0), "GPU-4": (1.2, 2.4)}
    trials = (
        Trial(
            case_id="a",
            index=1,
            place=name,
            conditions=Conditions(canaries_s={"loop": loop, "copy": copy, name: 1.0}),
        )
        for name, (loop, copy) in seconds.items()
    )
    places = {name: Place(host=f"host-{name[-1]}", device=name, cores="") for name in seconds}
    gone = Fact(code=Code.LANE_GONE, numbers={"lost_s": 7.0}, names=name_words(lane="GPU-5", reason="dead"))
    run = replace(make_run(*trials), places=places, lanes=(gone,))
    first, (slow,) = note_lanes(run)[0], note_lanes(run)[1:]
    assert first == gone
    assert (slow.code, slow.name("lane")) == (Code.LANE_SLOW, "GPU-3 on host-3")
    assert slow.numbers["slower"] == pytest.approx(0.4)
    assert note_lanes(replace(run, places={})) == (gone,)
    assert note_lanes(replace(run, places={"GPU-3": places["GPU-3"]})) == (gone,)  # with none to compare
