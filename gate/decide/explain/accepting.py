"""What could be accepted: by how much, until when, and in which commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from gate.decide.conclude.accept import measure_since_stored, measure_worsening, round_allowance
from gate.metrics import SPECS, Family
from gate.records import (
    Code,
    Comparison,
    Fact,
    Policy,
    Status,
)
from gate.records.bounds import MOST_ALLOWED
from gate.records.facts import MISMATCH_CODES
from gate.records.groups import group_cases

# A suggested acceptance expires after this many days.
ACCEPTANCE_DAYS = 30

# So many commands to accept something are suggested.
_MAX_ACCEPTED = 4


# A suggested allowance is this many times the change that was seen, so that noise does not undo it.
_ALLOWANCE_MARGIN = 1.25


def list_acceptances(deciding: Iterable[Comparison], policy: Policy) -> list[Fact]:
    """What to do about each regressed case: fix it, or accept its changes until a date."""
    cases = group_cases(one for one in deciding if one.status is Status.REGRESSED)
    steps = [step for case_id, rows in cases.items() for step in _suggest_acceptance(case_id, rows, policy)]
    rest = len(steps) - _MAX_ACCEPTED
    more = [Fact(code=Code.MORE_LIKE_THESE, numbers={"commands": rest})] if rest > 0 else []
    return steps[:_MAX_ACCEPTED] + more


def _suggest_acceptance(case_id: str, rows: Sequence[Comparison], policy: Policy) -> list[Fact]:
    """The advice once a case, a command a metric; of another answer there is nothing to accept."""
    drifted = [one for one in rows if not any(fact.code in MISMATCH_CODES for fact in one.remarks)]
    suggested = [(one.metric, _choose_allowance(one)) for one in drifted if one.change is not None]
    allowed = [
        (metric, one) for metric, one in suggested if one <= MOST_ALLOWED or not SPECS[metric].is_ratio
    ]
    if not allowed:
        return [Fact(code=Code.FIX, cases=(case_id,))]
    names = {"expires": _choose_expiry(policy)}
    return [
        Fact(
            code=Code.ACCEPT_TOO if position else Code.ACCEPT,
            numbers={
                **({} if position else {"commands": len(allowed)}),
                "allowance": allowance,
            },
            cases=(case_id,),
            metrics=(metric,),
            names=names,
        )
        for position, (metric, allowance) in enumerate(allowed)
    ]


def _choose_allowance(comparison: Comparison) -> float:
    """A fraction, log2 units, or a count: enough that noise does not undo it."""
    margin = 1.0 if SPECS[comparison.metric].family is Family.EXACT else _ALLOWANCE_MARGIN
    in_all = max(measure_worsening(comparison), measure_since_stored(comparison))  # a standing one is of all
    return round_allowance(comparison.metric, margin * in_all)


def _choose_expiry(policy: Policy) -> tuple[str, ...]:
    today = parse_day(policy.today)
    return ((today + timedelta(days=ACCEPTANCE_DAYS)).isoformat(),) if today else ()


def parse_day(text: str) -> date | None:
    """The day of an ISO 8601 time; ``None`` where there is none."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None
