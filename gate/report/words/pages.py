"""The sentences of HTML pages that no other format needs: what a chart shows and how it is read."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import OTHER_PHASE, Comparison, Outcome, Status
from gate.report.words.templates import name_metric
from gate.units import count_noun, render_threshold

PLOTS_NOTE = (
    "Each point is one trial in fresh processes: hollow before, filled head. The line is the estimate,"
    " the band its interval. A change counts right of the dashed line, or left of it where more is"
    " better."
)
OVERVIEW_NOTE = (
    "The small charts show the change with its interval: the middle line is no change, the dashed one the"
    " limit."
)
CODE_NOTE = "Generated code without names and addresses that differ from run to run: base above, head below."
CODE_CUT = "Cut: this compares the beginnings; more may differ further on."
CODE_LOST = "Its source was not kept; pairs keep it (compile-gate ab)."
TRACE_NOTE = (
    "Of one more compile, in a process of its own. Run it in the directory of this page, after `pip"
    " install tlparse`."
)
OTHER_ENVIRONMENT = "What differs between both sides"
SAME_ENVIRONMENT = "Both sides were measured in the same environment."
NO_ENVIRONMENT = "Not known: there is no other side, or its environment was not stored."

# By what a reader does about it: the colour and sign of a badge.
STATUS_CLASSES: Mapping[Status, str] = {
    Status.REGRESSED: "bad",
    Status.FAILED: "bad",
    Status.MISSING: "bad",
    Status.INCONCLUSIVE: "unsure",
    Status.ACCEPTED: "other",
    Status.NEW: "other",
    Status.NOT_COMPARABLE: "other",
    Status.IMPROVED: "good",
    Status.UNCHANGED: "same",
}
OUTCOME_KINDS: Mapping[Outcome, str] = {
    Outcome.PASS: "good",
    Outcome.REGRESSION: "bad",
    Outcome.INCOMPLETE: "bad",
    Outcome.INCONCLUSIVE: "unsure",
    Outcome.NOTHING_COMPARED: "bad",  # it fails the check, whatever --fail-on says
}
KIND_NAMES: Mapping[str, str] = {
    "bad": "worse or failed",
    "unsure": "could not tell",
    "other": "accepted or not judged",
    "good": "improved",
    "same": "unchanged",
}


def name_phase(phase: str) -> str:
    """Name a phase of a compile: ``code generation``."""
    return "in no phase" if phase == OTHER_PHASE else phase.replace("_", " ")


def describe_plot(comparison: Comparison, before: int, after: int) -> str:
    """Describe a chart of both sides for a screen reader; the numbers stand in the table."""
    sides = [f"{count_noun(after, 'value')} of head"] + ([f"{before} of the side before"] if before else [])
    limit = comparison.threshold
    counts = f", a change counts beyond {render_threshold(comparison.metric, limit)}" if limit else ""
    return f"{name_metric(comparison.metric)}: {' and '.join(sides)}{counts}"
