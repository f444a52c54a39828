"""Messages between processes arrive whole, with their descriptors."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gate.errors import FileError
from gate.files.codec import decode
from gate.files.messages import (
    ServerAnswer,
    ServerDoes,
    ServerOrder,
    close_descriptors,
    load_plain,
    receive,
    save_plain,
    send,
)
from gate.records.protocol import BlockSize

Line = tuple[socket.socket, socket.socket]


@pytest.fixture
def line() -> Iterator[Line]:
    """Both ends; who waits for what never comes fails."""
    first, second = socket.socketpair()
    with first, second:
        first.settimeout(30.0)
        second.settimeout(30.0)
        yield first, second


@pytest.mark.parametrize("chars", [0, 10, 4_000_000])
def test_a_message_arrives_whole(line: Line, chars: int) -> None:
    """However many pieces the system makes of it."""
    order = ServerOrder(does=ServerDoes.RUN, path="x" * chars, pid=7)
    with ThreadPoolExecutor(max_workers=1) as pool:
        sent = pool.submit(send, line[0], order)
        received, descriptors = receive(line[1])
        sent.result(30.0)
    assert decode(ServerOrder, received, "order") == order
    assert descriptors == ()


def test_descriptors_come_along_with_a_message(line: Line) -> None:
    """In their order, as numbers of the receiver's own."""
    pipes = [os.pipe() for _ in range(2)]
    send(line[0], ServerOrder(does=ServerDoes.RUN), [writing for _, writing in pipes])
    _, descriptors = receive(line[1])
    for descriptor, word in zip(descriptors, (b"first", b"second"), strict=True):
        os.write(descriptor, word)
    assert [os.read(reading, 16) for reading, _ in pipes] == [b"first", b"second"]
    for descriptor in (*descriptors, *(end for pipe in pipes for end in pipe)):
        os.close(descriptor)


@pytest.mark.parametrize("sent", [4, 5])
def test_no_more_than_four_descriptors_are_taken(line: Line, sent: int) -> None:
    """The system closes what comes beyond them."""
    reading, writing = os.pipe()
    send(line[0], ServerOrder(does=ServerDoes.RUN), [writing] * sent)
    os.close(writing)
    _, descriptors = receive(line[1])
    assert len(descriptors) == 4
    close_descriptors(descriptors)
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_an_end_in_the_middle_is_the_end_of_the_line(line: Line) -> None:
    """Half a message is none, and the descriptor that came with it is closed."""
    reading, writing = os.pipe()
    socket.send_fds(line[0], [b'{"does": "ru'], [writing])
    os.close(writing)
    line[0].close()
    assert receive(line[1]) == (None, ())
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_the_last_message_may_be_read_after_its_sender_is_gone(line: Line) -> None:
    """It is whole, and the line ends after it."""
    send(line[0], ServerAnswer(pid=12))
    line[0].close()
    assert receive(line[1])[0]["pid"] == 12
    assert receive(line[1]) == (None, ())


def test_what_is_no_message_is_refused(line: Line) -> None:
    """As any file of somebody else would be."""
    line[0].sendall(b"Segmentation fault\n")
    with pytest.raises(FileError, match="is not JSON"):
        receive(line[1])


def test_a_plain_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    """What has no JSON form is not written at all."""
    path = tmp_path / "size.json"
    save_plain(BlockSize(timed=3, led=1), path)
    assert load_plain(BlockSize, path) == BlockSize(timed=3, led=1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_plain({"seconds": float("nan")}, path)
    assert load_plain(BlockSize, path).timed == 3
