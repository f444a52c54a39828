"""What rounding may cost: where eager is better than its type allows, compiled need not be.

On a processor eager computes BatchNorm and its gradients in float64, and compiled code in float32. Its error
is then many times eager's, and still no more than what the model makes of some rounding steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gate.measure.numerics.comparing import compare
from gate.measure.numerics.drift import Outputs
from gate.measure.numerics.reference import Called, Evaluation, evaluate_perturbed
from gate.measure.workload.build import Subject

# Some in a hundred perturbations push no activation over its kink, and compiled code does, or the reverse.
_TRIES = 3


def measure_beyond(subject: Subject, exact: Evaluation, eager: Called, compiled: Evaluation) -> float:
    """Compute log2 of compiled's error over eager's with what rounding may cost added, in the worst group."""
    tries = []
    for seed in range(_TRIES):
        perturbed = evaluate_perturbed(subject, eager, seed)
        parts: dict[str, Any] = {
            part: _add(*(getattr(one, part) for one in (eager.found, perturbed, exact)))
            for part in ("outputs", "gradients", "written")
        }
        drift = compare(exact, replace(eager.found, **parts), compiled, eager.state)
        tries.append(drift.log2_ratio or 0.0)
    return min(tries)


def _add(eager: Outputs, perturbed: Outputs, exact: Outputs) -> Outputs:
    """Add to eager what the perturbation made of the reference, where it is of one shape."""
    off = {
        name: perturbed[name] - exact[name]
        for name, value in eager.items()
        if name in perturbed and name in exact and perturbed[name].shape == exact[name].shape == value.shape
    }
    return {
        name: (value + off[name]).to(value.dtype) if name in off else value for name, value in eager.items()
    }
