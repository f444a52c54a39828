"""Opening the lab: the device held, scratch made, the toolchain primed, and cases tried."""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gate.devices import get_kind, is_target
from gate.errors import InterruptedRunError, MachineError
from gate.files.codec import write_atomic
from gate.files.disk import IGNORE_ALL
from gate.lab.host.cores import choose_cores, stay_on, write_cores
from gate.lab.host.device_lock import lock_device
from gate.lab.host.fitness import look_early
from gate.lab.host.gpu import find_gpu, load_gpus, name_lock, refuse_absent, refuse_stack
from gate.lab.host.mps import refuse_service
from gate.lab.host.scratch import open_scratch
from gate.lab.trials.availability import (
    list_later_jobs,
    list_unavailable_compiled,
    list_unavailable_here,
    refuse_base,
    try_imports,
)
from gate.lab.trials.bench import Bench, LabSettings, check_disk, make_job
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import JobOutcome, WorkerJob, load_result, make_directory, run_worker
from gate.lab.workers.worker_environment import note_dropped_variables
from gate.programs import list_cores
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.events import CaseFailed, Noted, Observer, PrimeFinished, PrimeStarted, ignore_event
from gate.records.facts import CORES, LATE_SERVER_CODES, Disturbance, Fact, name_words
from gate.records.protocol import WorkerResult, WorkerRole
from gate.records.run import BASE_ARM, Arm, CaseFailure, Conditions, Environment, FailureKind, Place
from gate.report.words.facts import advise_unprimed, describe_unprimed


@dataclass(frozen=True, kw_only=True, slots=True)
class Primed:
    environment: Environment
    toolchain_s: float  # of the primer alone: what the user's modules take to import is none of it


def prime_bench(bench: Bench, *, warms_up: bool = True) -> Environment:
    """Run the primer to its end; as :func:`start_primer`."""
    with start_primer(bench, warms_up=warms_up) as finish:
        return finish().environment


@contextmanager
def start_primer(bench: Bench, *, warms_up: bool = True) -> Iterator[Callable[[], Primed]]:
    """Run the primer meanwhile: later workers find precompiled headers and the ISA probe's results.

    Without ``warms_up`` only the environment is read. It is ended if nobody waits for it by the function,
    which raises what this does.

    Raises:
        MachineError: The machine cannot compile on this device.
    """
    job = make_job(bench, WorkerRole.PRIME)
    job = replace(job, request=replace(job.request, warms_up=warms_up))
    (opened,) = bench.pool.open((job,), list_later_jobs(bench))
    alarm, ring = os.pipe()

    def prime() -> tuple[JobOutcome, float]:
        begun = time.monotonic()
        return run_worker(replace(opened, alarm=alarm)), time.monotonic() - begun

    def finish() -> Primed:
        result, toolchain_s = primer.result()
        return Primed(environment=_load_environment(bench, job, result), toolchain_s=toolchain_s)

    try:
        with ThreadPoolExecutor(max_workers=1) as executor:
            primer = executor.submit(prime)
            try:
                yield finish
            finally:
                os.write(ring, b"!")
    finally:
        os.close(ring)
        os.close(alarm)


def _load_environment(bench: Bench, job: WorkerJob, result: JobOutcome) -> Environment:
    if isinstance(result, CaseFailure):
        left = load_result(Path(job.request.result))
        failure = left.failure if isinstance(left, WorkerResult) else None
        fix = advise_unprimed(result.kind, failure, str(job.log))
        raise MachineError(describe_unprimed(result, bench.settings.device), fix)
    if result.environment is None:
        fix = advise_unprimed(FailureKind.ERROR, None, str(job.log))
        raise MachineError("the primer did not report the environment", fix)
    # How busy the machine was is no part of the environment: trials open servers of their own.
    is_late = any(fact.code in LATE_SERVER_CODES for fact in result.warnings)
    return replace(result.environment, workers="forked") if is_late else result.environment


