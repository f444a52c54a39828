"""The exit code of an outcome, by what a caller wants to fail on."""

from enum import StrEnum

from gate.decide.conclude.coverage import Coverage
from gate.errors import ExitCode
from gate.records.verdict import Outcome


class FailOn(StrEnum):
    """The weakest outcome on which a caller fails, the strictest first."""

    NEW = "new"  # as INCONCLUSIVE, and a PASS that left something unjudged exits as NOTHING_COMPARED
    INCONCLUSIVE = "inconclusive"  # the codes as they are
    REGRESSION = "regression"  # INCONCLUSIVE exits 0
    NEVER = "never"  # every outcome exits 0: errors of usage and machine still do not


def compute_exit_code(
    outcome: Outcome, fail_on: FailOn, coverage: Coverage, *, is_lack_accepted: bool = False
) -> ExitCode:
    """A laxer ``fail_on`` turns some outcomes into 0.

    The strictest turns a PASS that did not judge everything into NOTHING_COMPARED's code: either way,
    baselines have to be recorded. ``is_lack_accepted`` turns that code, and no other, into 0.
    """
    is_lax = fail_on is FailOn.REGRESSION and outcome is Outcome.INCONCLUSIVE
    if is_lax or fail_on is FailOn.NEVER:
        return ExitCode.PASS
    is_partial = fail_on is FailOn.NEW and outcome is Outcome.PASS and not coverage.is_whole
    code = ExitCode.NOTHING_COMPARED if is_partial else ExitCode[outcome.name]
    return ExitCode.PASS if is_lack_accepted and code is ExitCode.NOTHING_COMPARED else code
