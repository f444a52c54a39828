"""Opening the lab: the device held, scratch made, the toolchain primed; what cannot be measured is told."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gate.children import answer_signals
from gate.devices import find_kind
from gate.errors import InterruptedRunError
from gate.lab.host.cores import stay_near
from gate.lab.host.gpu import describe_company, look_up_gpu, name_lock
from gate.lab.host.lock import hold_device
from gate.lab.host.mps import refuse_service
from gate.lab.host.scratch import open_scratch
from gate.lab.trials.prime import prime_bench
from gate.lab.trials.trials import Bench, LabSettings, check_disk
from gate.lab.trials.tries import find_unavailable, find_unimportable, foresee_unavailable
from gate.lab.workers.environment import note_dropped_variables
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import make_directory
from gate.records import Arm, Case, CaseFailure, Code, Environment, Fact, make_text, name_words
from gate.records.events import (
    CaseFailed,
    Noted,
    Observer,
    PrimeFinished,
    PrimeStarted,
    ignore_event,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lab:
    """A locked and primed device, ready to run trials of one arm."""

    bench: Bench
    environment: Environment
    toolchain_s: float
    observe: Observer
    failed: tuple[CaseFailure, ...] = ()  # before anything is measured: not importable, not for this GPU


@contextmanager
def open_lab(
    arm: Arm, settings: LabSettings, observe: Observer = ignore_event, cases: Sequence[Case] = ()
) -> Iterator[Lab]:
    """Lock the device, make a scratch directory, prime; all of it is undone at the end.

    Which of ``cases`` are unavailable, or cannot be imported, is said before the rest takes its time.

    Raises:
        MachineError: The lock is held, the machine cannot compile, a disk is full, or the GPU is shared
            through MPS.
        InterruptedRunError: Ctrl-C or SIGTERM.
    """
    with (
        # First: nobody is to wait for a lock only to hear of a full disk.
        open_bench(arm, settings) as bench,
        hold_device(name_lock(settings.device, bench.gpu), settings.lock_timeout_s, observe),
    ):
        _note_dropped(observe)
        _note_place(bench.scratch.parent, observe)
        _note_company(bench, observe)
        foreseen = foresee_unavailable(cases, bench)
        _report_failed(foreseen, observe)
        unimportable = find_unimportable(bench, _leave_out(cases, foreseen), observe)
        _report_failed(unimportable, observe)
        observe(PrimeStarted())
        primed = prime_bench(bench)
        observe(PrimeFinished(toolchain_s=primed.toolchain_s))
        left = _leave_out(cases, (*foreseen, *unimportable))
        unavailable = find_unavailable(left, primed.environment, bench)
        _report_failed(unavailable, observe)
        yield Lab(
            bench=bench,
            environment=primed.environment,
            toolchain_s=primed.toolchain_s,
            observe=observe,
            failed=(*foreseen, *unimportable, *unavailable),
        )


@contextmanager
def open_bench(arm: Arm, settings: LabSettings) -> Iterator[Bench]:
    """Make a scratch directory; nothing is locked or primed. Raises as :func:`open_lab`."""
    try:
        with _terminate_as_interrupt(), _make_bench(arm, settings) as bench:
            yield bench
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "stopped outside a trial", "Start it again; --resume keeps what is saved."
        ) from None


def _leave_out(cases: Sequence[Case], failures: Sequence[CaseFailure]) -> list[Case]:
    failed = {failure.case_id for failure in failures}
    return [case for case in cases if case.id not in failed]


def _report_failed(failures: Sequence[CaseFailure], observe: Observer) -> None:
    for failure in failures:
        observe(CaseFailed(failure=failure, progress=None))


def _note_dropped(observe: Observer) -> None:
    for fact in note_dropped_variables(os.environ):
        observe(Noted(fact=fact))


def _note_place(place: Path, observe: Observer) -> None:
    wanted = Path(tempfile.gettempdir()).resolve()
    if place != wanted:
        names = name_words(place=str(place), wanted=repr(str(wanted)))
        observe(Noted(fact=Fact(code=Code.SCRATCH_MOVED, names=names)))


def _note_company(bench: Bench, observe: Observer) -> None:
    """Note who is on the GPU, or that nobody can see it."""
    if bench.gpu is None and find_kind(bench.settings.device).is_gpu:
        names = name_words(unseen="memory that others hold", why="nvidia-smi does not tell of it")
        observe(Noted(fact=Fact(code=Code.UNWATCHED, names=names)))
    if told := describe_company(bench.gpu):
        observe(Noted(fact=make_text(told)))


@contextmanager
def _make_bench(arm: Arm, settings: LabSettings) -> Iterator[Bench]:
    refuse_service(settings.device, os.environ)
    make_directory(settings.out)
    with open_scratch() as scratch, closing(ServerPool()) as pool:
        (scratch / "tmp").mkdir()
        gpu = look_up_gpu(settings.device, os.environ)
        bench = Bench(arm=arm, settings=settings, scratch=scratch, pool=pool, gpu=gpu)
        check_disk(bench)
        with stay_near(gpu.bus if gpu else "", settings.threads):
            yield bench


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM, and the loss of the terminal, like Ctrl-C: a cancelled job leaves nothing behind."""
    ending = (signal.SIGTERM, signal.SIGHUP)
    unhandled = [number for number in ending if signal.getsignal(number) == signal.SIG_DFL]
    with answer_signals(signal.default_int_handler, unhandled):
        yield
