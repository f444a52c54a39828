"""Refreshed baselines as a pull request: what to commit, on which branch, with which words.

The run was measured by somebody's branch, so its file is read as hostile and nothing of it is copied:
baselines are made here from decoded records, each under the path that its own environment and case
give, or that the branch stores it at already, and only below the directory of the baselines.

Refreshes of one commit add up: each is a commit of its own on the proposal's branch, whose message names what
was measured.

What a run says of its cases could be anybody's word, above all their definitions: one that is made up
turns every stored value into that of something else. So cases are those of the commit's own registry.
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
from gate.github.events import parse_pull
from gate.github.git_data import GitData, Tip, quote_branch
from gate.github.job import JobContext, find_text
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
# The one refusal of a branch that no permission of the job could lift; GitHub does not tell it from others.
_WORKFLOWS_FIX = (
    " If the branch's .github/workflows differ from the default branch's, github.token may not write it:"
    " merge that change first, or give the mode propose-baselines an app's token that may write workflows."
)


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
        """The branch that the proposal is made on; one a pull request, or one a branch, and a directory."""
        what = f"pr-{self.pr_number}" if self.pr_number else self.head_ref
        return f"compile-gate/{_ODD.sub('-', self.directory)}/{what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """What came of it. ``url`` is the pull request, or where to open it; empty when nothing changed.

    ``trouble`` says why it is not open, in words that are GitHub's too.
    """

    url: str = ""
    trouble: str = ""
    setbacks: int = 0


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


def _open_pull(client: GitHubClient, request: RefreshRequest, fields: Mapping[str, str]) -> str:
    """Open the pull request, or bring the open one up to date."""
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


_LINK = re.compile(r"https?://[A-Za-z0-9./:_~-]{1,300}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def propose_refresh(
    client: GitHubClient, context: JobContext, request: RefreshRequest, run: Run, policy: Policy
) -> ProposalOutcome:
    """Commit what a run would store on a branch of its own and ask for it to be merged.

    Raises:
        UsageError: The run is not of the authorised commit or its registry, or not fit to be recorded; or
            the branch has moved on.
        FileError: A stored baseline is damaged.
    """
    data = GitData(client)
    check_tip(data, request)
    head = data.load_tip(request.head_sha)
    check_measured_run(run, request.head_sha, load_cases_at(data, request.head_sha, request.config))
    new = record_run(run, _make_provenance(run, context, request))
    listed = data.list_files(head.tree, request.directory)
    measured = _Measured(data=data, request=request, head=head, listed=listed, policy=policy)
    text = replace(measured.propose(new, context.run_url), reason=request.reason, notes=note_machine(run))
    if not measured.commit(_make_files(text), render_message(text)):
        return ProposalOutcome()
    texts = (text, *measured.load_others(text))
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
    """The measured commit ``head``, and what it has below the directory: path from the top -> blob."""

    data: GitData
    request: RefreshRequest
    head: Tip
    listed: Mapping[str, str]
    policy: Policy

    def propose(self, new: tuple[Baseline, ...], run_url: str) -> ProposalText:
        """Say what of one run's baselines would be stored, and over what."""
        request = self.request
        old = self._load_stored(new)
        environment_id = compute_environment_id(new[0].environment)
        return ProposalText(
            proposals=tuple(one for one in propose_baselines(new, old, self.policy) if not _is_stored(one)),
            head_sha=request.head_sha,
            run_url=run_url,
            environment_id=environment_id,
            directory=request.directory,
            is_known=any(environment_id in PurePosixPath(path).parts for path in self.listed),
            pr_number=request.pr_number,
        )

    def _load_stored(self, new: Iterable[Baseline]) -> Mapping[Path, Baseline]:
        """Load what is stored for the same environments and cases, by its file relative to the directory.

        Where somebody moved ``<environment>/<case>.json`` deeper below, it is replaced there.
        """
        directory, placed = PurePosixPath(self.request.directory), {}
        for baseline in new:
            path = _find_file(self.listed, directory, make_place(baseline))
            if path is None:
                continue
            found = BASELINE.decode(self.data.load_blob(self.listed[path], MAX_BASELINE_BYTES), path)
            if make_key(found) == make_key(baseline):
                placed[Path(PurePosixPath(path).relative_to(directory))] = found
        return placed

    def commit(self, files: Mapping[str, str], message: str) -> bool:
        """Commit files on the proposal's branch, unless all is there already; whether there is a proposal.

        Raises:
            UsageError: The branch that the proposal is for has moved on.
        """
        data, head, branch = self.data, self.head, self.request.branch
        found, parent = self._find_standing()
        tree = data.write_tree(parent.tree, self.request.directory, files) if files else head.tree
        if tree in {head.tree, parent.tree}:
            return tree != head.tree
        commit = data.write_commit(tree, parent.sha, message)
        check_tip(data, self.request)  # again: measuring is long past, and writing takes its time
        try:
            if found in {"", parent.sha}:
                is_moved = data.advance_branch(branch, found, commit)
            elif is_moved := data.find_branch(branch) == found:
                data.force_branch(branch, commit)
        except (DeniedError, MissingError, RejectedError) as error:
            error.fix += _WORKFLOWS_FIX
            raise
        if not is_moved:  # another proposal was faster and must stay; the workflow makes one at a time
            raise RejectedError(f"the branch {branch} moved on meanwhile", "Ask for the refresh again.")
        return True

    def _find_standing(self) -> tuple[str, Tip]:
        """Find the commit that the branch points to, empty without one, and the one that is added to.

        That is a proposal for the measured commit, or that itself: what is for another one is written over.
        """
        sha = self.data.find_branch(self.request.branch)
        tip = self.data.load_tip(sha) if sha else self.head
        return sha, tip if name_measured(self.head.sha) in tip.message else self.head

    def load_others(self, text: ProposalText) -> list[ProposalText]:
        """Load what other runs have proposed for the same commit, a text for each."""
        data, written = self.data, _make_files(text)
        _, standing = self._find_standing()
        runs: dict[tuple[str, str], list[Baseline]] = {}
        for path, blob in data.list_files(standing.tree, self.request.directory).items():
            if path not in written and self.listed.get(path) != blob:
                found = BASELINE.decode(data.load_blob(blob, MAX_BASELINE_BYTES), path)
                key = (compute_environment_id(found.environment), found.provenance.run_url)
                runs.setdefault(key, []).append(found)
        texts = []
        for (_, run_url), new in runs.items():
            url = run_url if _LINK.fullmatch(run_url) else text.run_url
            texts.append(replace(self.propose(tuple(new), url), reason=new[0].provenance.reason))
        return texts


