"""Publishing a run's verdict: commit status, comment or issue, job summary, outputs.

Nothing here changes the verdict: each part is tried on its own, and failures are reported. Artifacts are
hostile, also of upgrades, which ran a new stack from a package index.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gate.github.client import GitHubClient
from gate.github.finding import Settings, Task, make_result, resolve_upgrade
from gate.github.job import MAX_ANNOTATIONS, JobContext, render_annotation
from gate.github.run_events import check_workflow, find_workflow_run, has_moved, resolve_target
from gate.github.run_jobs import SUCCESS
from gate.github.sticky import Draft, StickyComment, StickyIssue
from gate.github.transport import GitHubError, UncertainWriteError
from gate.publish.body import describe_outcome, make_marker, render_body
from gate.publish.results import CommentWhen, describe_finding, is_wanted, render_summary
from gate.publish.submitted import MERGE_GROUP, SCHEDULE, CiRun
from gate.publish.trusted import TrustedResult
from gate.records.verdict import Outcome
from gate.report.markdown import escape_text
from gate.store.policy import DEFAULT_KEY

_RUN = re.compile(r"/actions/runs/([0-9]{1,18})(?:/|$)")
MAX_DESCRIPTION = 140  # GitHub's limit of a commit status, in characters
_UNKNOWN_UPGRADE = "upgrade of the stack"


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """``lines`` are annotations, ready to print."""

    outputs: Mapping[str, object] = field(default_factory=dict)
    summary: str = ""
    lines: tuple[str, ...] = ()


def publish(client: GitHubClient, job: JobContext, settings: Settings) -> Publication:
    """Trouble with GitHub is reported, and is no error.

    Raises:
        UsageError: The settings do not fit the event or the run.
    """
    try:
        if settings.issue:
            target = resolve_upgrade(client, settings)
        else:
            target = resolve_target(client, job, settings.run_id)
        if target.silence:
            text = f"{escape_text(f'There is nothing to publish: {target.silence}.')}\n"
            return Publication(outputs={"head-sha": target.run.head_sha}, summary=text)
        if not settings.issue:
            check_workflow(target.run, settings.workflow)
        task = Task(client=client, settings=settings, target=target)
        gate = "" if settings.issue or settings.key == DEFAULT_KEY else settings.key
        finding = replace(make_result(task), gate=gate)
    except GitHubError as error:
        trouble = f"The verdict could not be fetched: {error.what}. {error.fix}"
        lines = (render_annotation("warning", trouble),)
        return Publication(summary=f"{escape_text(trouble)}\n", lines=lines)
    outputs: dict[str, object] = {}
    if settings.issue:
        outputs["issue-url"] = _write_issue(task, finding)
    else:
        outputs["pr-number"] = target.pull.number if target.pull else ""
        outputs["status-state"] = _write_status(task, finding)
        outputs["comment-url"] = _write_comment(task, finding)
    return Publication(
        outputs=describe_finding(finding) | outputs,
        summary=render_summary(finding, task.notes, task.troubles),
        lines=tuple(render_annotation("warning", trouble) for trouble in task.troubles[:MAX_ANNOTATIONS]),
    )


def _write_status(task: Task, finding: TrustedResult) -> str:
    """Return the state that was set; empty if none."""
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
    fields = _make_status(task, finding)
    was_set = task.attempt("The commit status was not set", lambda: _set_status(task, finding.run, fields))
    if was_set is False:
        task.notes.append("Commit status: left alone: it shows a newer run.")
    elif task.target.sharing:
        task.notes.append(f"Commit status: an error, since {task.target.sharing}.")
    return fields["state"] if was_set else ""


def _may_be_accepted(finding: TrustedResult) -> bool:
    """Whether a merge group's check passed, and only baselines are missing.

    Its acceptances cannot be looked up without a clone: neither red nor green would be sound.
    """
    run, lacks = finding.run, finding.outcome in {Outcome.NOTHING_COMPARED, Outcome.PASS}
    return run.event == MERGE_GROUP and run.conclusion == SUCCESS and finding.is_failing and lacks


def _make_status(task: Task, finding: TrustedResult) -> dict[str, str]:
    sharing = task.target.sharing
    text = f"no result is published: {sharing}" if sharing else describe_outcome(finding)
    state = "failure" if finding.is_failing or finding.has_other_trouble else "success"
    is_known = finding.verdict is not None and not sharing
    return {
        "context": task.settings.status,
        "state": state if is_known else "error",
        "description": text if len(text) <= MAX_DESCRIPTION else text[: MAX_DESCRIPTION - 3] + "...",
        "target_url": finding.run.url,
    }


def _set_status(task: Task, run: CiRun, fields: Mapping[str, str]) -> bool:
    """Set a commit's status, unless it shows a newer run; return whether it was set.

    Of a pull request that was closed and opened again, the older run may be published last.
    """
    path = f"statuses/{run.head_sha}"
    match = _RUN.search(str(_find_newest_status(task, run, fields["context"]).get("target_url")))
    other = int(match[1]) if match else 0
    # The one of the higher number is the newer one, unless ours was started again since.
    newer = find_workflow_run(task.client, other) if other > run.id else None
    if newer and newer.started >= run.started:
        return False
    try:
        task.client.post(path, fields)
    except UncertainWriteError:
        if not fields.items() <= _find_newest_status(task, run, fields["context"]).items():
            task.client.post(path, fields)
    return True


def _find_newest_status(task: Task, run: CiRun, context: str) -> dict[str, Any]:
    """GitHub lists the one in force first."""
    listed = task.client.paginate(f"commits/{run.head_sha}/statuses")
    return next((status for status in listed if status.get("context") == context), {})


def _write_comment(task: Task, finding: TrustedResult) -> str:
    """Return its page; empty where there is none."""
    pull = task.target.pull
    if pull is None or task.settings.comment is CommentWhen.NEVER:
        task.notes.append("No comment, as the settings ask." if pull else f"No comment: {task.target.note}.")
        return ""
    sticky = StickyComment(task.client, task.settings.author, f"issues/{pull.number}/comments")
    return _write(task, finding, sticky, f"Comment on pull request {pull.number}")


def _write_issue(task: Task, finding: TrustedResult) -> str:
    """Return its page; empty where there is none."""
    when = task.settings.comment
    is_bad = is_wanted(finding, when) and is_wanted(finding, CommentWhen.ON_CHANGE)
    if when is CommentWhen.NEVER:
        task.notes.append("No issue was written.")
        return ""
    if finding.run.event != SCHEDULE and not is_bad:
        # Whoever starts a run chooses its cases and its stack: it takes back nothing of what the issue says.
        task.notes.append("The issue was left alone: only a scheduled run that passes closes it.")
        return ""
    key = task.settings.key
    sticky = StickyIssue(task.client, task.settings.author, "issues")
    return _write(task, finding, sticky, f"Issue of {key}")


def _make_title(task: Task, finding: TrustedResult) -> str:
    key = task.settings.key
    title = f"compile-gate: {finding.title or _UNKNOWN_UPGRADE}"
    return title if key == DEFAULT_KEY else f"{title} ({key})"


def _write(task: Task, finding: TrustedResult, sticky: StickyComment, name: str) -> str:
    settings = task.settings
    marker = make_marker(settings.key, finding.run)
    draft = Draft(
        workflow=finding.run.path,
        marker=marker,
        title=_make_title(task, finding) if settings.issue else "",
        body=render_body(marker, finding),
        is_wanted=is_wanted(finding, settings.comment),
        may_close=finding.is_plain,
    )
    written = task.attempt(
        f"The {sticky.noun} was not written",
        lambda: sticky.write(draft, lambda: has_moved(task.client, task.target)),
    )
    if written is None:
        return ""
    task.notes.append(f"{name}: {written.action.value}.")
    return written.url
