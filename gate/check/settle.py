"""Pairs with the base, look by look, until they settle what is asked; pure but for what measures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from gate.check.measurer import PairMeasurer
from gate.check.pair_schedule import Need, count_pairs
from gate.decide import Suspect, find_next_look, list_unsettled, order_unsettled
from gate.records import Policy, Run


def settle_pairs(
    measurer: PairMeasurer, run: Run, policy: Policy, limit_s: float, suspects: Sequence[Suspect] | None
) -> Run:
    """Add pairs, look by look, until all is settled, the last look is over or the time is up.

    One case after the other, by :func:`gate.decide.order_unsettled`; of the whole plan where ``suspects``
    is ``None``. ``limit_s`` counts the run's seconds.
    """
    stopped: set[str] = set()  # no time, no counterpart or a failure: asked again, they would say it again
    while needs := _list_needs(run, list_unsettled(run, policy, suspects), stopped):
        case_id = needs[0].case_id
        wanted = count_pairs(run, case_id) + needs[0].more
        run = measurer.add_pairs(run, needs, limit_s)
        if count_pairs(run, case_id) < wanted:
            stopped.add(case_id)
    return replace(run, finished=True)


def make_need(run: Run, suspect: Suspect) -> Need:
    """Ask for the pairs that take a suspect to its next look; for none after the last."""
    pairs = count_pairs(run, suspect.case_id)
    return Need(case_id=suspect.case_id, metrics=suspect.metrics, more=find_next_look(pairs) - pairs)


def _list_needs(run: Run, unsettled: Sequence[Suspect], stopped: Collection[str]) -> list[Need]:
    """List what takes each open case to its next look; all but the most pressing one are for later.

    A metric that the last pairs of a case had no time for stays open when its looks are over.
    """
    pairs = {one.case_id: count_pairs(run, one.case_id) for one in unsettled if one.case_id not in stopped}
    needs = [need for one in order_unsettled(unsettled, pairs) if (need := make_need(run, one)).more]
    return [replace(need, later=position > 0) for position, need in enumerate(needs)]
