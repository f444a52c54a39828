"""Publishing a run's verdict: commit status, comment or issue, job summary, annotations, outputs.

The verdict was decided by the run that measured. Whatever goes wrong here is told as trouble and
changes nothing about it: each part is tried for itself, the most needed first.

A change is told on its pull request, an upgrade of the stack in one issue for each environment. The artifact
is as hostile in both: what measured an upgrade ran a new stack from a package index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.github.errors import GitHubError
from gate.github.events import (
    Target,
    has_moved,
)
from gate.github.finding import (
    SUCCESS,
    PublishContext,
    Settings,
    Task,
    find_result,
    find_target,
    find_upgrade,
)
from gate.github.job import MAX_ANNOTATIONS, render_annotation
from gate.github.status import CommitStatus, State, set_status
from gate.github.sticky import Draft, Sticky, StickyComment, StickyIssue
from gate.publish.body import describe_outcome, make_marker, render_body
from gate.publish.ci_run import MERGE_GROUP, SCHEDULE
from gate.publish.telling import (
    CommentWhen,
    describe_finding,
    is_wanted,
    render_summary,
)
from gate.publish.trusted import TrustedResult
from gate.records import Outcome, Status
from gate.report.markdown import escape_text
from gate.report.words.comparisons import describe_comparison
from gate.store.policy import DEFAULT_KEY


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """What was told, and what could not be. ``lines`` are annotations, ready to print."""

    outputs: Mapping[str, object] = field(default_factory=dict)
    summary: str = ""
    lines: tuple[str, ...] = ()


def publish(context: PublishContext, settings: Settings) -> Publication:
    """Tell the verdict of a run.

    Raises:
        UsageError: The settings do not fit the event or the run. Nothing that GitHub does is an error here.
    """
    try:
        target = (find_upgrade if settings.issue else find_target)(context, settings)
        if target is None or target.silence:
            return _make_silence(target)
        task = Task(context=context, settings=settings, target=target)
        finding = find_result(task)
    except GitHubError as error:
        trouble = f"The verdict could not be fetched: {error.what}. {error.fix}"
        lines = (render_annotation("warning", trouble),)
        return Publication(summary=f"{escape_text(trouble)}\n", lines=lines)
    told = _tell_issue(task, finding) if settings.issue else _tell_pull(task, finding)
    troubles = task.troubles.lines
    return Publication(
        outputs=describe_finding(finding) | told,
        summary=render_summary(finding, task.notes, troubles),
        lines=tuple(list_published_annotations(finding, troubles)),
    )


def _tell_pull(task: Task, finding: TrustedResult) -> dict[str, object]:
    """Tell it on the pull request, if there is one, and on its commit; returns outputs."""
    pull = task.target.pull
    return {
        "pr-number": pull.number if pull else "",
        "status-state": _tell_status(task, finding),
        "comment-url": _tell_comment(task, finding),
    }


def _tell_status(task: Task, finding: TrustedResult) -> str:
    """Set the commit status and return its state; empty where it was not set."""
    if not task.settings.status:
        return ""
    if not finding.run.decides_merging:
        # A commit has one status: this would take back what a pull request's run says of the same one.
        task.notes.append(f"No commit status: the run was started by {finding.run.event}.")
        return ""
    if _may_be_accepted(finding):
        task.notes.append(
            "No commit status: the check of this merge group is green although something had no baseline, as"
            " it is where that was accepted for each of its pull requests."
        )
        return ""
    status = _make_status(task.target, finding, task.settings)
    was_set = task.troubles.attempt(
        "The commit status was not set",
        lambda: set_status(task.client, task.repository, finding.run.head_sha, status),
    )
    if was_set is False:
        task.notes.append("Commit status: left alone: it shows a newer run.")
    elif task.target.sharing:
        task.notes.append(f"Commit status: an error, since {task.target.sharing}.")
    return status.state.value if was_set else ""


def _may_be_accepted(finding: TrustedResult) -> bool:
    """Whether a merge group's check passed, and all that is amiss is a lack of baselines.

    The check counts what was accepted for the pull requests of the group, which takes a clone to find out
    where the queue squashes them. Here neither red nor green would be sound.
    """
    run, lacks = finding.run, finding.outcome in {Outcome.NOTHING_COMPARED, Outcome.PASS}
    return run.event == MERGE_GROUP and run.conclusion == SUCCESS and finding.is_failing and lacks


def _tell_comment(task: Task, finding: TrustedResult) -> str:
    """Write the comment and return its page; empty where there is none."""
    pull = task.target.pull
    if pull is None or task.settings.comment is CommentWhen.NEVER:
        task.notes.append("No comment, as the settings ask." if pull else f"No comment: {task.target.note}.")
        return ""
    return _write(task, finding, StickyComment, f"Comment on pull request {pull.number}")


_TITLE = "compile-gate: upgrade of the stack"


def _tell_issue(task: Task, finding: TrustedResult) -> dict[str, object]:
    """Open, update or close the issue of this environment; returns outputs."""
    url, settings = "", task.settings
    if settings.comment is CommentWhen.NEVER:
        task.notes.append("No issue was written.")
    elif finding.run.event != SCHEDULE and not _is_bad(finding, settings.comment):
        # Whoever starts a run chooses its cases and its stack: it takes back nothing of what the issue says.
        task.notes.append("The issue was left alone: only a scheduled run that passes closes it.")
    else:
        url = _write(task, finding, StickyIssue, f"Issue of {settings.key}")
    return {"issue-url": url}


def _is_bad(finding: TrustedResult, when: CommentWhen) -> bool:
    return is_wanted(finding, when) and is_wanted(finding, CommentWhen.ON_CHANGE)


def _write(task: Task, finding: TrustedResult, kind: type[Sticky], name: str) -> str:
    """Write the comment or the issue, and return its page; empty where there is none."""
    context, settings, pull = task.context, task.settings, task.target.pull
    marker = make_marker(settings.key, finding.run, settings.artifact_name)
    draft = Draft(
        repository=task.repository,
        workflow=finding.run.path if settings.issue else settings.workflow,
        marker=marker,
        body=render_body(marker, finding),
        is_wanted=is_wanted(finding, settings.comment),
        number=pull.number if pull else 0,
        title=_TITLE if settings.key == DEFAULT_KEY else f"{_TITLE} ({settings.key})",
    )
    written = task.troubles.attempt(
        f"The {kind.noun} was not written",
        lambda: kind(task.client, context.author).write(
            draft, lambda: has_moved(task.client, task.repository, task.target)
        ),
    )
    if written is None:
        return ""
    task.notes.append(f"{name}: {written.action.value}.")
    if written.displaced:
        task.troubles.lines.append(
            f"The {kind.noun} showed the artifact {written.displaced} of the same run, as its commit status"
            " may have. Give each gate a `comment-key` of its own."
        )
    return written.url


def _make_status(target: Target, finding: TrustedResult, settings: Settings) -> CommitStatus:
    state = State.FAILURE if finding.is_failing or finding.has_other_trouble else State.SUCCESS
    # Of several pull requests with one commit, each has a verdict of its own, and the commit has one status.
    is_known = finding.verdict is not None and not target.sharing
    return CommitStatus(
        context=settings.status,
        state=state if is_known else State.ERROR,
        description=f"no result is published: {target.sharing}"
        if target.sharing
        else describe_outcome(finding),
        url=finding.run.url,
        run_id=finding.run.id,
        started=finding.run.started,
    )


def list_published_annotations(finding: TrustedResult, troubles: list[str]) -> list[str]:
    """The headline, what regressed, and the troubles: as many of each type as GitHub shows."""
    failed = finding.is_failing or finding.has_other_trouble
    level = "error" if failed else "notice" if finding.outcome is Outcome.PASS else "warning"
    lines = [render_annotation(level, describe_outcome(finding))]
    comparisons = finding.verdict.comparisons if finding.verdict else ()
    regressed = [one for one in comparisons if one.decides and one.status is Status.REGRESSED]
    lines += [
        render_annotation(level, describe_comparison(one), f"compile-gate: {one.case_id} {one.metric}")
        for one in regressed[: MAX_ANNOTATIONS - 1 - len(troubles)]
    ]
    return lines + [render_annotation("warning", trouble) for trouble in troubles]


def _make_silence(target: Target | None) -> Publication:
    if target is None:
        return Publication(summary="There is nothing to publish: no run of the gate is for another base.\n")
    text = f"There is nothing to publish: {target.silence}."
    return Publication(outputs={"head-sha": target.run.head_sha}, summary=f"{escape_text(text)}\n")
