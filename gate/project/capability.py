"""Which cases a machine cannot run, known before anything is run."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from gate.installation import is_installed
from gate.kinds import KIND_SPECS
from gate.records.cases import DEFAULT_BACKEND, Case, DType, Kind
from gate.records.codes import Code
from gate.records.facts import Fact

# Inductor compiles bfloat16 for these and newer; older ones it leaves to eager, with a warning.
_BFLOAT16_CAPABILITY = 8.0
_CAPABILITY = re.compile(r"[0-9]+\.[0-9]")  # a minor number has one digit


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """What a GPU reports of itself. What it does not report rules nothing out."""

    capability: str = ""  # compute capability: "9.0"
    memory_gib: float = 0.0  # all of it; 0 where that is not known, or where nothing is run


def list_unavailable(
    cases: Iterable[Case], card: Card, absent: Collection[str] = frozenset()
) -> dict[str, Fact]:
    reasons = {case.id: _find_reason(case, card, absent) for case in cases}
    return {case_id: why for case_id, why in reasons.items() if why}


def list_needs(case: Case) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*case.needs, *KIND_SPECS[case.kind].needs)))


def list_absent(cases: Iterable[Case]) -> frozenset[str]:
    needed = {name for case in cases for name in list_needs(case)}
    return frozenset(
        name
        for name in needed
        if not is_installed(name) and find_spec(name.replace("-", "_").replace(".", "_")) is None
    )


def _find_reason(case: Case, card: Card, absent: Collection[str]) -> Fact | None:
    if lacking := tuple(name for name in list_needs(case) if name in absent):
        return Fact(code=Code.PACKAGES_LACKING, names={"packages": lacking})
    if case.kind is Kind.DISTRIBUTED and card.memory_gib:
        # Workers see the one GPU that they measure: NCCL refuses two processes on it.
        return Fact(code=Code.NO_GPU_EACH)
    # None where the card does not report it, or in other words.
    capability = float(card.capability) if _CAPABILITY.fullmatch(card.capability) else None
    is_compiled = case.dtype is DType.BFLOAT16 and case.backend == DEFAULT_BACKEND
    if is_compiled and capability is not None and capability < _BFLOAT16_CAPABILITY:
        numbers = {"capability": capability, "needed": _BFLOAT16_CAPABILITY}
        return Fact(code=Code.NO_BFLOAT16, numbers=numbers)
    if 0 < card.memory_gib < case.gpu_memory_gib:
        numbers = {"gib": card.memory_gib, "needed_gib": case.gpu_memory_gib}
        return Fact(code=Code.TOO_LITTLE_MEMORY, numbers=numbers)
    return None
