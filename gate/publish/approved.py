"""Who accepted what for the commit of a run, as told beside its verdict.

The check read the same file by itself. Here it decides nothing but whether a check that is green although
nothing was compared may be told so.
"""

from __future__ import annotations

from dataclasses import dataclass

from gate.decide.conclude.accept import (
    is_in_force,
    is_waived,
    keep_own,
    list_covered,
    note_elsewhere,
)
from gate.decide.conclude.coverage import measure_coverage
from gate.publish.ci_run import CiRun
from gate.records import Code, Fact, Outcome, Policy, Status, Verdict, name_words


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


def describe_approval(policy: Policy, run: CiRun, verdict: Verdict) -> Approved:
    """Describe what of the approval of a commit the verdict counts: by whom, and never why."""
    policy = keep_own(policy, verdict.environment)
    notes = note_elsewhere(policy)
    for author in dict.fromkeys(entry.author for entry in policy.approved):
        own = tuple(one for one in policy.approved if one.author == author and is_in_force(one, policy))
        covered = list_covered(verdict.comparisons, own)
        if covered:
            until = min(entry.expires for entry in own)
            names = name_words(author=author, expires=until)
            notes.append(Fact(code=Code.APPROVED, numbers={"changes": len(covered)}, names=names))
    waivers = [one for approval in policy.approvals for one in approval.first_baselines]
    taken = _lacks_baselines(verdict) and is_waived(verdict.comparisons, policy)
    if taken:
        notes += [
            Fact(code=Code.APPROVED_WITHOUT, names=name_words(author=one.author, expires=one.expires))
            for one in waivers
            if is_in_force(one, policy)
        ]
    # A check that is red all the same did not count it.
    return Approved(notes=tuple(notes), is_waived=taken and run.conclusion in {"success", ""})
