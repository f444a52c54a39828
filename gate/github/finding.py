"""What of a run may be published: its artifact's verdict, how its job ended, and who accepted what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from gate.decide.conclude.exit_codes import FailOn
from gate.errors import FileError, UsageError
from gate.github.client import GitHubClient
from gate.github.git_data import GitData
from gate.github.job import find_text
from gate.github.run_events import (
    Target,
    get_workflow_run,
    got_other_base,
    is_on_branch,
    note_touched,
    parse_time,
)
from gate.github.run_jobs import FAILURE, SUCCESS, choose_conclusion, find_failed_step, list_jobs, name_lost
from gate.github.sticky import DEFAULT_AUTHOR
from gate.github.transport import GitHubError
from gate.publish.results import CommentWhen, make_finding, make_upgrade_finding
from gate.publish.submitted import CiRun, Refusal, RefusedError, parse_archive, parse_run
from gate.publish.trusted import Base, RunContext, TrustedResult, needs_acceptance, note_accepted
from gate.records.cases import Acceptance
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Run
from gate.records.shown import Shown
from gate.sizes import MIB
from gate.store.commit_files import BRANCH, MAX_COMMIT_BYTES, decode_commit_file, name_commit_file
from gate.store.policy import DEFAULT_KEY

MAX_VERDICT_ARCHIVE_BYTES = 16 * MIB  # with logs and reports next to the verdict
MAX_RUN_ARCHIVE_BYTES = 16 * MIB  # a run is compressed to about a tenth
_SKIPPED = "skipped"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """``other_times`` are when the run's other artifacts were made."""

    id: int
    created: str
    is_expired: bool
    size_bytes: int
    other_times: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """``workflow`` is the file whose verdicts are published; an empty ``status`` sets none.

    With ``issue`` the run is an upgrade's, published in an issue. ``conclusion`` is how the measuring job
    ended, where the run itself has not ended yet.
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
    """``notes`` describe what was done, ``troubles`` what failed."""

    client: GitHubClient
    settings: Settings
    target: Target
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def attempt(self, what: str, do: Callable[[], T]) -> T | None:
        """``None`` where GitHub fails, which is added to ``troubles``."""
        try:
            return do()
        except GitHubError as error:
            self.troubles.append(f"{what}: {error.what}. {error.fix}")
            return None


def resolve_upgrade(client: GitHubClient, settings: Settings) -> Target:
    """No pull request can start a run that is published as an upgrade."""
    run = get_workflow_run(client, settings.run_id)
    if run.is_of_pull_request or run.head_repository != run.repository:
        raise UsageError(
            f"run {run.id} measured a pull request", "Publish runs of a schedule or a dispatch as upgrades."
        )
    return Target(run=replace(run, conclusion=run.conclusion or settings.conclusion))


def _list_remarks(task: Task) -> tuple[Fact, ...]:
    pull, rules = task.target.pull, task.settings.base.rules
    if pull is None or not rules:
        return ()
    remarks = task.attempt(
        "The change's files could not be listed",
        lambda: note_touched(task.client, pull.number, rules),
    )
    return remarks or ()


def make_result(task: Task) -> TrustedResult:
    remarks = _list_remarks(task)
    run, base, fail_on = task.target.run, task.settings.base, task.settings.fail_on
    try:
        _check_measured(task)
        artifact = _fetch(task, lambda: get_artifact(task.client, run.id, task.settings.artifact_name))
        run = _adopt_job_conclusion(task, artifact)
        verdict = _fetch(task, lambda: fetch_verdict(task.client, run, artifact))
        if run.lost_jobs:  # the job that left the verdict may have ended well, and so may a run that goes on
            ended = task.target.run.conclusion
            run = replace(run, conclusion=FAILURE if ended in {SUCCESS, ""} else ended)
    except RefusedError as error:
        if task.settings.issue:  # the step that failed shows what could not be installed
            jobs = task.attempt("The jobs could not be listed", lambda: list_jobs(task.client, run.id))
            run = replace(run, failed_step=find_failed_step(jobs or ()))
        return TrustedResult(run=run, refusal=error.refusal, context=RunContext(remarks=remarks))
    if task.settings.issue:
        return make_upgrade_finding(verdict, base, run, fail_on)
    accepted, is_lack_accepted = _note_acceptances(task, run, verdict)
    context = RunContext(
        remarks=(*remarks, *accepted),
        base_sha=_check_base(task, verdict),
        # A check that is red all the same did not count it.
        is_lack_accepted=is_lack_accepted and run.conclusion in {SUCCESS, ""},
        files=_list_files(task, verdict),
    )
    return make_finding(verdict, base, run, context, fail_on)


def _check_measured(task: Task) -> None:
    """Raises RefusedError where the run did not measure the change as it is to be merged."""
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
        RefusedError: GitHub does not answer. An earlier attempt's verdict must not stand then as the newest.
    """
    done = task.attempt("The verdict could not be fetched", do)
    if done is None:
        raise RefusedError(Refusal.NOT_FETCHED)
    return done


