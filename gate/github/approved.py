"""Who accepted what for the commit of a run: told beside its verdict, from the branch of approvals.

The check read the same file by itself. Here it decides nothing but whether a check that is green although
nothing was compared may be told so.
"""

from __future__ import annotations

from dataclasses import dataclass

from gate.approvals import approve_policy
from gate.decide.accept import is_in_force, is_waived, list_covered
from gate.decide.coverage import measure_coverage
from gate.errors import FileError
from gate.github.approval_branch import find_approval
from gate.github.client import GitHubClient
from gate.github.events import PULL_REQUEST_EVENTS, WorkflowRun
from gate.github.git_data import GitData
from gate.records import Approval, Outcome, Policy, Status, Verdict
from gate.words import count_noun


@dataclass(frozen=True, kw_only=True, slots=True)
class Approved:
    """What counts of an approval. ``notes`` name who, and never why: that is foreign text."""

    notes: tuple[str, ...] = ()
    is_waived: bool = False  # the check is green without baselines, and somebody accepts that


NOTHING_APPROVED = Approved()


def find_approved(
    client: GitHubClient, repository: str, run: WorkflowRun, verdict: Verdict, policy: Policy
) -> Approved:
    """Find who accepted what the verdict calls accepted, or did not compare.

    Raises:
        GitHubError: GitHub does not tell.
    """
    if run.event not in PULL_REQUEST_EVENTS or not _has_need(verdict):
        return NOTHING_APPROVED
    try:
        approval = find_approval(GitData(client, f"/repos/{repository}"), run.head_sha)
    except FileError:
        return Approved(notes=("What was accepted for this commit cannot be read, and does not count.",))
    return NOTHING_APPROVED if approval is None else _describe(approval, run, verdict, policy)


def _has_need(verdict: Verdict) -> bool:
    accepted = any(one.decides and one.status is Status.ACCEPTED for one in verdict.comparisons)
    return accepted or _lacks_baselines(verdict)


def _lacks_baselines(verdict: Verdict) -> bool:
    is_whole = measure_coverage(verdict.comparisons).is_whole
    return verdict.outcome is Outcome.NOTHING_COMPARED or (verdict.outcome is Outcome.PASS and not is_whole)


def _describe(approval: Approval, run: WorkflowRun, verdict: Verdict, policy: Policy) -> Approved:
    notes = []
    for author in dict.fromkeys(entry.author for entry in approval.accepted):
        own = tuple(one for one in approval.accepted if one.author == author and is_in_force(one, policy))
        covered = list_covered(verdict.comparisons, own)
        if covered:
            until = min(entry.expires for entry in own)
            changes = count_noun(len(covered), "change")
            notes.append(f"{author} accepted {changes} for this commit alone, until {until}.")
    waiver = approval.first_baselines
    taken = _lacks_baselines(verdict) and is_waived(approve_policy(policy, [approval]))
    if waiver is not None and taken:
        until = f"for this commit alone, until {waiver.expires}"
        notes.append(f"{waiver.author} accepts {until}, that baselines are missing.")
    # A check that is red all the same did not count it.
    return Approved(notes=tuple(notes), is_waived=taken and run.conclusion in {"success", ""})
