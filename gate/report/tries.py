"""What came of trying cases before they are measured, as text."""

from __future__ import annotations

from gate.records import CaseFailure
from gate.report.blocks import LOG_LINES
from gate.report.clean import clean_line, clean_lines


def render_attempt(case_id: str, failure: CaseFailure | None) -> str:
    """Return a line for a case that could be built and called; else what went wrong, where, and its log."""
    if failure is None:
        return f"ok      {clean_line(case_id)}\n"
    where = f"{failure.kind.value} in stage {clean_line(failure.stage)}"
    lines = [f"FAILED  {clean_line(case_id)}: {where}: {clean_line(failure.message)}"]
    lines += [f"    | {line}" for line in clean_lines(failure.log_tail, LOG_LINES)]
    lines += [f"    log: {clean_line(failure.log)}"] if failure.log else []
    return "\n".join(lines) + "\n"


def render_tally(cases: int, failed: int) -> str:
    """Return how many cases could be built and called; nothing else was found out."""
    noun = "case" if cases == 1 else "cases"
    if not failed:
        return f"{cases} {noun} can be built and called. Nothing was compiled or measured."
    return f"{failed} of {cases} {noun} cannot be built or called: `check` would be INCOMPLETE."
