"""The run that an event is about, its pull request, and what that touches: never from the artifact.

``workflow_run.pull_requests`` is empty for forks. So the pull request is looked up by the run's head.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from gate.errors import UsageError
from gate.github.client import GitHubClient, quote_part
from gate.github.job import JobContext, find_text, find_value
from gate.github.transport import GitHubError, MissingError, get_number, get_text, make_answer_error
from gate.publish.submitted import MERGE_GROUP, CiRun
from gate.records.bounds import SHA
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.units import format_noun

_SHA = re.compile(SHA)
_WORD = re.compile(r"[a-z_]{1,40}")
# Runs that end so have said nothing, and were not meant to: a newer run or a person stopped them. One that
# was skipped is not among them: its check is green, so somebody must say that nothing was measured.
_SILENT = frozenset({"action_required", "stale"})
# What GitHub says happened when a pull request got another base: a run before it judged another change.
_RETARGETED = frozenset(("base_ref_changed", "automatic_base_change_succeeded"))
MAX_FILES = 300  # three requests; a change of more files is looked at in another way


@dataclass(frozen=True, kw_only=True, slots=True)
class PullRequest:
    number: int
    head_sha: str
    head_branch: str
    head_repository: int  # id; 0 where the fork is gone
    base_repository: int
    base_branch: str
    is_open: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where a run's verdict is published, or in ``note`` why there is no pull request.

    ``silence`` says why nothing is published, ``sharing`` why the commit's one status cannot show this
    verdict.
    """

    run: CiRun
    pull: PullRequest | None = None
    note: str = ""
    silence: str = ""
    sharing: str = ""


def resolve_target(client: GitHubClient, job: JobContext, run_id: int) -> Target:
    """Raises UsageError where the job's event is about another run."""
    attempt = _parse_attempt(run_id, job)
    run = get_workflow_run(client, run_id)
    if attempt and run.attempt > attempt:
        return Target(run=run, silence="a newer attempt of the run has begun")
    target = _resolve_pull(client, run)
    # A run that was cancelled because its commit is no pull request's head any more says nothing either.
    if run.conclusion in _SILENT or (run.conclusion == "cancelled" and target.pull is None):
        return replace(target, silence=f"the run ended with {run.conclusion}")
    return target


def _resolve_pull(client: GitHubClient, run: CiRun) -> Target:
    if run.event == MERGE_GROUP:
        return Target(run=run, note="a merge queue's run belongs to no single pull request")
    if not run.is_of_pull_request:
        return Target(run=run, note=f"the run was started by {run.event}, not by a pull request")
    if run.head_owner and run.head_branch:
        head = f"{run.head_owner}:{run.head_branch}"
        pulls = client.paginate("pulls", {"state": "open", "head": head})
    else:
        # The fork is gone: GitHub still knows which pull requests have the commit.
        pulls = client.paginate(f"commits/{run.head_sha}/pulls")
    return _add_sharing(client, _choose_pull(run, map(parse_pull, pulls)))


def get_workflow_run(client: GitHubClient, run_id: int) -> CiRun:
    run = parse_workflow_run(client.get(f"actions/runs/{run_id}"))
    if run.id != run_id:
        raise GitHubError(f"GitHub's answer is about another run than {run_id}", "Try again later.")
    return run


def find_workflow_run(client: GitHubClient, run_id: int) -> CiRun | None:
    """``None`` where it was deleted, or is made up."""
    try:
        return get_workflow_run(client, run_id)
    except MissingError:
        return None


def check_workflow(run: CiRun, expected: str) -> None:
    """A change may bring another workflow of the same name.

    Raises:
        UsageError: The run is of another file than ``expected``.
    """
    if run.path != expected:
        raise UsageError(
            f"run {run.id} is of another workflow file than {expected}: it is not published",
            "Where your gate lies in another file, name that in the input workflow.",
        )


def has_moved(client: GitHubClient, target: Target) -> bool:
    if target.pull is None:
        return False
    pull = parse_pull(client.get(f"pulls/{target.pull.number}"))
    return pull.head_sha != target.run.head_sha or not pull.is_open


def got_other_base(client: GitHubClient, pr_number: int, since: str) -> bool:
    """``since`` is a time as ``2026-11-01T12:00:00Z``."""
    return any(
        find_text(event, "event") in _RETARGETED and parse_time(event.get("created_at")) >= since
        for event in client.paginate(f"issues/{pr_number}/events")
    )


def is_on_branch(client: GitHubClient, branch: str, sha: str) -> bool:
    """A commit of any fork can be asked for in this repository."""
    try:
        comparison = client.get(f"compare/{quote_part(branch)}...{sha}")
    except MissingError:
        return False
    return find_value(comparison, "status") in {"behind", "identical"}


def _parse_attempt(run_id: int, job: JobContext) -> int:
    """0 where the event is about no run."""
    run = job.event.get("workflow_run") if job.event_name == "workflow_run" else None
    if not isinstance(run, dict):
        return 0
    if run.get("id") != run_id:
        raise UsageError(
            f"--run-id {run_id} is not the run that this event is about",
            "Pass `${{ github.event.workflow_run.id }}`.",
        )
    return get_number(run, "run_attempt")


