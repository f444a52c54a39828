"""Refreshed baselines as a pull request: what to commit, on which branch, with which words.

The run was measured by somebody's branch, so its file is read as hostile and nothing of it is copied:
baselines are made here from decoded records, each under the path that its own environment and case
give, or that the branch stores it at already, and only below the directory of the baselines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from gate.errors import UsageError
from gate.files.codec import BASELINE, decode_file
from gate.fingerprint import compute_environment_id
from gate.github.branches import (
    MAX_TRIES,
    find_standing,
    list_proposed,
    mark_directory,
    move_branch,
)
from gate.github.client import GitHubClient
from gate.github.context import JobContext
from gate.github.errors import (
    DeniedError,
    GitHubError,
    MissingError,
    RejectedError,
    UncertainWriteError,
    find_text,
    find_value,
)
from gate.github.git_data import GitData, Tip, load_cases_at, quote_branch
from gate.publish.measured_run import check_measured_run, note_machine, record_run
from gate.publish.proposal_text import ProposalText, render_message, render_proposal, render_title
from gate.records import Baseline, Policy, Provenance, Run
from gate.store.baselines import MAX_BASELINE_BYTES, make_key, make_place, propose_baselines
from gate.version import __version__

BRANCH_PREFIX = "compile-gate/baselines/"
WORKFLOWS_DIRECTORY = ".github/workflows"
_LINK = re.compile(r"https?://[A-Za-z0-9./:_~-]{1,300}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshRequest:
    """What was authorised: the commit that was measured and the branch that the baselines are for."""

    head_sha: str
    head_ref: str
    directory: str  # of the baselines, from the top of the repository
    config: str = "gate.yml"  # whose registry makes the cases, from the top of the repository
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
        UsageError: The run is not of the authorised commit or its registry, or not fit to be recorded; or
            the branch has moved on.
        FileError: A stored baseline is damaged.
        GitHubError: GitHub does not do its part; a branch may have been made.
    """
    data = GitData(client, context.path)
    check_tip(data, request)
    head = data.load_tip(request.head_sha)
    check_measured_run(run, request.head_sha, load_cases_at(data, request.head_sha, request.config))
    new = record_run(run, _make_provenance(run, context, request))
    stored = _Stored(data=data, listed=data.list_files(head.tree, request.directory), policy=policy)
    text = replace(
        stored.propose(new, request, context.run_url), reason=request.reason, notes=note_machine(run)
    )
    commit = _commit(data, context, request, head, text)
    if not commit:
        return ProposalOutcome(note="The stored baselines are the same: nothing was committed.")
    others = _load_others(stored, head, text, request)
    return _ask_for_merge(client, context, request, (text, *others), commit)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stored:
    """What the measured commit has below a directory: path from the top of the repository -> blob."""

    data: GitData
    listed: Mapping[str, str]
    policy: Policy

    def propose(self, new: tuple[Baseline, ...], request: RefreshRequest, run_url: str) -> ProposalText:
        """Say what of one run's baselines would be stored, and over what."""
        old = _load_stored(self.data, self.listed, new, request.directory)
        environment_id = compute_environment_id(new[0].environment)
        return ProposalText(
            proposals=tuple(
                proposal
                for proposal in propose_baselines(new, old, self.policy)
                if not _is_stored(proposal.baseline, old.values())
            ),
            old=tuple(old.values()),
            head_sha=request.head_sha,
            run_url=run_url,
            environment_id=environment_id,
            directory=request.directory,
            is_known=any(environment_id in PurePosixPath(path).parts for path in self.listed),
            reason="",
            pr_number=request.pr_number,
        )


def _load_others(
    stored: _Stored, head: Tip, text: ProposalText, request: RefreshRequest
) -> list[ProposalText]:
    """Load what other runs have proposed for the same commit, a text for each directory and run."""
    texts = []
    standing = find_standing(stored.data, request.branch, head)  # again: others may have come since
    for directory, files in list_proposed(stored.data, standing, head).items():
        written = _make_files(text) if directory == text.directory else {}
        runs: dict[tuple[str, str], list[Baseline]] = {}
        for path, blob in files.items():
            if path not in written:
                found = decode_file(BASELINE, stored.data.load_blob(blob, MAX_BASELINE_BYTES), path)
                key = (compute_environment_id(found.environment), found.provenance.run_url)
                runs.setdefault(key, []).append(found)
        beside = replace(stored, listed=stored.data.list_files(head.tree, directory))
        for (_, run_url), new in runs.items():
            url = run_url if _LINK.fullmatch(run_url) else text.run_url
            other = beside.propose(tuple(new), replace(request, directory=directory), url)
            texts.append(replace(other, reason=new[0].provenance.reason))
    return texts


