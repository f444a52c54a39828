"""``acceptances/<commit>.yml`` on a branch: what ``/accept-regression`` accepted of one commit.

Who can push to the branch can accept, so a file is strict and bounded, and names its commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import ClassVar

from gate.files.disk import load_bytes
from gate.files.entry import VERSION
from gate.files.yaml_in import MAX_YAML_BYTES, decode_yaml
from gate.files.yaml_out import write_scalar
from gate.records.cases import Acceptance
from gate.store.acceptances import CommitEntry, make_acceptance, render_entry

BRANCH = "compile-gate/acceptances"
DIRECTORY = "acceptances"
# A pull request waits for a review, not for a season: what should stay is an accepted.yml's business.
COMMIT_DAYS = 14
# Of one commit: metrics that got worse, of which nobody reads so many, or cases without a baseline.
MAX_ACCEPTED = 1000
MAX_COMMIT_BYTES = MAX_YAML_BYTES  # four times so many of the usual length
_COMMIT_HEADER = f"""\
# Written by compile-gate: what was accepted for this commit, and no other. Remove the file to revoke it.
version: {VERSION}
"""
_COMMIT_FIX = "Remove the file, and comment /accept-regression again."


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitFile:
    SCHEMA: ClassVar[str] = "acceptances"
    version: int
    commit: str
    accepted: tuple[CommitEntry, ...] = ()

    @property
    def acceptances(self) -> tuple[Acceptance, ...]:
        return tuple(make_acceptance(entry, self.commit) for entry in self.accepted)


def name_commit_file(commit: str) -> str:
    return f"{DIRECTORY}/{commit}.yml"


def compute_expiry(today: str) -> str:
    return (date.fromisoformat(today) + timedelta(days=COMMIT_DAYS)).isoformat()


def load_commit_file(path: Path) -> CommitFile:
    """Raises as :func:`decode_commit_file`."""
    return decode_commit_file(load_bytes(path, MAX_COMMIT_BYTES), str(path))


def decode_commit_file(data: bytes, source: str, commit: str = "") -> CommitFile:
    """Decode the file of ``commit``, or of any.

    Raises:
        FileError: It cannot be used, or is for another commit.
    """
    file, document = decode_yaml(CommitFile, data, source)
    if commit and file.commit != commit:
        problem = f"is {file.commit[:12]}, another commit than {commit[:12]}"
        raise document.refuse("commit", problem, _COMMIT_FIX)
    if len(file.accepted) > MAX_ACCEPTED:
        problem = f"has {len(file.accepted)} entries, more than {MAX_ACCEPTED}"
        raise document.refuse("accepted", problem, _COMMIT_FIX)
    return file


def render_commit_file(commit: str, acceptances: Sequence[Acceptance]) -> str:
    accepted = ["accepted:\n", *map(render_entry, acceptances)] if acceptances else []
    return "".join([_COMMIT_HEADER, f"commit: {write_scalar(commit)}\n", *accepted])


def merge_acceptances(old: Sequence[Acceptance], new: Sequence[Acceptance]) -> tuple[Acceptance, ...]:
    """Of the same thing the newer one counts."""
    merged = {
        (acceptance.gate, acceptance.environment, acceptance.case, acceptance.metric): acceptance
        for acceptance in (*old, *new)
    }
    return tuple(merged.values())