def _adopt_job_conclusion(task: Task, artifact: Artifact) -> CiRun:
    """Each of several gates in a run counts by the job that left its artifact."""
    run = task.target.run
    if task.settings.conclusion or (run.attempt == 1 and not run.conclusion):
        return run
    jobs = task.attempt(
        "Which job left the verdict could not be looked up", lambda: list_jobs(task.client, run.id)
    )
    if jobs is None:
        return run
    lost = name_lost(jobs, artifact.created, artifact.other_times)
    return replace(
        run, conclusion=choose_conclusion(jobs, artifact.created) or run.conclusion, lost_jobs=lost
    )


def _list_files(task: Task, verdict: Shown) -> frozenset[str]:
    if not any(cause.fact.name("location") for cause in verdict.causes):
        return frozenset()
    data = GitData(task.client)
    files = task.attempt(
        "The files of the change could not be listed",
        lambda: frozenset(data.list_files(data.fetch_commit(task.target.run.head_sha).tree, "")),
    )
    return files or frozenset()


def _check_base(task: Task, verdict: Shown) -> str:
    """Return the base commit of the verdict if GitHub has it on the base branch; else ``""``."""
    sha, pull = verdict.base.commit if verdict.base else "", task.target.pull
    if pull is None or not sha:
        return ""
    is_there = task.attempt(
        "The base commit could not be looked up",
        lambda: is_on_branch(task.client, pull.base_branch, sha),
    )
    return sha if is_there else ""


def _note_acceptances(task: Task, run: CiRun, verdict: Shown) -> tuple[Sequence[Fact], bool]:
    if not run.is_of_pull_request or not needs_acceptance(verdict):
        return (), False
    try:
        accepted = task.attempt(
            "Who accepted what could not be looked up",
            lambda: find_acceptances(GitData(task.client), run.head_sha),
        )
    except FileError:
        return (Fact(code=Code.ACCEPTANCES_UNREADABLE),), False
    if not accepted:
        return (), False
    base = task.settings.base
    policy = replace(base.policy, acceptances=accepted, commits=(run.head_sha,), gate=base.gate)
    return note_accepted(policy, verdict)


def find_acceptances(data: GitData, commit: str, ref: str = BRANCH) -> tuple[Acceptance, ...]:
    """Raises FileError where the file cannot be used."""
    name = name_commit_file(commit)
    content = data.fetch_file(name, ref, MAX_COMMIT_BYTES)
    return () if content is None else decode_commit_file(content, name, commit).acceptances


def get_artifact(client: GitHubClient, run_id: int, name: str) -> Artifact:
    """Get the newest artifact with this name.

    Raises:
        RefusedError: There is none, or it has expired.
    """
    listed = tuple(client.paginate(f"actions/runs/{run_id}/artifacts", key="artifacts"))
    artifacts = (_parse_artifact(value) for value in listed if find_text(value, "name") == name)
    newest = max(filter(None, artifacts), key=lambda artifact: artifact.id, default=None)
    if newest is None:
        raise RefusedError(Refusal.NO_ARTIFACT)
    if newest.is_expired:
        raise RefusedError(Refusal.EXPIRED)
    times = (value.get("created_at") for value in listed if value.get("id") != newest.id)
    return replace(newest, other_times=tuple(map(parse_time, times)))


def _parse_artifact(value: Mapping[str, Any]) -> Artifact | None:
    number, size = value.get("id"), value.get("size_in_bytes")
    if not isinstance(number, int) or not isinstance(size, int):
        return None
    return Artifact(
        id=number,
        created=parse_time(value.get("created_at")),
        is_expired=value.get("expired") is not False,
        size_bytes=size,
    )


def fetch_verdict(client: GitHubClient, run: CiRun, artifact: Artifact) -> Shown:
    """Raises RefusedError where there is none that can be believed."""
    # A job that succeeded is not run again with the failed ones, so its artifact may be older; with
    # a run that failed, an older artifact would pass an earlier attempt's result off as this one's.
    if artifact.created < run.started and run.conclusion != SUCCESS:
        raise RefusedError(Refusal.OLD_ATTEMPT)
    if artifact.size_bytes > MAX_VERDICT_ARCHIVE_BYTES:
        raise RefusedError(Refusal.TOO_LARGE)
    archive = client.download(f"actions/artifacts/{artifact.id}/zip", MAX_VERDICT_ARCHIVE_BYTES)
    return parse_archive(archive)


def fetch_run(client: GitHubClient, run_id: int, name: str) -> Run:
    """Raises UsageError where the artifact has no usable ``run.json``."""
    try:
        artifact = get_artifact(client, run_id, name)
    except RefusedError:
        what = f"there is no artifact {name} in run {run_id}"
        raise UsageError(what, "Look at the job that measured.") from None
    return parse_run(client.download(f"actions/artifacts/{artifact.id}/zip", MAX_RUN_ARCHIVE_BYTES))
