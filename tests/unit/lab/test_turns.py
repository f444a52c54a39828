"""The lab's side of two workers that take turns."""

import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock, call

import pytest

from gate.decide.constants import MOST_ROUNDS
from gate.errors import MachineError
from gate.files.messages import read_line
from gate.lab.trials.bench import Bench, make_job
from gate.lab.workers import turns
from gate.lab.workers.turns import LiveWorker, WorkerOutcome, hear_all
from gate.lab.workers.worker import WorkerJob
from gate.records.cases import Case, Mode
from gate.records.protocol import (
    BLOCKS_PER_ARM,
    BlockSize,
    RoundPlan,
    Sampling,
    Side,
    Stage,
    WorkerResult,
    WorkerRole,
)

from .conftest import make_case

ENDED = WorkerResult(role=WorkerRole.ROUNDS, stage=Stage.DONE)
OUTCOMES = (WorkerOutcome(outcome=ENDED, wall_s=3.0), WorkerOutcome(outcome=ENDED, wall_s=4.0))


@dataclass
class Actor:
    """Takes its turn whenever the lab asks."""

    received: list[str] = field(default_factory=list)
    is_gone: bool = False
    heard: Iterator[str] = field(default_factory=lambda: repeat("turn 0.03"))

    def send(self, line: str) -> None:
        self.received.append(line)

    def hear(self) -> str:
        """Report a block, of 30 ms by default."""
        return next(self.heard)


def test_an_arm_hears_where_the_next_block_is_its_own() -> None:
    """0 1 1 0 0 1 1 0: an arm that keeps the turn need not wait for sleeping threads."""
    arms = Actor(), Actor()
    workers = [cast("LiveWorker", arm) for arm in arms]
    turns._alternate(workers, super_blocks=1, wanted=1, opened_s=math.inf)
    assert arms[0].received == ["go", "go keep", "go", "go"]
    assert arms[1].received == ["go keep", "go", "go keep", "go"]


def test_disturbed_blocks_are_made_up_for() -> None:
    """Three super-blocks are wanted; head has no undisturbed block in the first: a fourth follows."""
    arms = Actor(), Actor(heard=chain(repeat("turn 0.0", 4), repeat("turn 0.03")))
    workers = [cast("LiveWorker", arm) for arm in arms]
    turns._alternate(workers, super_blocks=6, wanted=3, opened_s=math.inf)
    for arm in arms:
        assert len([line for line in arm.received if line.startswith("go")]) == 4 * BLOCKS_PER_ARM
        assert arm.received[-1] == "stop"


class StillPool(Executor):
    """Starts nothing: a worker's end is what the test makes of it."""

    def __init__(self) -> None:
        self.jobs: list[WorkerJob] = []
        self.futures: list[Future[Any]] = []

    def submit(self, _run: object, /, job: WorkerJob) -> Future[Any]:  # type: ignore[override] # of one job
        self.jobs.append(job)
        self.futures.append(Future())
        return self.futures[-1]


@dataclass
class Ends:
    """Both ends of workers that the test plays."""

    bench: Bench
    pool: StillPool = field(default_factory=StillPool)
    workers: list[LiveWorker] = field(default_factory=list)
    peers: list[socket.socket] = field(default_factory=list)

    def begin(self, count: int = 2, case: Case | None = None) -> list[LiveWorker]:
        for _ in range(count):
            self.workers.append(LiveWorker(make_job(self.bench, WorkerRole.ROUNDS, case), self.pool))
        self.find_peers()
        return self.workers

    def find_peers(self) -> None:
        """Of workers that the code under test has begun as well."""
        for job in self.pool.jobs[len(self.peers) :]:
            peer = socket.socket(fileno=job.request.channel)
            peer.settimeout(30.0)
            self.peers.append(peer)

    def read(self, number: int) -> str:
        """All that a worker was sent; its line stays open."""
        return self.peers[number].recv(4096).decode()


@pytest.fixture
def ends(bench: Bench) -> Iterator[Ends]:
    ends = Ends(bench)
    yield ends
    for worker in ends.workers:
        worker.close()
    for peer in ends.peers:
        peer.close()


