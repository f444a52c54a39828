"""The worker's end of the line: it waits for its turn, and notices when the lab hangs up."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import Mock

import pytest

from gate.files.messages import write_line
from gate.measure.turns import Turns, TurnsError
from gate.records.protocol import BlockSize, Offer, RoundPlan, Side


@contextmanager
def open_line() -> Iterator[tuple[socket.socket, Turns]]:
    """Open both ends, the lab's and the worker's."""
    ours, theirs = socket.socketpair()
    turns = Turns(theirs.detach())
    with ours, turns._socket, turns._lines:
        yield ours, turns


def test_worker_offers_its_blocks_and_hears_what_both_run() -> None:
    """The lab sets number and size of the blocks, since both arms must run the same."""
    sizes = {Side.EAGER: BlockSize(timed=4, led=1), Side.COMPILED: BlockSize(timed=6, led=2)}
    with open_line() as (ours, turns):
        agreed = {Side.EAGER: BlockSize(timed=5, led=1), Side.COMPILED: BlockSize(timed=6, led=3)}
        plan = RoundPlan(super_blocks=7, sizes=agreed)
        ours.sendall(f"{write_line('rounds', plan)}\n".encode())
        offer = Offer(super_block_s=0.25, sizes=sizes)
        assert turns.agree(offer) == plan
        assert ours.recv(256) == f"{write_line('ready', offer)}\n".encode()


@pytest.mark.parametrize(("answer", "goes_on"), [(b"go\n", True), (b"stop\n", False)])
def test_worker_sends_its_last_block_and_reads_whether_there_is_another(answer: bytes, goes_on: bool) -> None:
    """The lab ends the rounds once the interval is narrow enough."""
    with open_line() as (ours, turns):
        ours.sendall(answer)
        assert turns.wait(0.03125) is goes_on
        assert ours.recv(64) == b"turn 0.03125\n"


def test_threads_sleep_before_the_other_arms_turn_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that runs the next block too does not wait for its own threads."""
    asked = Mock(return_value=True)
    monkeypatch.setattr("gate.measure.turns.await_idle_threads", asked)
    with open_line() as (ours, turns):
        ours.sendall(b"go keep\ngo\ngo\n")
        counted = []
        for _ in range(3):
            assert turns.wait()
            counted.append(asked.call_count)
    assert counted == [1, 1, 2]


def test_threads_that_never_sleep_are_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a model with a busy thread would cost a quarter of a second a block."""
    asked = Mock(return_value=False)
    monkeypatch.setattr("gate.measure.turns.await_idle_threads", asked)
    with open_line() as (ours, turns):
        ours.sendall(b"go\ngo\n")
        assert turns.wait()
        assert turns.wait()
    asked.assert_called_once_with()


def test_waiting_is_counted() -> None:
    """The time of the other arm's turn is not this one's."""
    with open_line() as (ours, turns):

        def answer_late() -> None:
            received.append(ours.recv(64))
            time.sleep(0.05)
            ours.sendall(b"go\n")

        received: list[bytes] = []
        other = threading.Thread(target=answer_late)
        other.start()
        turns.wait()
        other.join()
    assert received == [b"turn 0.0\n"]
    assert 0.05 <= turns.take_waited_s() < 5
    assert turns.take_waited_s() == 0.0


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"", "hung up"), (b"rounds 3\n", "said 'rounds'")],
)
def test_line_that_breaks_is_reported(answer: bytes, words: str) -> None:
    """A lab that hangs up, or sends something else, ends the worker."""
    with open_line() as (ours, turns):
        if answer:
            ours.sendall(answer)
        else:
            ours.close()
        with pytest.raises(TurnsError, match=words):
            turns.wait()


def test_compilers_do_not_inherit_the_line() -> None:
    """A compiler that the worker starts must not keep the line open."""
    ours, theirs = socket.socketpair()
    channel = theirs.detach()
    os.set_inheritable(channel, True)
    turns = Turns(channel)
    with ours, turns._socket, turns._lines:
        assert not os.get_inheritable(channel)