def _choose_pull(run: CiRun, pulls: Iterable[PullRequest]) -> Target:
    ours = [
        pull
        for pull in pulls
        if pull.is_open
        and pull.base_repository == run.repository
        and pull.head_repository == run.head_repository
        and (pull.head_branch == run.head_branch or not run.head_branch)
    ]
    if not ours:
        return Target(run=run, note="no open pull request has this run's head: it was closed or merged")
    exact = [pull for pull in ours if pull.head_sha == run.head_sha]
    if not exact:
        return Target(run=run, note="the pull request has a newer commit, which has a run of its own")
    if len(exact) > 1:
        note = f"{len(exact)} open pull requests have this head, to different bases"
        return Target(run=run, note=note, sharing=note)
    return Target(run=run, pull=exact[0])


def list_pulls_of_head(client: GitHubClient, repository: int, head_sha: str) -> list[PullRequest]:
    """List the open pull requests into a repository, by its id, that have a commit as their head."""
    pulls = map(parse_pull, client.paginate(f"commits/{head_sha}/pulls"))
    return [
        pull
        for pull in pulls
        if pull.is_open and pull.base_repository == repository and pull.head_sha == head_sha
    ]


def _add_sharing(client: GitHubClient, target: Target) -> Target:
    """Note other pull requests with the run's commit: a status of it would count for them too."""
    if target.sharing:
        return target
    number = target.pull.number if target.pull else 0
    listed = list_pulls_of_head(client, target.run.repository, target.run.head_sha)
    count = sum(pull.number != number for pull in listed)
    if not count:
        return target
    what = "another open pull request has" if count == 1 else f"{count} other open pull requests have"
    return replace(target, sharing=f"{what} this head")


def parse_workflow_run(value: object) -> CiRun:
    """Raises GitHubError where it is not what GitHub describes."""
    has_head = find_value(value, "head_repository") is not None
    # Of a reusable workflow the path begins with its repository, and goes on with its ref.
    path = get_text(value, "path").partition("@")[0]
    started = parse_time(find_value(value, "run_started_at")) or parse_time(find_value(value, "created_at"))
    if not started:
        raise make_answer_error("run_started_at")
    return CiRun(
        id=get_number(value, "id"),
        attempt=get_number(value, "run_attempt"),
        event=get_text(value, "event", _WORD),
        conclusion=find_text(value, "conclusion", _WORD),
        head_sha=get_text(value, "head_sha", _SHA),
        head_branch=find_text(value, "head_branch"),
        head_owner=find_text(value, "head_repository.owner.login"),
        head_repository=get_number(value, "head_repository.id") if has_head else 0,
        repository=get_number(value, "repository.id"),
        started=started,
        created=parse_time(find_value(value, "created_at")),
        url=get_text(value, "html_url"),
        path=path.removeprefix(f"{find_text(value, 'repository.full_name')}/"),
    )


def parse_pull(value: object) -> PullRequest:
    """Raises as :func:`parse_workflow_run`."""
    has_fork = find_value(value, "head.repo") is not None
    return PullRequest(
        number=get_number(value, "number"),
        head_sha=get_text(value, "head.sha", _SHA),
        head_branch=get_text(value, "head.ref"),
        head_repository=get_number(value, "head.repo.id") if has_fork else 0,
        base_repository=get_number(value, "base.repo.id"),
        base_branch=get_text(value, "base.ref"),
        is_open=find_value(value, "state") == "open",
    )


def parse_time(text: object) -> str:
    """Parse an ISO 8601 time into ``2026-11-01T12:00:00Z``, which sorts; ``""`` where it is none."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment and moment.tzinfo else ""
    except (ValueError, OverflowError):
        return ""


def note_touched(client: GitHubClient, number: int, rules: Iterable[str]) -> tuple[Fact, ...]:
    """Note which of ``rules`` (paths) a pull request changes; never a file of its own."""
    paths = tuple(rules)
    files = client.paginate(f"pulls/{number}/files")
    touched: Counter[str] = Counter()
    seen = 0
    for file in islice(files, MAX_FILES):
        seen += 1
        touched.update({rule for rule in paths if any(_is_below(name, rule) for name in _list_names(file))})
    named = tuple(f"{rule} ({format_noun(count, 'file')})" for rule, count in touched.items())
    return (
        *([Fact(code=Code.TOUCHES_RULES, names={"rules": named})] if named else []),
        *([Fact(code=Code.FILES_UNSEEN, numbers={"files": MAX_FILES})] if seen == MAX_FILES else []),
    )


def _list_names(file: Mapping[str, Any]) -> list[str]:
    return [name for key in ("filename", "previous_filename") if isinstance(name := file.get(key), str)]


def _is_below(name: str, rule: str) -> bool:
    return name == rule or name.startswith(f"{rule.rstrip('/')}/")
