"""How much was judged, of what was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gate.decide.conclude.accept import is_in_force
from gate.decide.evidence.disturbed import HeadTrials, is_disturbed
from gate.metrics import SPECS, Family, Scope
from gate.records.cases import Policy
from gate.records.codes import Code
from gate.records.run import Run
from gate.records.verdict import Comparison, Reason, Status, Tally


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Deciding comparisons and their cases; a case is judged if any of its comparisons is."""

    comparisons: int = 0
    judged: int = 0
    cases: int = 0
    judged_cases: int = 0

    @property
    def is_whole(self) -> bool:
        return self.judged == self.comparisons


def measure_coverage(comparisons: Iterable[Comparison]) -> Coverage:
    deciding = [row for row in comparisons if row.decides]
    judged = [row for row in deciding if row.is_judged]
    return Coverage(
        comparisons=len(deciding),
        judged=len(judged),
        cases=len({row.case_id for row in deciding}),
        judged_cases=len({row.case_id for row in judged}),
    )


def list_uncompared(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Cases where something that decides was not compared; all, if nothing decides."""
    rows = tuple(comparisons)
    deciding = [row for row in rows if row.decides]
    return tuple(dict.fromkeys(row.case_id for row in deciding or rows if not row.is_judged))


def list_unaccepted(comparisons: Iterable[Comparison], policy: Policy) -> tuple[str, ...]:
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
    return bool(list_uncompared(comparisons)) and not list_unaccepted(comparisons, policy)


def is_unconfirmed(comparison: Comparison) -> bool:
    is_alone = comparison.status is Status.REGRESSED and not comparison.pairs
    noisy = comparison.decides and SPECS[comparison.metric].family is Family.NOISY
    return noisy and (is_alone or comparison.reason is Reason.UNPAIRED)


def classify_unjudged(comparison: Comparison) -> Code | None:
    """``None`` where another environment's baselines are not the reason."""
    if comparison.reason is not Reason.OTHER_ENVIRONMENT:
        return None
    if any(fact.code is Code.MACHINE_SPEED for fact in comparison.remarks):
        return Code.OTHER_SPEED
    return Code.OTHER_MACHINES if SPECS[comparison.metric].scope is Scope.HOST else Code.OTHER_STACK


def measure_tally(
    run: Run, head: HeadTrials, comparisons: Sequence[Comparison], cleared: Sequence[Comparison] = ()
) -> Tally:
    pairs, trials = head.pairs if run.base else (), head.alone
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
