"""What a verdict says of the configuration and the acceptances under which it was reached."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gate.cli.measuring_commands import AB_MINUTES
from gate.git import ask_git, find_checkout
from gate.project.config import DEFAULT_FILE, Config
from gate.records import Baseline, Case, Code, Fact, Policy, Verdict, name_words
from gate.store.policy import name_gate
from gate.units import count_noun

_REPEATED = ("config", "baselines", "out", "minutes")  # options, for commands to run next


def note_origin(verdict: Verdict, config: Config, options: Namespace) -> Verdict:
    """Say by which commit's rules it was reached; else commands to run next repeat options of this one."""
    if not config.commit:
        return replace(verdict, options=_list_repeated(vars(options)))
    rules = Fact(code=Code.RULES_OF, names=name_words(commit=config.commit))
    return replace(verdict, notes=(*verdict.notes, rules))


def _list_repeated(given: Mapping[str, Any]) -> dict[str, str]:
    """List the options that commands to run next repeat, with their values: what is not the default."""
    named = {f"--{name}": given[name] for name in _REPEATED if given.get(name)}
    if named.get("--minutes") == AB_MINUTES:
        del named["--minutes"]
    if Path(named.get("--config", "")) == Path(DEFAULT_FILE):
        del named["--config"]
    written = {name: value if isinstance(value, str) else f"{value:g}" for name, value in named.items()}
    return written | ({"--reference-models": ""} if given.get("reference_models") else {})


def note_rules(verdict: Verdict, config: Config, base: str) -> Verdict:
    """Say first which files that it was judged by are others than those of ``base``, a commit.

    A change that loosens a threshold, leaves a case out or records baselines is judged by its own files.
    """
    if not base or config.commit:
        return verdict
    command = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z", base, "--")
    rules = (Path(config.source), *config.registry, config.baselines)
    # git refuses what lies outside of the repository: that is no part of a change.
    listed = {rule: ask_git(config.directory, *command, str(rule.absolute())).output for rule in rules}
    counts = {rule: files.count(b"\0") for rule, files in listed.items()}
    named = tuple(f"{rule} ({count_noun(count, 'file')})" for rule, count in counts.items() if count)
    notes = [Fact(code=Code.TOUCHES_RULES, names={"rules": named})] if named else []
    return replace(verdict, notes=(*notes, *verdict.notes))


def note_idle(
    verdict: Verdict, policy: Policy, registry: Iterable[Case], baselines: Iterable[Baseline] = ()
) -> Verdict:
    """Name the acceptances and baselines that count for nothing: their authors think that they do."""
    ids = [case.id for case in registry]
    notes = [
        Fact(code=Code.UNUSED_ACCEPTANCE, metrics=(one.metric,), names=name_words(pattern=one.case))
        for one in policy.acceptances
        if one.metric and not any(policy.fits(one.case, name) for name in ids)
    ]
    if gone := tuple(sorted({one.case_id for one in baselines} - set(ids))):
        notes.append(Fact(code=Code.BASELINES_IDLE, numbers={"cases": len(gone)}, cases=gone))
    return replace(verdict, notes=(*verdict.notes, *notes))


def find_gate(options: Namespace, config: Config) -> str:
    """Find which gate judges, as acceptances name it; empty where the configuration is in no repository."""
    source = Path(config.source)
    top = find_checkout(source.parent)
    return options.gate or (name_gate(source, top) if top else "")
