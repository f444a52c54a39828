"""Telling a finished run's verdict: commit status, comment, job summary, annotations, outputs.

The verdict was decided by the run that measured. Whatever goes wrong here is told as trouble and
changes nothing about it: each part is tried for itself, the most needed first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gate.decide.conclude.outcome import FailOn
from gate.errors import FileError
from gate.github.artifact import fetch_verdict, find_own_conclusion
from gate.github.branches import find_approval
from gate.github.client import GitHubClient
from gate.github.context import JobContext, is_sha
from gate.github.errors import GitHubError, Troubles
from gate.github.events import (
    Target,
    check_workflow,
    find_outdated,
    got_other_base,
    has_moved,
    is_of_retarget,
    is_on_branch,
    note_touched,
    resolve_target,
)
from gate.github.git_data import GitData
from gate.github.job import MAX_ANNOTATIONS, render_annotation
from gate.github.status import CommitStatus, State, set_status
from gate.github.sticky import Action, CommentDraft, StickyComment, Written
from gate.publish.approval import NOTHING_APPROVED, Approved, describe_approval, needs_approval
from gate.publish.body import describe_outcome, make_marker, render_body
from gate.publish.ci_run import MERGE_GROUP
from gate.publish.submitted_verdict import Refusal, RefusedError
from gate.publish.telling import CommentWhen, describe_finding, is_wanted, make_finding, render_summary
from gate.publish.trusted import Base, Known, TrustedResult, names_place
from gate.records import Code, Fact, Outcome, Status, Verdict
from gate.report.markdown import escape_text
from gate.report.words.comparisons import describe_comparison
from gate.store.approvals import DEFAULT_KEY

# Runs that end so have said nothing, and were not meant to: a newer run or a person stopped them. One that
# was skipped is not among them: its check is green, so somebody must say that nothing was measured.
_SILENT = frozenset({"action_required", "stale"})
_SKIPPED = "skipped"
_SUCCESS = "success"

WORKFLOW = ".github/workflows/gate.yml"  # the file of the workflow whose verdicts are told


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What to publish and how; as the action's inputs of the same names. ``status`` "" sets none."""

    run_id: int
    workflow: str = WORKFLOW
    artifact_name: str = "compile-gate"
    comment: CommentWhen = CommentWhen.ALWAYS
    key: str = DEFAULT_KEY
    status: str = "compile-gate/report"
    fail_on: FailOn = FailOn.REGRESSION


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishContext:
    """Where to publish: the API, this job with its repository and event, whose comments."""

    client: GitHubClient
    job: JobContext
    author: str
    base: Base


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """What was told, and what could not be. ``lines`` are annotations, ready to print."""

    outputs: Mapping[str, object] = field(default_factory=dict)
    summary: str = ""
    lines: tuple[str, ...] = ()


def publish(context: PublishContext, settings: Settings) -> Publication:
    """Tell the verdict of a run.

    Raises:
        UsageError: The settings do not fit the event. Nothing that GitHub does is an error here.
    """
    troubles = Troubles()
    try:
        target = _find_target(context, settings)
        if target is None:
            return Publication(
                summary="There is nothing to publish: no run of the gate is for another base.\n"
            )
        if target.is_outrun or target.run.conclusion in _SILENT or _is_superseded(target):
            return _make_silence(target)
        check_workflow(target.run, context.job.repository, settings.workflow)
        finding = _make_finding(context, settings, target, troubles)
    except GitHubError as error:
        return make_failed_publication(error)
    notes = list[str]()
    outputs = describe_finding(finding) | {
        "pr-number": target.pull.number if target.pull else "",
        "status-state": _tell_status(context, settings, (target, finding), troubles, notes),
        "comment-url": _tell_comment(context, settings, (target, finding), troubles, notes),
    }
    return make_publication(finding, outputs, notes, troubles)


def _find_target(context: PublishContext, settings: Settings) -> Target | None:
    """Find whose verdict is told; for a changed base branch that of the gate's own run, if it has ended."""
    client, job = context.client, context.job
    target = resolve_target(client, job, settings.run_id)
    if not is_of_retarget(target.run, job.repository):
        return target
    return find_outdated(client, job, target, settings.workflow)


def make_publication(
    finding: TrustedResult, outputs: Mapping[str, object], notes: list[str], troubles: Troubles
) -> Publication:
    """Make the publication of a finding; ``notes`` say what became of telling it."""
    return Publication(
        outputs=outputs,
        summary=render_summary(finding, notes, troubles.lines),
        lines=tuple(list_published_annotations(finding, troubles.lines)),
    )


