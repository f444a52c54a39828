"""Refreshed baselines as a pull request: what to commit, on which branch, with which words.

The run was measured by somebody's branch, so its file is read as hostile and nothing of it is copied:
baselines are made here from decoded records, each under the path that its own environment and case
give, and only below the directory of the baselines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

import gate
from gate.baseline import (
    MAX_BASELINE_BYTES,
    check_refresh,
    make_baselines,
    propose_baselines,
)
from gate.codec import BASELINE, decode_file
from gate.errors import FileError, UsageError
from gate.fingerprint import compute_environment_id
from gate.github.client import GitHubClient
from gate.github.context import JobContext, find_text, find_value
from gate.github.errors import DeniedError, RejectedError, UncertainWriteError
from gate.github.git_data import GitData
from gate.github.proposal_text import ProposalText, render_body, render_message, render_title
from gate.records import Baseline, Policy, Provenance, Run

BRANCH_PREFIX = "compile-gate/baselines/"
MAX_CASES = 1000  # of one refresh: each is a file, and what is stored is read one by one
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshRequest:
    """What was authorised: the commit that was measured and the branch that the baselines are for."""

    head_sha: str
    head_ref: str
    directory: str  # of the baselines, from the top of the repository
    reason: str = ""
    author: str = ""
    pr_number: int = 0

    @property
    def branch(self) -> str:
        """The branch that the proposal is made on; one a pull request, or one a branch."""
        return BRANCH_PREFIX + (f"pr-{self.pr_number}" if self.pr_number else self.head_ref)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """What came of it. ``url`` is the pull request, or where to open it; empty when nothing changed."""

    commit: str = ""
    url: str = ""
    has_pull_request: bool = False
    note: str = ""
    setbacks: int = 0


def propose_refresh(
    client: GitHubClient, context: JobContext, request: RefreshRequest, run: Run, policy: Policy
) -> ProposalOutcome:
    """Commit what a run would store on a branch of its own and ask for it to be merged.

    Raises:
        UsageError: The run is not of the authorised commit, or not fit to be recorded.
        FileError: The run contradicts itself, or a stored baseline is damaged.
        GitHubError: GitHub does not do its part; a branch may have been made.
    """
    check_run(run, request)
    data = GitData(client, context.path)
    head = data.load_tip(request.head_sha)
    listed = data.list_files(head.tree, request.directory)
    new = make_baselines(run, _make_provenance(run, context, request))
    old = _load_stored(data, listed, new, request.directory)
    proposals = tuple(
        proposal for proposal in propose_baselines(new, old, policy) if not _is_stored(proposal.baseline, old)
    )
    files = {f"{request.directory}/{proposal.path.as_posix()}": proposal.text for proposal in proposals}
    text = ProposalText(
        proposals=proposals,
        old=old,
        head_sha=request.head_sha,
        run_url=context.run_url,
        environment_id=compute_environment_id(run.environment),
        reason=request.reason,
        pr_number=request.pr_number,
    )
    tree = data.write_tree(head.tree, request.directory, files) if files else head.tree
    if tree == head.tree:
        return ProposalOutcome(note="The stored baselines are the same: nothing was committed.")
    commit = _commit(data, request, tree, render_message(text))
    return _ask_for_merge(client, context, request, text, commit)


def check_run(run: Run, request: RefreshRequest) -> None:
    """Check that a run is of the authorised commit, holds together and is fit to be recorded.

    Raises:
        UsageError, FileError: It is not.
    """
    if run.provenance.commit != request.head_sha or run.provenance.dirty:
        raise UsageError(
            "the run did not measure the commit that was authorised, or measured it with changes",
            "Check out the output head-sha of authorize-command in the job that measures.",
        )
    planned = {case.id for case in run.cases}
    named = {trial.case_id for trial in run.trials} | {failure.case_id for failure in run.failures}
    if len(planned) != len(run.cases) or not 0 < len(planned) <= MAX_CASES or not named <= planned:
        problem = f"its cases contradict its trials, or are none or more than {MAX_CASES}"
        raise FileError("run.json", "cases", problem, "Measure again.")
    check_refresh(run)


def _make_provenance(run: Run, context: JobContext, request: RefreshRequest) -> Provenance:
    """Make what is recorded of the origin: GitHub's facts, and of the run only when it was made."""
    created = run.provenance.created
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Provenance(
        commit=request.head_sha,
        created=created if _TIME.fullmatch(created) else now,
        author=request.author,
        reason=request.reason,
        run_url=context.run_url,
        gate_version=gate.__version__,
    )


