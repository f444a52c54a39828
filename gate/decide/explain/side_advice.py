"""What a verdict by pairs says to its reader besides the comparisons: headline, next steps and notes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gate.decide.conclude.accept import note_quarantine
from gate.decide.conclude.outcome import note_pairs, note_stop, note_warnings
from gate.decide.evidence.case_evidence import note_unchanged_code
from gate.decide.evidence.disturbed import note_disturbed
from gate.decide.explain.accepting import list_acceptances
from gate.decide.explain.advice import (
    has_not_begun,
    note_accepted,
    note_limits,
    note_target,
    note_unjudged,
    suggest,
    suggest_settling,
)
from gate.decide.explain.headline import make_unjudged
from gate.records import (
    BASE_ARM,
    BROKEN,
    Case,
    Code,
    Comparison,
    Fact,
    Metric,
    Outcome,
    Policy,
    Reason,
    Run,
    Status,
    Verdict,
    name_words,
)

# So many comparisons are named.
_MAX_NAMED = 3


def make_pair_headline(verdict: Verdict) -> tuple[Fact, ...]:
    """The headline, saying that all of it was held against the base."""
    if verdict.outcome is Outcome.NOTHING_COMPARED:
        return make_unjudged(Code.BASE_HAS_NOTHING, verdict.comparisons, verdict.cases)
    return (*verdict.headline, Fact(code=Code.AGAINST_BASE))


def list_pair_steps(verdict: Verdict, policy: Policy) -> tuple[Fact, ...]:
    """What to do next, the most pressing first."""
    deciding = [one for one in verdict.comparisons if one.decides]
    lost = {one.case_id for one in verdict.failures if one.arm == BASE_ARM}  # more time gives it no pair
    no_base = bool(lost) or any(one.reason is Reason.UNPAIRED for one in deciding)
    short = (one.case_id for one in deciding if has_not_begun(one) and one.case_id not in lost)
    begun = [one for one in deciding if not has_not_begun(one)]
    return (
        *suggest(Code.FIX_FAILED_IN_PAIRS, _list_cases(begun, BROKEN)),
        *suggest(Code.MORE_MINUTES, short),
        *list_acceptances(deciding, policy),
        *suggest_settling((one for one in deciding if one.status is Status.INCONCLUSIVE), deciding),
        *([Fact(code=Code.READ_BASE_LOGS)] if no_base else []),
    )


def list_pair_notes(run: Run, verdict: Verdict, policy: Policy) -> tuple[Fact, ...]:
    """What a reader must know to trust a verdict by pairs no further than it goes."""
    return (
        *note_target(run.environment),
        *note_unchanged_code(run),
        *note_stop(finished=run.finished),
        *note_pairs(verdict.tally),
        *note_vanished(run),
        *note_disturbed(run),
        *note_warnings(run),
        *_note_base_failures(run),
        *note_unjudged(verdict.comparisons, _UNJUDGED),
        *note_accepted(verdict.comparisons, policy),
        *note_limits(run, verdict.comparisons),
        *note_quarantine(verdict.comparisons, policy),
    )


def note_vanished(run: Run) -> tuple[Fact, ...]:
    """Cases that the selection names in the base and that head does not define any more."""
    return note_gone((case.id for case in run.base.cases) if run.base else (), run.cases)


def note_gone(before: Iterable[str], planned: Iterable[Case]) -> tuple[Fact, ...]:
    """Cases that were there before and are not planned: whoever reads a PASS thinks that they are in it."""
    left = {case.id for case in planned}
    gone = tuple(case_id for case_id in before if case_id not in left)
    return (Fact(code=Code.CASES_GONE, numbers={"cases": len(gone)}, cases=gone),) if gone else ()


def note_shard(run: Run) -> tuple[Fact, ...]:
    """That one shard is judged alone: whoever reads a PASS thinks that all cases are in it."""
    if run.shard is None:
        return ()
    numbers = {"left": run.shard.cases - len(run.cases), "cases": run.shard.cases}
    return (Fact(code=Code.ONE_SHARD, numbers=numbers, names=name_words(shard=str(run.shard))),)


def note_acquitted(convicted: Sequence[Comparison]) -> tuple[Fact, ...]:
    """What got worse since the baselines were recorded, though not by the change that has a base."""
    if not convicted:
        return ()
    named = convicted[:_MAX_NAMED]
    return (
        Fact(
            code=Code.CLEARED,
            numbers={"comparisons": len(convicted)},
            cases=tuple(one.case_id for one in named),
            metrics=tuple(one.metric for one in named),
        ),
    )


def note_unchanged_speedup(comparisons: Iterable[Comparison]) -> tuple[Fact, ...]:
    """Whose latency the ratio cleared, and by how much eager and compiled could be slower together."""
    latencies = (one for one in comparisons if one.metric is Metric.COMPILED_LATENCY)
    rows = [one for one in latencies if one.reason is Reason.SAME_WORK]
    if not rows:
        return ()
    hidden = max(max(one.change.detectable, one.change.high) for one in rows if one.change)
    numbers = {"cases": len(rows), "hidden": hidden}
    return (Fact(code=Code.UNCHANGED_SPEEDUP, numbers=numbers, cases=tuple(one.case_id for one in rows)),)


def note_unchanged_sources(case_ids: Sequence[str]) -> tuple[Fact, ...]:
    """Which suspects were not measured in pairs, since nothing of their program differs from the base's."""
    if not case_ids:
        return ()
    return (Fact(code=Code.UNCHANGED_SOURCES, numbers={"cases": len(case_ids)}, cases=tuple(case_ids)),)


def note_other_changes(run: Run, pairs: int) -> tuple[Fact, ...]:
    """Why no suspect was taken for the base's program: what changed that imports do not show."""
    changed = run.base.other_changes if run.base else None
    if not changed or not pairs:
        return ()
    names = {"files": changed[:_MAX_NAMED]}
    return (Fact(code=Code.OTHER_CHANGES, numbers={"files": len(changed)}, names=names),)


def suggest_anchor(acquitted: Sequence[Comparison], policy: Policy) -> tuple[Fact, ...]:
    """How to tell what many small changes did to these from what the machine did, where that can be told."""
    return suggest(Code.HOLD_AGAINST_ANCHOR, (one.case_id for one in acquitted)) if policy.has_anchor else ()


def _list_cases(rows: Iterable[Comparison], statuses: Collection[Status]) -> list[str]:
    return [one.case_id for one in rows if one.status in statuses]


def _note_base_failures(run: Run) -> list[Fact]:
    failed = tuple(dict.fromkeys(failure.case_id for failure in run.failures if failure.arm == BASE_ARM))
    counted = {"cases": len(failed)}
    return [Fact(code=Code.BASE_CASES_FAILED, numbers=counted, cases=failed)] if failed else []


_UNJUDGED = {
    Reason.NO_BASELINE: Code.BASE_LACKS_CASES,
    Reason.UNPAIRED: Code.BASE_NOT_MEASURED,
    Reason.STALE_DEFINITION: Code.BASE_DEFINES_CASES_OTHERWISE,
    Reason.NOT_MEASURED: Code.BASE_LACKS_METRICS,
}