def _tell_status(
    context: PublishContext,
    settings: Settings,
    told: tuple[Target, TrustedResult],
    troubles: Troubles,
    notes: list[str],
) -> str:
    """Set the commit status and return its state; empty where it was not set."""
    target, finding = told
    if not settings.status:
        return ""
    if not finding.run.decides_merging:
        # A commit has one status: this would take back what a pull request's run says of the same one.
        notes.append(f"No commit status: the run was started by {finding.run.event}.")
        return ""
    if _may_be_approved(finding):
        notes.append(
            "No commit status: the check of this merge group is green although something had no baseline, as"
            " it is where that was accepted for each of its pull requests."
        )
        return ""
    status = _make_status(target, finding, settings)
    was_set = troubles.attempt(
        "The commit status was not set",
        lambda: set_status(context.client, context.job.repository, finding.run.head_sha, status),
    )
    if was_set is False:
        notes.append("Commit status: left alone: it shows a newer run.")
    elif target.sharing:
        notes.append(f"Commit status: an error, since {target.sharing}.")
    return status.state.value if was_set else ""


def _may_be_approved(finding: TrustedResult) -> bool:
    """Whether a merge group's check passed, and all that is amiss is a lack of baselines.

    The check counts what was accepted for the pull requests of the group, which takes a clone to find out
    where the queue squashes them. Here neither red nor green would be sound.
    """
    run, lacks = finding.run, finding.outcome in {Outcome.NOTHING_COMPARED, Outcome.PASS}
    return run.event == MERGE_GROUP and run.conclusion == _SUCCESS and finding.is_failing and lacks


def _tell_comment(
    context: PublishContext,
    settings: Settings,
    told: tuple[Target, TrustedResult],
    troubles: Troubles,
    notes: list[str],
) -> str:
    """Write the comment and return its page; empty where there is none."""
    target, finding = told
    if target.pull is None or settings.comment is CommentWhen.NEVER:
        notes.append("No comment, as the settings ask." if target.pull else f"No comment: {target.note}.")
        return ""
    written = troubles.attempt(
        "The comment was not written", lambda: _write_comment(context, settings, target, finding)
    )
    if written is None:
        return ""
    notes.append(f"Comment on pull request {target.pull.number}: {written.action.value}.")
    if written.displaced:
        troubles.lines.append(
            f"The comment showed the artifact {written.displaced} of the same run, as its commit status"
            " may have. Give each gate a `comment-key` and a `status` of its own."
        )
    return written.url


def _is_superseded(target: Target) -> bool:
    """Whether the run was cancelled because its commit is no pull request's head any more."""
    return target.run.conclusion == "cancelled" and target.pull is None


def _find_remarks(context: PublishContext, target: Target, troubles: Troubles) -> tuple[Fact, ...]:
    """What readers must know before all else: the change moves its own bar."""
    pull, rules = target.pull, context.base.rules
    if pull is None or not rules:
        return ()
    remarks = troubles.attempt(
        "The change's files could not be listed",
        lambda: note_touched(context.client, context.job.repository, pull.number, rules),
    )
    return remarks or ()


def _make_finding(
    context: PublishContext, settings: Settings, target: Target, troubles: Troubles
) -> TrustedResult:
    """Make what may be told of the run, as the job ended that left its verdict."""
    remarks = _find_remarks(context, target, troubles)
    finding = _judge(context, settings, target, troubles, remarks)
    if _asks_for_job(finding):
        conclusion = troubles.attempt(
            "Which job left the verdict could not be looked up",
            lambda: find_own_conclusion(
                context.client, context.job.repository, target.run, settings.artifact_name
            ),
        )
        if conclusion and conclusion != target.run.conclusion:
            target = replace(target, run=replace(target.run, conclusion=conclusion))
            finding = _judge(context, settings, target, troubles, remarks)
    return replace(finding, gate="" if settings.key == DEFAULT_KEY else settings.key)


def _asks_for_job(finding: TrustedResult) -> bool:
    """Whether it matters how the gate's own job ended, and not the run: other gates may be in it.

    What failed in any case is told as that.
    """
    run = finding.run
    if finding.verdict is None:
        return finding.refusal is Refusal.OLD_ATTEMPT
    is_failed = finding.outcome in {Outcome.REGRESSION, Outcome.INCOMPLETE}
    return not is_failed and (run.conclusion not in {_SUCCESS, ""} or run.attempt > 1)


