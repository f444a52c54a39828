"""Refreshed baselines as a pull request: what to commit, on which branch, with which words.

The run was measured by somebody's branch, so its file is read as hostile and nothing of it is copied:
baselines are made here from decoded records, each under the path that its own environment and case
give, or that the branch stores it at already, and only below the directory of the baselines.

What a run says of its cases could be anybody's word, above all their definitions: one that is made up
turns every stored value into that of something else. So cases are those of the commit's own registry.
"""

from __future__ import annotations

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
from gate.github.git_data import GitData
from gate.github.job import JobContext
from gate.github.proposal_branch import (
    ProposalOutcome,
    RefreshRequest,
    ask_for_merge,
    check_tip,
    commit_files,
    find_standing,
)
from gate.project.config import load_config, make_default_config
from gate.project.registry import load_cases
from gate.publish.measured_run import check_measured_run, note_machine, record_run
from gate.publish.proposal_text import ProposalText, render_message, render_proposal, render_title
from gate.records import Baseline, Case, Policy, Provenance, Run
from gate.store.baselines import MAX_BASELINE_BYTES, Proposal, make_key, make_place, propose_baselines
from gate.version import __version__

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
    tree = data.load_tip(request.head_sha).tree
    check_measured_run(run, request.head_sha, load_cases_at(data, request.head_sha, request.config))
    new = record_run(run, _make_provenance(run, context, request))
    stored = _Stored(data=data, listed=data.list_files(tree, request.directory), policy=policy)
    text = replace(
        stored.propose(new, request, context.run_url), reason=request.reason, notes=note_machine(run)
    )
    if not commit_files(data, request, _make_files(text), render_message(text)):
        return ProposalOutcome()
    texts = (text, *_load_others(stored, text, request))
    outcome = ask_for_merge(client, context, request, render_title(*texts), render_proposal(*texts))
    return replace(outcome, setbacks=len(text.setbacks))


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
            proposals=tuple(one for one in propose_baselines(new, old, self.policy) if not _is_stored(one)),
            head_sha=request.head_sha,
            run_url=run_url,
            environment_id=environment_id,
            directory=request.directory,
            is_known=any(environment_id in PurePosixPath(path).parts for path in self.listed),
            reason="",
            pr_number=request.pr_number,
        )


def _load_others(stored: _Stored, text: ProposalText, request: RefreshRequest) -> list[ProposalText]:
    """Load what other runs have proposed for the same commit, a text for each."""
    data, written = stored.data, _make_files(text)
    standing = find_standing(data, request.branch, data.load_tip(request.head_sha))
    runs: dict[tuple[str, str], list[Baseline]] = {}
    for path, blob in data.list_files(standing.tree, request.directory).items():
        if path not in written and stored.listed.get(path) != blob:
            found = BASELINE.decode(data.load_blob(blob, MAX_BASELINE_BYTES), path)
            key = (compute_environment_id(found.environment), found.provenance.run_url)
            runs.setdefault(key, []).append(found)
    texts = []
    for (_, run_url), new in runs.items():
        url = run_url if _LINK.fullmatch(run_url) else text.run_url
        texts.append(replace(stored.propose(tuple(new), request, url), reason=new[0].provenance.reason))
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
        found = BASELINE.decode(data.load_blob(listed[path], MAX_BASELINE_BYTES), path)
        if all(found.trials.values()) and make_key(found) == make_key(baseline):
            placed[Path(PurePosixPath(path).relative_to(directory))] = found
    return placed


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
