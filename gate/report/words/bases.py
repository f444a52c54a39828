"""What the other side of pairs is called."""

from __future__ import annotations

from gate.records import PairBase

# As many characters of a commit as no repository has two of.
COMMIT_CHARS = 12


def name_base(base: PairBase | None) -> str:
    """Name it by its label, else by its commit."""
    if base is None or not (base.label or base.commit):
        return "the base"
    return base.label or f"the base commit {base.commit[:COMMIT_CHARS]}"
