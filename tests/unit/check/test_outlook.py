"""Which cases get no further trial, since none that is likely would settle them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gate.check import Checked, check_alone
from gate.records import Code, Conditions, Disturbance, Metric, Outcome, Reason, Run, Status

from .conftest import Given, Subject, make_run, make_stored, make_terms

LATENCY, BREAKS = Metric.COMPILED_LATENCY, Metric.GRAPH_BREAKS
WILD = (0.7, 0.85, 1.0, 1.2, 1.4)  # stored trials that vary by 27 %: three more tell nothing
LIVELY = (0.92, 0.95, 1.0, 1.05, 1.08)  # by 7 %: one tells too little, and two enough


def check(
    given: Given, vary: Sequence[float], conditions: Conditions | None = None, canary_s: float = 0.0
) -> Checked:
    run = replace(make_run(given.subjects), base=None)
    if conditions is not None:
        run = replace(run, trials=tuple(replace(trial, conditions=conditions) for trial in run.trials))
    return check_alone(given, run, make_terms(run, baselines=make_stored(run, vary, canary_s)))


def list_codes(checked: Checked) -> tuple[list[Code], list[Code]]:
    """The notes on what was not repeated, and the steps that settle what is open."""
    notes = [one.code for one in checked.verdict.notes if one.code.value.startswith("unrepeated")]
    return notes, [one.code for one in checked.verdict.next_steps]


def test_stored_trials_that_vary_too_much_are_repeated_by_none() -> None:
    """Even three trials could not tell a large change: one is all, a note says so, and pairs are advised."""
    given = Given(subjects=[Subject()])
    checked = check(given, WILD)
    found = {one.reason for one in checked.verdict.comparisons if one.status is Status.INCONCLUSIVE}
    assert (found, given.asked) == ({Reason.NOISE_TOO_HIGH}, [])
    assert list_codes(checked) == ([Code.UNREPEATED], [Code.SETTLE])
    (note,) = [one for one in checked.verdict.notes if one.code is Code.UNREPEATED]
    assert (note.cases, note.numbers) == (("a/x",), {"trials": 3})


def test_what_a_second_trial_tells_is_measured() -> None:
    """The same of stored trials that vary less: two tell that nothing changed."""
    given = Given(subjects=[Subject()])
    checked = check(given, LIVELY)
    assert (checked.verdict.outcome, given.asked) == (Outcome.PASS, [("a/x", 2)])
    assert list_codes(checked) == ([], [])


def test_only_what_cannot_be_told_is_left_out() -> None:
    """A graph break has to be seen again, however little further trials tell of the latency."""
    given = Given(subjects=[Subject(name="a", alone=[{BREAKS: 1.0}] * 3), Subject(name="b")])
    checked = check(given, WILD)
    assert (checked.verdict.outcome, given.asked) == (Outcome.REGRESSION, [("a/x", 2)])
    (note,) = [one for one in checked.verdict.notes if one.code is Code.UNREPEATED]
    assert note.cases == ("a/x", "b/x")


def test_chance_of_a_conviction_is_taken() -> None:
    """A latency that chance could carry to where it convicts is measured, though what is stored varies."""
    given = Given(subjects=[Subject(alone=[{LATENCY: 0.03}] * 3)])
    assert check(given, WILD).verdict.outcome is Outcome.REGRESSION
    assert given.asked == [("a/x", 2)]


def test_first_trials_may_have_been_strays() -> None:
    """They are 5.5 % slower, more than chance explains; the next two are as stored, and clear all four."""
    given = Given(subjects=[Subject(name=name, alone=[{LATENCY: 0.01055}, {}, {}]) for name in "abcd"])
    checked = check(given, (1.0,) * 5)
    assert given.asked == [(f"{name}/x", trials) for trials in (2, 3) for name in "abcd"]
    assert (checked.verdict.outcome, list_codes(checked)) == (Outcome.PASS, ([], []))


def test_second_trial_that_says_the_same_ends_it() -> None:
    """Twice 8 % slower: beyond what is cleared and short of the bar, and a third would leave it there."""
    given = Given(subjects=[Subject(name=name, alone=[{LATENCY: 0.0108}] * 3) for name in "abcd"])
    checked = check(given, (1.0,) * 5)
    assert given.asked == [(f"{name}/x", 2) for name in "abcd"]
    assert list_codes(checked) == ([Code.UNREPEATED], [Code.SETTLE])


def test_disturbed_trial_foretells_nothing() -> None:
    """What other programs did to the first trial they may not do to the next."""
    given = Given(subjects=[Subject()])
    check(given, WILD, Conditions(disturbances=(Disturbance.CROWDED,)))
    assert given.asked == [("a/x", 2), ("a/x", 3)]


def test_machine_that_moved_is_told() -> None:
    """Canaries take half the time: what looked as slow as ever is doubtful, and no trial here settles it."""
    given = Given(subjects=[Subject()])
    checked = check(given, (1.0,) * 5, Conditions(canaries_s={"matmul": 0.0005}), canary_s=0.001)
    reasons = {one.metric: one.reason for one in checked.verdict.comparisons}
    assert (reasons[LATENCY], given.asked) == (Reason.MACHINE_SHIFT, [])
    (note,) = [one for one in checked.verdict.notes if one.code is Code.UNREPEATED_MACHINE]
    assert (note.cases, note.numbers) == (("a/x",), {"canary": -0.5})
    assert list_codes(checked) == ([Code.UNREPEATED_MACHINE], [Code.SETTLE])


def test_machine_that_was_only_disturbed_is_worth_another_try() -> None:
    """Nobody says that more trials tell nothing where other programs were what moved the canaries."""
    given = Given(subjects=[Subject()])
    disturbed = Conditions(canaries_s={"matmul": 0.0005}, disturbances=(Disturbance.CROWDED,))
    checked = check(given, (1.0,) * 5, disturbed, canary_s=0.001)
    assert given.asked == []
    assert list_codes(checked) == ([], [Code.SETTLE, Code.SETTLE_BY_TRIALS])


@pytest.mark.parametrize("most", [1, 3])
def test_case_that_had_all_its_trials_is_no_news(most: int) -> None:
    """Where one trial is all that is allowed, nothing was left out, and more trials are advised."""
    given = Given(subjects=[Subject()])
    run: Run = replace(make_run(given.subjects), base=None)
    checked = check_alone(given, run, make_terms(run, baselines=make_stored(run, WILD), max_trials=most))
    expected = ([Code.UNREPEATED], [Code.SETTLE]) if most > 1 else ([], [Code.SETTLE, Code.SETTLE_BY_TRIALS])
    assert list_codes(checked) == expected
