"""What a verdict says of the configuration under which it was reached."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from gate.again import add_config
from gate.config import Config
from gate.config_file import DEFAULT_FILE
from gate.records import Case, Policy, Verdict

_REFERENCE = f"No {DEFAULT_FILE} was found: this is about compile-gate's own reference models."


def note_origin(verdict: Verdict, config: Config, options: Namespace) -> Verdict:
    """Say by which commit's rules it was reached, and name gate.yml in the commands to run next."""
    rules = f"Configuration, registry, thresholds and baselines are those of commit {config.commit}."
    named = "" if config.commit else _name_config(options)
    return replace(
        verdict,
        notes=(*(add_config(note, named) for note in verdict.notes), *([rules] if config.commit else [])),
        next_steps=tuple(add_config(step, named) for step in verdict.next_steps),
        config=named,
    )


def note_reference(verdict: Verdict, config: Config) -> Verdict:
    """Say first of all where what was measured is nobody's own: there was no gate.yml."""
    return verdict if config.is_found else replace(verdict, headline=f"{_REFERENCE} {verdict.headline}")


def note_idle(verdict: Verdict, policy: Policy, registry: Iterable[Case]) -> Verdict:
    """Name the acceptances that fit no case: whoever wrote them thinks that they count."""
    ids = [case.id for case in registry]
    idle = [one for one in policy.acceptances if not any(fnmatchcase(name, one.case) for name in ids)]
    notes = [f"The acceptance of {one.case} {one.metric} fits no case: remove it." for one in idle]
    return replace(verdict, notes=(*verdict.notes, *notes))


def _name_config(options: Namespace) -> str:
    named: str = options.config or ""
    return "" if named and Path(named) == Path(DEFAULT_FILE) else named
