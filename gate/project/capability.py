"""Which cases a machine cannot be judged by, and how long the others may take: known before; pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from gate.decide.constants import MIN_PAIRS
from gate.installation import is_installed
from gate.kinds import KIND_SPECS
from gate.project.config import Config
from gate.records import DEFAULT_BACKEND, Case, Code, DType, Fact, Kind

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
    """List the cases that such a GPU cannot run compiled, or that need what is ``absent``, with why."""
    reasons = {case.id: _find_lacking(case, absent) or _examine(case, card) for case in cases}
    return {case_id: why for case_id, why in reasons.items() if why}


def _examine(case: Case, card: Card) -> Fact | None:
    if case.kind is Kind.DISTRIBUTED and card.memory_gib:
        # Workers see the one GPU that they measure: NCCL refuses two processes on it.
        return Fact(code=Code.NO_GPU_EACH)
    return _examine_code(case, card) or _examine_memory(case, card)


def list_needs(case: Case) -> tuple[str, ...]:
    """List the packages that a case needs, and its kind."""
    return tuple(dict.fromkeys((*case.needs, *KIND_SPECS[case.kind].needs)))


def list_absent(cases: Iterable[Case]) -> frozenset[str]:
    """List the needed packages that are not installed here, and whose modules are not found otherwise."""
    needed = {name for case in cases for name in list_needs(case)}
    return frozenset(
        name
        for name in needed
        if not is_installed(name) and find_spec(name.replace("-", "_").replace(".", "_")) is None
    )


def _find_lacking(case: Case, absent: Collection[str]) -> Fact | None:
    lacking = tuple(name for name in list_needs(case) if name in absent)
    return Fact(code=Code.PACKAGES_LACKING, names={"packages": lacking}) if lacking else None


def _examine_code(case: Case, card: Card) -> Fact | None:
    """Find out why nothing is compiled for the card; None where it is, or where the card does not say."""
    if case.dtype is not DType.BFLOAT16 or case.backend != DEFAULT_BACKEND:
        return None
    if not _CAPABILITY.fullmatch(card.capability) or float(card.capability) >= _BFLOAT16_CAPABILITY:
        return None
    numbers = {"capability": float(card.capability), "needed": _BFLOAT16_CAPABILITY}
    return Fact(code=Code.NO_BFLOAT16, numbers=numbers)


def _examine_memory(case: Case, card: Card) -> Fact | None:
    if not 0 < card.memory_gib < case.gpu_memory_gib:
        return None
    numbers = {"gib": card.memory_gib, "needed_gib": case.gpu_memory_gib}
    return Fact(code=Code.TOO_LITTLE_MEMORY, numbers=numbers)


# A trial is two processes, and expected_s an estimate: who takes four times a whole trial has hung.
HUNG_TRIALS = 4
_ARMS = 2


def fit_limits(config: Config, cases: Sequence[Case]) -> Config:
    """Raise the limits that are not set to what the slowest of ``cases`` needs to be settled.

    The defaults are those of small cases: one of ten minutes would be ended as hung, and get neither a
    second trial nor the pairs without which nothing is confirmed.
    """
    slowest_s = max((case.expected_s for case in cases), default=0.0)
    needed = {
        "trial_timeout_s": HUNG_TRIALS * slowest_s,
        "budget_s": config.trials * sum(case.expected_s for case in cases) + slowest_s,
        "pair_budget_s": _ARMS * MIN_PAIRS * slowest_s,
    }
    raised: dict[str, Any] = {
        key: max(getattr(config, key), needed_s)
        for key, needed_s in needed.items()
        if key not in config.origins
    }
    return replace(config, **raised)
