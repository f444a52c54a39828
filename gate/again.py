"""The commands that measure cases again, for a reader to copy; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from gate.records import PairBase

# As many characters of a commit as no repository has two of.
_COMMIT_CHARS = 12


def write_check(case_ids: Iterable[str]) -> str:
    """Write the command that holds these cases against the stored baselines."""
    return f"compile-gate check {_write_selection(case_ids)}"


def write_ab(case_ids: Iterable[str], base: PairBase | None = None) -> str:
    """Write the command that runs these cases side by side with ``base``, or with where the branch began."""
    named = _name_base(base) if base else ""
    return f"compile-gate ab {named}{_write_selection(case_ids)}"


def _write_selection(case_ids: Iterable[str]) -> str:
    return f"--select {shlex.quote(','.join(dict.fromkeys(case_ids)))}"


def _name_base(base: PairBase) -> str:
    """What stands for the base on the command line; capitals are for the reader to fill in."""
    if base.other_stack:
        return "--base-python OLD --head-python NEW "
    named = (base.commit, base.head_commit) if base.commit else ()
    return "".join(f"{commit[:_COMMIT_CHARS]} " for commit in named if commit)
