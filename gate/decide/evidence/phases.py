"""Compile phases that do not overlap: the compiler's clocks count a phase within the one that called it."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import FIRST_CALL, OTHER_PHASE, PHASES

# Which phase each runs within. The graph of a backward pass is compiled when it is first called: beside
# the forward's autograd phase, but with the same phases within it.
_AUTOGRAD, _BACKWARD = "aot_autograd", "backward"
_WITHIN: Mapping[str, str] = {
    _AUTOGRAD: "dynamo",
    "garbage_collection": "dynamo",
    "inductor": _AUTOGRAD,
    "code_generation": "inductor",
    "triton": "code_generation",
}


def part_phases(phases_s: Mapping[str, float]) -> dict[str, float]:
    """Part a compile by what each phase took itself, less the phases within it.

    What no phase accounts for stands under :data:`OTHER_PHASE`, where the whole is known.
    """
    spans_s = {name: phases_s[name] for name in PHASES if name in phases_s}
    backward_s = spans_s.pop(_BACKWARD, 0.0)
    if _AUTOGRAD in spans_s:
        spans_s[_AUTOGRAD] += backward_s
    own_s = dict(spans_s)
    for name, seconds in spans_s.items():
        parent = _WITHIN.get(name, "")
        if parent in own_s:
            own_s[parent] -= seconds - (backward_s if name == _AUTOGRAD else 0.0)
    parted = {name: max(0.0, seconds) for name, seconds in own_s.items()}
    if FIRST_CALL in phases_s and parted:
        parted[OTHER_PHASE] = max(0.0, phases_s[FIRST_CALL] - sum(parted.values()))
    return parted
