"""The policy in force: thresholds, limits, and what was accepted."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gate.project.config import Config
from gate.project.registry import load_cases
from gate.records.cases import TAG, AbsoluteLimit, Acceptance, Override, Policy, Quarantine
from gate.store.acceptances import load_acceptances
from gate.store.anchor import load_anchor
from gate.store.commit_files import load_commit_file

DEFAULT_KEY = "default"  # of the only gate of a configuration
ACCEPTED_FILE = "accepted.yml"


def name_gate(config: Path, top: Path, key: str = DEFAULT_KEY) -> str:
    """As acceptances do: the configuration from the top of the repository, and a key if any."""
    absolute = config.parent.resolve() / config.name
    path = absolute.relative_to(top).as_posix() if absolute.is_relative_to(top) else ""
    return path if key == DEFAULT_KEY else f"{path}:{key}"


def load_policy(
    config: Config, commit_files: Sequence[str] = (), baselines: Path | None = None, gate: str = ""
) -> Policy:
    """Make the policy in force today, with what was accepted of single commits in these files.

    ``baselines`` replaces the directory of ``config``. ``gate`` is whose acceptances of a commit count.

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
        acceptances=(*standing, *(accepted for file in files for accepted in file.acceptances)),
        commits=tuple(file.commit for file in files),
        gate=gate,
        quarantine=config.quarantine,
        today=datetime.now(UTC).date().isoformat(),
        error_budget=config.error_budget,
        has_anchor=anchor is not None,
        tags={case.id: case.tags for case in cases},
    )
