"""The policy in force, and the release anchor: ``baselines/anchor.yml``.

The anchor is a commit that many small changes together are held against. Each change is held against its own
base, and baselines are recorded anew as changes are merged, so that twenty changes of 1.5 % are each within
what counts. The anchor stays where it is until somebody moves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from gate.errors import UsageError
from gate.files.codec import encode, write_atomic
from gate.files.disk import is_present
from gate.files.schema import list_invalid
from gate.files.yaml_in import load_yaml
from gate.files.yaml_out import write_scalar
from gate.project.config import Config
from gate.project.registry import load_cases
from gate.records.cases import TAG, AbsoluteLimit, Acceptance, Override, Policy, Quarantine
from gate.store.acceptances import load_acceptances, load_commit_file
from gate.units import render_age

DEFAULT_KEY = "default"  # of a gate that needs none to be told from others


def name_gate(config: Path, top: Path, key: str = DEFAULT_KEY) -> str:
    """Name a gate as acceptances do: its configuration from the top of the repository, and its key if any."""
    place = config.parent.resolve() / config.name
    path = place.relative_to(top).as_posix() if place.is_relative_to(top) else ""
    return path if key == DEFAULT_KEY else f"{path}:{key}"


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
    entries: tuple[Override | AbsoluteLimit | Quarantine | Acceptance, ...]
    entries = (*config.overrides, *config.limits, *config.quarantine, *standing)
    cases = load_cases(config) if any(TAG in entry.case for entry in entries) else ()
    return Policy(
        thresholds=config.thresholds,
        overrides=config.overrides,
        limits=config.limits,
        acceptances=(*standing, *(one for file in files for one in file.acceptances)),
        commits=tuple(file.commit for file in files),
        gate=gate,
        quarantine=config.quarantine,
        today=datetime.now(UTC).date().isoformat(),
        error_budget=config.error_budget,
        has_anchor=anchor is not None,
        tags={case.id: case.tags for case in cases},
    )


ANCHOR_FILE = "anchor.yml"
_EXAMPLE = '`--reason "the release of March"`'
_SHORT_CHARS = 7  # of a commit, as git shows it
_DAY_CHARS = 10  # of a moment in ISO 8601
_HEADER = """\
# The commit that `compile-gate ab --anchor` compares with, so that small slowdowns do not add up.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorFile:
    """``anchor.yml``, in the directory of baselines: the commit that is held against over many changes."""

    SCHEMA: ClassVar[str] = "anchor"

    version: int
    commit: str
    name: str = ""
    created: str
    author: str = ""
    reason: str


def load_anchor(directory: Path) -> AnchorFile | None:
    """Load the anchor beside the baselines in ``directory``; ``None`` where there is none.

    Raises:
        FileError: It cannot be used.
    """
    path = directory / ANCHOR_FILE
    return load_yaml(AnchorFile, path)[0] if is_present(path) else None


def save_anchor(directory: Path, anchor: AnchorFile) -> Path:
    """Write the anchor beside the baselines in ``directory``, in place of an older one; return its path.

    Raises:
        MachineError: The disk is full or read-only.
        UsageError: It could not be read back, or the path cannot be written.
    """
    path = directory / ANCHOR_FILE
    known = {key: value for key, value in encode(anchor).items() if value or key == "reason"}
    for invalid in list_invalid(AnchorFile.SCHEMA, known):
        raise UsageError(f"--{invalid.key}: {invalid.problem}", f"Write, for example, {_EXAMPLE}.")
    write_atomic(path, _HEADER + "".join(f"{key}: {write_scalar(value)}\n" for key, value in known.items()))
    return path


def name_anchor(anchor: AnchorFile) -> str:
    """Name it as a revision is: ``v1.2 (1a2b3c4)``, or the short commit alone."""
    short = anchor.commit[:_SHORT_CHARS]
    return f"{anchor.name} ({short})" if anchor.name else short


def describe_anchor(anchor: AnchorFile, now: str = "") -> str:
    """Describe it: ``v1.2 (1a2b3c4), recorded 2026-03-01 by Ada: the release of March``.

    With ``now`` (ISO 8601) its age stands behind the day.
    """
    age = render_age(anchor.created, now) if now and anchor.created else ""
    recorded = f", recorded {anchor.created[:_DAY_CHARS]}" if anchor.created else ""
    by = f" by {anchor.author}" if recorded and anchor.author else ""
    reason = " ".join(anchor.reason.split()).rstrip(".")
    return f"{name_anchor(anchor)}{recorded}{f' ({age})' if age else ''}{by}: {reason}"
