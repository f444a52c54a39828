"""What workers warned of: a trial that could not do all that was asked, or not as usual."""

from __future__ import annotations

from gate.records import Run

_MAX_WARNINGS = 5  # more are in run.json
_MAX_CASES = 3


def note_warnings(run: Run) -> tuple[str, ...]:
    """A note on each warning, with the cases that it came from; what most of them tell comes first."""
    warned: dict[str, dict[str, None]] = {}
    for trial in run.trials:
        for warning in trial.warnings:
            warned.setdefault(warning, {})[trial.case_id] = None
    widest = sorted(warned.items(), key=lambda item: len(item[1]), reverse=True)
    notes = [f"{_name_cases(list(cases))}: {warning}." for warning, cases in widest]
    more = len(notes) - _MAX_WARNINGS
    return (
        *notes[:_MAX_WARNINGS],
        *([f"{more} more warnings of trials are in run.json."] if more > 0 else []),
    )


def _name_cases(case_ids: list[str]) -> str:
    more = len(case_ids) - _MAX_CASES
    return ", ".join(case_ids[:_MAX_CASES]) + (f" and {more} more" if more > 0 else "")
