"""What workers warned of: a trial that could not do all that was asked, or not as usual."""

from __future__ import annotations

from gate.records import Code, Fact, Run

_MAX_WARNINGS = 5  # more are in run.json


def note_warnings(run: Run) -> tuple[Fact, ...]:
    """A note on each warning, with the cases that it came from; what most of them tell comes first."""
    warned: dict[str, dict[str, None]] = {}
    for trial in run.trials:
        for warning in trial.warnings:
            warned.setdefault(warning, {})[trial.case_id] = None
    widest = sorted(warned.items(), key=lambda item: len(item[1]), reverse=True)
    more = len(widest) - _MAX_WARNINGS
    return (
        *(
            Fact(code=Code.WARNING, cases=tuple(cases), names={"text": (warning,)})
            for warning, cases in widest[:_MAX_WARNINGS]
        ),
        *([Fact(code=Code.MORE_WARNINGS, numbers={"warnings": more})] if more > 0 else []),
    )
