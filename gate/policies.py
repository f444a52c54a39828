"""What decides besides the data: gate.yml, accepted.yml and approvals become the policy in force today."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gate.acceptances import load_acceptances
from gate.approvals import approve_policy, load_approval
from gate.config import Config, make_policy
from gate.records import Policy

ACCEPTED_FILE = "accepted.yml"


def load_policy(config: Config, approvals: Sequence[str] = (), baselines: Path | None = None) -> Policy:
    """Make the policy in force today, with the approvals in these files.

    Acceptances lie beside the baselines: those of ``config``, unless others are judged by.

    Raises:
        FileError: A file cannot be used.
    """
    acceptances = load_acceptances((baselines or config.baselines) / ACCEPTED_FILE)
    policy = make_policy(config, acceptances, datetime.now(UTC).date().isoformat())
    return approve_policy(policy, [load_approval(Path(path)) for path in approvals])