def _load_stored(
    data: GitData, listed: Mapping[str, str], new: Iterable[Baseline], directory: str
) -> tuple[Baseline, ...]:
    """Load what is stored for the same environments and cases."""
    baselines = []
    for baseline in new:
        name = f"{baseline.case_id}.json"
        path = str(PurePosixPath(directory, compute_environment_id(baseline.environment), name))
        if path in listed:
            content = data.load_blob(listed[path], MAX_BASELINE_BYTES)
            baselines.append(decode_file(BASELINE, Baseline, content, path))
    return tuple(item for item in baselines if all(item.trials.values()))


def _is_stored(baseline: Baseline, old: Iterable[Baseline]) -> bool:
    """Whether the same values are stored already; where they came from is no reason to store them again."""
    return any(replace(item, provenance=baseline.provenance) == baseline for item in old)


def _commit(data: GitData, request: RefreshRequest, tree: str, message: str) -> str:
    """Commit on the proposal's branch, unless it holds just that already; return the commit."""
    tip_sha = data.find_branch(request.branch)
    if tip_sha:
        tip = data.load_tip(tip_sha)
        if tip.tree == tree and tip.parent == request.head_sha:
            return tip_sha
    commit = data.write_commit(tree, request.head_sha, message)
    data.point_branch(request.branch, commit, exists=bool(tip_sha))
    return commit


def _ask_for_merge(
    client: GitHubClient, context: JobContext, request: RefreshRequest, text: ProposalText, commit: str
) -> ProposalOutcome:
    outcome = ProposalOutcome(commit=commit, setbacks=len(text.setbacks))
    fields = {"title": render_title(text), "body": render_body(text)}
    try:
        url = _open_pull(client, context, request, fields)
    except DeniedError as error:
        return replace(
            outcome,
            url=f"{context.server_url}/{context.repository}/compare/{request.head_ref}...{request.branch}?expand=1",
            note=f"The branch {request.branch} is there; its pull request is yours to open: {error.what}",
        )
    return replace(outcome, url=url, has_pull_request=True, note=f"Proposed in {url}")


def _open_pull(
    client: GitHubClient, context: JobContext, request: RefreshRequest, fields: Mapping[str, str]
) -> str:
    """Open the pull request, or bring the open one up to date; return its page."""
    number = _find_pull(client, context, request)
    if not number:
        body = {**fields, "head": request.branch, "base": request.head_ref}
        try:
            return find_text(client.post(f"{context.path}/pulls", body), "html_url")
        except (UncertainWriteError, RejectedError):
            # It may be there after all: by this request, or by one that ran at the same time.
            number = _find_pull(client, context, request)
            if not number:
                raise
    return find_text(client.patch(f"{context.path}/pulls/{number}", fields), "html_url")


def _find_pull(client: GitHubClient, context: JobContext, request: RefreshRequest) -> int:
    head = f"{context.owner}:{request.branch}"
    query = {"state": "open", "head": head, "base": request.head_ref}
    for pull in client.paginate(f"{context.path}/pulls", query):
        number = find_value(pull, "number")
        same = (
            find_text(pull, "head.ref") == request.branch and find_text(pull, "base.ref") == request.head_ref
        )
        if same and isinstance(number, int):
            return number
    return 0
