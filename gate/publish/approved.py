"""Who accepted what for the commit of a run, as told beside its verdict.

The check read the same file by itself. Here it decides nothing but whether a check that is green although
nothing was compared may be told so.
"""

from __future__ import annotations

from dataclasses import dataclass

from gate.decide.conclude.accept import is_in_force, is_waived, list_covered
from gate.decide.conclude.coverage import measure_coverage
from gate.publish.ci_run import CiRun
from gate.records import Approval, Code, Fact, Outcome, Policy, Status, Verdict, name_words
from gate.store.approvals import approve_policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Approved:
    """What counts of an approval. ``notes`` name who, and never why: that is foreign text."""

    notes: tuple[Fact, ...] = ()
    is_waived: bool = False  # the check is green without baselines, and somebody accepts that


NOTHING_APPROVED = Approved()


def needs_approval(verdict: Verdict) -> bool:
    """Whether a verdict calls anything accepted, or compared less than everything."""
    accepted = any(one.decides and one.status is Status.ACCEPTED for one in verdict.comparisons)
    return accepted or _lacks_baselines(verdict)


def _lacks_baselines(verdict: Verdict) -> bool:
    is_whole = measure_coverage(verdict.comparisons).is_whole
    return verdict.outcome is Outcome.NOTHING_COMPARED or (verdict.outcome is Outcome.PASS and not is_whole)


def describe_approval(approval: Approval, run: CiRun, verdict: Verdict, policy: Policy) -> Approved:
    """Describe what of an approval the verdict counts: by whom, and never why."""
    notes = []
    for author in dict.fromkeys(entry.author for entry in approval.accepted):
        own = tuple(one for one in approval.accepted if one.author == author and is_in_force(one, policy))
        covered = list_covered(verdict.comparisons, own)
        if covered:
            until = min(entry.expires for entry in own)
            names = name_words(author=author, expires=until)
            notes.append(Fact(code=Code.APPROVED, numbers={"changes": len(covered)}, names=names))
    waiver = approval.first_baselines
    taken = _lacks_baselines(verdict) and is_waived(approve_policy(policy, [approval]))
    if waiver is not None and taken:
        names = name_words(author=waiver.author, expires=waiver.expires)
        notes.append(Fact(code=Code.APPROVED_WITHOUT, names=names))
    # A check that is red all the same did not count it.
    return Approved(notes=tuple(notes), is_waived=taken and run.conclusion in {"success", ""})