def _judge(
    context: PublishContext,
    settings: Settings,
    target: Target,
    troubles: Troubles,
    remarks: tuple[Fact, ...],
) -> TrustedResult:
    try:
        verdict = _find_verdict(context, settings, target, troubles)
    except RefusedError as error:
        return TrustedResult(run=target.run, refusal=error.refusal, remarks=remarks)
    known = Known(
        remarks=remarks,
        base_sha=_check_base(context, target, verdict, troubles),
        approved=_find_approved(context, target, verdict, troubles),
        files=_list_files(context, target, verdict, troubles),
    )
    return make_finding(verdict, context.base, target.run, known, settings.fail_on)


def _find_verdict(context: PublishContext, settings: Settings, target: Target, troubles: Troubles) -> Verdict:
    """Find what the run says of the change as it is to be merged.

    Raises:
        RefusedError: Nothing, or of something else; or GitHub does not tell. What an earlier attempt said of
            this commit must not stand then, as if nothing had come after it.
    """
    run, client, job = target.run, context.client, context.job
    if run.conclusion == _SKIPPED:
        raise RefusedError(Refusal.SKIPPED)
    if (pull := target.pull) is not None and troubles.attempt(
        "Whether the base branch was changed could not be looked up",
        lambda: got_other_base(client, job, pull.number, run.created),
    ):
        raise RefusedError(Refusal.OTHER_BASE)
    try:
        return fetch_verdict(client, job.repository, run, settings.artifact_name)
    except GitHubError as error:
        troubles.add("The verdict could not be fetched", error)
        raise RefusedError(Refusal.NOT_FETCHED) from None


def _list_files(
    context: PublishContext, target: Target, verdict: Verdict, troubles: Troubles
) -> frozenset[str]:
    """The files of the commit that was measured, where the verdict names a place in one."""
    if not names_place(verdict):
        return frozenset()
    data = GitData(context.client, context.job.path)
    found = troubles.attempt(
        "The files of the change could not be listed",
        lambda: frozenset(data.list_files(data.load_tip(target.run.head_sha).tree, "")),
    )
    return found or frozenset()


def _check_base(context: PublishContext, target: Target, verdict: Verdict, troubles: Troubles) -> str:
    """What the verdict calls its base commit, if GitHub has it on the base branch; else ``""``."""
    sha, pull = verdict.base.commit if verdict.base else "", target.pull
    if pull is None or not is_sha(sha):
        return ""
    is_there = troubles.attempt(
        "The base commit could not be looked up",
        lambda: is_on_branch(context.client, context.job.repository, pull.base_branch, sha),
    )
    return sha if is_there else ""


def _find_approved(context: PublishContext, target: Target, verdict: Verdict, troubles: Troubles) -> Approved:
    """Who accepted what the verdict calls accepted, or did not compare; nobody, where GitHub does not tell.

    The check read the same file by itself. Here it decides nothing but whether a check that is green although
    nothing was compared may be told so.
    """
    run, data = target.run, GitData(context.client, context.job.path)
    if not run.is_of_pull_request or not needs_approval(verdict):
        return NOTHING_APPROVED
    try:
        approval = troubles.attempt(
            "Who accepted what could not be looked up", lambda: find_approval(data, run.head_sha)
        )
    except FileError:
        return Approved(notes=(Fact(code=Code.APPROVAL_UNREADABLE),))
    if approval is None:
        return NOTHING_APPROVED
    policy = replace(context.base.policy, approvals=(approval,), gate=context.base.gate)
    return describe_approval(policy, run, verdict)


def _write_comment(
    context: PublishContext, settings: Settings, target: Target, finding: TrustedResult
) -> Written:
    if target.pull is None:
        return Written(action=Action.NOT_WANTED)
    marker = make_marker(settings.key, target.run, settings.artifact_name)
    draft = CommentDraft(
        repository=context.job.repository,
        workflow=settings.workflow,
        number=target.pull.number,
        marker=marker,
        body=render_body(marker, finding),
        is_wanted=is_wanted(finding, settings.comment),
    )
    comment = StickyComment(context.client, context.author)
    return comment.write(draft, lambda: has_moved(context.client, context.job.repository, target))


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


def _make_silence(target: Target) -> Publication:
    why = target.note if target.is_outrun else f"the run ended with {target.run.conclusion}"
    text = f"There is nothing to publish: {why}."
    return Publication(outputs={"head-sha": target.run.head_sha}, summary=f"{escape_text(text)}\n")


def make_failed_publication(error: GitHubError) -> Publication:
    """Make the publication of a verdict that could not be fetched."""
    trouble = f"The verdict could not be fetched: {error.what}. {error.fix}"
    return Publication(summary=f"{escape_text(trouble)}\n", lines=(render_annotation("warning", trouble),))