def test_lines_are_taken_one_by_one(ends: Ends) -> None:
    """Whatever pieces they come in; what is not a whole line is waited for."""
    (worker,), (peer,) = ends.begin(1), ends.peers
    peer.sendall(b"loaded\nturn 0.5\nrea")
    assert [worker.hear(), worker.take(), worker.take()] == ["loaded", "turn 0.5", None]
    peer.sendall(b"dy {}\n")
    assert worker.hear() == "ready {}"
    assert not worker.is_gone


@pytest.mark.parametrize(("chars", "gone"), [(255, False), (256, True)])
def test_a_line_beyond_any_of_ours_is_not_listened_to(ends: Ends, chars: int, *, gone: bool) -> None:
    """256 bytes are the most, with the line's end."""
    (worker,), (peer,) = ends.begin(1), ends.peers
    peer.sendall(b"x" * chars + b"\n")
    assert worker.hear() == ("" if gone else "x" * chars)
    assert worker.is_gone is gone


def test_a_worker_that_hangs_up_is_gone(ends: Ends) -> None:
    """It says nothing more, and what it is sent is lost without an error."""
    (worker,), (peer,) = ends.begin(1), ends.peers
    peer.close()
    assert (worker.hear(), worker.is_gone, worker.take()) == ("", True, "")
    worker.send("go")


