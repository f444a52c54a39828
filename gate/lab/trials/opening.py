"""Opening the lab: the device held, scratch made, the toolchain primed, and cases tried."""

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gate.devices import find_kind, is_target
from gate.errors import InterruptedRunError, MachineError, NothingComparedError
from gate.files.codec import write_atomic
from gate.files.disk import IGNORE_ALL
from gate.lab.host.fitness import find_own_cores, look_early, stay_on, write_cores
from gate.lab.host.gpu import find_gpu, load_gpus, name_lock, refuse_absent, refuse_service, refuse_stack
from gate.lab.host.ownership import hold_device, open_scratch
from gate.lab.trials.bench import Bench, LabSettings, check_disk, make_job, remove_cache, run_job
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import (
    WorkerJob,
    add_told,
    load_result,
    make_directory,
    name_log,
    note_dropped_variables,
    run_worker,
)
from gate.programs import list_cores
from gate.project.cases import Card, list_absent, list_unavailable
from gate.records.cases import Case, Kind
from gate.records.codes import Code
from gate.records.events import CaseFailed, Noted, Observer, PrimeFinished, PrimeStarted, ignore_event
from gate.records.facts import CORES, LATE_SERVER_CODES, Disturbance, Fact, name_words
from gate.records.protocol import Stage, WorkerFailure, WorkerResult, WorkerRole
from gate.records.run import BASE_ARM, Arm, CaseFailure, Conditions, Environment, FailureKind, Place
from gate.report.words.facts import advise_unprimed, describe_failure, describe_unprimed


def prime_bench(bench: Bench, first: Case | None = None, *, warms_up: bool = True) -> Environment:
    """Run the primer on ``bench``: later workers find precompiled headers and the ISA probe's results.

    What the ``first`` case needs is imported meanwhile, on a core of its own if there is one. Without
    ``warms_up`` it only looks at the environment.

    Raises:
        MachineError: The machine cannot compile on this device.
    """
    ahead = [make_job(bench, role, first) for role in (WorkerRole.COLD, WorkerRole.WARM) if first]
    job = make_job(bench, WorkerRole.PRIME)
    job = replace(job, request=replace(job.request, warms_up=warms_up))
    (opened,) = bench.pool.open((job,), _list_later(bench))
    bench.pool.begin(ahead)
    result = run_worker(opened)
    if isinstance(result, CaseFailure):
        left = load_result(Path(job.request.result))
        told = left.failure if isinstance(left, WorkerResult) else None
        fix = advise_unprimed(result.kind, told, str(job.log))
        raise MachineError(describe_unprimed(result, bench.settings.device), fix)
    if result.environment is None:
        fix = advise_unprimed(FailureKind.ERROR, None, str(job.log))
        raise MachineError("the primer did not report the environment", fix)
    # How busy the machine was names no environment: trials open servers of their own, or say why not.
    is_late = any(fact.code in LATE_SERVER_CODES for fact in result.warnings)
    return replace(result.environment, workers="forked") if is_late else result.environment


def _list_later(bench: Bench) -> Sequence[WorkerJob]:
    """The second processes' server imports beside the first one's, if there is a core for it."""
    return () if is_target(bench.settings.device) else (make_job(bench, WorkerRole.WARM),)


# A project that takes longer to import is left to its trials, whose limit is the configured one.
IMPORT_LIMIT_S = 60.0
# The gate's own models come with it, and importing what they are built from takes many seconds.
_OWN_PACKAGE = "gate."
_MOST_BUILT = 3  # in earnest, each in a process of its own: the trials build the others


