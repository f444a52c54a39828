"""Two workers that take turns: the lab's side of :mod:`gate.records.protocol`.

A thread for each worker, asleep in the kernel, reads its log and sees its end; the caller's thread talks with
both. A worker is charged only for its own turns.
"""

import math
import os
import select
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest

from gate.check.schedule import has_enough_rounds
from gate.decide.constants import MOST_ROUNDS
from gate.devices import get_kind
from gate.files.messages import read_line, write_line
from gate.lab.workers.worker import JobOutcome, WorkerJob, run_worker
from gate.records.protocol import (
    BLOCKS_PER_ARM,
    KEEP,
    LOADED,
    Offer,
    RoundPlan,
    Sampling,
    agree_on_sizes,
    compute_super_blocks,
)

_TICK_S = 1.0  # how often a silent worker is looked after: its thread may have failed to start it
# One that waits for its turn ends in milliseconds; one that still compiles would hear in minutes that it need
# not.
_STOP_S = 2.0
TURNS_OF_SUPER_BLOCK = 2 * BLOCKS_PER_ARM
_LINE_BYTES = 256  # a word and a few numbers; more is not one of our workers


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOutcome:
    """``None`` where it was stopped because the other arm's had failed."""

    outcome: JobOutcome | None
    wall_s: float  # from its start to its end, waiting included


class LiveWorker:
    def __init__(self, job: WorkerJob, pool: Executor) -> None:
        self._line, theirs = socket.socketpair()
        self._alarm, self._ring = os.pipe()
        self._charged_s = 0.0
        self._end_s: float | None = None  # on the clock, as only its end was left
        self._heard = b""
        self.is_gone = False
        channel = theirs.detach()
        request = replace(job.request, channel=channel)
        live = replace(job, request=request, given=(channel,), alarm=self._alarm, read_s=self._read_s)
        self._future: Future[WorkerOutcome] = pool.submit(run_timed, live)

    def hear(self) -> str:
        """Wait for the worker's next line; "" once it is gone, or when its time is up."""
        (line,) = hear_all([self])
        return line or ""

    def fileno(self) -> int:
        return self._line.fileno()

    def take(self) -> str | None:
        """The next line that has come; "" once the worker is gone, ``None`` while it is silent."""
        if self.is_gone:
            return ""
        if b"\n" not in self._heard:
            return None
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode("ascii", errors="replace")

    def listen(self, *, is_ready: bool) -> None:
        self.is_gone = not (self._receive() if is_ready else not self._future.done())

    def charge(self, seconds: float) -> None:
        self._charged_s += seconds

    def send(self, line: str) -> None:
        with suppress(OSError):  # a worker that is gone is noticed when it is heard next
            self._line.sendall(f"{line}\n".encode("ascii"))

    def ring(self) -> None:
        """Have the worker asked where it is, and killed."""
        os.write(self._ring, b"!")

    def end(self, most_s: float = math.inf) -> WorkerOutcome:
        """Wait ``most_s`` seconds for the worker's end; then it is killed. Raises as ``run_worker``."""
        self._line.close()
        self._end_s = time.monotonic()
        try:
            return self._future.result(None if math.isinf(most_s) else most_s)
        except TimeoutError:
            self.ring()
            return self._future.result()

    def close(self) -> None:
        self._line.close()
        os.close(self._ring)
        os.close(self._alarm)

    def _read_s(self) -> float:
        return self._charged_s + (time.monotonic() - self._end_s if self._end_s else 0.0)

    def _receive(self) -> bool:
        try:
            chunk = self._line.recv(_LINE_BYTES)
        except ConnectionError:
            return False
        self._heard += chunk
        return bool(chunk) and len(self._heard) <= _LINE_BYTES


def hear_all(workers: Sequence[LiveWorker]) -> list[str | None]:
    """Wait for the next line of each; ``None`` of a worker that was silent when another was gone.

    Each is charged its share of the time until it is heard.
    """
    lines = [worker.take() for worker in workers]
    while not any(worker.is_gone for worker in workers):
        silent = [worker for worker, line in zip(workers, lines, strict=True) if line is None]
        if not silent:
            break
        begun = time.monotonic()
        ready, _, _ = select.select(silent, [], [], _TICK_S)
        share_s = (time.monotonic() - begun) / len(silent)
        for worker in silent:
            worker.charge(share_s)
            worker.listen(is_ready=worker in ready)
            lines[workers.index(worker)] = worker.take()
    return lines


def run_together(
    first: WorkerJob, second: WorkerJob, sampling: Sampling
) -> tuple[WorkerOutcome, WorkerOutcome]:
    """Run two workers with their timed blocks alternating; each compiles and ends while the other sleeps.

    They run more rounds while that gains more a second than another pair would.

    Raises:
        MachineError: An interpreter cannot be started, or the disk is full.
        KeyboardInterrupt: Ctrl-C; nothing of either worker is left running.
    """
    begun = time.monotonic()
    with _open_workers() as (workers, pool):
        super_blocks = _bring_together(workers, (first, second), pool, sampling)
        if super_blocks:
            opened_s = time.monotonic() - begun
            _alternate(workers, super_blocks, min(super_blocks, sampling.super_blocks), opened_s)
        return _collect(workers)


def run_warm_together(first: WorkerJob, second: WorkerJob) -> tuple[WorkerOutcome, WorkerOutcome]:
    """Both count calls at once; all else is done in turns. Raises as :func:`run_together`.

    Two arms with a thread for each processor wait for each other at each parallel loop: what takes 4 s alone
    took 42 s.
    """
    with _open_workers() as (workers, pool):
        if _load_together(workers, (first, second), pool) and _take_turns(workers) and _work_at_once(workers):
            _take_turns(workers)
        return _collect(workers)