def _make_files(text: ProposalText) -> dict[str, str]:
    return {f"{text.directory}/{proposal.path.as_posix()}": proposal.text for proposal in text.proposals}


def check_tip(data: GitData, request: RefreshRequest) -> None:
    """Check that the branch still is where it was measured.

    A proposal is made on the measured commit, so merging it would bring that commit back.

    Raises:
        UsageError: Somebody pushed meanwhile, or the branch is gone.
    """
    if data.find_branch(request.head_ref) != request.head_sha:
        raise UsageError(
            f"the branch is not at {request.head_sha[:12]} any more, which was measured: it was pushed to",
            "Ask for the refresh again: it then measures the branch as it is now.",
        )


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
        gate_version=__version__,
    )


def _load_stored(
    data: GitData, listed: Mapping[str, str], new: Iterable[Baseline], directory: str
) -> Mapping[Path, Baseline]:
    """Load what is stored for the same environments and cases, by its file relative to the directory.

    Where somebody moved ``<environment>/<case>.json`` deeper below, it is replaced there.
    """
    placed = {}
    for baseline in new:
        own = make_place(baseline)
        path = _find_file(listed, PurePosixPath(directory), own)
        if path is None:
            continue
        found = decode_file(BASELINE, data.load_blob(listed[path], MAX_BASELINE_BYTES), path)
        if all(found.trials.values()) and make_key(found) == make_key(baseline):
            placed[Path(PurePosixPath(path).relative_to(directory))] = found
    return placed


def _find_file(listed: Mapping[str, str], directory: PurePosixPath, own: Path) -> str | None:
    """Find the file that ends as its own place does; that itself, where it is there."""
    first = str(directory / own.as_posix())
    moved = (path for path in sorted(listed) if PurePosixPath(path).parts[-len(own.parts) :] == own.parts)
    return first if first in listed else next(moved, None)


def _is_stored(baseline: Baseline, old: Iterable[Baseline]) -> bool:
    """Whether the same values are stored already; where they came from is no reason to store them again."""
    return any(replace(item, provenance=baseline.provenance) == baseline for item in old)


def _commit(
    data: GitData, context: JobContext, request: RefreshRequest, head: Tip, text: ProposalText
) -> str:
    """Commit on the proposal's branch, unless all is there already; return the commit.

    Empty where there is nothing to propose.
    """
    files = _make_files(text)
    message = mark_directory(render_message(text), request.directory)
    for _ in range(MAX_TRIES):
        standing = find_standing(data, request.branch, head)
        tree = data.write_tree(standing.tree, request.directory, files) if files else head.tree
        if tree == head.tree:
            return ""
        if tree == standing.tree:
            return standing.sha
        parent = standing.sha if standing.directories else request.head_sha
        commit = data.write_commit(tree, parent, message)
        check_tip(data, request)  # again: measuring is long past, and writing takes its time
        try:
            if move_branch(data, request.branch, standing, commit):
                return commit
        except (DeniedError, MissingError, RejectedError) as error:
            raise _explain_refusal(data, context, request, error) from error
    raise RejectedError(
        f"the branch {request.branch} moved on {MAX_TRIES} times meanwhile", "Ask for the refresh again."
    )


def _explain_refusal(
    data: GitData, context: JobContext, request: RefreshRequest, error: GitHubError
) -> GitHubError:
    """Tell the one refusal of a branch that no permission of the job could lift from all others."""
    default = find_text(context.event, "repository.default_branch")
    tips = (data.find_branch(default) if default else "", request.head_sha)
    if not all(tips):
        return error
    trees = {data.find_directory(data.load_tip(tip).tree, WORKFLOWS_DIRECTORY) for tip in tips}
    if len(trees) == 1:
        return error
    return DeniedError(
        f"GitHub refuses the branch {request.branch}: {error.what}. Its files in {WORKFLOWS_DIRECTORY}"
        " are not those of the default branch, and github.token may not write such files",
        "Merge the change of workflows first and update the branch, or give the mode propose-baselines an"
        " app's token that may write workflows.",
        error.status,
    )


def _ask_for_merge(
    client: GitHubClient,
    context: JobContext,
    request: RefreshRequest,
    texts: tuple[ProposalText, ...],
    commit: str,
) -> ProposalOutcome:
    outcome = ProposalOutcome(commit=commit, setbacks=len(texts[0].setbacks))
    fields = {"title": render_title(*texts), "body": render_proposal(*texts)}
    try:
        url = _open_pull(client, context, request, fields)
    except DeniedError as error:
        between = f"{quote_branch(request.head_ref)}...{quote_branch(request.branch)}"
        return replace(
            outcome,
            url=f"{context.server_url}/{context.repository}/compare/{between}?expand=1",
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