def find_unimportable(bench: Bench, cases: Sequence[Case]) -> tuple[CaseFailure, ...]:
    """Import and build ``cases`` in one process; a failure for each that cannot be imported or built.

    One that fails there is tried once more alone: another one may have stood in its way, as it does in no
    trial. A process that dies or hangs over it blames nobody: a trial finds out whose fault it is.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    wanted = dict.fromkeys(case.factory for case in cases if case.factory)
    factories = tuple(factory for factory in wanted if not factory.startswith(_OWN_PACKAGE))
    if not factories:
        return ()
    job = make_job(bench, WorkerRole.IMPORT)
    is_bare = is_target(bench.settings.device)
    usual = [case for case in cases if case.kind is Kind.CALL and case.factory in factories and not is_bare]
    builds = {_name_build(case): case for case in usual}

    def ask(factories: tuple[str, ...], *built: Case) -> Mapping[str, WorkerFailure]:
        """Import and build in one process, and tell what cannot be."""
        request = replace(job.request, factories=factories, builds=built)
        result = run_job(bench, replace(job, request=request), _list_later(bench), IMPORT_LIMIT_S)
        return {} if isinstance(result, CaseFailure) else result.unimportable

    found = ask(factories, *builds.values())
    absent = {factory: found[factory] for factory in factories if factory in found}
    if len(factories) > 1:
        absent = {name: failure for factory in absent for name, failure in ask((factory,)).items()}
    doubtful = [case for case in builds.values() if case.id in found and case.factory not in found]
    unbuilt = {name: why for case in doubtful[:_MOST_BUILT] for name, why in ask((), case).items()}
    blank = CaseFailure(
        case_id="",
        trial=1,
        arm=bench.arm.name,
        kind=FailureKind.ERROR,
        stage=Stage.IMPORT,
        fact=Fact(code=Code.RAISED),
        log=name_log(job.log),
    )
    failures = []
    for case in cases:
        built = builds.get(_name_build(case), case)
        stage = Stage.IMPORT if case.factory in absent else Stage.BUILD
        if failure := absent.get(case.factory) or unbuilt.get(built.id):
            checkout = job.request.checkout or job.request.directory
            failures.append(add_told(replace(blank, case_id=case.id, stage=stage), failure, checkout))
    return tuple(failures)


def _name_build(case: Case) -> str:
    return f"{case.factory} {case.task} {case.arguments!r}"


def refuse_base(base: Bench, cases: Sequence[Case]) -> None:
    """Refuse a base that can build none of the ``cases``, before minutes are spent on head.

    Raises:
        NothingComparedError: It cannot build them.
    """
    base = replace(base, settings=replace(base.settings, checkouts=None))
    failed = find_unimportable(base, cases)
    if cases and len(failed) == len(cases):
        what = f"the base cannot build your cases: {describe_failure(failed[0])}"
        fix = "Put what it lacks into the file of the factory, or merge gate.yml first. Log: "
        raise NothingComparedError(what, f"{fix}{failed[0].log}")


def foresee_unavailable(cases: Sequence[Case], bench: Bench) -> tuple[CaseFailure, ...]:
    """Find what is known to be unavailable before anything is warmed up, as `plan` and `doctor` know it.

    What another interpreter has is found out by its trials.
    """
    card = bench.gpu.card if bench.gpu else Card()
    absent = list_absent(cases) if bench.arm.python == sys.executable else frozenset()
    return _fail_unavailable(list_unavailable(cases, card, absent), bench)


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
            fact=replace(why, cases=(case_id,)),
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


def open_base_bench(head: Bench, arm: Arm) -> tuple[Bench, Environment | None]:
    """Make the bench of the base arm, whose caches lie in the lab's scratch directory and go with it.

    Another interpreter is primed, and its environment returned.

    Raises:
        MachineError: The base's interpreter cannot compile here.
    """
    head = replace(head, settings=replace(head.settings, checkouts=None))  # the base differs from head
    scratch = head.scratch / BASE_ARM
    if arm.python == head.arm.python:
        scratch.mkdir(exist_ok=True)
        return replace(head, arm=arm, scratch=scratch, toolchain=head.toolchain or head.scratch), None
    (scratch / "tmp").mkdir(parents=True, exist_ok=True)
    bench = replace(head, arm=arm, scratch=scratch, folder=BASE_ARM)
    return bench, prime_bench(bench)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lab:
    """A locked and primed device, ready to run trials of one arm, and pairs with the base."""

    bench: Bench
    base: Bench
    environment: Environment
    base_environment: Environment
    toolchain_s: float
    observe: Observer
    place: Place
    failed: tuple[CaseFailure, ...] = ()  # before anything is measured: not importable, not for this GPU


@contextmanager
def open_lab(
    arm: Arm,
    settings: LabSettings,
    observe: Observer = ignore_event,
    cases: Sequence[Case] = (),
    base: Arm | None = None,
) -> Iterator[Lab]:
    """Lock the device, make a scratch directory, prime; all of it is undone at the end.

    Without ``base`` the arm's own tree is the other one too. Which of ``cases`` are unavailable, or cannot
    be imported, is said before the rest takes its time.

    Raises:
        MachineError: The lock is held, the machine cannot compile, a disk is full, or the GPU is shared
            through MPS.
        NothingComparedError: As :func:`refuse_base`.
        InterruptedRunError: Ctrl-C.
    """
    with (
        # First: nobody is to wait for a lock only to hear of a full disk.
        open_bench(arm, settings) as opened,
        hold_device(_name_lock(opened), settings.lock_timeout_s, observe),
    ):
        bench = replace(opened, observe=observe)
        for fact in note_dropped_variables(os.environ):
            observe(Noted(fact=fact))
        if bench.gpu is None and find_kind(settings.device).is_gpu:
            names = name_words(unseen="memory that others hold", why="nvidia-smi does not list it")
            observe(Noted(fact=Fact(code=Code.UNWATCHED, names=names)))
        if not is_target(settings.device) and not settings.counts_only:
            note_crowd(look_early(settings.threads), observe)
        has_planned = bool(cases)
        foreseen, cases = _leave_out(foresee_unavailable(cases, bench), cases, observe)
        unimportable, cases = _leave_out(find_unimportable(bench, cases), cases, observe)
        if base and settings.tries_base:
            refuse_base(replace(bench, arm=base, folder=BASE_ARM), cases)
        warms_up = bool(cases) or not has_planned
        if warms_up:
            observe(PrimeStarted())
        begun = time.monotonic()
        environment = prime_bench(bench, cases[0] if cases else None, warms_up=warms_up)
        toolchain_s = time.monotonic() - begun
        if warms_up:
            observe(PrimeFinished(toolchain_s=toolchain_s))
        unavailable, _ = _leave_out(find_unavailable(cases, environment, bench), cases, observe)
        place = find_place(environment.device_uuid)
        head = replace(bench, place=place.name)
        base_bench, base_environment = open_base_bench(head, base or replace(arm, name=BASE_ARM))
        yield Lab(
            bench=head,
            base=base_bench,
            place=place,
            environment=environment,
            base_environment=base_environment or environment,
            toolchain_s=toolchain_s,
            observe=observe,
            failed=(*foreseen, *unimportable, *unavailable),
        )


def note_crowd(conditions: Conditions, observe: Observer) -> None:
    """Report before minutes are spent that other programs want the cores, and what helps."""
    if Disturbance.CROWDED in conditions.disturbances:
        names = {"crowd": conditions.crowd} if conditions.crowd else {}
        numbers = {Disturbance.CROWDED.value: conditions.foreign_cores, CORES: len(list_cores())}
        observe(Noted(fact=Fact(code=Code.CROWDED_EARLY, numbers=numbers, names=names)))


def _name_lock(bench: Bench) -> str:
    name, cores = name_lock(bench.settings.device, bench.gpu), bench.settings.cores
    return f"{name}-{write_cores(cores)}" if cores else name


def find_place(device: str) -> Place:
    """Find where this process measures: on a card, by its UUID, or on the cores that it is held to."""
    return Place(host=platform.node(), device=device, cores=write_cores(list_cores()))


@contextmanager
def open_bench(arm: Arm, settings: LabSettings) -> Iterator[Bench]:
    """Make a scratch directory; nothing is locked or primed. Raises as :func:`open_lab`."""
    if sys.platform != "linux":
        raise MachineError(f"this is {sys.platform}, and only Linux can be measured on", "Run it on Linux.")
    refuse_service(settings.device, os.environ)
    make_results_directory(settings.out)
    try:
        with open_scratch() as scratch, closing(ServerPool()) as pool:
            (scratch / "tmp").mkdir()
            gpus = load_gpus() if find_kind(settings.device).is_gpu else ()
            gpu = find_gpu(gpus, settings.device, os.environ)
            if arm.python == sys.executable:
                refuse_stack(settings.device)
            refuse_absent(settings.device, gpu)
            bench = Bench(arm=arm, settings=settings, scratch=scratch, pool=pool, gpu=gpu)
            check_disk(bench)
            cores = settings.cores or (find_own_cores(gpu, gpus, settings.threads) if gpu else ())
            with stay_on(cores, settings.threads):
                yield bench
    except KeyboardInterrupt:
        fix = "Start it again; --resume keeps what is saved."
        raise InterruptedRunError("stopped outside a trial", fix) from None


def make_results_directory(path: Path) -> None:
    """Make a directory for results that git leaves out, or take an empty one; one with files stays as it is.

    Raises as :func:`gate.files.disk.write_atomic`.
    """
    make_directory(path)
    if not any(path.iterdir()):
        write_atomic(path / ".gitignore", IGNORE_ALL)


def _leave_out(
    failures: tuple[CaseFailure, ...], cases: Sequence[Case], observe: Observer
) -> tuple[tuple[CaseFailure, ...], Sequence[Case]]:
    """Report the cases that cannot be measured, and keep the others."""
    for failure in failures:
        observe(CaseFailed(failure=failure, progress=None))
    failed = {failure.case_id for failure in failures}
    return failures, [case for case in cases if case.id not in failed]
