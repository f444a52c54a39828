"""What a whole suite came to, as the field quotes it: means, when a mode pays back, what a scope saves."""

from __future__ import annotations

from dataclasses import dataclass

from gate.records.bounds import Natural, NotNegative
from gate.records.cases import Mode, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteRow:
    """Geometric means over the cases of one task, mode and family; ``None`` where no case has a value."""

    task: Task
    mode: Mode
    family: str = ""  # empty: of all families
    cases: Natural
    speedup: NotNegative | None = None
    cold_compile_s: NotNegative | None = None
    warm_compile_s: NotNegative | None = None
    memory_ratio: NotNegative | None = None
    break_even_calls: NotNegative | None = None  # of the cases that ever pay back
    never_paid: Natural = 0  # cases whose compiled calls are no faster than eager's


@dataclass(frozen=True, kw_only=True, slots=True)
class ModeRow:
    """One mode of a case that was measured in several."""

    case_id: str
    default_id: str  # the same case in the mode ``default``; empty where that was not measured
    cold_compile_s: NotNegative
    compiled_s: NotNegative  # one call
    break_even_calls: NotNegative | None = None  # calls until it has paid over eager; None: never
    over_default_calls: NotNegative | None = None  # likewise over the mode ``default``


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopeRow:
    """A model of which all or a part was compiled; of all, the ratio is 1."""

    case_id: str
    whole_id: str  # the same case with all of the model compiled
    cold_compile_s: NotNegative
    cold_ratio: NotNegative  # cold compile over that of the whole model
    speedup: NotNegative


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteSummary:
    """What a suite came to in figures that decide nothing."""

    rows: tuple[SuiteRow, ...] = ()
    modes: tuple[ModeRow, ...] = ()
    scopes: tuple[ScopeRow, ...] = ()