def test_a_silent_worker_is_gone_once_its_thread_has_ended(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have failed to start it; until then silence means work."""
    monkeypatch.setattr(turns, "_TICK_S", 0.01)
    (worker,) = ends.begin(1)
    worker.listen(is_ready=False)
    assert not worker.is_gone
    ends.pool.futures[0].set_exception(MachineError("no interpreter", "Look."))
    assert (worker.hear(), worker.is_gone) == ("", True)


def test_of_two_the_silent_one_has_said_nothing_when_the_other_goes(ends: Ends) -> None:
    """It is not taken for gone."""
    first, second = ends.begin()
    ends.peers[0].close()
    assert hear_all([first, second]) == ["", None]
    assert (first.is_gone, second.is_gone) == (True, False)


def test_workers_share_the_time_until_they_are_heard(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are waited for 4 s, then one alone for 3 s: 2 s and 2 + 3 s of their limits."""
    clock = iter((0.0, 4.0, 10.0, 13.0))
    first, second = ends.begin()
    ends.peers[0].sendall(b"loaded\n")

    def select_first(
        silent: list[LiveWorker], *_: object
    ) -> tuple[list[LiveWorker], list[object], list[object]]:
        if silent == [second]:
            ends.peers[1].sendall(b"loaded\n")
        return silent[:1], [], []

    monkeypatch.setattr(turns, "select", SimpleNamespace(select=select_first))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert hear_all([first, second]) == ["loaded", "loaded"]
    assert [job.read_s() for job in ends.pool.jobs] == [2.0, 5.0]


def test_a_worker_is_charged_for_its_end(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock, on top of its own turns; while it waits its time stands still."""
    now_s = [100.0]
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    (worker,) = ends.begin(1)
    worker.charge(2.0)
    now_s[0] = 130.0
    assert ends.pool.jobs[0].read_s() == 2.0
    ends.pool.futures[0].set_result("ended")
    assert worker.end() == "ended"
    now_s[0] = 133.0
    assert ends.pool.jobs[0].read_s() == 5.0


def test_a_worker_that_does_not_end_is_rung_for(ends: Ends) -> None:
    """After the time that it is given; its outcome is that of its end."""
    (worker,), job = ends.begin(1), ends.pool.jobs[0]

    def end_when_rung() -> None:
        os.read(job.alarm, 1)
        ends.pool.futures[0].set_result("killed")

    with ThreadPoolExecutor(max_workers=1) as pool:
        rung = pool.submit(end_when_rung)
        assert worker.end(0.01) == "killed"
        rung.result(30.0)


@pytest.mark.parametrize(
    ("says", "goes_on", "gone"),
    [
        ((b"turn 0.0\n", b"turn 0.0\n"), True, [False, False]),
        ((b"turn 0.0\n", b"done\n"), False, [False, True]),
        ((b"done\n", b"turn 0.0\n"), False, [True, False]),
    ],
)
@pytest.mark.parametrize("take", [turns._take_turns, turns._work_at_once])
def test_a_turn_ends_with_its_word(
    ends: Ends,
    take: Callable[[list[LiveWorker]], bool],
    says: tuple[bytes, ...],
    gone: list[bool],
    *,
    goes_on: bool,
) -> None:
    """Who says anything else is gone, and nobody goes on."""
    workers = ends.begin()
    for peer, line in zip(ends.peers, says, strict=True):
        peer.sendall(line)
    assert take(workers) is goes_on
    assert [worker.is_gone for worker in workers] == gone
    assert ends.read(0) == "go\n"


def test_a_worker_that_is_gone_leaves_the_other_without_a_turn(ends: Ends) -> None:
    """In turns, nobody else is told to go."""
    first, second = ends.begin()
    ends.peers[0].close()
    ends.peers[1].setblocking(False)
    assert not turns._take_turns([first, second])
    with pytest.raises(BlockingIOError):
        ends.read(1)


@pytest.mark.parametrize(
    ("device", "mode", "begun"),
    [("cpu", Mode.DEFAULT, 2), ("cpu", Mode.MAX_AUTOTUNE, 1), ("cuda", Mode.DEFAULT, 1), ("cpu", None, 2)],
)
def test_arms_load_at_once_where_nothing_is_tuned(
    ends: Ends, device: str, mode: Mode | None, begun: int
) -> None:
    """One that cannot load ends it: the other one is not even begun where they load in turn."""
    case = replace(make_case(), mode=mode) if mode else None
    job = make_job(ends.bench, WorkerRole.ROUNDS, case)
    job = replace(job, request=replace(job.request, device=device))

    def fail() -> None:
        while len(ends.pool.jobs) < begun:
            time.sleep(0.001)
        ends.find_peers()
        for peer in ends.peers[:-1]:
            peer.sendall(b"loaded\n")
        ends.peers[-1].sendall(b"no such layer\n")

    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(fail)
        assert not turns._load_together(ends.workers, (job, job), ends.pool)
    assert [worker.is_gone for worker in ends.workers] == [False, True][-begun:]


@pytest.mark.parametrize(
    ("super_block_s", "super_blocks", "last"),
    [
        (0.004, 5 * MOST_ROUNDS, "turn 0.0\n"),
        (1.0, 10, "turn 0.0\n"),
        (9.0, 3, "turn 0.0\n"),
        (1.0, 10, "no such layer\n"),
    ],
)
def test_both_run_as_many_super_blocks_as_the_time_allows_both(
    ends: Ends, super_block_s: float, super_blocks: int, last: str
) -> None:
    """Of 20 s for super-blocks of both; at most MOST_ROUNDS times what is configured, at least three.

    They run none where one of them has something else to say.
    """
    job = make_job(ends.bench, WorkerRole.ROUNDS, make_case())
    size = {"timed": 3, "led": 1}
    offer = json.dumps({"super_block_s": super_block_s, "sizes": {"eager": size, "compiled": size}})

    def answer() -> None:
        while len(ends.pool.jobs) < 2:
            time.sleep(0.001)
        ends.find_peers()
        for peer in ends.peers:
            peer.sendall(b"loaded\n")
        for peer in ends.peers:
            peer.recv(16)
            peer.sendall(f"ready {offer}\n".encode())
        for peer in ends.peers:
            plan = read_line(RoundPlan, "rounds", peer.recv(4096).decode().strip())
            assert plan is not None
            assert plan.super_blocks == super_blocks
            assert plan.sizes[Side.EAGER] == BlockSize(timed=3, led=1)
            peer.sendall(last.encode() if peer is ends.peers[1] else b"turn 0.0\n")

    sampling = Sampling(super_blocks=5, max_rounds_s=20.0)
    expected = super_blocks if last.startswith("turn") else 0
    with ThreadPoolExecutor(max_workers=1) as pool:
        answered = pool.submit(answer)
        assert turns._bring_together(ends.workers, (job, job), ends.pool, sampling) == expected
        answered.result(30.0)


@pytest.mark.parametrize("says", [b"turn 0.0\n", b"ready 3\n"])
def test_a_worker_that_offers_nothing_is_gone(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, says: bytes
) -> None:
    """The other one, which may not even be asked, is not."""
    workers = ends.begin()
    ends.peers[0].sendall(says)
    monkeypatch.setattr(turns, "_load_together", lambda *_: True)
    jobs = (ends.pool.jobs[0], ends.pool.jobs[1])
    assert turns._bring_together(workers, jobs, ends.pool, Sampling()) == 0
    assert [worker.is_gone for worker in workers] == [True, False]


@pytest.mark.parametrize("gone", [(False, False), (True, False), (False, True), (True,)])
def test_who_was_stopped_for_another_has_no_outcome(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, gone: tuple[bool, ...]
) -> None:
    """It has 2 s to end, and its end says nothing of it; one that was never begun has none either."""
    workers, given_s, end = ends.begin(len(gone)), list[float](), LiveWorker.end

    def note_and_end(worker: LiveWorker, most_s: float) -> WorkerOutcome:
        given_s.append(most_s)
        return end(worker, most_s)

    monkeypatch.setattr(LiveWorker, "end", note_and_end)
    for worker, future, is_gone in zip(workers, ends.pool.futures, gone, strict=True):
        worker.is_gone = is_gone
        future.set_result(WorkerOutcome(outcome=ENDED, wall_s=3.0))
    whole = gone == (False, False)
    outcomes = turns._collect(workers)
    expected = [ENDED if whole or is_gone else None for is_gone in gone]
    assert [outcome.outcome for outcome in outcomes] == [*expected, None][:2]
    assert [outcome.wall_s for outcome in outcomes] == [*(3.0 for _ in gone), 0.0][:2]
    assert given_s == [math.inf if whole or is_gone else 2.0 for is_gone in gone]
    assert [peer.recv(16) for peer in ends.peers] == [b"go\n" if whole else b""] * len(gone)


def test_the_time_of_a_worker_is_with_its_share_of_a_servers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5 s until its end, and 2 s before its start."""
    clock = iter((10.0, 15.0))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(turns, "run_worker", lambda _: ENDED)
    job = replace(make_job(bench, WorkerRole.COLD, make_case()), opened_s=2.0)
    assert turns.run_timed(job) == WorkerOutcome(outcome=ENDED, wall_s=7.0)


@pytest.mark.parametrize(("bad", "turn"), [(0, 0), (1, 1)])
def test_rounds_end_where_a_worker_is_gone(bad: int, turn: int) -> None:
    """The other one is asked for nothing more."""
    arms = [Actor(), Actor()]
    arms[bad].heard = repeat("")
    workers = [cast("LiveWorker", arm) for arm in arms]
    turns._alternate(workers, super_blocks=1, wanted=1, opened_s=math.inf)
    assert [len(arm.received) for arm in arms] == [[1, 0], [1, 1]][turn]
    assert arms[bad].is_gone


@pytest.mark.parametrize(
    ("loads", "turns_taken", "works", "steps"),
    [
        (True, True, True, ["loads", "turns", "works", "turns"]),
        (True, True, False, ["loads", "turns", "works"]),
        (True, False, True, ["loads", "turns"]),
        (False, True, True, ["loads"]),
    ],
)
def test_second_processes_go_on_while_both_are_there(
    monkeypatch: pytest.MonkeyPatch, steps: list[str], *, loads: bool, turns_taken: bool, works: bool
) -> None:
    """They load, compile in turns, count calls at once, and look at drift in turns."""
    both = Mock()
    both.loads.return_value, both.turns.return_value, both.works.return_value = loads, turns_taken, works
    monkeypatch.setattr(turns, "_load_together", both.loads)
    monkeypatch.setattr(turns, "_take_turns", both.turns)
    monkeypatch.setattr(turns, "_work_at_once", both.works)
    monkeypatch.setattr(turns, "_collect", lambda _: OUTCOMES)
    assert turns.run_warm_together(Mock(), Mock()) is OUTCOMES
    assert [name for name, *_ in both.mock_calls] == steps


@pytest.mark.parametrize(("most", "wanted"), [(8, 8), (60, 15), (0, None)])
def test_rounds_are_run_where_both_came_together(
    monkeypatch: pytest.MonkeyPatch, most: int, wanted: int | None
) -> None:
    """No more are wanted than are configured; what came before them is what another pair would cost."""
    clock = iter((10.0, 13.0))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(turns, "_bring_together", lambda *_: most)
    monkeypatch.setattr(turns, "_alternate", rounds := Mock())
    monkeypatch.setattr(turns, "_collect", lambda _: OUTCOMES)
    assert turns.run_together(Mock(), Mock(), Sampling(super_blocks=15)) is OUTCOMES
    assert rounds.mock_calls == ([call([], most, wanted, 3.0)] if wanted else [])


@pytest.mark.parametrize("fails", [False, True])
def test_workers_are_closed_once_their_threads_have_ended(*, fails: bool) -> None:
    """After an error they are rung for; both threads run at the same time."""
    steps: list[str] = []
    worker = SimpleNamespace(ring=lambda: steps.append("rings"), close=lambda: steps.append("closes"))
    both = threading.Barrier(2, timeout=30.0)

    def work() -> None:
        both.wait()
        time.sleep(0.05)
        steps.append("ends")

    def open_both() -> None:
        with turns._open_workers() as (workers, pool):
            workers.extend([cast("LiveWorker", worker)] * 2)
            for _ in workers:
                pool.submit(work)
            if fails:
                raise KeyboardInterrupt

    if fails:
        with pytest.raises(KeyboardInterrupt):
            open_both()
    else:
        open_both()
    assert steps == [*(["rings"] * 2 if fails else []), *["ends"] * 2, *["closes"] * 2]


def test_enough_rounds_are_looked_for_after_each_super_block_but_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight turns each; the time of all so far is what they cost."""
    clock = iter((5.0, 7.0, 8.0))
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(turns, "has_enough_rounds", looks := Mock(return_value=False))
    arms = Actor(), Actor(heard=repeat("turn 0.04"))
    workers = [cast("LiveWorker", arm) for arm in arms]
    turns._alternate(workers, super_blocks=3, wanted=2, opened_s=9.0)
    assert [look.kwargs for look in looks.mock_calls] == [
        {"wanted": 2, "opened_s": 9.0, "rounds_s": rounds_s} for rounds_s in (2.0, 3.0)
    ]
    assert looks.mock_calls[0].args[0][:4] == [0.03] * 4
    assert looks.mock_calls[0].args[1][:4] == [0.04] * 4
    assert [len(arm.received) for arm in arms] == [12, 12]


def test_both_end_their_rounds_before_they_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker says to ``stop`` is heard: its answer is not another's."""
    monkeypatch.setattr(turns, "has_enough_rounds", lambda *_, **__: True)
    arms = [Actor(heard=chain(repeat("turn 0.03", 4), ["turn 0.03", "left"])) for _ in range(2)]
    turns._alternate([cast("LiveWorker", arm) for arm in arms], super_blocks=2, wanted=1, opened_s=1.0)
    assert [next(arm.heard) for arm in arms] == ["left"] * 2


def test_who_is_silent_at_work_when_the_other_goes_is_not_gone(ends: Ends) -> None:
    """It is stopped, and blamed for nothing."""
    workers = ends.begin()
    ends.peers[0].close()
    assert not turns._work_at_once(workers)
    assert [worker.is_gone for worker in workers] == [True, False]


def test_a_worker_that_dies_with_a_word_unread_is_gone(ends: Ends) -> None:
    """The system resets such a line."""
    (worker,), (peer,) = ends.begin(1), ends.peers
    worker.send("go")
    peer.close()
    assert (worker.hear(), worker.is_gone) == ("", True)


def test_a_worker_that_is_closed_leaves_no_descriptor(ends: Ends) -> None:
    """Of hundreds of pairs a lab would run out of them."""
    ends.begin(1)
    worker, job = ends.workers.pop(), ends.pool.jobs[0]
    line, ring = worker.fileno(), worker._ring
    worker.close()
    for descriptor in (line, ring, job.alarm):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_arms_that_do_not_load_run_nothing(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked for no offer."""
    monkeypatch.setattr(turns, "_load_together", lambda *_: False)
    assert turns._bring_together([], (Mock(), Mock()), ends.pool, Sampling()) == 0