def open_base_bench(head: Bench, arm: Arm) -> tuple[Bench, Environment | None]:
    """Make the base arm's bench; another interpreter is primed, and its environment returned.

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

    Without ``base`` the arm's own tree is the other arm too.

    Raises:
        MachineError: The lock is held, the machine cannot compile, a disk is full, or MPS shares the GPU.
        NothingComparedError: As :func:`refuse_base`.
        InterruptedRunError: Ctrl-C.
    """
    with (
        # First: nobody is to wait for a lock only to hear of a full disk.
        open_bench(arm, settings) as opened,
        lock_device(_name_lock(opened), settings.lock_timeout_s, observe),
    ):
        bench = replace(opened, observe=observe)
        for fact in note_dropped_variables(os.environ):
            observe(Noted(fact=fact))
        if bench.gpu is None and get_kind(settings.device).is_gpu:
            names = name_words(unseen="memory that others hold", why="nvidia-smi does not list it")
            observe(Noted(fact=Fact(code=Code.UNWATCHED, names=names)))
        if not is_target(settings.device) and not settings.counts_only:
            note_crowd(look_early(settings.threads), observe)
        has_planned = bool(cases)
        foreseen, cases = _leave_out(list_unavailable_here(cases, bench), cases, observe)
        warms_up = bool(cases) or not has_planned
        if warms_up:
            observe(PrimeStarted())
        begun = time.monotonic()
        with start_primer(bench, warms_up=warms_up) as finish:
            if bench.gpu is not None and bench.gpu.exclusive:
                finish()  # a GPU of one process takes no import beside it
            unimportable, cases = _leave_out(try_imports(bench, cases), cases, observe)
            if base and settings.tries_base:
                refuse_base(replace(bench, arm=base, folder=BASE_ARM), cases)
            roles = (WorkerRole.COLD, WorkerRole.WARM)
            bench.pool.begin([make_job(bench, role, case) for case in cases[:1] for role in roles])
            is_vain = warms_up and has_planned and not cases
            primed = None if is_vain else finish()
        environment = primed.environment if primed else prime_bench(bench, warms_up=False)
        toolchain_s = primed.toolchain_s if primed else time.monotonic() - begun
        if warms_up and not is_vain:
            observe(PrimeFinished(toolchain_s=toolchain_s))
        unavailable, _ = _leave_out(list_unavailable_compiled(cases, environment, bench), cases, observe)
        place = read_place(environment.device_uuid)
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
    if Disturbance.CROWDED in conditions.disturbances:
        names = {"crowd": conditions.crowd} if conditions.crowd else {}
        numbers = {Disturbance.CROWDED.value: conditions.foreign_cores, CORES: len(list_cores())}
        observe(Noted(fact=Fact(code=Code.CROWDED_EARLY, numbers=numbers, names=names)))


def _name_lock(bench: Bench) -> str:
    name, cores = name_lock(bench.settings.device, bench.gpu), bench.settings.cores
    return f"{name}-{write_cores(cores)}" if cores else name


def read_place(device: str) -> Place:
    return Place(host=platform.node(), device=device, cores=write_cores(list_cores()))


@contextmanager
def open_bench(arm: Arm, settings: LabSettings) -> Iterator[Bench]:
    """Raises as :func:`open_lab`."""
    if sys.platform != "linux":
        raise MachineError(f"this is {sys.platform}, and only Linux can be measured on", "Run it on Linux.")
    refuse_service(settings.device, os.environ)
    make_results_directory(settings.out)
    try:
        with open_scratch() as scratch, closing(ServerPool()) as pool:
            (scratch / "tmp").mkdir()
            gpus = load_gpus() if get_kind(settings.device).is_gpu else ()
            gpu = find_gpu(gpus, settings.device, os.environ)
            if arm.python == sys.executable:
                refuse_stack(settings.device)
            refuse_absent(settings.device, gpu)
            bench = Bench(arm=arm, settings=settings, scratch=scratch, pool=pool, gpu=gpu)
            check_disk(bench)
            cores = settings.cores or (choose_cores(gpu, gpus, settings.threads) if gpu else ())
            with stay_on(cores, settings.threads):
                yield bench
    except KeyboardInterrupt:
        fix = "Start it again; --resume keeps what is saved."
        raise InterruptedRunError("stopped outside a trial", fix) from None


def make_results_directory(path: Path) -> None:
    """Raises as :func:`gate.files.disk.write_atomic`."""
    make_directory(path)
    if not any(path.iterdir()):
        write_atomic(path / ".gitignore", IGNORE_ALL)


def _leave_out(
    failures: tuple[CaseFailure, ...], cases: Sequence[Case], observe: Observer
) -> tuple[tuple[CaseFailure, ...], Sequence[Case]]:
    for failure in failures:
        observe(CaseFailed(failure=failure, progress=None))
    failed = {failure.case_id for failure in failures}
    return failures, [case for case in cases if case.id not in failed]
