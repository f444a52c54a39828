"""What ``ab`` and ``check --base`` share: the base of a run, and what is told of both arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gate.lab.arms.arms import ArmSources
from gate.lab.trials.side_by_side import SideBySide, describe_base
from gate.project.arm_cases import load_base_cases
from gate.project.config import Config
from gate.records import Code, Fact, Run, name_words
from gate.records.events import Noted, Observer


def add_base(side_by_side: SideBySide, run: Run, sources: ArmSources, config: Config) -> Run:
    """Add the base to a run: its label, environment, provenance, and the cases as it defines them."""
    source = sources.base
    defined = load_base_cases(config, run.cases, Path(source.arm.directory))
    for note in defined.notes:
        side_by_side.lab.observe(Noted(fact=note))
    base = describe_base(side_by_side, source.label, source.provenance, defined.cases)
    return replace(run, base=replace(base, head_commit=sources.head.commit))


def note_sources(sources: ArmSources, observe: Observer) -> None:
    """Tell what is held against what, and what a reader must know of either."""
    names = name_words(base=sources.base.label, head=sources.head.label)
    observe(Noted(fact=Fact(code=Code.ARMS, names=names)))
    for source in (sources.base, sources.head):
        for note in source.notes:
            observe(Noted(fact=note))
