"""The sentences of HTML pages that no other format needs: what a chart shows and how it is read."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import OTHER_PHASE, Comparison, Metric, Outcome, Status
from gate.report.words.templates import name_metric
from gate.units import count_noun, render_threshold

PLOTS_NOTE = (
    "Each point is one trial in fresh processes: hollow of the side before, filled of head. The line is the"
    " estimate, the band its interval. Right of the dashed line, or left of it where more is better, a change"
    " counts."
)
ORDER_NOTE = (
    "The change of head against base in each pair, in the order in which they ran; + is worse. A pair of"
    " eager (hollow) that moves like compiled (filled) points to the machine or to what both share."
)
PHASES_NOTE = (
    "What each phase of the compile took by itself, so that the parts add up: the median over the trials."
)
OVERVIEW_NOTE = (
    "The small charts show the largest change with its interval, counted in limits: the line in the middle"
    " is no change, the dashed one the limit."
)
CODE_NOTE = (
    "Generated code, with what differs from run to run (names, addresses) taken out: base above, head below."
)
CODE_CUT = "Too long to be kept whole: this compares the beginnings, and more may differ further on."
TRACE_NOTE = (
    "Of a compile like each trial's, in a process of its own. From the directory of this page; tlparse comes"
    " with `pip install tlparse`."
)
OTHER_ENVIRONMENT = "What differs between both sides"
SAME_ENVIRONMENT = "Both sides were measured in one environment: nothing that is recorded of it differs."
NO_ENVIRONMENT = "What differs is not known: there is no other side, or its environment was not kept."
NO_EVIDENCE = "Nothing was kept of this case to be shown: run.json has every sample."

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
    """Describe a chart of both sides for whoever cannot see it; the numbers stand in the table."""
    sides = [f"{count_noun(after, 'value')} of head"] + ([f"{before} of the side before"] if before else [])
    limit = comparison.threshold
    counts = f", a change counts beyond {render_threshold(comparison.metric, limit)}" if limit else ""
    return f"{name_metric(comparison.metric)}: {' and '.join(sides)}{counts}"


def describe_order(metrics: list[Metric], pairs: int) -> str:
    """Describe a chart of changes in their order."""
    return f"{' and '.join(map(name_metric, metrics))} in {count_noun(pairs, 'pair')}, in their order"
