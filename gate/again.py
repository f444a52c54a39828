"""The commands that measure cases again, for a reader to copy; pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from gate.records import PairBase

# As many characters of a commit as no repository has two of.
_COMMIT_CHARS = 12
# So many cases, or else models, are spelled out: a command that nobody can read is not copied.
_MAX_CASES = 3
_MAX_MODELS = 6
# The commands that read gate.yml.
_COMMAND = re.compile(r"compile-gate (?:check|ab|models|measure|baseline (?:refresh|accept|show|anchor))\b")


def write_check(case_ids: Iterable[str]) -> str:
    """Write the command that holds these cases against the stored baselines."""
    return f"compile-gate check {_write_selection(case_ids)}"


def write_ab(case_ids: Iterable[str], base: PairBase | None = None) -> str:
    """Write the command that runs these cases side by side with ``base``, or with where the branch began."""
    named = _name_base(base) if base else ""
    return f"compile-gate ab {named}{_write_selection(case_ids)}"


def write_anchored(case_ids: Iterable[str]) -> str:
    """Write the command that runs these cases side by side with the release anchor."""
    return f"compile-gate ab --anchor {_write_selection(case_ids)}"


def add_config(text: str, config: str) -> str:
    """Add ``--config`` to the commands in a text; an empty ``config`` is the default and needs none."""
    option = f" --config {shlex.quote(config)}"
    return _COMMAND.sub(lambda found: found[0] + option, text) if config else text


def _write_selection(case_ids: Iterable[str]) -> str:
    """A few cases by their ids, more by their models, of many models the first."""
    names = list(dict.fromkeys(case_ids))
    if len(names) > _MAX_CASES:
        names = list(dict.fromkeys(name.partition("/")[0] for name in names))[:_MAX_MODELS]
    return f"--select {shlex.quote(','.join(names))}"


def _name_base(base: PairBase) -> str:
    """What stands for the base on the command line; capitals are for the reader to fill in."""
    if base.other_stack:
        return "--base-python OLD --head-python NEW "
    named = (base.commit, base.head_commit) if base.commit else ()
    return "".join(f"{commit[:_COMMIT_CHARS]} " for commit in named if commit)
