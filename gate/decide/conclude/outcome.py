"""The outcome of comparisons, its exit code, and how much was judged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gate.decide.conclude.accept import is_in_force
from gate.decide.evidence.pairs import list_pairs
from gate.decide.evidence.steal import excuse_run
from gate.decide.evidence.trials import is_disturbed, list_screened
from gate.errors import ExitCode
from gate.metrics import SPECS, Scope
from gate.records.cases import Policy
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Run
from gate.records.verdict import BROKEN, JUDGED, Comparison, Outcome, Reason, Status, Tally, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Counts of deciding comparisons and of the cases that have any: all of them, and those judged.

    A case counts as judged if at least one of its comparisons was.
    """

    comparisons: int = 0
    judged: int = 0
    cases: int = 0
    judged_cases: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether everything that should decide was judged."""
        return self.judged == self.comparisons


def measure_coverage(comparisons: Iterable[Comparison]) -> Coverage:
    deciding = [row for row in comparisons if row.decides]
    judged = [row for row in deciding if is_judged(row)]
    return Coverage(
        comparisons=len(deciding),
        judged=len(judged),
        cases=len({row.case_id for row in deciding}),
        judged_cases=len({row.case_id for row in judged}),
    )


def list_uncompared(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """The cases with something deciding that has nothing to be compared with; all, if nothing decides."""
    rows = tuple(comparisons)
    deciding = [row for row in rows if row.decides]
    return tuple(dict.fromkeys(row.case_id for row in deciding or rows if not is_judged(row)))


def list_unaccepted(comparisons: Iterable[Comparison], policy: Policy) -> tuple[str, ...]:
    """The cases without a baseline for which nobody accepts that, today, for each commit judged."""
    taken = {
        (entry.commit, entry.case)
        for entry in policy.acceptances
        if entry.metric is None and is_in_force(entry, policy)
    }
    return tuple(
        case
        for case in list_uncompared(comparisons)
        if not policy.commits or any((commit, case) not in taken for commit in policy.commits)
    )


def is_lack_accepted(comparisons: Sequence[Comparison], policy: Policy) -> bool:
    """Whether somebody accepts, today, for each case without a baseline that it has none."""
    return bool(list_uncompared(comparisons)) and not list_unaccepted(comparisons, policy)


def is_judged(comparison: Comparison) -> bool:
    """Whether a deciding comparison has a baseline, or is beyond a limit.

    Not if it is beyond a limit that somebody accepted, or had no time for a pair, and has no baseline.
    """
    is_waived = comparison.status is Status.ACCEPTED or comparison.reason is Reason.UNPAIRED
    is_bare = is_waived and comparison.baseline is None
    return comparison.decides and comparison.status in JUDGED and not is_bare


def classify_unjudged(comparison: Comparison) -> Code | None:
    """What another environment's baselines lack; ``None`` where that is not the reason."""
    if comparison.reason is not Reason.OTHER_ENVIRONMENT:
        return None
    if any(fact.code is Code.MACHINE_SPEED for fact in comparison.remarks):
        return Code.OTHER_SPEED
    return Code.OTHER_MACHINES if SPECS[comparison.metric].scope is Scope.HOST else Code.OTHER_STACK


def measure_tally(run: Run, comparisons: Sequence[Comparison], cleared: Sequence[Comparison] = ()) -> Tally:
    """Count trials, pairs and rows; ``cleared`` got worse since the baselines, but not by the change."""
    excused = excuse_run(run)
    pairs = [pair for case_pairs in list_pairs(excused).values() for pair in case_pairs] if run.base else []
    trials = list_screened(excused)
    return Tally(
        finished=run.finished,
        trials=len(trials),
        disturbed_trials=sum(map(is_disturbed, trials)),
        pairs=len(pairs),
        paired_cases=len({pair.head.case_id for pair in pairs}),
        pairs_in_turn=sum(not pair.is_live for pair in pairs),
        disturbed_pairs=sum(is_disturbed(pair.head) for pair in pairs),
        cleared=len(cleared),
        cases=len(run.cases),
        comparisons=len(comparisons),
    )


_ANYWAY = Fact(code=Code.ALREADY_REGRESSED)


def remark_regressed_anyway(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Where more pairs would settle something, but its case has regressed, remark that none are needed."""
    regressed = list_regressed_cases(comparisons)
    return tuple(
        replace(row, remarks=(*row.remarks, _ANYWAY))
        if row.case_id in regressed and row.decides and row.waits_for_pairs and row.more_pairs
        else row
        for row in comparisons
    )


def list_regressed_cases(comparisons: Iterable[Comparison]) -> frozenset[str]:
    return frozenset(row.case_id for row in comparisons if row.decides and row.status is Status.REGRESSED)


class FailOn(StrEnum):
    """The weakest outcome on which a caller fails, the strictest first."""

    NEW = "new"  # as INCONCLUSIVE, and a PASS that left something unjudged exits as NOTHING_COMPARED
    INCONCLUSIVE = "inconclusive"  # the codes as they are
    REGRESSION = "regression"  # INCONCLUSIVE exits 0
    NEVER = "never"  # every outcome exits 0: errors of usage and machine still do not


# More trials of the candidate can change these; not a baseline with too few trials.
_SETTLED_BY_TRIALS = frozenset({Reason.UNSETTLED, Reason.SHARED_SHIFT, Reason.UNCORROBORATED})


def decide_outcome(comparisons: Sequence[Comparison], *, finished: bool) -> Outcome:
    """The strongest outcome of any deciding comparison; a run that was stopped is INCOMPLETE."""
    statuses = {row.status for row in comparisons if row.decides}
    if not finished or statuses & BROKEN:
        return Outcome.INCOMPLETE
    if Status.REGRESSED in statuses:
        return Outcome.REGRESSION
    if not any(is_judged(row) for row in comparisons):
        return Outcome.NOTHING_COMPARED
    return Outcome.INCONCLUSIVE if Status.INCONCLUSIVE in statuses else Outcome.PASS


def compute_exit_code(
    outcome: Outcome, fail_on: FailOn, coverage: Coverage, *, is_lack_accepted: bool = False
) -> ExitCode:
    """The exit code of an outcome, which a laxer ``fail_on`` may turn into 0.

    The strictest turns a PASS that did not judge everything into NOTHING_COMPARED's code: either way,
    baselines have to be recorded. ``is_lack_accepted`` turns that code, and no other, into 0.
    """
    is_lax = fail_on is FailOn.REGRESSION and outcome is Outcome.INCONCLUSIVE
    if is_lax or fail_on is FailOn.NEVER:
        return ExitCode.PASS
    is_partial = fail_on is FailOn.NEW and outcome is Outcome.PASS and not coverage.is_whole
    code = ExitCode.NOTHING_COMPARED if is_partial else ExitCode[outcome.name]
    return ExitCode.PASS if is_lack_accepted and code is ExitCode.NOTHING_COMPARED else code


def _has_flickered(row: Comparison) -> bool:
    """Whether head's own trials differ in a count: one more changes nothing."""
    counted = row.candidate if SPECS[row.metric].repeats else None
    return counted is not None and counted.low != counted.high


def list_open(verdict: Verdict) -> tuple[Comparison, ...]:
    """The comparisons that more trials could settle; a regression seen in a single trial is one."""
    return tuple(
        row
        for row in verdict.comparisons
        if row.decides
        and (
            (row.status is Status.REGRESSED and row.candidate is not None and row.candidate.n == 1)
            or (row.reason in _SETTLED_BY_TRIALS and not _has_flickered(row))
        )
    )
