"""Telling how an upgrade went: one issue an environment, a job summary, annotations, outputs.

The artifact is as hostile here as that of a pull request: what measured it ran a new stack from a
package index. So nothing of it is told but numbers, releases and cases that the base commit knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gate.decide.conclude.outcome import FailOn
from gate.errors import UsageError
from gate.github.artifact import fetch_verdict
from gate.github.errors import GitHubError
from gate.github.events import load_workflow_run
from gate.github.issue import IssueDraft, StickyIssue
from gate.github.publish import (
    Publication,
    PublishContext,
    make_failed_publication,
    make_publication,
)
from gate.github.sticky import Written
from gate.github.troubles import Troubles
from gate.publish.body import make_marker, render_body
from gate.publish.ci_run import SCHEDULE, CiRun
from gate.publish.submitted_verdict import RefusedError
from gate.publish.telling import CommentWhen, describe_finding, is_wanted
from gate.publish.trusted_result import TrustedResult
from gate.publish.upgrade import make_upgrade_finding

_TITLE = "compile-gate: upgrade of the stack"
_DEFAULT_KEY = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class UpgradeSettings:
    """What to publish and how; as the action's inputs of the same names.

    ``conclusion`` is how the job that measured ended, since the run itself has not ended yet.
    """

    run_id: int
    conclusion: str = ""
    artifact_name: str = "compile-gate"
    issue: CommentWhen = CommentWhen.ON_CHANGE
    key: str = _DEFAULT_KEY
    fail_on: FailOn = FailOn.REGRESSION


def publish_upgrade(context: PublishContext, settings: UpgradeSettings) -> Publication:
    """Tell the verdict of a run that held one stack against another.

    Raises:
        UsageError: The run measured a pull request. Nothing that GitHub does is an error here.
    """
    try:
        run = _find_run(context, settings)
        finding = _make_finding(context, settings, run)
    except GitHubError as error:
        return make_failed_publication(error)
    troubles, written = Troubles(), None
    note = "No issue was written."
    if _is_good_news_by_hand(finding, settings):
        note = "The issue was left alone: only a scheduled run that passes closes it."
    elif settings.issue is not CommentWhen.NEVER:
        written = troubles.attempt(
            "The issue was not written", lambda: _write_issue(context, settings, finding)
        )
    if written:
        note = f"Issue of {settings.key}: {written.action.value}."
    outputs = describe_finding(finding) | {"issue-url": written.url if written else ""}
    return make_publication(finding, outputs, [note], troubles)


def _is_good_news_by_hand(finding: TrustedResult, settings: UpgradeSettings) -> bool:
    """Whether nothing is wrong in a run that nobody scheduled.

    Whoever starts one chooses its cases and its stack, and what it did not measure may be as bad as before:
    it takes back nothing of what the issue says.
    """
    is_bad = all(is_wanted(finding, when) for when in (settings.issue, CommentWhen.ON_CHANGE))
    return settings.issue is not CommentWhen.NEVER and finding.run.event != SCHEDULE and not is_bad


def _find_run(context: PublishContext, settings: UpgradeSettings) -> CiRun:
    run = load_workflow_run(context.client, context.job.repository, settings.run_id)
    if run.is_of_pull_request or run.head_repository != run.repository:
        raise UsageError(
            f"run {run.id} measured a pull request", "Publish runs of a schedule or a dispatch as upgrades."
        )
    return replace(run, conclusion=run.conclusion or settings.conclusion)


def _make_finding(context: PublishContext, settings: UpgradeSettings, run: CiRun) -> TrustedResult:
    try:
        verdict = fetch_verdict(context.client, context.job.repository, run, settings.artifact_name)
    except RefusedError as error:
        return TrustedResult(run=run, refusal=error.refusal)
    return make_upgrade_finding(verdict, context.base, run, settings.fail_on)


def _write_issue(context: PublishContext, settings: UpgradeSettings, finding: TrustedResult) -> Written:
    marker = make_marker(settings.key, finding.run)
    draft = IssueDraft(
        repository=context.job.repository,
        workflow=finding.run.path,
        title=_TITLE if settings.key == _DEFAULT_KEY else f"{_TITLE} ({settings.key})",
        marker=marker,
        body=render_body(marker, finding),
        is_wanted=is_wanted(finding, settings.issue),
    )
    return StickyIssue(context.client, context.author).write(draft)
