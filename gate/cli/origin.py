"""What a verdict says of the configuration under which it was reached."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from gate.project.config import Config
from gate.project.config_file import DEFAULT_FILE
from gate.records import Case, Code, Fact, Policy, Verdict, name_words


def note_origin(verdict: Verdict, config: Config, options: Namespace) -> Verdict:
    """Say by which commit's rules it was reached, and name gate.yml in the commands to run next."""
    if not config.commit:
        return replace(verdict, config=_name_config(options))
    rules = Fact(code=Code.RULES_OF, names=name_words(commit=config.commit))
    return replace(verdict, notes=(*verdict.notes, rules), config="")


def note_reference(verdict: Verdict, config: Config) -> Verdict:
    """Say first of all where what was measured is nobody's own: there was no gate.yml."""
    nobodys = Fact(code=Code.NO_CONFIGURATION)
    return verdict if config.is_found else replace(verdict, headline=(nobodys, *verdict.headline))


def note_idle(verdict: Verdict, policy: Policy, registry: Iterable[Case]) -> Verdict:
    """Name the acceptances that fit no case: whoever wrote them thinks that they count."""
    ids = [case.id for case in registry]
    idle = [one for one in policy.acceptances if not any(fnmatchcase(name, one.case) for name in ids)]
    notes = [
        Fact(code=Code.ACCEPTANCE_IDLE, metrics=(one.metric,), names=name_words(pattern=one.case))
        for one in idle
    ]
    return replace(verdict, notes=(*verdict.notes, *notes))


def _name_config(options: Namespace) -> str:
    named: str = options.config or ""
    return "" if named and Path(named) == Path(DEFAULT_FILE) else named
