"""What was accepted of single commits by somebody who may write, and the policy in force with it.

``/accept-regression`` on a pull request writes ``acceptances/<commit>.yml`` on a branch of the
repository, and the check of that commit reads it. Who can push to the branch can accept, so a file is
strict and bounded, and says for which commit it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from gate.files.entry import VERSION
from gate.files.untrusted import check_size, load_bytes
from gate.files.yaml_in import MAX_YAML_BYTES, decode_yaml, write_scalar
from gate.project.config import Config, make_policy
from gate.project.registry import load_cases
from gate.records import Acceptance, Limit, Override, Policy, Quarantine
from gate.records.cases import TAG
from gate.store.acceptances import CommitFile, load_acceptances, render_entry
from gate.store.anchor import load_anchor

BRANCH = "compile-gate/acceptances"
DIRECTORY = "acceptances"
DEFAULT_KEY = "default"  # of a gate that needs none to be told from others
# A pull request waits for a review, not for a season: what should stay is an accepted.yml's business.
COMMIT_DAYS = 14
# Of one commit: metrics that got worse, of which nobody reads so many, or cases without a baseline.
MAX_ACCEPTED = 1000
MAX_COMMIT_BYTES = MAX_YAML_BYTES  # four times so many of the usual length
_HEADER = f"""\
# Written by compile-gate: what was accepted for this commit, and no other. Remove the file to revoke it.
version: {VERSION}
"""


def name_gate(config: Path, top: Path, key: str = DEFAULT_KEY) -> str:
    """Name a gate as acceptances do: its configuration from the top of the repository, and its key if any."""
    place = config.parent.resolve() / config.name
    path = place.relative_to(top).as_posix() if place.is_relative_to(top) else ""
    return path if key == DEFAULT_KEY else f"{path}:{key}"


def name_commit_file(commit: str) -> str:
    """Name the file of a commit, from the top of the branch."""
    return f"{DIRECTORY}/{commit}.yml"


def compute_expiry(today: str) -> str:
    """Compute the last day of what is accepted of a commit today; both are ISO dates."""
    return (date.fromisoformat(today) + timedelta(days=COMMIT_DAYS)).isoformat()


def load_commit_file(path: Path) -> CommitFile:
    """Load what was accepted of a commit; raises as :func:`decode_commit_file`."""
    return decode_commit_file(load_bytes(path, MAX_COMMIT_BYTES), str(path))


def decode_commit_file(data: bytes, source: str, commit: str = "") -> CommitFile:
    """Decode what was accepted of a commit; ``commit`` is whose it must be, or empty.

    Raises:
        FileError: It cannot be used, or is for another commit.
    """
    check_size(data, MAX_COMMIT_BYTES, source)
    file, document = decode_yaml(CommitFile, data, source)
    if commit and file.commit != commit:
        problem = f"is {file.commit[:12]}, another commit than {commit[:12]}"
        raise document.refuse("commit", problem, _FIX)
    if len(file.accepted) > MAX_ACCEPTED:
        problem = f"has {len(file.accepted)} entries, more than {MAX_ACCEPTED}"
        raise document.refuse("accepted", problem, _FIX)
    return file


_FIX = "Remove the file, and comment /accept-regression again."


def render_commit_file(commit: str, acceptances: Sequence[Acceptance]) -> str:
    """Render the file of a commit."""
    accepted = ["accepted:\n", *map(render_entry, acceptances)] if acceptances else []
    return "".join([_HEADER, f"commit: {write_scalar(commit)}\n", *accepted])


def merge_acceptances(old: Sequence[Acceptance], new: Sequence[Acceptance]) -> tuple[Acceptance, ...]:
    """Add to what was accepted of a commit before; of the same thing the newer word counts."""
    merged = {(one.gate, one.environment, one.case, one.metric): one for one in (*old, *new)}
    return tuple(merged.values())


ACCEPTED_FILE = "accepted.yml"


def load_policy(
    config: Config, commit_files: Sequence[str] = (), baselines: Path | None = None, gate: str = ""
) -> Policy:
    """Make the policy in force today, with what was accepted of single commits in these files.

    Standing acceptances and the anchor lie beside the baselines: those of ``config``, unless others are
    judged by. ``gate`` is whose acceptances of a commit count; empty where that is not known.

    Raises:
        FileError: A file cannot be used.
    """
    directory = baselines or config.baselines
    standing, anchor = load_acceptances(directory / ACCEPTED_FILE), load_anchor(directory)
    files = [load_commit_file(Path(path)) for path in commit_files]
    acceptances = (*standing, *(one for file in files for one in file.acceptances))
    policy = make_policy(config, acceptances, datetime.now(UTC).date().isoformat())
    entries: tuple[Override | Limit | Quarantine | Acceptance, ...]
    entries = (*policy.overrides, *policy.limits, *policy.quarantine, *standing)
    cases = load_cases(config) if any(TAG in entry.case for entry in entries) else ()
    tags = {case.id: case.tags for case in cases}
    commits = tuple(file.commit for file in files)
    return replace(policy, has_anchor=anchor is not None, commits=commits, gate=gate, tags=tags)
