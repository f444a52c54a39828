"""Which cases a GPU need not measure, because a target has shown that their code did not change. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gate.decide.evidence.same_code import find_same_code
from gate.errors import UsageError
from gate.records import Case, Run
from gate.records.targets import TARGET_KIND


def list_same_code(run: Run) -> frozenset[str]:
    """List the cases whose generated code is that of the base, as ``ab --target`` found it.

    Raises:
        UsageError: The run is of a device, or holds nothing against a base, or did not end.
    """
    if run.environment.device_kind != TARGET_KIND or run.base is None:
        told = "the run tells of no target held against a base"
        raise UsageError(told, "Make one: compile-gate ab BASE --target cuda:sm_90.")
    if not run.finished:
        raise UsageError("the run did not end", "Continue it with --resume.")
    return find_same_code(run)


def drop_same_code(cases: Iterable[Case], run: Run) -> tuple[Case, ...]:
    """Leave out the cases whose code did not change; one that is defined otherwise by now stays.

    Raises as :func:`list_same_code`.
    """
    same = list_same_code(run)
    programs = {case.id: case.program for case in run.cases if case.id in same}
    return tuple(case for case in cases if programs.get(case.id) != case.program)
