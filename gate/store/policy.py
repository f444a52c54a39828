"""The policy in force, and the release anchor: ``baselines/anchor.yml``.

The anchor is a commit that many small changes together are held against. Each change is held against its own
base, and baselines are recorded anew as changes are merged, so that twenty changes of 1.5 % are each within
what counts. The anchor stays where it is until somebody moves it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gate.project.config import Config
from gate.project.registry import load_cases
from gate.records.cases import TAG, AbsoluteLimit, Acceptance, Override, Policy, Quarantine
from gate.store.acceptances import load_acceptances
from gate.store.anchor import load_anchor
from gate.store.commit_files import load_commit_file

DEFAULT_KEY = "default"  # of a gate that needs none to be told from others
ACCEPTED_FILE = "accepted.yml"


def name_gate(config: Path, top: Path, key: str = DEFAULT_KEY) -> str:
    """Name a gate as acceptances do: its configuration from the top of the repository, and its key if any."""
    place = config.parent.resolve() / config.name
    path = place.relative_to(top).as_posix() if place.is_relative_to(top) else ""
    return path if key == DEFAULT_KEY else f"{path}:{key}"


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
