"""From what a comment accepts of a verdict to an approval of just that.

Anybody could have written the verdict, so of it only cases that the default branch knows, metrics and
numbers are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gate.decide.conclude.accept import (
    apply_acceptances,
    can_be_accepted,
    compute_acceptance_limit,
    is_waived,
)
from gate.decide.conclude.coverage import list_uncompared, measure_coverage
from gate.decide.conclude.outcome import decide_outcome
from gate.errors import UsageError
from gate.fingerprint import compute_environment_id
from gate.project.selection import select_cases
from gate.publish.commands import AcceptRequest, AcceptWords, CommandRefusedError
from gate.records import Acceptance, Approval, Case, Comparison, Outcome, Policy, Verdict, Waiver
from gate.store.approvals import compute_expiry


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalTerms:
    """What the default branch says, where the gate's run left its verdict, and the ISO date of today."""

    cases: tuple[Case, ...]
    workflow: str  # the path of the file that runs the gate
    artifact_name: str
    today: str
    gate: str = ""  # whose artifact is read, as approvals name it


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """What is accepted of a run: the approval, and the regressions that its entries are for, in order.

    ``remaining`` is what the same measurements would come to under it; ``trouble`` says why the check
    was not started again, and is empty where it was.
    """

    approval: Approval
    rows: tuple[Comparison, ...]
    remaining: Outcome
    left: int  # regressions that it does not cover
    is_waived: bool  # no case without a baseline is left either, that nobody takes
    run_url: str = ""
    trouble: str = ""


def weigh_approval(
    verdict: Verdict, approval: Approval, rows: tuple[Comparison, ...], today: str
) -> Accepted:
    """Weigh what the same measurements would come to under an approval that covers ``rows``."""
    policy = Policy(thresholds={}, approvals=(approval,), today=today)
    remaining = apply_acceptances(verdict.comparisons, policy)
    return Accepted(
        approval=approval,
        rows=rows,
        remaining=decide_outcome(remaining, finished=verdict.tally.finished),
        left=sum(map(can_be_accepted, remaining)),
        is_waived=is_waived(remaining, policy),
    )


def make_approval(
    verdict: Verdict, request: AcceptRequest, terms: ApprovalTerms
) -> tuple[Approval, tuple[Comparison, ...]]:
    """Make the approval of just what regressed and is meant, and list that.

    Each entry allows what was measured and no more. Where nothing would be compared then, or nothing was,
    and the comment means everything, the lack of baselines is taken as well.

    Raises:
        CommandRefusedError: Nothing is left that could be accepted.
    """
    words = request.words
    told = {
        "reason": words.reason,
        "author": request.author,
        "expires": compute_expiry(terms.today),
        "gate": terms.gate,
        "environment": compute_environment_id(verdict.environment),
    }
    meant = _find_meant(words, terms.cases)
    rows = tuple(
        one
        for one in verdict.comparisons
        if can_be_accepted(one) and one.case_id in meant and words.metric in {None, one.metric}
    )
    entries = tuple(
        Acceptance(
            case=one.case_id,
            metric=one.metric,
            allowance=compute_acceptance_limit(one),
            **told,
        )
        for one in rows
    )
    approval = Approval(commit=request.head_sha, accepted=entries)
    if not words.is_narrow and (lacking := _list_lacking(verdict, approval, terms)):
        approval = replace(approval, first_baselines=(Waiver(cases=lacking, **told),))
    if not approval.accepted and not approval.first_baselines:
        raise _describe_nothing(verdict, words)
    return approval, rows


def _find_meant(words: AcceptWords, cases: tuple[Case, ...]) -> set[str]:
    """Find the cases that a comment means, of those that the default branch knows."""
    try:
        return {case.id for case in (select_cases(cases, words.select) if words.select else cases)}
    except UsageError:
        raise CommandRefusedError(
            "the selection names no case of the default branch's registry", "See `compile-gate models`."
        ) from None


def _list_lacking(verdict: Verdict, approval: Approval, terms: ApprovalTerms) -> tuple[str, ...]:
    """List the known cases without a baseline, where that alone fails once what regressed is accepted."""
    policy = Policy(thresholds={}, approvals=(approval,), today=terms.today)
    after = apply_acceptances(verdict.comparisons, policy)
    outcome = decide_outcome(after, finished=verdict.tally.finished)
    # A PASS that failed all the same asks for everything to have a baseline.
    is_partial = outcome is Outcome.PASS and not approval.accepted and not measure_coverage(after).is_whole
    known = {case.id for case in terms.cases} if outcome is Outcome.NOTHING_COMPARED or is_partial else set()
    return tuple(case for case in list_uncompared(after) if case in known)


def _describe_nothing(verdict: Verdict, words: AcceptWords) -> CommandRefusedError:
    if words.is_narrow:
        return CommandRefusedError(
            "no regression is among what the command names", "The report of the check lists them."
        )
    return CommandRefusedError(*_NOTHING[verdict.outcome])


_NOTHING = {
    Outcome.INCOMPLETE: (
        "no regression is there to accept: not all cases could be measured, and that cannot be accepted",
        "See the run's log.",
    ),
    Outcome.REGRESSION: (
        "what regressed is in cases that the default branch's registry does not have",
        "Merge a change to the registry first.",
    ),
    Outcome.INCONCLUSIVE: (
        "nothing surely regressed: the check could not tell",
        "Run it again, or let it pass with `fail-on: regression`.",
    ),
    Outcome.NOTHING_COMPARED: (
        "what has no baseline are cases that the default branch's registry does not have",
        "Merge a change to the registry first.",
    ),
    Outcome.PASS: ("nothing regressed", "See the run's log for why it failed."),
}


def write_message(request: AcceptRequest, approval: Approval) -> str:
    """Write the commit's message; GitHub's own words and numbers are all that is in it."""
    count = len(approval.accepted)
    what = [f"{count} {'regression' if count == 1 else 'regressions'}"] if count else []
    what += ["a lack of baselines"] if approval.first_baselines else []
    return (
        f"Accept {' and '.join(what)} of {request.head_sha[:12]}\n\n"
        f"By {request.author}, on pull request {request.pr_number}.\n"
    )
