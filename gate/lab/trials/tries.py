"""What is tried before minutes are spent: whether factories can be imported, and cases built and called."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec

from gate.lab.trials.trials import Bench, make_job, remove_cache, run_job
from gate.lab.workers.worker import WorkerJob, add_told, name_log
from gate.oldest import is_installed
from gate.project.capability import Card, list_needs, list_unavailable
from gate.records import Case, CaseFailure, Code, Environment, Fact, FailureKind, quote_failure
from gate.records.events import Noted, Observer
from gate.records.protocol import Stage, WorkerFailure, WorkerResult, WorkerRole
from gate.records.targets import is_target

# A project that takes longer to import is left to its trials, whose limit is the configured one.
IMPORT_LIMIT_S = 60.0
# The gate's own models come with it, and importing what they are built from takes many seconds.
_OWN_PACKAGE = "gate."


def find_unimportable(bench: Bench, cases: Sequence[Case], observe: Observer) -> tuple[CaseFailure, ...]:
    """Import the factories of ``cases`` in one process; a failure for each case whose factory cannot be.

    One that fails there is tried once more alone: another one's import may have stood in its way, as it does
    in no trial. A process that dies or hangs over it blames nobody: a trial finds out whose fault it is.

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
        observe(Noted(fact=quote_failure(Code.IMPORTS_UNTRIED, result)))
        return ()
    blank = CaseFailure(
        case_id="",
        trial=1,
        arm=bench.arm.name,
        kind=FailureKind.ERROR,
        stage=Stage.IMPORT,
        told=Fact(code=Code.RAISED),
        log=name_log(job.log),
    )
    found = {
        factory: failure
        for factory in result.unimportable
        if (failure := _import_alone(bench, job, factory, result))
    }
    return tuple(
        add_told(replace(blank, case_id=case.id), found[case.factory])
        for case in cases
        if case.factory in found
    )


def _import_alone(bench: Bench, job: WorkerJob, factory: str, together: WorkerResult) -> WorkerFailure | None:
    """Import one factory that failed among others; ``None`` where it does not by itself."""
    if len(job.request.factories) == 1:
        return together.unimportable[factory]
    alone = run_job(bench, replace(job, request=replace(job.request, factories=(factory,))))
    return None if isinstance(alone, CaseFailure) else alone.unimportable.get(factory)


def foresee_unavailable(cases: Sequence[Case], bench: Bench) -> tuple[CaseFailure, ...]:
    """Find what is known to be unavailable before anything is warmed up, as `plan` and `doctor` know it.

    What another interpreter has is found out by its trials.
    """
    gpu, absent = bench.gpu, set[str]()
    card = Card(capability=gpu.capability, memory_gib=gpu.memory_total_mib / 1024) if gpu else Card()
    if bench.arm.python == sys.executable:
        absent = {name for case in cases for name in list_needs(case) if not _is_here(name)}
    return _fail_unavailable(list_unavailable(cases, card, absent), bench)


def _is_here(package: str) -> bool:
    """Whether a package is installed, or its module found where nobody has installed it."""
    return is_installed(package) or find_spec(package.replace("-", "_").replace(".", "_")) is not None


def find_unavailable(
    cases: Sequence[Case], environment: Environment, bench: Bench
) -> tuple[CaseFailure, ...]:
    """Find the cases that this GPU cannot run compiled: a failure each, instead of eager's figures. Pure."""
    traits = environment.device_traits
    memory_gib = 0.0 if is_target(bench.settings.device) else _parse_gib(traits.get("memory", ""))
    card = Card(capability=traits.get("capability", ""), memory_gib=memory_gib)
    return _fail_unavailable(list_unavailable(cases, card), bench)


def _fail_unavailable(unavailable: Mapping[str, Fact], bench: Bench) -> tuple[CaseFailure, ...]:
    return tuple(
        CaseFailure(
            case_id=case_id,
            trial=1,
            arm=bench.arm.name,
            kind=FailureKind.ERROR,
            stage=Stage.COMPILE,
            told=replace(why, cases=(case_id,)),
        )
        for case_id, why in unavailable.items()
    )


def _parse_gib(trait: str) -> float:
    """Parse a GPU's memory as its environment tells it: ``80 GiB``; 0 for what is none."""
    number = trait.removesuffix(" GiB")
    return float(number) if number.isdecimal() else 0.0


def try_in_worker(bench: Bench, case: Case) -> CaseFailure | None:
    """Build a case's workload and call it eagerly, in a process of its own; nothing is compiled.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    try:
        result = run_job(bench, make_job(bench, WorkerRole.TRY, case))
    finally:
        remove_cache(bench)
    return result if isinstance(result, CaseFailure) else None
