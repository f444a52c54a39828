"""Which cases a machine cannot be judged by, whatever the code: known before minutes are spent on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from gate.kinds import KIND_SPECS
from gate.records import DEFAULT_BACKEND, Case, DType, Kind
from gate.units import join_some

# Inductor compiles bfloat16 for these and newer; older ones it leaves to eager, with a warning.
_BFLOAT16_CAPABILITY = (8, 0)
_NAMED = 3  # cases spelled out in a line; the rest is counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """What a GPU tells of itself. What it does not tell rules nothing out."""

    capability: str = ""  # compute capability: "9.0"
    memory_gib: float = 0.0  # all of it; 0 where that is not known, or where nothing is run


def list_unavailable(
    cases: Iterable[Case], card: Card, absent: Collection[str] = frozenset()
) -> dict[str, str]:
    """List the cases that such a GPU cannot run compiled, or that need what is ``absent``, with why."""
    told = {case.id: _explain_packages(case, absent) or _explain(case, card) for case in cases}
    return {case_id: why for case_id, why in told.items() if why}


def _explain(case: Case, card: Card) -> str:
    """Say why the card cannot run the case; empty where it can."""
    return _explain_devices(case, card) or _explain_code(case, card) or _explain_memory(case, card)


def _explain_devices(case: Case, card: Card) -> str:
    """Workers see the one GPU that they measure: NCCL refuses two processes on it."""
    if case.kind is not Kind.DISTRIBUTED or not card.memory_gib:
        return ""
    return "its two processes need a GPU each, and workers see one"


def list_needs(case: Case) -> tuple[str, ...]:
    """List the packages that a case needs, and its kind."""
    return tuple(dict.fromkeys((*case.needs, *KIND_SPECS[case.kind].needs)))


def _explain_packages(case: Case, absent: Collection[str]) -> str:
    lacking = " ".join(name for name in list_needs(case) if name in absent)
    if not lacking:
        return ""
    verb = "are" if " " in lacking else "is"
    return f"{lacking.replace(' ', ' and ')} {verb} not installed (pip install {lacking})"


def _explain_code(case: Case, card: Card) -> str:
    """Say why nothing is compiled for the card; empty where it is."""
    found = _parse_capability(card.capability)
    if case.dtype is not DType.BFLOAT16 or case.backend != DEFAULT_BACKEND or found is None:
        return ""
    if found >= _BFLOAT16_CAPABILITY:
        return ""
    needed = ".".join(map(str, _BFLOAT16_CAPABILITY))
    return f"this GPU compiles no bfloat16: its compute capability is {card.capability}, {needed} is needed"


def _explain_memory(case: Case, card: Card) -> str:
    if not 0 < card.memory_gib < case.gpu_memory_gib:
        return ""
    return f"it needs {case.gpu_memory_gib:g} GiB at least, and this GPU has {card.memory_gib:.1f}"


def describe_unavailable(unavailable: Mapping[str, str]) -> str:
    """Say in a line which cases are unavailable and why, reason by reason; empty where all are available."""
    reasons: dict[str, list[str]] = {}
    for case_id, why in unavailable.items():
        reasons.setdefault(why, []).append(case_id)
    told = "; ".join(f"{join_some(case_ids, _NAMED)}: {why}" for why, case_ids in reasons.items())
    return f"UNAVAILABLE: {told}" if told else ""


def _parse_capability(text: str) -> tuple[int, int] | None:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None
