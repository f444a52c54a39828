"""What ``ab`` and ``check --base`` share: pairs of two arms, look by look, until they settle it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gate.arm_cases import load_base_cases
from gate.cli.setup import RUN_FILE
from gate.codec import save_run
from gate.config import Config
from gate.decide import Suspect, find_next_look, list_unsettled, order_unsettled
from gate.lab.arms import ArmSources
from gate.lab.events import Noted, Observer
from gate.lab.side_by_side import Duel, Need, count_pairs, describe_base, measure_pairs
from gate.records import Policy, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """How long a run may take, in seconds of its wall time, and where it is saved."""

    wall_s: float
    out: Path


def settle_pairs(
    duel: Duel, run: Run, policy: Policy, limit: Limit, suspects: Sequence[Suspect] | None = None
) -> Run:
    """Add pairs, look by look, until all is settled, the last look is over or the time is up.

    One case after the other, by :func:`gate.decide.order_unsettled`.
    """
    path = limit.out / RUN_FILE
    stopped: set[str] = set()  # no time, no counterpart or a failure: asked again, they would say it again
    while needs := _list_needs(run, list_unsettled(run, policy, suspects), stopped):
        wanted = count_pairs(run, needs[0].case_id) + needs[0].more
        run = measure_pairs(duel, run, needs, limit.wall_s, lambda current: save_run(current, path))
        if count_pairs(run, needs[0].case_id) < wanted:
            stopped.add(needs[0].case_id)
    run = replace(run, finished=True)
    save_run(run, path)
    return run


def _list_needs(run: Run, unsettled: Sequence[Suspect], stopped: Collection[str]) -> list[Need]:
    """List what takes each open case to its next look; all but the most pressing one are for later."""
    pairs = {one.case_id: count_pairs(run, one.case_id) for one in unsettled if one.case_id not in stopped}
    needs = [make_need(run, one) for one in order_unsettled(unsettled, pairs)]
    return [replace(need, later=position > 0) for position, need in enumerate(needs)]


def make_need(run: Run, suspect: Suspect) -> Need:
    """Ask for the pairs that take a suspect to its next look."""
    pairs = count_pairs(run, suspect.case_id)
    return Need(case_id=suspect.case_id, metrics=suspect.metrics, more=find_next_look(pairs) - pairs)


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
