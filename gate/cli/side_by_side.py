"""What ``ab`` and ``check --base`` share: pairs of two arms, look by look, until they settle it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gate.arm_cases import load_base_cases
from gate.codec import save_run
from gate.config import Config
from gate.decide import Suspect, find_next_look, list_unsettled
from gate.lab.arms import ArmSource, ArmSources
from gate.lab.events import Noted, Observer
from gate.lab.side_by_side import Duel, Need, count_pairs, describe_base, measure_pairs
from gate.records import Policy, Run

RUN_FILE = "run.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """How long a run may take, in seconds of its wall time, and where it is saved."""

    wall_s: float
    out: Path


def settle_pairs(
    duel: Duel, run: Run, policy: Policy, limit: Limit, suspects: Sequence[Suspect] | None = None
) -> Run:
    """Add pairs, look by look, until all is settled, the last look is over or the time is up."""
    path = limit.out / RUN_FILE
    while unsettled := list_unsettled(run, policy, suspects):
        needs = [make_need(run, one) for one in unsettled]
        grown = measure_pairs(duel, run, needs, limit.wall_s, lambda current: save_run(current, path))
        if len(grown.trials) + len(grown.failures) == len(run.trials) + len(run.failures):
            break
        run = grown
    run = replace(run, finished=True)
    save_run(run, path)
    return run


def make_need(run: Run, suspect: Suspect) -> Need:
    """Ask for the pairs that take a suspect to its next look."""
    pairs = count_pairs(run, suspect.case_id)
    return Need(case_id=suspect.case_id, metrics=suspect.metrics, more=find_next_look(pairs) - pairs)


def add_base(duel: Duel, run: Run, source: ArmSource, config: Config) -> Run:
    """Add the base to a run: its label, environment, provenance, and the cases as it defines them."""
    defined = load_base_cases(config, run.cases, Path(source.arm.directory))
    for note in defined.notes:
        duel.lab.observe(Noted(sentence=note))
    return replace(run, base=describe_base(duel, source.label, source.provenance, defined.cases))


def note_sources(sources: ArmSources, observe: Observer) -> None:
    """Tell what is held against what, and what a reader must know of either."""
    observe(Noted(sentence=f"base: {sources.base.label}; head: {sources.head.label}"))
    for source in (sources.base, sources.head):
        for note in source.notes:
            observe(Noted(sentence=note))
