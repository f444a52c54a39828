"""Changes that somebody took responsibility for, until a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from gate.records import Acceptance, Comparison, Policy, Quarantine, Reason, Status


def apply_acceptances(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Comparison, ...]:
    """Turn a worsening within an acceptance in force into ACCEPTED.

    That is a REGRESSED, SUSPECT or UNSETTLED comparison whose change is at most the allowance (a fraction;
    units for counters and drift). Drift without a baseline is held against its limit instead.
    """
    return tuple(_accept(comparison, policy) for comparison in comparisons)


def list_expired(comparisons: Sequence[Comparison], policy: Policy) -> tuple[Acceptance, ...]:
    """The acceptances that fit something compared here and no longer count."""
    return tuple(
        acceptance
        for acceptance in policy.acceptances
        if not is_in_force(acceptance, policy) and any(fits(acceptance, one) for one in comparisons)
    )


def is_in_force(entry: Acceptance | Quarantine, policy: Policy) -> bool:
    """Whether the entry still counts today; its last day does. Without a date of today it does not."""
    return bool(policy.today) and policy.today <= entry.expires


def fits(acceptance: Acceptance, comparison: Comparison) -> bool:
    """Whether the acceptance speaks of this comparison's case and metric."""
    return acceptance.metric is comparison.metric and fnmatchcase(comparison.case_id, acceptance.case)


def _accept(comparison: Comparison, policy: Policy) -> Comparison:
    open_question = comparison.reason in {Reason.SUSPECT, Reason.UNSETTLED}
    worse = comparison.status is Status.REGRESSED or open_question
    if not worse or comparison.change is None:
        return comparison
    for acceptance in policy.acceptances:
        allowed = comparison.change.centre <= acceptance.allowance
        if allowed and is_in_force(acceptance, policy) and fits(acceptance, comparison):
            return replace(
                comparison,
                status=Status.ACCEPTED,
                reason=Reason.ACCEPTED,
                sentence=f"{comparison.sentence} {_describe(acceptance)}",
            )
    return comparison


def _describe(acceptance: Acceptance) -> str:
    reason = acceptance.reason.rstrip(".")
    return f"Accepted by {acceptance.author or 'somebody'} until {acceptance.expires}: {reason}."
