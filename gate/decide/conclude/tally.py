"""What a verdict rests on: so many trials and pairs, and how many of them were disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gate.decide.evidence.disturbed import count_disturbed, note_count
from gate.decide.evidence.pairs import list_pairs
from gate.records import Code, Comparison, Fact, Run, Tally, list_distinct, name_words

_MAX_WARNINGS = 5  # more are in run.json


def measure_tally(run: Run, comparisons: Sequence[Comparison], cleared: Sequence[Comparison] = ()) -> Tally:
    """Count trials, pairs and rows; ``cleared`` got worse since the baselines, but not by the change."""
    pairs = [pair for found in list_pairs(run).values() for pair in found] if run.base else []
    disturbed_trials, trials, disturbed_pairs = count_disturbed(run)
    return Tally(
        finished=run.finished,
        trials=trials,
        disturbed_trials=disturbed_trials,
        pairs=len(pairs),
        paired_cases=len({pair.head.case_id for pair in pairs}),
        pairs_in_turn=sum(not pair.is_live for pair in pairs),
        disturbed_pairs=disturbed_pairs,
        cleared=len(cleared),
        cases=len(run.cases),
        comparisons=len(comparisons),
    )


def note_tally(tally: Tally) -> tuple[Fact, ...]:
    """All notes that the counts alone give."""
    worse = {"comparisons": tally.cleared}
    return (
        *note_stop(finished=tally.finished),
        *note_pairs(tally),
        *([Fact(code=Code.CLEARED, numbers=worse)] if tally.cleared else []),
        *note_count(Code.TRIALS_DISTURBED, tally.disturbed_trials, tally.trials),
        *note_count(Code.PAIRS_DISTURBED, tally.disturbed_pairs, tally.pairs),
    )


def note_stop(*, finished: bool) -> tuple[Fact, ...]:
    """A note on a run that did not come to its end."""
    return () if finished else (Fact(code=Code.STOPPED),)


def note_pairs(tally: Tally) -> tuple[Fact, ...]:
    """How much ran side by side with the base, and how."""
    numbers = {"pairs": tally.pairs, "cases": tally.paired_cases, "turns": tally.pairs_in_turn}
    return (Fact(code=Code.PAIRS, numbers=numbers),) if tally.pairs else ()


def note_warnings(run: Run) -> tuple[Fact, ...]:
    """A note on each warning, with the cases that it came from; what most of them tell comes first.

    Before them all stands what failed before the run was continued, and did not fail again.
    """
    warned = [(warning, trial.case_id) for trial in run.trials for warning in trial.warnings]
    notes = [
        replace(warning, cases=tuple(dict.fromkeys(case_id for other, case_id in warned if other == warning)))
        for warning in list_distinct(warning for warning, _ in warned)
    ]
    widest = sorted(notes, key=lambda note: len(note.cases), reverse=True)
    more = len(widest) - _MAX_WARNINGS
    return (
        *_note_retried(run),
        *widest[:_MAX_WARNINGS],
        *([Fact(code=Code.MORE_WARNINGS, numbers={"warnings": more})] if more > 0 else []),
    )


def _note_retried(run: Run) -> tuple[Fact, ...]:
    failed = {failure.case_id for failure in run.failures}
    return list_distinct(
        Fact(
            code=Code.FAILED_BEFORE,
            cases=(one.case_id,),
            names=name_words(kind=one.kind.value, stage=one.stage),
        )
        for one in run.retried
        if one.case_id not in failed
    )
