"""Pairs with the base, look by look, until they settle what is asked; pure but for what measures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from gate.check.measurer import PairMeasurer
from gate.check.pair_schedule import (
    Need,
    count_pairs,
    list_pair_slots,
    name_device,
    predict_pair_s,
)
from gate.decide import PairEffort, Suspect, find_next_look, list_unsettled, order_unsettled
from gate.decide.constants import MIN_PAIRS, SETTLING_PAIRS
from gate.records import Policy, Run
from gate.records.targets import TARGET_KIND

_LEAST_S = 0.1  # of a pair, where nothing tells how long one takes


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
    """Ask for the pairs that take a suspect to its next look; for none after the last.

    What is exact is settled once it was seen again, and of a target nothing else is known.
    """
    pairs = count_pairs(run, suspect.case_id)
    look = find_next_look(pairs)
    if run.environment.device_kind == TARGET_KIND:
        look = min(look, max(MIN_PAIRS, pairs))
    return Need(
        case_id=suspect.case_id,
        metrics=suspect.metrics,
        more=look - pairs,
        known_code=suspect.known_code,
    )


def _list_needs(run: Run, unsettled: Sequence[Suspect], stopped: Collection[str]) -> list[Need]:
    """List what takes each open case to its next look; all but the most pressing one are for later.

    A metric that the last pairs of a case had no time for stays open when its looks are over.
    """
    wanted = [one for one in unsettled if one.case_id not in stopped]
    efforts = {one.case_id: _predict_effort(run, one) for one in wanted}
    needs = [need for one in order_unsettled(wanted, efforts) if (need := make_need(run, one)).more]
    return [replace(need, later=position > 0) for position, need in enumerate(needs)]


def _predict_effort(run: Run, suspect: Suspect) -> PairEffort:
    """The pairs of a case, and the seconds of those that take it to its next look, or settle most."""
    need, pairs = make_need(run, suspect), count_pairs(run, suspect.case_id)
    more = max(need.more, SETTLING_PAIRS - pairs)
    slots = list_pair_slots(run, [replace(need, more=more)])
    seconds = sum(predict_pair_s(run, slot, name_device(run)) for slot in slots)
    told = [trial.changed_imports for trial in run.trials if trial.case_id == suspect.case_id]
    known = [imports for imports in told if imports is not None]
    return PairEffort(pairs=pairs, seconds=max(seconds, _LEAST_S), untouched=bool(known) and not any(known))
