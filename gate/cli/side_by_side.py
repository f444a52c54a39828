"""What ``ab`` and ``check --base`` share: the base of a run, and what is told of both arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gate.arm_cases import load_base_cases
from gate.config import Config
from gate.lab.arms import ArmSources
from gate.lab.events import Noted, Observer
from gate.lab.side_by_side import Duel, describe_base
from gate.records import Run


def add_base(duel: Duel, run: Run, sources: ArmSources, config: Config) -> Run:
    """Add the base to a run: its label, environment, provenance, and the cases as it defines them."""
    source = sources.base
    defined = load_base_cases(config, run.cases, Path(source.arm.directory))
    for note in defined.notes:
        duel.lab.observe(Noted(sentence=note))
    base = describe_base(duel, source.label, source.provenance, defined.cases)
    return replace(run, base=replace(base, head_commit=sources.head.commit))


def note_sources(sources: ArmSources, observe: Observer) -> None:
    """Tell what is held against what, and what a reader must know of either."""
    observe(Noted(sentence=f"base: {sources.base.label}; head: {sources.head.label}"))
    for source in (sources.base, sources.head):
        for note in source.notes:
            observe(Noted(sentence=note))
