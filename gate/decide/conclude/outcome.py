"""From comparisons to one outcome and exit code, and how much was judged."""

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

    A case counts as judged when at least one of its comparisons was.
    """

    comparisons: int = 0
    judged: int = 0
    cases: int = 0
    judged_cases: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing that should decide was measured only."""
        return self.judged == self.comparisons


def measure_coverage(comparisons: Iterable[Comparison]) -> Coverage:
    """Count what was judged among all comparisons of a verdict."""
    deciding = [one for one in comparisons if one.decides]
    judged = [one for one in deciding if is_judged(one)]
    return Coverage(
        comparisons=len(deciding),
        judged=len(judged),
        cases=len({one.case_id for one in deciding}),
        judged_cases=len({one.case_id for one in judged}),
    )


def list_uncompared(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Ids of the cases of which something that decides was measured only; all, where nothing decides."""
    rows = tuple(comparisons)
    deciding = [one for one in rows if one.decides]
    return tuple(dict.fromkeys(one.case_id for one in deciding or rows if not is_judged(one)))


def list_unaccepted(comparisons: Iterable[Comparison], policy: Policy) -> tuple[str, ...]:
    """Ids of the cases without a baseline for which that is not accepted, today, of each commit judged."""
    taken = {
        (one.commit, one.case)
        for one in policy.acceptances
        if one.metric is None and is_in_force(one, policy)
    }
    return tuple(
        case
        for case in list_uncompared(comparisons)
        if not policy.commits or any((commit, case) not in taken for commit in policy.commits)
    )


def is_lack_accepted(comparisons: Sequence[Comparison], policy: Policy) -> bool:
    """Whether somebody accepts, today, of each case without a baseline that it has none."""
    return bool(list_uncompared(comparisons)) and not list_unaccepted(comparisons, policy)


def is_judged(comparison: Comparison) -> bool:
    """Whether a deciding comparison has a baseline, or is beyond a limit.

    A limit that somebody accepted compares nothing, and nor does what had no time for a pair.
    """
    is_waived = comparison.status is Status.ACCEPTED or comparison.reason is Reason.UNPAIRED
    is_bare = is_waived and comparison.baseline is None
    return comparison.decides and comparison.status in JUDGED and not is_bare


def find_unjudged_code(comparison: Comparison) -> Code | None:
    """Find which baselines there are instead of this environment's; ``None`` where that is not the reason."""
    if comparison.reason is not Reason.OTHER_ENVIRONMENT:
        return None
    if any(fact.code is Code.MACHINE_SPEED for fact in comparison.remarks):
        return Code.OTHER_SPEED
    return Code.OTHER_MACHINES if SPECS[comparison.metric].scope is Scope.HOST else Code.OTHER_STACK


def measure_tally(run: Run, comparisons: Sequence[Comparison], cleared: Sequence[Comparison] = ()) -> Tally:
    """Count trials, pairs and rows; ``cleared`` got worse since the baselines, but not by the change."""
    excused = excuse_run(run)
    pairs = [pair for found in list_pairs(excused).values() for pair in found] if run.base else []
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
    """Say of what more pairs would settle that they are not needed, where their case has regressed."""
    regressed = find_regressed(comparisons)
    return tuple(
        replace(one, remarks=(*one.remarks, _ANYWAY))
        if one.case_id in regressed and one.decides and one.waits_for_pairs and one.more_pairs
        else one
        for one in comparisons
    )


def find_regressed(comparisons: Iterable[Comparison]) -> frozenset[str]:
    """Find the cases of which something that decides has regressed."""
    return frozenset(one.case_id for one in comparisons if one.decides and one.status is Status.REGRESSED)


class FailOn(StrEnum):
    """The weakest outcome that a caller wants to fail on, the strictest first."""

    NEW = "new"  # as INCONCLUSIVE, and a PASS that left something unjudged exits as NOTHING_COMPARED
    INCONCLUSIVE = "inconclusive"  # the codes as they are
    REGRESSION = "regression"  # INCONCLUSIVE exits 0
    NEVER = "never"  # every outcome exits 0: errors of usage and machine still do not


# What more trials of the candidate can change: not a baseline with too few.
_SETTLED_BY_TRIALS = frozenset({Reason.UNSETTLED, Reason.SHARED_SHIFT, Reason.UNCORROBORATED})


def decide_outcome(comparisons: Sequence[Comparison], *, finished: bool) -> Outcome:
    """The strongest outcome that any deciding comparison calls for; a run that was stopped is INCOMPLETE."""
    statuses = {one.status for one in comparisons if one.decides}
    if not finished or statuses & BROKEN:
        return Outcome.INCOMPLETE
    if Status.REGRESSED in statuses:
        return Outcome.REGRESSION
    if not any(is_judged(one) for one in comparisons):
        return Outcome.NOTHING_COMPARED
    return Outcome.INCONCLUSIVE if Status.INCONCLUSIVE in statuses else Outcome.PASS


def compute_exit_code(
    outcome: Outcome, fail_on: FailOn, coverage: Coverage, *, is_lack_accepted: bool = False
) -> ExitCode:
    """The exit code of an outcome; a laxer ``fail_on`` turns some into 0, and the caller says so.

    The strictest turns a PASS that is not about the whole plan into the code of NOTHING_COMPARED:
    either way what to do is to record baselines. ``is_lack_accepted`` is whether somebody takes it that there
    are none: that code, and no other, is 0 then.
    """
    is_lax = fail_on is FailOn.REGRESSION and outcome is Outcome.INCONCLUSIVE
    if is_lax or fail_on is FailOn.NEVER:
        return ExitCode.PASS
    is_partial = fail_on is FailOn.NEW and outcome is Outcome.PASS and not coverage.is_whole
    code = ExitCode.NOTHING_COMPARED if is_partial else ExitCode[outcome.name]
    return ExitCode.PASS if is_lack_accepted and code is ExitCode.NOTHING_COMPARED else code


def _has_flickered(row: Comparison) -> bool:
    """Whether head's own trials counted this and that: one more changes nothing."""
    counted = row.candidate if SPECS[row.metric].repeats else None
    return counted is not None and counted.low != counted.high


def list_open(verdict: Verdict) -> tuple[Comparison, ...]:
    """The comparisons that more trials could settle.

    A regression seen in a single trial counts too: it has to be seen again.
    """
    return tuple(
        one
        for one in verdict.comparisons
        if one.decides
        and (
            (one.status is Status.REGRESSED and one.candidate is not None and one.candidate.n == 1)
            or (one.reason in _SETTLED_BY_TRIALS and not _has_flickered(one))
        )
    )
