"""What decides besides the data: gate.yml, accepted.yml and approvals become the policy in force today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from gate.project.config import Config, make_policy
from gate.records import Policy
from gate.store.acceptances import load_acceptances
from gate.store.anchor import load_anchor
from gate.store.approvals import load_approval

ACCEPTED_FILE = "accepted.yml"


def load_policy(
    config: Config, approvals: Sequence[str] = (), baselines: Path | None = None, gate: str = ""
) -> Policy:
    """Make the policy in force today, with the approvals in these files.

    Acceptances and the anchor lie beside the baselines: those of ``config``, unless others are judged by.
    ``gate`` is whose approvals count; empty where that is not known.

    Raises:
        FileError: A file cannot be used.
    """
    directory = baselines or config.baselines
    acceptances, anchor = load_acceptances(directory / ACCEPTED_FILE), load_anchor(directory)
    policy = make_policy(config, acceptances, datetime.now(UTC).date().isoformat())
    approved = tuple(load_approval(Path(path)) for path in approvals)
    return replace(policy, has_anchor=anchor is not None, approvals=approved, gate=gate)
