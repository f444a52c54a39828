"""What may be published of a run: which it is, for which pull request, its verdict, who accepted what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gate.decide.conclude.outcome import FailOn
from gate.errors import FileError, UsageError
from gate.github.accept import find_acceptances
from gate.github.artifact import fetch_verdict, find_own_conclusion
from gate.github.client import GitHubClient
from gate.github.errors import GitHubError
from gate.github.events import (
    Target,
    check_workflow,
    find_outdated,
    got_other_base,
    is_of_retarget,
    is_on_branch,
    load_workflow_run,
    note_touched,
    resolve_target,
)
from gate.github.git_data import GitData
from gate.github.job import JobContext, is_sha
from gate.publish.acceptance import NOTHING_ACCEPTED, AcceptedHere, describe_accepted, needs_acceptance
from gate.publish.submitted_verdict import Refusal, RefusedError
from gate.publish.telling import CommentWhen, make_finding, make_upgrade_finding
from gate.publish.trusted import Base, Known, TrustedResult, names_place
from gate.records import Code, Fact, Outcome, Verdict
from gate.store.policy import DEFAULT_KEY

# Runs that end so have said nothing, and were not meant to: a newer run or a person stopped them. One that
# was skipped is not among them: its check is green, so somebody must say that nothing was measured.
_SILENT = frozenset({"action_required", "stale"})
_SKIPPED = "skipped"
SUCCESS = "success"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What to publish and how: ``workflow`` is the file whose verdicts are, ``status`` "" sets none.

    ``issue`` is whether the run is an upgrade's, published in one issue a key instead of on a pull request.
    ``conclusion`` is how the job that measured ended, where the run itself has not ended yet.
    """

    run_id: int
    issue: bool = False
    conclusion: str = ""
    workflow: str = ".github/workflows/gate.yml"
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
class Task:
    """One run that is to be published. ``notes`` say what became of it, ``troubles`` what went wrong."""

    context: PublishContext
    settings: Settings
    target: Target
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def client(self) -> GitHubClient:
        """The API."""
        return self.context.client

    @property
    def repository(self) -> str:
        """The name of the repository whose run it is."""
        return self.context.job.repository

    def attempt(self, what: str, do: Callable[[], T]) -> T | None:
        """Do one part and return what came of it; GitHub's trouble is written down, and gives None."""
        try:
            return do()
        except GitHubError as error:
            self.troubles.append(f"{what}: {error.what}. {error.fix}")
            return None


def find_target(context: PublishContext, settings: Settings) -> Target:
    """Find whose verdict is published; for a changed base that of the gate's own run, if it has ended."""
    client, job = context.client, context.job
    target = resolve_target(client, job, settings.run_id)
    if is_of_retarget(target.run, job.repository):
        target = find_outdated(client, job, target, settings.workflow)
    run = target.run
    # A run that was cancelled because its commit is no pull request's head any more says nothing either.
    if run.conclusion in _SILENT or (run.conclusion == "cancelled" and target.pull is None):
        return replace(target, silence=target.silence or f"the run ended with {run.conclusion}")
    if not target.silence:
        check_workflow(run, job.repository, settings.workflow)
    return target


def find_upgrade(context: PublishContext, settings: Settings) -> Target:
    """Find a run that compared two stacks; no pull request can start one that is published."""
    run = load_workflow_run(context.client, context.job.repository, settings.run_id)
    if run.is_of_pull_request or run.head_repository != run.repository:
        raise UsageError(
            f"run {run.id} measured a pull request", "Publish runs of a schedule or a dispatch as upgrades."
        )
    return Target(run=replace(run, conclusion=run.conclusion or settings.conclusion))


def _find_remarks(task: Task) -> tuple[Fact, ...]:
    """What readers must know before all else: the change moves its own bar."""
    pull, rules = task.target.pull, task.context.base.rules
    if pull is None or not rules:
        return ()
    remarks = task.attempt(
        "The change's files could not be listed",
        lambda: note_touched(task.client, task.repository, pull.number, rules),
    )
    return remarks or ()


