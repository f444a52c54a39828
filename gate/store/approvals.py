"""Approvals, each of one commit by somebody who may write, and the policy in force with them.

``/accept-regression`` on a pull request writes ``approvals/<commit>.yml`` on a branch of the
repository, and the check of that commit reads it. Who can push to the branch can approve, so a file is
strict and bounded, and says for which commit it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from gate.files.codec import encode
from gate.files.entry import VERSION
from gate.files.untrusted import check_size, load_bytes
from gate.files.yaml_in import decode_yaml, write_scalar
from gate.project.config import Config, make_policy
from gate.project.registry import load_cases
from gate.records import Acceptance, Approval, Limit, Override, Policy, Quarantine, Waiver
from gate.records.pattern import TAG
from gate.store.acceptances import ApprovalFile, load_acceptances, make_acceptance, render_entry
from gate.store.anchor import load_anchor

BRANCH = "compile-gate/approvals"
DIRECTORY = "approvals"
DEFAULT_KEY = "default"  # of a gate that needs none to be told from others
# A pull request waits for a review, not for a season: what should stay is an accepted.yml's business.
APPROVAL_DAYS = 14
# Of one commit: 22 metrics of some ten cases each got worse, and nobody reads more than that.
MAX_ACCEPTED = 200
MAX_APPROVAL_BYTES = 512 * 1024  # so many entries with the longest reasons and ids, escaped
_HEADER = f"""\
# Written by compile-gate: what was accepted for this commit, and no other. Remove the file to revoke it.
version: {VERSION}
"""


def name_gate(config: Path, top: Path, key: str = DEFAULT_KEY) -> str:
    """Name a gate as approvals do: its configuration from the top of the repository, and its key if any."""
    place = config.parent.resolve() / config.name
    path = place.relative_to(top).as_posix() if place.is_relative_to(top) else ""
    return path if key == DEFAULT_KEY else f"{path}:{key}"


def name_approval(commit: str) -> str:
    """Name the file of a commit, from the top of the branch."""
    return f"{DIRECTORY}/{commit}.yml"


def compute_expiry(today: str) -> str:
    """Compute the last day of what is approved today; both are ISO dates."""
    return (date.fromisoformat(today) + timedelta(days=APPROVAL_DAYS)).isoformat()


def load_approval(path: Path, commit: str = "") -> Approval:
    """Load an approval; raises as :func:`decode_approval`."""
    return decode_approval(load_bytes(path, MAX_APPROVAL_BYTES), str(path), commit)


def decode_approval(data: bytes, source: str, commit: str = "") -> Approval:
    """Decode an approval, expired entries included; ``commit`` is whose it must be, or empty.

    Raises:
        FileError: It cannot be used, or is for another commit.
    """
    check_size(data, MAX_APPROVAL_BYTES, source)
    file, document = decode_yaml(ApprovalFile, data, source)
    if commit and file.commit != commit:
        problem = f"is {file.commit[:12]}, another commit than {commit[:12]}"
        raise document.refuse("commit", problem, _FIX)
    if len(file.accepted) > MAX_ACCEPTED:
        problem = f"has {len(file.accepted)} entries, more than {MAX_ACCEPTED}"
        raise document.refuse("accepted", problem, _FIX)
    return Approval(
        commit=file.commit,
        accepted=tuple(map(make_acceptance, file.accepted)),
        first_baselines=tuple(Waiver(**encode(one) | {"cases": one.cases}) for one in file.first_baselines),
    )


_FIX = "Remove the file, and approve the commit again with /accept-regression."


def render_approval(approval: Approval) -> str:
    """Render the file."""
    lines = [_HEADER, f"commit: {write_scalar(approval.commit)}\n"]
    if approval.accepted:
        lines += ["accepted:\n", *map(render_entry, approval.accepted)]
    if approval.first_baselines:
        lines += ["first_baselines:\n", *map(_render_waiver, approval.first_baselines)]
    return "".join(lines)


def _render_waiver(waiver: Waiver) -> str:
    lines = [f"{key}: {write_scalar(value)}\n" for key, value in encode(waiver).items()]
    return "  - " + "    ".join(lines)


def merge_approvals(old: Approval, new: Approval) -> Approval:
    """Add to what was approved for a commit before; of the same thing the newer word counts."""
    accepted = {
        (one.gate, one.environment, one.case, one.metric): one for one in (*old.accepted, *new.accepted)
    }
    waivers = {(one.gate, one.environment): one for one in (*old.first_baselines, *new.first_baselines)}
    return replace(old, accepted=tuple(accepted.values()), first_baselines=tuple(waivers.values()))


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
    entries: tuple[Override | Limit | Quarantine | Acceptance, ...]
    entries = (*policy.overrides, *policy.limits, *policy.quarantine, *acceptances)
    cases = load_cases(config) if any(TAG in entry.case for entry in entries) else ()
    tags = {case.id: case.tags for case in cases}
    return replace(policy, has_anchor=anchor is not None, approvals=approved, gate=gate, tags=tags)
