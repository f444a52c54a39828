"""``acceptances/<commit>.yml`` on a branch of the repository: what was accepted of one commit.

``/accept-regression`` on a pull request writes it, and the check of that commit reads it. Who can push to the
branch can accept, so a file is strict and bounded, and says for which commit it is.
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

# ``/accept-regression`` on a pull request writes ``acceptances/<commit>.yml`` on a branch of the repository,
# and the check of that commit reads it. Who can push to the branch can accept, so a file is strict and
# bounded, and says for which commit it is.
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
    """``acceptances/<commit>.yml`` on the branch of acceptances: what was accepted of one commit."""

    SCHEMA: ClassVar[str] = "acceptances"
    version: int
    commit: str
    accepted: tuple[CommitEntry, ...] = ()

    @property
    def acceptances(self) -> tuple[Acceptance, ...]:
        """Its entries as records, expired ones included."""
        return tuple(make_acceptance(one, self.commit) for one in self.accepted)


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
    file, document = decode_yaml(CommitFile, data, source)
    if commit and file.commit != commit:
        problem = f"is {file.commit[:12]}, another commit than {commit[:12]}"
        raise document.refuse("commit", problem, _COMMIT_FIX)
    if len(file.accepted) > MAX_ACCEPTED:
        problem = f"has {len(file.accepted)} entries, more than {MAX_ACCEPTED}"
        raise document.refuse("accepted", problem, _COMMIT_FIX)
    return file


def render_commit_file(commit: str, acceptances: Sequence[Acceptance]) -> str:
    """Render the file of a commit."""
    accepted = ["accepted:\n", *map(render_entry, acceptances)] if acceptances else []
    return "".join([_COMMIT_HEADER, f"commit: {write_scalar(commit)}\n", *accepted])


def merge_acceptances(old: Sequence[Acceptance], new: Sequence[Acceptance]) -> tuple[Acceptance, ...]:
    """Add to what was accepted of a commit before; of the same thing the newer word counts."""
    merged = {(one.gate, one.environment, one.case, one.metric): one for one in (*old, *new)}
    return tuple(merged.values())
