"""What the reader of a comment can do with what is at hand there: a push, a comment, GitHub's own buttons.

No command for a machine that the author of a pull request cannot reach; where somebody else is needed,
the step says who. All of it is Markdown of fixed sentences and GitHub's own names.
"""

from __future__ import annotations

import re

from gate.decide.conclude.quarantine import list_set_apart
from gate.decide.explain.advice import suggest_lifting
from gate.publish.ci_run import CiRun
from gate.publish.commands import ACCEPT_COMMAND as ACCEPT
from gate.publish.commands import REFRESH_COMMAND as REFRESH
from gate.publish.submitted_verdict import NEXT_STEPS, Refusal
from gate.publish.trusted_result import TrustedResult
from gate.records import BROKEN, UNJUDGED, Outcome, Reason, Status, Verdict
from gate.report.words.steps import write_step

_WRITER = "somebody with write access"
_PUSH = "Fix it and push: the check measures the new commit."
# A run's page, as GitHub tells it: below the page of its repository.
_REPOSITORY_RUN = re.compile(
    r"(https?://[A-Za-z0-9.:_-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/actions/runs/[0-9]+"
)
_ACCEPT_FIRST = (
    "If it is meant: merge what `compile-gate baseline accept` writes in a pull request of its own,"
    " then update this branch."
)
_REMOVE_FIRST = (
    "If what is removed is meant to go: merge the change of `gate.yml` first, in a pull request of its own"
    " that leaves the code in place, then update this branch."
)
_ACCEPTING = f'comments `{ACCEPT} reason="..."`'


def list_comment_steps(finding: TrustedResult) -> list[str]:
    """List what to do next, the most pressing first; empty where there is nothing to do."""
    run = finding.run
    if finding.verdict is None:
        return [_step_without_verdict(finding.refusal or Refusal.NO_ARTIFACT, run)]
    if finding.has_other_trouble:
        return [f"Open the log of {link_run(run)}: something besides the verdict failed. Fix it and push."]
    return list(finding.steps) or _list_by_outcome(finding, finding.verdict)


def _list_by_outcome(finding: TrustedResult, verdict: Verdict) -> list[str]:
    if verdict.outcome is Outcome.INCOMPLETE:
        return _step_incomplete(finding, verdict)
    if verdict.outcome is Outcome.REGRESSION:
        return _step_regression(finding, verdict)
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return _step_inconclusive(finding)
    if verdict.outcome is Outcome.NOTHING_COMPARED and (apart := list_set_apart(verdict.comparisons)):
        return [write_step(suggest_lifting(len(apart), ()), verdict).text]
    if finding.is_failing:
        accept = f"To let this commit pass without baselines: {_WRITER} {_ACCEPTING}."
        return [*([accept] if finding.can_accept else []), _step_baselines(finding)]
    return _step_pass(finding, verdict)


def link_run(run: CiRun) -> str:
    """Write a link to a run, by GitHub's own address of it."""
    return f"[run {run.id}]({run.url})"


def link_commit(run: CiRun, sha: str) -> str:
    """Write a commit, linked where the run's address tells the repository's."""
    base = _REPOSITORY_RUN.fullmatch(run.url)
    return f"[{sha[:12]}]({base[1]}/commit/{sha})" if base else sha[:12]


def _step_without_verdict(refusal: Refusal, run: CiRun) -> str:
    again = f"Open the log of {link_run(run)}, fix what stopped it, and push or run it again."
    return NEXT_STEPS.get(refusal, again)


def _step_incomplete(finding: TrustedResult, verdict: Verdict) -> list[str]:
    """What could not be measured is fixed; cases that the change itself removes are accepted."""
    broken = [one for one in verdict.comparisons if one.decides and one.status in BROKEN]
    is_removed = [one.reason is Reason.REMOVED for one in broken]
    fix = f"Open the log of {link_run(finding.run)}, fix what failed and push."
    steps = [fix] if not (is_removed and all(is_removed) and verdict.tally.finished) else []
    if not any(is_removed):
        return steps
    accept = f"If what is removed is meant to go: {_WRITER} {_ACCEPTING}. That accepts it for this commit."
    return [*steps, accept if finding.can_accept else _REMOVE_FIRST]


def _step_regression(finding: TrustedResult, verdict: Verdict) -> list[str]:
    run = finding.run
    if not any(one.decides and one.status is Status.REGRESSED for one in verdict.comparisons):
        named = f"The summary of {link_run(run)} names the cases: fix them and push."
        return [f"{named} They cannot be accepted before the default branch has them."]
    if not finding.can_accept:
        return [_PUSH, _ACCEPT_FIRST]
    return [_PUSH, f"If it is meant: {_WRITER} {_ACCEPTING}. That accepts these changes for this commit."]


def _step_inconclusive(finding: TrustedResult) -> list[str]:
    again = f"To measure again: {_WRITER} opens {link_run(finding.run)} and chooses *Re-run jobs*."
    return [again] if finding.is_failing else ["Nothing: this does not fail the check.", again]


def _step_pass(finding: TrustedResult, verdict: Verdict) -> list[str]:
    deciding = [one for one in verdict.comparisons if one.decides]
    unjudged = any(one.status in UNJUDGED for one in deciding)
    if unjudged or any(one.reason is Reason.FEW_TRIALS for one in deciding):
        return [_step_baselines(finding)]
    improved = any(one.status is Status.IMPROVED for one in deciding)
    return [_step_baselines(finding, "To make the improvement the new baseline")] if improved else []


def _step_baselines(finding: TrustedResult, why: str = "To have baselines for later changes") -> str:
    """How baselines come about: from a branch of the repository itself, or from the default branch."""
    run = finding.run
    if not finding.can_refresh:
        by_hand = "records them on the machine that measures, by `compile-gate baseline refresh`"
        return f"{why}: {_WRITER} {by_hand}, and commits them."
    if run.is_of_pull_request and run.head_repository == run.repository:
        return f"{why}: {_WRITER} comments `{REFRESH}` and merges what it proposes."
    return f"{why}: {_WRITER} merges this, then starts the workflow `gate-refresh` on the default branch."
