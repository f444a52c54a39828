"""The outcome of comparisons, and what could still change it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gate.metrics import SPECS
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.verdict import BROKEN, Comparison, Outcome, Reason, Status, Verdict

# More trials of the candidate can change these; not a baseline with too few trials.
_SETTLED_BY_TRIALS = frozenset({Reason.UNSETTLED, Reason.SHARED_SHIFT, Reason.UNCORROBORATED})
_ANYWAY = Fact(code=Code.ALREADY_REGRESSED)


def remark_regressed_anyway(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    regressed = list_regressed_cases(comparisons)
    return tuple(
        replace(row, remarks=(*row.remarks, _ANYWAY))
        if row.case_id in regressed and row.decides and row.waits_for_pairs and row.more_pairs
        else row
        for row in comparisons
    )


def list_regressed_cases(comparisons: Iterable[Comparison]) -> frozenset[str]:
    return frozenset(row.case_id for row in comparisons if row.decides and row.status is Status.REGRESSED)


def decide_outcome(comparisons: Sequence[Comparison], *, finished: bool) -> Outcome:
    """The strongest outcome of any deciding comparison."""
    statuses = {row.status for row in comparisons if row.decides}
    if not finished or statuses & BROKEN:
        return Outcome.INCOMPLETE
    if Status.REGRESSED in statuses:
        return Outcome.REGRESSION
    if not any(row.is_judged for row in comparisons):
        return Outcome.NOTHING_COMPARED
    return Outcome.INCONCLUSIVE if Status.INCONCLUSIVE in statuses else Outcome.PASS


def _has_flickered(row: Comparison) -> bool:
    counted = row.candidate if SPECS[row.metric].repeats else None
    return counted is not None and counted.low != counted.high


def list_open(verdict: Verdict) -> tuple[Comparison, ...]:
    """What more trials could settle, such as a regression seen in a single trial."""
    return tuple(
        row
        for row in verdict.comparisons
        if row.decides
        and (
            (row.status is Status.REGRESSED and row.candidate is not None and row.candidate.n == 1)
            or (row.reason in _SETTLED_BY_TRIALS and not _has_flickered(row))
        )
    )
