"""Which cases can be measured here: imported, built, and run on this GPU."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gate.devices import is_target
from gate.errors import NothingComparedError
from gate.lab.trials.bench import Bench, make_job, remove_cache, run_job
from gate.lab.workers.worker import WorkerJob, add_report, name_log
from gate.project.capability import Card, list_absent, list_unavailable
from gate.records.cases import Case, Kind
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import Stage, WorkerFailure, WorkerRole
from gate.records.run import CaseFailure, Environment, FailureKind
from gate.report.words.facts import describe_failure

# A project that takes longer to import is left to its trials, whose limit is the configured one.
IMPORT_LIMIT_S = 60.0
# The gate's own models come with it, and importing what they are built from takes many seconds.
_OWN_PACKAGE = "gate."
_MOST_BUILT = 3  # in earnest, each in a process of its own: the trials build the others


def list_later_jobs(bench: Bench) -> Sequence[WorkerJob]:
    """The server of second processes imports at the same time as the first, if there is a core for it."""
    return () if is_target(bench.settings.device) else (make_job(bench, WorkerRole.WARM),)


def try_imports(bench: Bench, cases: Sequence[Case]) -> tuple[CaseFailure, ...]:
    """Import and build ``cases`` in one process; return a failure for each that cannot be.

    It is tried again alone: another one may have been in its way. A process that dies or hangs blames nobody.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    wanted = dict.fromkeys(case.factory for case in cases if case.factory)
    factories = tuple(factory for factory in wanted if not factory.startswith(_OWN_PACKAGE))
    if not factories:
        return ()
    builds = {
        _name_build(case): case
        for case in cases
        if case.kind is Kind.CALL and case.factory in factories and not is_target(bench.settings.device)
    }
    job = make_job(bench, WorkerRole.IMPORT)
    problems = _find_problems(bench, job, factories, tuple(builds.values()))
    failures = []
    for case in cases:
        built = builds.get(_name_build(case), case)
        if problem := problems.get(case.factory) or problems.get(built.id):
            failure = CaseFailure(
                case_id=case.id,
                trial=1,
                arm=bench.arm.name,
                kind=FailureKind.ERROR,
                stage=Stage.IMPORT if case.factory in problems else Stage.BUILD,
                fact=Fact(code=Code.RAISED),
                log=name_log(job.log),
            )
            failures.append(add_report(failure, problem, job.request.checkout or job.request.directory))
    return tuple(failures)


def _find_problems(
    bench: Bench, job: WorkerJob, factories: tuple[str, ...], builds: tuple[Case, ...]
) -> dict[str, WorkerFailure]:
    """Problems by factory, and by case id of what is built."""

    def ask(factories: tuple[str, ...], builds: tuple[Case, ...] = ()) -> Mapping[str, WorkerFailure]:
        request = replace(job.request, factories=factories, builds=builds)
        result = run_job(bench, replace(job, request=request), most_s=IMPORT_LIMIT_S)
        return {} if isinstance(result, CaseFailure) else result.unimportable

    together = ask(factories, builds)
    problems = {factory: together[factory] for factory in factories if factory in together}
    if len(factories) > 1:
        problems = {name: problem for factory in problems for name, problem in ask((factory,)).items()}
    doubtful = [case for case in builds if case.id in together and case.factory not in together]
    for case in doubtful[:_MOST_BUILT]:
        if problem := ask((), (case,)).get(case.id):
            problems[case.id] = problem
    return problems


def _name_build(case: Case) -> str:
    return f"{case.factory} {case.task} {case.arguments!r}"


def refuse_base(base: Bench, cases: Sequence[Case]) -> None:
    """Check that the base can build one of the ``cases``, before minutes are spent on head.

    Raises:
        NothingComparedError: It can build none.
    """
    base = replace(base, settings=replace(base.settings, checkouts=None))
    failed = try_imports(base, cases)
    if cases and len(failed) == len(cases):
        what = f"the base cannot build your cases: {describe_failure(failed[0])}"
        fix = "Put what it lacks into the file of the factory, or merge gate.yml first. Log: "
        raise NothingComparedError(what, f"{fix}{failed[0].log}")


def list_unavailable_here(cases: Sequence[Case], bench: Bench) -> tuple[CaseFailure, ...]:
    card = bench.gpu.card if bench.gpu else Card()
    absent = list_absent(cases) if bench.arm.python == sys.executable else frozenset()
    return _fail_unavailable(list_unavailable(cases, card, absent), bench)


def list_unavailable_compiled(
    cases: Sequence[Case], environment: Environment, bench: Bench
) -> tuple[CaseFailure, ...]:
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
            fact=replace(why, cases=(case_id,)),
        )
        for case_id, why in unavailable.items()
    )


def _parse_gib(trait: str) -> float:
    number = trait.removesuffix(" GiB")
    return float(number) if number.isdecimal() else 0.0


def try_in_worker(bench: Bench, case: Case) -> CaseFailure | None:
    """Build a case's workload and call it eagerly, in a process of its own.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    try:
        result = run_job(bench, make_job(bench, WorkerRole.TRY, case))
    finally:
        remove_cache(bench)
    return result if isinstance(result, CaseFailure) else None
