"""What workers warned of: a trial that could not do all that was asked, or not as usual."""

from __future__ import annotations

from dataclasses import replace

from gate.records import Code, Fact, Run, list_distinct

_MAX_WARNINGS = 5  # more are in run.json


def note_warnings(run: Run) -> tuple[Fact, ...]:
    """A note on each warning, with the cases that it came from; what most of them tell comes first."""
    warned = [(warning, trial.case_id) for trial in run.trials for warning in trial.warnings]
    notes = [
        replace(warning, cases=tuple(dict.fromkeys(case_id for other, case_id in warned if other == warning)))
        for warning in list_distinct(warning for warning, _ in warned)
    ]
    widest = sorted(notes, key=lambda note: len(note.cases), reverse=True)
    more = len(widest) - _MAX_WARNINGS
    return (
        *widest[:_MAX_WARNINGS],
        *([Fact(code=Code.MORE_WARNINGS, numbers={"warnings": more})] if more > 0 else []),
    )