def _take_turns(workers: Iterable[LiveWorker]) -> bool:
    """Give each worker a turn; false where one is gone."""
    for worker in workers:
        worker.send("go")
        if _hear_turn(worker) is None:
            return False
    return True


def _work_at_once(workers: Sequence[LiveWorker]) -> bool:
    for worker in workers:
        worker.send("go")
    lines = hear_all(workers)
    for worker, line in zip(workers, lines, strict=True):
        worker.is_gone = line is not None and read_line(float, "turn", line) is None
    return not any(worker.is_gone for worker in workers)


@contextmanager
def _open_workers() -> Iterator[tuple[list[LiveWorker], Executor]]:
    workers: list[LiveWorker] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        try:
            yield workers, pool
        except BaseException:
            for worker in workers:
                worker.ring()
            raise
        finally:
            pool.shutdown()
            for worker in workers:
                worker.close()


def make_turn_order(super_blocks: int) -> tuple[int, ...]:
    """Order the blocks of arms 0 and 1, eight a super-block.

    As both run E C C E, 0 1 1 0 0 1 1 0 gives all four the same mean position: a linear drift cancels.
    """
    order: list[int] = []
    for index in range(super_blocks):
        outer, inner = index % 2, 1 - index % 2
        order += [outer, inner, inner, outer, outer, inner, inner, outer]
    return tuple(order)


def _bring_together(
    workers: list[LiveWorker], jobs: tuple[WorkerJob, WorkerJob], pool: Executor, sampling: Sampling
) -> int:
    """Return how many super-blocks they run at most, 0 where one is gone."""
    if not _load_together(workers, jobs, pool):
        return 0
    offers: list[Offer] = []
    for worker in workers:
        worker.send("go")
        offer = read_line(Offer, "ready", worker.hear())
        if offer is None:
            worker.is_gone = True
            return 0
        offers.append(offer)
    first, second = offers
    most = replace(sampling, super_blocks=MOST_ROUNDS * sampling.super_blocks)
    super_blocks = compute_super_blocks(first.super_block_s + second.super_block_s, most)
    plan = RoundPlan(super_blocks=super_blocks, sizes=agree_on_sizes(first, second))
    for worker in workers:
        worker.send(write_line("rounds", plan))
    return super_blocks if all(_hear_turn(worker) is not None for worker in workers) else 0


def _alternate(workers: Sequence[LiveWorker], super_blocks: int, wanted: int, opened_s: float) -> None:
    """End where ``wanted`` super-blocks are enough, or another pair gains more a second."""
    blocks_s: tuple[list[float], list[float]] = ([], [])
    begun = time.monotonic()
    order = make_turn_order(super_blocks)
    for index, (turn, following) in enumerate(zip_longest(order, order[1:]), start=1):
        workers[turn].send(f"go {KEEP}" if turn == following else "go")
        block_s = _hear_turn(workers[turn])
        if block_s is None:
            return
        blocks_s[turn].append(block_s)
        if index % TURNS_OF_SUPER_BLOCK or index == TURNS_OF_SUPER_BLOCK * super_blocks:
            continue
        rounds_s = time.monotonic() - begun
        if has_enough_rounds(*blocks_s, wanted=wanted, opened_s=opened_s, rounds_s=rounds_s):
            for worker in workers:
                worker.send("stop")
                _hear_turn(worker)
            return


def _hear_turn(worker: LiveWorker) -> float | None:
    block_s = read_line(float, "turn", worker.hear())
    worker.is_gone = block_s is None
    return block_s


def _load_together(workers: list[LiveWorker], jobs: tuple[WorkerJob, WorkerJob], pool: Executor) -> bool:
    """Load all that is not timed; false where one worker could not.

    One after the other where libraries choose kernels by timing them, as on a GPU.
    """
    waiting = list(jobs)
    while waiting:
        first, *_ = waiting  # the other one is of the same case, on the same device
        case, device = first.request.case, get_kind(first.request.device)
        at_once = 1 if device.is_gpu or (case is not None and case.is_tuned) else len(waiting)
        begun = [LiveWorker(job, pool) for job in waiting[:at_once]]
        workers += begun
        lines = hear_all(begun)
        for worker, line in zip(begun, lines, strict=True):
            worker.is_gone = line not in (LOADED, None)
        if any(line != LOADED for line in lines):
            return False
        waiting = waiting[at_once:]
    return True


def _collect(workers: list[LiveWorker]) -> tuple[WorkerOutcome, WorkerOutcome]:
    gone = any(worker.is_gone for worker in workers)
    outcomes = []
    for worker in workers:
        if not gone:
            worker.send("go")
        stopped = gone and not worker.is_gone
        ended = worker.end(_STOP_S if stopped else math.inf)
        outcomes.append(replace(ended, outcome=None) if stopped else ended)
    nobody = WorkerOutcome(outcome=None, wall_s=0.0)
    first, second = (*outcomes, nobody)[:2]
    return first, second


def run_timed(job: WorkerJob) -> WorkerOutcome:
    """Its server's opening counts. Raises as ``run_worker``."""
    begun = time.monotonic()
    outcome = run_worker(job)
    return WorkerOutcome(outcome=outcome, wall_s=time.monotonic() - begun + job.opened_s)
