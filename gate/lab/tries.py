"""What is tried before minutes are spent: whether factories can be imported, and cases built and called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gate.capability import list_unavailable
from gate.lab.events import Noted, Observer
from gate.lab.trials import Bench, make_job, remove_cache, run_job
from gate.lab.worker import add_told, name_log
from gate.protocol import Stage, WorkerRole
from gate.records import Case, CaseFailure, Environment, FailureKind

# A project that takes longer to import is left to its trials, whose limit is the configured one.
IMPORT_LIMIT_S = 60.0
# The gate's own models come with it, and importing what they are built from takes many seconds.
_OWN_PACKAGE = "gate."


def find_unimportable(bench: Bench, cases: Sequence[Case], observe: Observer) -> tuple[CaseFailure, ...]:
    """Import the factories of ``cases`` in one process; a failure for each case whose factory cannot be.

    A process that dies or hangs over it blames nobody: a trial finds out whose fault it is.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    wanted = dict.fromkeys(case.factory for case in cases if case.factory)
    factories = tuple(factory for factory in wanted if not factory.startswith(_OWN_PACKAGE))
    if not factories:
        return ()
    job = make_job(bench, WorkerRole.IMPORT)
    request = replace(job.request, factories=factories)
    job = replace(job, request=request, limit_s=min(job.limit_s, IMPORT_LIMIT_S))
    result = run_job(bench, job)
    if isinstance(result, CaseFailure):
        observe(Noted(sentence=f"factories were not imported beforehand: {result.message}"))
        return ()
    blank = CaseFailure(
        case_id="",
        trial=1,
        arm=bench.arm.name,
        kind=FailureKind.ERROR,
        stage=Stage.IMPORT,
        message="",
        log=name_log(job.log),
    )
    found = result.unimportable
    return tuple(
        add_told(replace(blank, case_id=case.id), found[case.factory])
        for case in cases
        if case.factory in found
    )


def find_unavailable(
    cases: Sequence[Case], environment: Environment, bench: Bench
) -> tuple[CaseFailure, ...]:
    """Find the cases that this GPU cannot run compiled: a failure each, instead of eager's figures. Pure."""
    unavailable = list_unavailable(cases, environment.device_traits.get("capability", ""))
    return tuple(
        CaseFailure(
            case_id=case_id,
            trial=1,
            arm=bench.arm.name,
            kind=FailureKind.ERROR,
            stage=Stage.COMPILE,
            message=f"UNAVAILABLE: {why}; leave it out here: --select '...,!{case_id}'",
        )
        for case_id, why in unavailable.items()
    )


def try_case(bench: Bench, case: Case) -> CaseFailure | None:
    """Build a case's workload and call it eagerly, in a process of its own; nothing is compiled.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    try:
        result = run_job(bench, make_job(bench, WorkerRole.TRY, case))
    finally:
        remove_cache(bench)
    return result if isinstance(result, CaseFailure) else None
