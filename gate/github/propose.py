"""Refreshed baselines as a pull request: what to commit, on which branch.

Somebody's branch measured the run, so its file is hostile: baselines are made here from decoded records, and
cases from the commit's own registry. A made-up definition would turn stored values into those of something
else. Each refresh of a commit adds one to the proposal's branch.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from gate.errors import FileError, UsageError
from gate.files.codec import BASELINE
from gate.files.yaml_in import MAX_YAML_BYTES
from gate.fingerprint import compute_environment_id
from gate.github.client import GitHubClient
from gate.github.git_data import GitData, Tip, quote_branch
from gate.github.job import JobContext, find_text
from gate.github.run_events import parse_pull
from gate.github.transport import DeniedError, MissingError, RejectedError, UncertainWriteError
from gate.project.config import load_config, make_default_config
from gate.project.registry import load_cases
from gate.publish.proposal_text import (
    ProposalText,
    name_measured,
    render_message,
    render_proposal,
    render_title,
)
from gate.publish.submitted import check_measured_run, note_machine, record_run
from gate.records.cases import Case, Policy
from gate.records.run import Baseline, Provenance, Run
from gate.store.baselines import MAX_BASELINE_BYTES, Proposal, make_key, make_place, propose_baselines
from gate.version import __version__

_ODD = re.compile(r"[^A-Za-z0-9_/-]")  # in a directory; a branch must not have all of it
# The one refusal of a branch that no permission of the job could lift; GitHub does not mark it.
_WORKFLOWS_FIX = (
    " If the branch's .github/workflows differ from the default branch's, github.token may not write it:"
    " merge that change first, or give the mode propose-baselines an app's token that may write workflows."
)
_LINK = re.compile(r"https?://[A-Za-z0-9./:_~-]{1,300}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MAX_REGISTRIES = 50  # each is a request


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshRequest:
    head_sha: str
    head_ref: str
    directory: str  # of the baselines, from the top of the repository
    config: str = "gate.yml"  # whose registry makes the cases, from the top of the repository
    reason: str = ""
    author: str = ""
    pr_number: int = 0

    @property
    def branch(self) -> str:
        what = f"pr-{self.pr_number}" if self.pr_number else self.head_ref
        return f"compile-gate/{_ODD.sub('-', self.directory)}/{what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """``url`` is the pull request, or the page to open it; empty when nothing changed.

    ``trouble`` says why it is not open, partly in GitHub's words.
    """

    url: str = ""
    trouble: str = ""
    setbacks: int = 0


def check_tip(data: GitData, request: RefreshRequest) -> None:
    """A merge of the proposal would bring the measured commit back.

    Raises:
        UsageError: Somebody pushed meanwhile, or the branch is gone.
    """
    if data.find_branch(request.head_ref) != request.head_sha:
        raise UsageError(
            f"the branch is not at {request.head_sha[:12]} any more, which was measured: it was pushed to",
            "Ask for the refresh again: it then measures the branch as it is now.",
        )


def _open_pull(client: GitHubClient, request: RefreshRequest, fields: Mapping[str, str]) -> str:
    """Open the pull request, or update the open one; return its page."""
    number = _find_pull(client, request)
    if not number:
        body = {**fields, "head": request.branch, "base": request.head_ref}
        try:
            return find_text(client.post("pulls", body), "html_url")
        except (UncertainWriteError, RejectedError):
            # It may be there after all: by this request, or by one that ran at the same time.
            number = _find_pull(client, request)
            if not number:
                raise
    return find_text(client.patch(f"pulls/{number}", fields), "html_url")


def _find_pull(client: GitHubClient, request: RefreshRequest) -> int:
    head = f"{client.repository.partition('/')[0]}:{request.branch}"
    query = {"state": "open", "head": head, "base": request.head_ref}
    for pull in map(parse_pull, client.paginate("pulls", query)):
        if (pull.head_branch, pull.base_branch) == (request.branch, request.head_ref):
            return pull.number
    return 0


def propose_refresh(
    client: GitHubClient, context: JobContext, request: RefreshRequest, run: Run, policy: Policy
) -> ProposalOutcome:
    """Commit what a run would store, and open a pull request.

    Raises:
        UsageError: The run is unfit or not of the authorised commit, or the branch has moved on.
        FileError: A stored baseline is damaged.
    """
    data = GitData(client)
    check_tip(data, request)
    head = data.fetch_commit(request.head_sha)
    check_measured_run(run, request.head_sha, load_cases_at(data, request.head_sha, request.config))
    new = record_run(run, _make_provenance(run, context, request))
    listed = data.list_files(head.tree, request.directory)
    measured = _Measured(data=data, request=request, head=head, listed=listed, policy=policy)
    text = replace(measured.propose(new, context.run_url), reason=request.reason, notes=note_machine(run))
    if not measured.commit(_make_files(text), render_message(text)):
        return ProposalOutcome()
    texts = (text, *measured.list_others(text))
    fields = {"title": render_title(*texts), "body": render_proposal(*texts)}
    try:
        url, trouble = _open_pull(client, request, fields), ""
    except DeniedError as error:
        between = f"{quote_branch(request.head_ref)}...{quote_branch(request.branch)}"
        url = f"{context.server_url}/{context.repository}/compare/{between}?expand=1"
        trouble = error.what
    return ProposalOutcome(url=url, trouble=trouble, setbacks=len(text.setbacks))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Measured:
    """The measured commit, and its files below the directory: path from the top -> blob."""

    data: GitData
    request: RefreshRequest
    head: Tip
    listed: Mapping[str, str]
    policy: Policy

    def propose(self, new: tuple[Baseline, ...], run_url: str) -> ProposalText:
        request = self.request
        old = self._load_stored(new)
        environment_id = compute_environment_id(new[0].environment)
        return ProposalText(
            proposals=tuple(
                proposal for proposal in propose_baselines(new, old, self.policy) if not _is_stored(proposal)
            ),
            head_sha=request.head_sha,
            run_url=run_url,
            environment_id=environment_id,
            directory=request.directory,
            is_known=any(environment_id in PurePosixPath(path).parts for path in self.listed),
            pr_number=request.pr_number,
        )

    def _load_stored(self, new: Iterable[Baseline]) -> Mapping[Path, Baseline]:
        """Load the stored baselines by path below the directory, also where somebody moved them deeper."""
        directory, stored = PurePosixPath(self.request.directory), {}
        for baseline in new:
            path = _find_file(self.listed, directory, make_place(baseline))
            if path is None:
                continue
            old = BASELINE.decode(self.data.fetch_blob(self.listed[path], MAX_BASELINE_BYTES), path)
            if make_key(old) == make_key(baseline):
                stored[Path(PurePosixPath(path).relative_to(directory))] = old
        return stored

    def commit(self, files: Mapping[str, str], message: str) -> bool:
        """Return whether there is a proposal.

        Raises:
            UsageError: The branch that the proposal is for has moved on.
        """
        data, head, branch = self.data, self.head, self.request.branch
        tip_sha, parent = self._choose_parent()
        tree = data.write_tree(parent.tree, self.request.directory, files) if files else head.tree
        if tree in {head.tree, parent.tree}:
            return tree != head.tree
        commit = data.write_commit(tree, parent.sha, message)
        check_tip(data, self.request)  # again: measuring is long past, and writing takes its time
        try:
            if tip_sha in {"", parent.sha}:
                is_moved = data.advance_branch(branch, tip_sha, commit)
            elif is_moved := data.find_branch(branch) == tip_sha:
                data.force_branch(branch, commit)
        except (DeniedError, MissingError, RejectedError) as error:
            error.fix += _WORKFLOWS_FIX
            raise
        if not is_moved:  # another proposal was faster and must stay; the workflow makes one at a time
            raise RejectedError(f"the branch {branch} moved on meanwhile", "Ask for the refresh again.")
        return True

    def _choose_parent(self) -> tuple[str, Tip]:
        """Return the head of the proposal's branch, or "", and the commit to add to.

        That is the head if it proposes for the measured commit, else the measured commit.
        """
        sha = self.data.find_branch(self.request.branch)
        tip = self.data.fetch_commit(sha) if sha else self.head
        return sha, tip if name_measured(self.head.sha) in tip.message else self.head

    def list_others(self, text: ProposalText) -> list[ProposalText]:
        data, written = self.data, _make_files(text)
        _, standing = self._choose_parent()
        runs: dict[tuple[str, str], list[Baseline]] = {}
        for path, blob in data.list_files(standing.tree, self.request.directory).items():
            if path not in written and self.listed.get(path) != blob:
                baseline = BASELINE.decode(data.fetch_blob(blob, MAX_BASELINE_BYTES), path)
                key = (compute_environment_id(baseline.environment), baseline.provenance.run_url)
                runs.setdefault(key, []).append(baseline)
        texts = []
        for (_, run_url), new in runs.items():
            url = run_url if _LINK.fullmatch(run_url) else text.run_url
            texts.append(replace(self.propose(tuple(new), url), reason=new[0].provenance.reason))
        return texts


def _make_files(text: ProposalText) -> dict[str, str]:
    return {f"{text.directory}/{proposal.path.as_posix()}": proposal.text for proposal in text.proposals}


def _make_provenance(run: Run, context: JobContext, request: RefreshRequest) -> Provenance:
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


def _find_file(listed: Mapping[str, str], directory: PurePosixPath, path: Path) -> str | None:
    """Find the file at ``path`` below the directory, or else the first whose path ends like it."""
    first = str(directory / path.as_posix())
    moved = (name for name in listed if PurePosixPath(name).parts[-len(path.parts) :] == path.parts)
    return first if first in listed else next(moved, None)


def _is_stored(proposal: Proposal) -> bool:
    old, new = proposal.old, proposal.baseline
    return old is not None and replace(old, provenance=new.provenance) == new


def load_cases_at(data: GitData, sha: str, config: str) -> tuple[Case, ...]:
    """``config`` is a path in the commit; without one, the default cases.

    Raises:
        UsageError: A file cannot be used, or lies outside the repository; none of its text is repeated.
    """
    with TemporaryDirectory(prefix="compile-gate-registry-") as directory:
        try:
            return _load_cases(data, sha, Path(directory), config)
        except UsageError:
            raise UsageError(
                f"{config} of the measured commit, or a registry that it names, cannot be used",
                "Run `compile-gate models` on that branch: it says what is wrong.",
            ) from None


def _load_cases(data: GitData, sha: str, directory: Path, config: str) -> tuple[Case, ...]:
    def copy(path: Path) -> bool:
        """Copy the file of the commit that belongs at ``path``; return whether there is one."""
        content = data.fetch_file(path.relative_to(directory).as_posix(), sha, MAX_YAML_BYTES)
        if content is None:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return True

    path = directory / config
    if not copy(path):
        return load_cases(make_default_config())
    loaded = load_config(path)
    # A registry may be named as `../models.yml`: what counts is where that is, and it must be in the commit.
    registry = tuple(Path(os.path.normpath(file)) for file in loaded.registry)
    if len(registry) > MAX_REGISTRIES:
        raise FileError(config, "registry", f"names more than {MAX_REGISTRIES} files", "Join some.")
    for file in registry:
        if not file.is_relative_to(directory) or file == directory or not copy(file):
            raise FileError(
                config, "registry", "names a file that the repository does not have", "Name another."
            )
    return load_cases(replace(loaded, registry=registry))
