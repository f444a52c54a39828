"""What the pull request is told of an approval: cases that the default branch knows, metrics, numbers; pure.

The reason is not repeated: whoever gave it wrote it in the comment that this answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from gate.publish.approval import Accepted
from gate.records import Acceptance, Comparison, Outcome, Reason
from gate.report.markdown import escape_code
from gate.report.words.terms import name_metric
from gate.units import render_allowance, render_change

MAX_APPROVAL_ROWS = 40  # a reader has seen them in the report already
_REMAINING = {
    Outcome.INCOMPLETE: (
        "Not all cases could be measured: that cannot be accepted, and the check stays red until they are."
    ),
    Outcome.NOTHING_COMPARED: (
        "Nothing would be compared then: the check stays red. Accept that without naming cases or a metric."
    ),
}
_TAKEN = "Nothing was compared; the check says so, and is green."


def render_accepted(accepted: Accepted) -> str:
    """Render what was accepted, what that leaves, and what happens now, as Markdown."""
    return "\n\n".join(_list_parts(accepted))


def _list_parts(accepted: Accepted) -> Iterator[str]:
    approval = accepted.approval
    first = approval.entries[0]  # all of one comment, and so of one gate, environment and day
    removed = " or is removed" if any(row.reason is Reason.REMOVED for row in accepted.rows) else ""
    entries = len(approval.accepted)
    what = f"{entries} of what regressed{removed}" if entries else "the lack of baselines"
    yield f"Accepted for commit {approval.commit[:12]} alone, until {first.expires}: {what}."
    yield f"It counts for {escape_code(first.gate)} on {escape_code(first.environment)}, and nowhere else."
    if accepted.rows:
        yield "\n".join(_list_lines(accepted))
    if accepted.left:
        count = f"{accepted.left} {'regression is' if accepted.left == 1 else 'regressions are'}"
        yield f"{count} not covered by it: the check stays red."
    elif accepted.remaining is Outcome.NOTHING_COMPARED and accepted.is_waived:
        yield _TAKEN
    elif accepted.remaining in _REMAINING:
        yield _REMAINING[accepted.remaining]
    yield _describe_next(accepted)


def _list_lines(accepted: Accepted) -> Iterator[str]:
    yield "| case | metric | measured | accepted up to |"
    yield "| --- | --- | ---: | ---: |"
    pairs = zip(accepted.rows, accepted.approval.accepted, strict=True)
    for row, entry in list(pairs)[:MAX_APPROVAL_ROWS]:
        yield _render_row(row, entry)
    if len(accepted.rows) > MAX_APPROVAL_ROWS:
        yield f"| *and {len(accepted.rows) - MAX_APPROVAL_ROWS} more* | | | |"


def _render_row(row: Comparison, entry: Acceptance) -> str:
    if row.reason is Reason.REMOVED:
        return f"| {escape_code(row.case_id)} | the whole case | removed | |"
    change = render_change(row.metric, row.change.centre) if row.change else ""
    allowance = render_allowance(entry.metric, entry.allowance)
    return f"| {escape_code(row.case_id)} | {name_metric(row.metric)} | {change} | {allowance} |"


def _describe_next(accepted: Accepted) -> str:
    run = f"[the check]({accepted.run_url})"
    if accepted.trouble:
        return (
            f"It could not be started again: re-run the failed jobs of {run} yourself."
            " A new commit needs a new approval."
        )
    return f"Now {run} runs again, and counts it. A new commit needs a new approval."