def find_result(task: Task) -> TrustedResult:
    """Make what may be published of the run, as the job ended that left its verdict."""
    remarks, settings, run = _find_remarks(task), task.settings, task.target.run
    finding = _make_result(task, remarks)
    if not settings.conclusion and _asks_for_job(finding):
        conclusion = task.attempt(
            "Which job left the verdict could not be looked up",
            lambda: find_own_conclusion(task.client, task.repository, run, settings.artifact_name),
        )
        if conclusion and conclusion != run.conclusion:
            target = replace(task.target, run=replace(run, conclusion=conclusion))
            finding = _make_result(replace(task, target=target), remarks)
    return replace(finding, gate="" if settings.issue or settings.key == DEFAULT_KEY else settings.key)


def _asks_for_job(finding: TrustedResult) -> bool:
    """Whether it matters how the gate's own job ended, and not the run: other gates may be in it.

    What failed in any case is told as that.
    """
    run = finding.run
    if finding.verdict is None:
        return finding.refusal is Refusal.OLD_ATTEMPT
    is_failed = finding.outcome in {Outcome.REGRESSION, Outcome.INCOMPLETE}
    return not is_failed and (run.conclusion not in {SUCCESS, ""} or run.attempt > 1)


def _make_result(task: Task, remarks: tuple[Fact, ...]) -> TrustedResult:
    run, base, fail_on = task.target.run, task.context.base, task.settings.fail_on
    try:
        verdict = _find_verdict(task)
    except RefusedError as error:
        return TrustedResult(run=run, refusal=error.refusal, remarks=remarks)
    if task.settings.issue:
        return make_upgrade_finding(verdict, base, run, fail_on)
    known = Known(
        remarks=remarks,
        base_sha=_check_base(task, verdict),
        accepted=_find_accepted(task, verdict),
        files=_list_files(task, verdict),
    )
    return make_finding(verdict, base, run, known, fail_on)


def _find_verdict(task: Task) -> Verdict:
    """Find what the run says of the change as it is to be merged.

    Raises:
        RefusedError: Nothing, or of something else; or GitHub does not tell. What an earlier attempt said of
            this commit must not stand then, as if nothing had come after it.
    """
    run, pull = task.target.run, task.target.pull
    if run.conclusion == _SKIPPED:
        raise RefusedError(Refusal.SKIPPED)
    if pull is not None and task.attempt(
        "Whether the base branch was changed could not be looked up",
        lambda: got_other_base(task.client, task.context.job, pull.number, run.created),
    ):
        raise RefusedError(Refusal.OTHER_BASE)
    verdict = task.attempt(
        "The verdict could not be fetched",
        lambda: fetch_verdict(task.client, task.repository, run, task.settings.artifact_name),
    )
    if verdict is None:
        raise RefusedError(Refusal.NOT_FETCHED)
    return verdict


def _list_files(task: Task, verdict: Verdict) -> frozenset[str]:
    """The files of the commit that was measured, where the verdict names a place in one."""
    if not names_place(verdict):
        return frozenset()
    data = GitData(task.client, task.context.job.path)
    found = task.attempt(
        "The files of the change could not be listed",
        lambda: frozenset(data.list_files(data.load_tip(task.target.run.head_sha).tree, "")),
    )
    return found or frozenset()


def _check_base(task: Task, verdict: Verdict) -> str:
    """What the verdict calls its base commit, if GitHub has it on the base branch; else ``""``."""
    sha, pull = verdict.base.commit if verdict.base else "", task.target.pull
    if pull is None or not is_sha(sha):
        return ""
    is_there = task.attempt(
        "The base commit could not be looked up",
        lambda: is_on_branch(task.client, task.repository, pull.base_branch, sha),
    )
    return sha if is_there else ""


def _find_accepted(task: Task, verdict: Verdict) -> AcceptedHere:
    """Who accepted what the verdict calls accepted, or did not compare; nobody, where GitHub does not tell.

    The check read the same file by itself. Here it decides nothing but whether a check that is green although
    nothing was compared may be told so.
    """
    run, data = task.target.run, GitData(task.client, task.context.job.path)
    if not run.is_of_pull_request or not needs_acceptance(verdict):
        return NOTHING_ACCEPTED
    try:
        accepted = task.attempt(
            "Who accepted what could not be looked up", lambda: find_acceptances(data, run.head_sha)
        )
    except FileError:
        return AcceptedHere(notes=(Fact(code=Code.ACCEPTANCES_UNREADABLE),))
    if not accepted:
        return NOTHING_ACCEPTED
    base = task.context.base
    policy = replace(base.policy, acceptances=accepted, commits=(run.head_sha,), gate=base.gate)
    return describe_accepted(policy, run, verdict)
