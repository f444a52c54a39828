"""What a verdict by pairs says to its reader besides the comparisons: headline, next steps and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gate.again import write_ab, write_anchored
from gate.decide.advice import list_acceptances, note_exceeded, note_expired
from gate.decide.disturbed import note_disturbed
from gate.decide.headline import write_unjudged
from gate.decide.pairs import BASE_ARM
from gate.decide.tally import STOPPED, note_pairs
from gate.decide.warned import note_warnings
from gate.metrics import SPECS
from gate.records import BaseArm, Comparison, Metric, Outcome, Policy, Reason, Run, Status, Verdict
from gate.words import count_noun, name_metric

# So many metrics are spelled out.
_MAX_NAMED = 3


def write_pair_headline(verdict: Verdict, base: BaseArm | None) -> str:
    """The headline, saying what head was held against."""
    label = base.label if base else "the base"
    if verdict.outcome is Outcome.NOTHING_COMPARED:
        return write_unjudged(verdict.comparisons, len(verdict.cases), f"nothing of {label} to compare with")
    return f"{verdict.headline.rstrip('.')}, against {label}."


def list_pair_steps(verdict: Verdict, policy: Policy) -> tuple[str, ...]:
    """Commands to run next, the most pressing first."""
    deciding = [one for one in verdict.comparisons if one.decides]
    broken = _list_cases(deciding, {Status.FAILED, Status.MISSING})
    open_cases = _list_cases(deciding, {Status.INCONCLUSIVE})
    steps = []
    if broken:
        steps.append(f"Read the log of each failed case, fix it and run: {write_ab(broken, verdict.base)}")
    steps += list_acceptances(deciding, policy)
    if open_cases:
        steps.append(
            f"Settle what could not be told, on a quiet machine: {write_ab(open_cases, verdict.base)}"
        )
    if any(one.reason is Reason.BASE_FAILED for one in deciding):
        steps.append("Read the log of the base's cases: what failed there was not judged.")
    return tuple(steps)


def list_pair_notes(run: Run, verdict: Verdict, policy: Policy) -> tuple[str, ...]:
    """What a reader must know to trust a verdict by pairs no further than it goes."""
    label = run.base.label if run.base else "the base"
    return (
        *([] if run.finished else [STOPPED]),
        *note_pairs(verdict.tally, label),
        *note_vanished(run),
        *note_disturbed(run),
        *note_warnings(run),
        *_note_base_failures(run, label),
        *_note_unjudged(verdict.comparisons, label),
        *note_expired(verdict.comparisons, policy),
        *note_exceeded(verdict.comparisons, policy),
    )


def note_vanished(run: Run) -> tuple[str, ...]:
    """Cases that the selection names in the base and that head does not define any more."""
    planned = {case.id for case in run.cases}
    gone = [case.id for case in run.base.cases if case.id not in planned] if run.base else []
    if run.base is None or not gone:
        return ()
    return (f"{run.base.label} has {count_noun(len(gone), 'case')} that head lacks: {', '.join(gone)}.",)


def note_acquitted(convicted: Sequence[Comparison]) -> tuple[str, ...]:
    """What got worse since the baselines were recorded, though not by the change that has a base."""
    if not convicted:
        return ()
    named = ", ".join(f"{one.case_id} {name_metric(one.metric)}" for one in convicted[:_MAX_NAMED])
    more = f" and {len(convicted) - _MAX_NAMED} more" if len(convicted) > _MAX_NAMED else ""
    sentence = (
        f"Worse than the stored baseline, but not than the base: {named}{more}. The machine changed, or an"
        " earlier commit did it: if it stays so, record new baselines."
    )
    return (sentence,)


def suggest_anchor(acquitted: Sequence[Comparison], policy: Policy) -> tuple[str, ...]:
    """How to tell what many small changes did to these from what the machine did, where that can be told."""
    if not acquitted or not policy.has_anchor:
        return ()
    cases = [one.case_id for one in acquitted]
    return (f"See whether many small changes did it, against the release anchor: {write_anchored(cases)}",)


def _list_cases(rows: Iterable[Comparison], statuses: set[Status]) -> list[str]:
    return [one.case_id for one in rows if one.status in statuses]


def _note_base_failures(run: Run, label: str) -> list[str]:
    failed = dict.fromkeys(failure.case_id for failure in run.failures if failure.arm == BASE_ARM)
    if not failed:
        return []
    return [f"{label} failed in {count_noun(len(failed), 'case')}: {', '.join(failed)}."]


def _note_unjudged(rows: Sequence[Comparison], label: str) -> list[str]:
    """Deciding metrics that were only measured, by reason."""
    unjudged = [one for one in rows if one.decides and one.status in {Status.NEW, Status.NOT_COMPARABLE}]
    notes = []
    for reason, text in _UNJUDGED.items():
        found = [one for one in unjudged if one.reason is reason]
        if found:
            metrics = ", ".join(name_metric(metric) for metric in SPECS if _has_metric(found, metric))
            cases = count_noun(len({one.case_id for one in found}), "case")
            notes.append(f"Not judged in {cases}: {metrics}. {label} {text}.")
    return notes


def _has_metric(rows: Iterable[Comparison], metric: Metric) -> bool:
    return any(one.metric is metric for one in rows)


_UNJUDGED = {
    Reason.NO_BASELINE: "does not have them",
    Reason.BASE_FAILED: "could not be measured on them",
    Reason.STALE_DEFINITION: "defines these cases differently",
    Reason.NOT_RECORDED: "did not measure these metrics",
}
