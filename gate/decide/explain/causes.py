"""Why a case changed: one pure function from both sides' evidence to causes, the likeliest first.

A finder is a function of an :class:`Inquiry`; each cause is a code with its numbers and a weight. To add
one: docs/causes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gate.decide.evidence.stored import Evidence
from gate.decide.explain.around import (
    find_definition,
    find_eager,
    find_imports,
    find_kept,
    find_machine,
    find_stack,
    find_usage,
    find_workload,
)
from gate.decide.explain.compiled import (
    find_breaks,
    find_code,
    find_guards,
    find_mismatch,
    find_recompiles,
)
from gate.decide.explain.compiling import find_cache_loss, find_phases
from gate.decide.explain.inquiry import LEAST_WEIGHT, MOVED, Inquiry, is_eagers_alone
from gate.decide.judge.machine import Machine
from gate.records import (
    QUIET,
    Cause,
    CauseKind,
    Code,
    Comparison,
    Environment,
    Fact,
    Status,
    Verdict,
)

# In the order in which causes of the same weight are told.
_FINDERS: Sequence[Callable[[Inquiry], list[Cause]]] = (
    find_mismatch,
    find_breaks,
    find_recompiles,
    find_code,
    find_guards,
    find_definition,
    find_workload,
    find_imports,
    find_stack,
    find_eager,
    find_usage,
    find_phases,
    find_cache_loss,
    find_kept,
    find_machine,
)


def rank_causes(
    evidence: Evidence, comparisons: Sequence[Comparison], machine: Machine, environment: Environment
) -> tuple[Cause, ...]:
    """Rank what may have changed a case; empty unless something that decides has changed or failed.

    A ratio that fell only because eager got faster has a cause too, though it passes; and so has a case
    that is defined otherwise than what it would be held against, of which nothing else is known.
    """
    deciding = [one for one in comparisons if one.decides and _needs_cause(one)]
    inquiry = Inquiry(
        evidence=evidence,
        comparisons=comparisons,
        moved=frozenset(one.metric for one in deciding if one.status in MOVED),
        machine=machine,
        environment=environment,
    )
    found = [one for find in _FINDERS if deciding or find is find_definition for one in find(inquiry)]
    if inquiry.is_worse and all(one.weight < LEAST_WEIGHT for one in found):
        found.append(inquiry.weigh(CauseKind.UNEXPLAINED, Fact(code=Code.UNEXPLAINED)))
    return tuple(sorted(found, key=lambda one: one.weight, reverse=True))


def _needs_cause(one: Comparison) -> bool:
    return one.status not in QUIET or is_eagers_alone(one)


def find_first_cause(verdict: Verdict, status: Status = Status.REGRESSED) -> Cause | None:
    """Find the likeliest cause of the worst regression; or of what is beyond its limit at another status.

    ``None`` where there is no such comparison, or none has a likely cause.
    """
    rows = (one for one in verdict.comparisons if one.decides and one.status is status)
    found = [one for one in rows if status is Status.REGRESSED or one.severity >= 1]
    order = dict.fromkeys(one.case_id for one in sorted(found, key=lambda one: -one.severity))
    firsts = (_find_first(verdict.causes, case_id) for case_id in order)
    return next((one for one in firsts if one), None)


def _find_first(causes: Iterable[Cause], case_id: str) -> Cause | None:
    return next((one for one in causes if one.case_id == case_id and one.weight >= LEAST_WEIGHT), None)
