"""What disturbed the machine, a phrase each."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Disturbance, Fact
from gate.report.words.templates import fill
from gate.units import join_some

_PHRASES: Mapping[Disturbance, str] = {
    Disturbance.CROWDED: "other programs kept {crowded:.1f} of {cores} cores busy",
    Disturbance.STOLEN: "the hypervisor took {stolen:share} of the time",
    Disturbance.HELD_BACK: "the container's quota stopped it for {held_back:share} of the time",
    Disturbance.HEATED: "processor cores lowered their clocks for heat",
    Disturbance.SWAPPED: "{swapped:bytes} were swapped",
    Disturbance.SHORT_OF_MEMORY: "only {short_of_memory:bytes} of memory were free",
    Disturbance.THROTTLED: "the device lowered its clocks{why}",
    Disturbance.SHARED: "other processes used the device",
    Disturbance.HELD_MEMORY: "others held {held_memory:share} of the device's memory",
}


def describe_disturbances(fact: Fact) -> str:
    """The first of what disturbed, and how many more; files of older releases have phrases instead."""
    reasons = fact.names.get("reasons")
    why = f" ({', '.join(reasons)})" if reasons else ""
    found = [fill(phrase, fact, why=why) for code, phrase in _PHRASES.items() if code in fact.numbers]
    return join_some([*found, *fact.names.get("phrases", ())])
