"""What may be published of a run: which it is, for which pull request, its verdict, who accepted what."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gate.decide.conclude.outcome import FailOn
from gate.errors import FileError, UsageError
from gate.github.accept import find_acceptances
from gate.github.artifact import SUCCESS, Artifact, fetch_verdict, find_artifact, find_own_conclusion
from gate.github.client import GitHubClient
from gate.github.events import (
    Target,
    check_workflow,
    got_other_base,
    is_on_branch,
    load_workflow_run,
    note_touched,
    resolve_target,
)
from gate.github.git_data import GitData
from gate.github.job import JobContext, is_sha
from gate.github.sticky import DEFAULT_AUTHOR
from gate.github.transport import GitHubError
from gate.publish.acceptance import NOTHING_ACCEPTED, AcceptedHere, describe_accepted, needs_acceptance
from gate.publish.results import CommentWhen, make_finding, make_upgrade_finding
from gate.publish.submitted import CiRun, Refusal, RefusedError
from gate.publish.trusted import Base, Known, TrustedResult, names_place
from gate.records import Code, Fact, Verdict
from gate.store.policy import DEFAULT_KEY

# Runs that end so have said nothing, and were not meant to: a newer run or a person stopped them. One that
# was skipped is not among them: its check is green, so somebody must say that nothing was measured.
_SILENT = frozenset({"action_required", "stale"})
_SKIPPED = "skipped"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What to publish and how: ``workflow`` is the file whose verdicts are, ``status`` "" sets none.

    ``base`` is what the base commit says, ``author`` whose comments are ours. ``issue`` is whether the run
    is an upgrade's, published in one issue a key instead of on a pull request. ``conclusion`` is how the job
    that measured ended, where the run itself has not ended yet.
    """

    run_id: int
    base: Base
    author: str = DEFAULT_AUTHOR
    issue: bool = False
    conclusion: str = ""
    workflow: str = ".github/workflows/gate.yml"
    artifact_name: str = "compile-gate"
    comment: CommentWhen = CommentWhen.ALWAYS
    key: str = DEFAULT_KEY
    status: str = "compile-gate/report"
    fail_on: FailOn = FailOn.REGRESSION


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One run that is to be published. ``notes`` say what became of it, ``troubles`` what went wrong."""

    client: GitHubClient
    settings: Settings
    target: Target
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def attempt(self, what: str, do: Callable[[], T]) -> T | None:
        """Do one part and return what came of it; GitHub's trouble is written down, and gives None."""
        try:
            return do()
        except GitHubError as error:
            self.troubles.append(f"{what}: {error.what}. {error.fix}")
            return None


def find_target(client: GitHubClient, job: JobContext, settings: Settings) -> Target:
    """Find whose verdict is published."""
    target = resolve_target(client, job, settings.run_id)
    run = target.run
    # A run that was cancelled because its commit is no pull request's head any more says nothing either.
    if run.conclusion in _SILENT or (run.conclusion == "cancelled" and target.pull is None):
        return replace(target, silence=target.silence or f"the run ended with {run.conclusion}")
    if not target.silence:
        check_workflow(run, settings.workflow)
    return target


def find_upgrade(client: GitHubClient, settings: Settings) -> Target:
    """Find a run that compared two stacks; no pull request can start one that is published."""
    run = load_workflow_run(client, settings.run_id)
    if run.is_of_pull_request or run.head_repository != run.repository:
        raise UsageError(
            f"run {run.id} measured a pull request", "Publish runs of a schedule or a dispatch as upgrades."
        )
    return Target(run=replace(run, conclusion=run.conclusion or settings.conclusion))


def _find_remarks(task: Task) -> tuple[Fact, ...]:
    """What readers must know before all else: the change moves its own bar."""
    pull, rules = task.target.pull, task.settings.base.rules
    if pull is None or not rules:
        return ()
    remarks = task.attempt(
        "The change's files could not be listed",
        lambda: note_touched(task.client, pull.number, rules),
    )
    return remarks or ()


def find_result(task: Task) -> TrustedResult:
    """Make what may be published of the run, as the job ended that left its verdict."""
    settings, result = task.settings, _make_result(task)
    return replace(result, gate="" if settings.issue or settings.key == DEFAULT_KEY else settings.key)


def _make_result(task: Task) -> TrustedResult:
    remarks = _find_remarks(task)
    run, base, fail_on = task.target.run, task.settings.base, task.settings.fail_on
    try:
        _check_measured(task)
        artifact = _fetch(task, lambda: find_artifact(task.client, run.id, task.settings.artifact_name))
        run = _find_own_run(task, artifact)
        verdict = _fetch(task, lambda: fetch_verdict(task.client, run, artifact))
    except RefusedError as error:
        return TrustedResult(run=run, refusal=error.refusal, remarks=remarks)
    if task.settings.issue:
        return make_upgrade_finding(verdict, base, run, fail_on)
    known = Known(
        remarks=remarks,
        base_sha=_check_base(task, verdict),
        accepted=_find_accepted(task, run, verdict),
        files=_list_files(task, verdict),
    )
    return make_finding(verdict, base, run, known, fail_on)


def _check_measured(task: Task) -> None:
    """Check that the run measured the change as it is to be merged.

    Raises:
        RefusedError: It did not, whatever lies there.
    """
    run, pull = task.target.run, task.target.pull
    if run.conclusion == _SKIPPED:
        raise RefusedError(Refusal.SKIPPED)
    if pull is not None and task.attempt(
        "Whether the base branch was changed could not be looked up",
        lambda: got_other_base(task.client, pull.number, run.created),
    ):
        raise RefusedError(Refusal.OTHER_BASE)


def _fetch(task: Task, do: Callable[[], T]) -> T:
    """Do a part without which there is no verdict.

    Raises:
        RefusedError: GitHub does not tell. What an earlier attempt said of this commit must not stand then,
            as if nothing had come after it.
    """
    done = task.attempt("The verdict could not be fetched", do)
    if done is None:
        raise RefusedError(Refusal.NOT_FETCHED)
    return done


def _find_own_run(task: Task, artifact: Artifact) -> CiRun:
    """Find the run as the job ended that left the artifact: of several gates each counts by its own."""
    run = task.target.run
    is_plain = run.attempt == 1 and run.conclusion in {SUCCESS, ""}
    if is_plain or task.settings.conclusion:
        return run
    conclusion = task.attempt(
        "Which job left the verdict could not be looked up",
        lambda: find_own_conclusion(task.client, run, artifact),
    )
    return replace(run, conclusion=conclusion or run.conclusion)


def _list_files(task: Task, verdict: Verdict) -> frozenset[str]:
    """The files of the commit that was measured, where the verdict names a place in one."""
    if not names_place(verdict):
        return frozenset()
    data = GitData(task.client)
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
        lambda: is_on_branch(task.client, pull.base_branch, sha),
    )
    return sha if is_there else ""


def _find_accepted(task: Task, run: CiRun, verdict: Verdict) -> AcceptedHere:
    """Who accepted what the verdict calls accepted, or did not compare; nobody, where GitHub does not tell.

    The check read the same file by itself. Here it decides nothing but whether a check that is green although
    nothing was compared may be told so.
    """
    data = GitData(task.client)
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
    base = task.settings.base
    policy = replace(base.policy, acceptances=accepted, commits=(run.head_sha,), gate=base.gate)
    return describe_accepted(policy, run, verdict)
