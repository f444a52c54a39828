"""Which cases of pairs have the generated code of the base: of those a target tells all that there is."""

from __future__ import annotations

from gate.records import BASE_ARM, Code, Fact, Pairing, Run
from gate.records.targets import TARGET_KIND


def find_same_code(run: Run) -> frozenset[str]:
    """Find the cases whose generated code is the base's, digest by digest.

    A case counts only where every pair says so: one that failed, was not compiled, or was compiled in one arm
    alone may have changed.
    """
    failed = {failure.case_id for failure in run.failures}
    return frozenset(case.id for case in run.cases if case.id not in failed and _is_same(run, case.id))


def note_same_code(run: Run) -> tuple[Fact, ...]:
    """A note on how much of a target's code is the base's: a GPU need not measure those cases."""
    if run.environment.device_kind != TARGET_KIND or not run.finished:
        return ()
    same = find_same_code(run)
    others = tuple(case.id for case in run.cases if case.id not in same)
    code = Code.CODE_DIFFERS if others else Code.CODE_IS_THE_BASES
    return (Fact(code=code, numbers={"same": len(same), "cases": len(run.cases)}, cases=others),)


def _is_same(run: Run, case_id: str) -> bool:
    paired = [one for one in run.trials if one.case_id == case_id and one.pairing is not Pairing.ALONE]
    base = {trial.identity.digest for trial in paired if trial.arm == BASE_ARM}
    head = {trial.identity.digest for trial in paired if trial.arm != BASE_ARM}
    return len(base) == 1 and base == head and "" not in base
