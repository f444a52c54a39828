"""Continuing a run that was stopped."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gate.errors import UsageError
from gate.lab.trials.same_run import carry_over, resume_run
from gate.records.cases import Case
from gate.records.events import Event, Noted
from gate.records.run import BaseArm, Extent, Provenance, Run, Trial
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_run
from tests.words import describe_measuring

CASE = Case(id="a/x", model="a", definition="1")
ENVIRONMENT = replace(CPU_HOST, torch="2.13.0")
FRESH = make_run(
    cases=(CASE,),
    environment=ENVIRONMENT,
    provenance=Provenance(commit="c" * 40, created="2026-11-21T09:00:00Z"),
    trials_planned=2,
    toolchain_s=10.0,
    wall_s=10.0,
    changes="f" * 16,
    sampling={"super_blocks": 15, "block_s": 0.01},
    finished=False,
)
BASE = BaseArm(label="main", environment=ENVIRONMENT, provenance=Provenance(commit="b" * 40), cases=(CASE,))
PREVIOUS = replace(
    FRESH,
    provenance=Provenance(commit="c" * 40, created="2026-11-21T08:00:00Z"),
    trials=(Trial(case_id="a/x", index=1),),
    failures=(make_failure("a/x", "", trial=2),),
    wall_s=50.0,
)


def test_takes_trials_and_time_but_no_failures() -> None:
    """Trials, spent time and begin are kept; failures are tried again, and remembered."""
    expected = replace(
        FRESH,
        provenance=PREVIOUS.provenance,
        trials=PREVIOUS.trials,
        retried=PREVIOUS.failures,
        toolchain_s=20.0,
        wall_s=60.0,
    )
    assert expected == carry_over(FRESH, PREVIOUS)


@pytest.mark.parametrize(
    ("fresh", "kept"),
    [
        (FRESH, [1, 3]),  # two are planned: the second has to be a whole one
        (replace(FRESH, trials_planned=1), [1, 2, 3]),
        (replace(FRESH, trials_planned=1, base=BASE), [1]),
    ],
)
def test_light_trials_stand_for_no_whole_ones(fresh: Run, kept: list[int]) -> None:
    """Planned trials, and those for a counter, are measured whole."""
    trials = tuple(
        Trial(case_id="a/x", index=index, extent=Extent.WHOLE if index == 1 else Extent.COLD)
        for index in (1, 2, 3)
    )
    previous = replace(PREVIOUS, trials=trials, failures=(), trials_planned=1)
    assert [trial.index for trial in carry_over(fresh, previous).trials] == kept


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: replace(run, trials_planned=0), "pairs (`ab`) -> trials (`check`)"),
        (lambda run: replace(run, cases=()), "a/x was not part of it"),
        (lambda run: replace(run, cases=(CASE, replace(CASE, id="b/x"))), "b/x is no longer selected"),
        (lambda run: replace(run, cases=(replace(CASE, definition="2"),)), "a/x has another definition"),
        (
            lambda run: replace(run, environment=replace(ENVIRONMENT, torch="2.12.0")),
            "torch 2.12.0 -> 2.13.0",
        ),
        (
            lambda run: replace(run, provenance=Provenance(commit="d" * 40)),
            "commit dddddddddd -> cccccccccc",
        ),
        (lambda run: replace(run, changes="0" * 16), "what is not committed has changed"),
        (
            lambda run: replace(run, sampling={"super_blocks": 15, "block_s": 0.02}),
            "sampling.block_s 0.02 -> 0.01",
        ),
    ],
)
def test_refuses_another_run(change: Callable[[Run], Run], words: str) -> None:
    """Other cases, definitions, environments, commits or sampling settings are refused by name."""
    with pytest.raises(UsageError) as caught:
        carry_over(FRESH, change(PREVIOUS))
    assert f"the saved run cannot be continued: {words}" == caught.value.what


def test_unknown_changes_are_no_difference() -> None:
    """An older run, or one outside of git, can be continued."""
    assert carry_over(FRESH, replace(PREVIOUS, changes="")).trials == PREVIOUS.trials


@pytest.mark.parametrize(("changes", "is_noted"), [("", True), ("f" * 16, False)])
def test_what_git_cannot_show_is_reported(changes: str, is_noted: bool) -> None:
    """Outside of git the earlier trials may be of other code."""
    events: list[Event] = []
    resume_run(replace(FRESH, changes=changes), replace(PREVIOUS, changes=changes), events.append)
    notes = [describe_measuring(event.fact) for event in events if isinstance(event, Noted)]
    assert notes == (["git cannot show edits: earlier trials may be of other code"] if is_noted else [])


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (replace(BASE, provenance=Provenance(commit="a" * 40)), "base commit aaaaaaaaaa -> bbbbbbbbbb"),
        (
            replace(BASE, environment=replace(ENVIRONMENT, torch="2.12.0")),
            "base: torch 2.12.0 -> 2.13.0",
        ),
        (replace(BASE, pythons=("/old", "/other")), "other interpreters"),
    ],
)
def test_refuses_another_base(base: BaseArm, words: str) -> None:
    """Pairs with another commit, or another stack, as the base are not continued."""
    with pytest.raises(UsageError) as caught:
        carry_over(replace(FRESH, base=replace(BASE, pythons=("/old", "/new"))), replace(PREVIOUS, base=base))
    assert f"the saved run cannot be continued: {words}" == caught.value.what


@pytest.mark.parametrize("fresh", [(), ("/old", "/new")])
@pytest.mark.parametrize("previous", [(), ("/old", "/new")])
def test_unknown_interpreters_are_no_difference(fresh: tuple[str, ...], previous: tuple[str, ...]) -> None:
    """An older run, and one whose interpreters are not known yet."""
    runs = [
        replace(run, base=replace(BASE, pythons=pythons))
        for run, pythons in ((FRESH, fresh), (PREVIOUS, previous))
    ]
    assert carry_over(*runs).trials == PREVIOUS.trials


@pytest.mark.parametrize("provenance", [Provenance(), replace(BASE.provenance, dirty=True)])
def test_refuses_another_directory_as_the_base(provenance: Provenance) -> None:
    """Two directories, or two states of one, differ in names or edits; no commit shows it."""
    of_directory = replace(BASE, label="../one", provenance=provenance, changes="1")
    other, edited, unknown = (
        replace(of_directory, label="../other"),
        replace(of_directory, changes="2"),
        replace(of_directory, changes=""),
    )
    for base, words in ((other, "base ../other -> ../one"), (edited, "what the base has in no commit")):
        with pytest.raises(UsageError, match=words):
            carry_over(replace(FRESH, base=of_directory), replace(PREVIOUS, base=base))
    assert carry_over(replace(FRESH, base=of_directory), replace(PREVIOUS, base=unknown)).base == of_directory


def test_a_commit_by_another_name_is_the_same_base() -> None:
    """A branch had another name, or moved since."""
    named = replace(BASE, label="HEAD~3 (bbbbbbb)")
    assert carry_over(replace(FRESH, base=BASE), replace(PREVIOUS, base=named)).base == BASE


def test_base_that_one_of_the_two_lacks() -> None:
    """A run before its pairs and one with pairs are the same run."""
    assert carry_over(replace(FRESH, base=BASE), PREVIOUS).base == BASE
    assert carry_over(FRESH, replace(PREVIOUS, base=BASE)).base is None


def test_names_three_differences() -> None:
    """Three are named and the rest are counted."""
    cases = tuple(replace(CASE, id=f"{name}/x") for name in "bcdef")
    with pytest.raises(UsageError, match="d/x is no longer selected and 2 more"):
        carry_over(FRESH, replace(PREVIOUS, cases=(CASE, *cases)))
