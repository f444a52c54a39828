"""Telling how an upgrade went: one issue an environment, a job summary, annotations, outputs.

The artifact is as hostile here as that of a pull request: what measured it ran a new stack from a
package index. So nothing of it is told but numbers, releases and cases that the base commit knows.

An issue cannot be deleted. Of two that racing publishers made, the oldest is kept and the other is closed
without its marker. Somebody who closes the issue as *not planned* has had enough: it is kept up to date
and stays closed until a person opens it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from gate.decide.conclude.outcome import FailOn
from gate.errors import UsageError
from gate.github.artifact import fetch_verdict
from gate.github.errors import GitHubError, Troubles
from gate.github.events import load_workflow_run
from gate.github.publish import (
    Publication,
    PublishContext,
    make_failed_publication,
    make_publication,
)
from gate.github.sticky import (
    NOT_PLANNED,
    Action,
    Draft,
    Post,
    Sticky,
    Written,
    choose_body,
    find_oldest,
    is_same,
)
from gate.publish.body import make_marker, render_body
from gate.publish.ci_run import SCHEDULE, CiRun
from gate.publish.submitted_verdict import RefusedError
from gate.publish.telling import CommentWhen, describe_finding, is_wanted, make_upgrade_finding
from gate.publish.trusted import TrustedResult

# Of the author's issues, those touched last; ours is touched by every run. Ten requests.
MAX_LISTED = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class IssueDraft(Draft):
    """What is to be said under a title, in an issue that is to be open where it is wanted."""

    title: str


class StickyIssue(Sticky[IssueDraft]):
    """The issues of one repository."""

    noun, key_name = "issue", "number"

    def locate(self, draft: IssueDraft) -> str:
        """Name the repository's issues."""
        return f"/repos/{draft.repository}/issues"

    def list_all(self, draft: IssueDraft, since: datetime | None) -> Iterable[Mapping[str, Any]]:
        """List the author's issues: a racing publisher's is among those touched last."""
        del since
        asked = {"state": "all", "creator": self._author, "sort": "updated", "direction": "desc"}
        return islice(self._client.paginate(self.locate(draft), asked), MAX_LISTED)

    def make_fields(self, draft: IssueDraft) -> dict[str, object]:
        """Make the fields of an issue."""
        return {"title": draft.title, "body": draft.body}

    def write(self, draft: IssueDraft) -> Written:
        """Make the one issue of this key say what the draft says, and open or close it.

        Raises:
            GitHubError: GitHub refuses or does not answer.
        """
        own, written = self.look(draft)
        if written is not None:
            return written
        if own:
            return self._settle(own, draft)
        return Written(action=Action.CREATED, url=self._settle(self.create(draft), draft).url)

    def _settle(self, own: Sequence[Post], draft: IssueDraft) -> Written:
        """Let the oldest hold the newest text in the right state, and retire the others."""
        kept, body = find_oldest(own), choose_body(own, draft)
        fields: dict[str, object] = {} if is_same(kept.body, body) else {"body": body}
        action = _choose_action(kept, draft, has_news=bool(fields))
        if action is Action.REOPENED:
            fields |= {"state": "open"}
        if action is Action.CLOSED:
            fields |= {"state": "closed", "state_reason": "completed"}
        if fields:
            self._client.patch(f"{self.locate(draft)}/{kept.id}", fields)
        for issue in own:
            if issue.id != kept.id:
                said = {"body": f"Continued in #{kept.id}.", "state": "closed", "state_reason": NOT_PLANNED}
                self._client.patch(f"{self.locate(draft)}/{issue.id}", said)
        return Written(action=action, url=kept.url)


def _choose_action(kept: Post, draft: IssueDraft, *, has_news: bool) -> Action:
    if not draft.is_wanted and kept.is_open:
        return Action.CLOSED
    if draft.is_wanted and not kept.is_open:
        return Action.MUTED if kept.is_muted else Action.REOPENED
    return Action.UPDATED if has_news else Action.UNCHANGED


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