def _make_files(text: ProposalText) -> dict[str, str]:
    return {f"{text.directory}/{proposal.path.as_posix()}": proposal.text for proposal in text.proposals}


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


def _find_file(listed: Mapping[str, str], directory: PurePosixPath, own: Path) -> str | None:
    """Find the file that ends as its own place does; that itself, where it is there."""
    first = str(directory / own.as_posix())
    moved = (path for path in sorted(listed) if PurePosixPath(path).parts[-len(own.parts) :] == own.parts)
    return first if first in listed else next(moved, None)


def _is_stored(proposal: Proposal) -> bool:
    """Whether the same values are stored already; where they came from is no reason to store them again."""
    old, new = proposal.old, proposal.baseline
    return old is not None and replace(old, provenance=new.provenance) == new


MAX_REGISTRIES = 50  # each is a request


def load_cases_at(data: GitData, sha: str, config: str) -> tuple[Case, ...]:
    """Load the cases of the configuration that lies at ``config`` in a commit; without one, the defaults'.

    Raises:
        UsageError: Its files cannot be used, or lie outside the repository; none of their text is repeated.
    """
    with TemporaryDirectory(prefix="compile-gate-registry-") as place:
        try:
            return _load_cases(data, sha, Path(place), config)
        except UsageError:
            raise UsageError(
                f"{config} of the measured commit, or a registry that it names, cannot be used",
                "Run `compile-gate models` on that branch: it says what is wrong.",
            ) from None


def _load_cases(data: GitData, sha: str, place: Path, config: str) -> tuple[Case, ...]:
    """Load the cases from files of the commit, which are copied to below ``place`` under their names."""

    def copy(path: Path) -> bool:
        """Copy the file that belongs at ``path``, and say whether there is one."""
        content = data.load_file(path.relative_to(place).as_posix(), sha, MAX_YAML_BYTES)
        if content is None:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return True

    path = place / config
    if not copy(path):
        return load_cases(make_default_config())
    loaded = load_config(path)
    # A registry may be named as `../models.yml`: what counts is where that is, and it must be in the commit.
    registry = tuple(Path(os.path.normpath(one)) for one in loaded.registry)
    if len(registry) > MAX_REGISTRIES:
        raise FileError(config, "registry", f"names more than {MAX_REGISTRIES} files", "Join some.")
    for one in registry:
        if not one.is_relative_to(place) or one == place or not copy(one):
            raise FileError(
                config, "registry", "names a file that the repository does not have", "Name another."
            )
    return load_cases(replace(loaded, registry=registry))
