"""From comparisons to one outcome, and from an outcome to an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from gate.decide.conclude.coverage import Coverage, is_judged
from gate.decide.judge.machine import is_machine_steady
from gate.errors import ExitCode
from gate.metrics import SPECS
from gate.records import BROKEN, Comparison, Outcome, Reason, Status, Verdict


class FailOn(StrEnum):
    """The weakest outcome that a caller wants to fail on, the strictest first."""

    NEW = "new"  # as INCONCLUSIVE, and a PASS that left something unjudged exits as NOTHING_COMPARED
    INCONCLUSIVE = "inconclusive"  # the codes as they are
    REGRESSION = "regression"  # INCONCLUSIVE exits 0
    NEVER = "never"  # every outcome exits 0: errors of usage and machine still do not


# What more trials of the candidate can change: not a baseline with too few, not a counter or a
# peak that differs between trials, whose range only grows.
_SETTLED_BY_TRIALS = frozenset(
    {
        *(Reason.SUSPECT, Reason.NOISE_TOO_HIGH, Reason.SHARED_SHIFT),
        *(Reason.UNCORROBORATED, Reason.DISTURBED, Reason.NEAR_OWN_LIMIT),
    }
)


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
    outcome: Outcome, fail_on: FailOn, coverage: Coverage, *, is_waived: bool = False
) -> ExitCode:
    """The exit code of an outcome; a laxer ``fail_on`` turns some into 0, and the caller says so.

    The strictest turns a PASS that is not about the whole plan into the code of NOTHING_COMPARED:
    either way what to do is to record baselines. ``is_waived`` is whether somebody takes it that there
    are none: that code, and no other, is 0 then.
    """
    code = _compute_code(outcome, fail_on, coverage)
    return ExitCode.PASS if is_waived and code is ExitCode.NOTHING_COMPARED else code


def _compute_code(outcome: Outcome, fail_on: FailOn, coverage: Coverage) -> ExitCode:
    if fail_on is FailOn.NEVER:
        return ExitCode.PASS
    if fail_on is FailOn.REGRESSION and outcome is Outcome.INCONCLUSIVE:
        return ExitCode.PASS
    if fail_on is FailOn.NEW and outcome is Outcome.PASS and not coverage.is_whole:
        return ExitCode.NOTHING_COMPARED
    return ExitCode[outcome.name]


def list_open(verdict: Verdict) -> tuple[Comparison, ...]:
    """The comparisons that more trials could settle.

    A machine shift counts only when the run as a whole was steady: then it was one case's bad minute.
    A regression seen in a single trial counts too: it has to be seen again.
    """
    settled = set(_SETTLED_BY_TRIALS)
    if is_machine_steady(verdict.machine):
        settled.add(Reason.MACHINE_SHIFT)
    return tuple(
        one
        for one in verdict.comparisons
        if one.decides and (_is_unrepeated(one) or (one.reason in settled and _is_unsettled(one)))
    )


def _is_unrepeated(comparison: Comparison) -> bool:
    seen = comparison.candidate
    return comparison.status is Status.REGRESSED and seen is not None and seen.n == 1


def _is_unsettled(comparison: Comparison) -> bool:
    return comparison.status is Status.INCONCLUSIVE and not SPECS[comparison.metric].repeats
