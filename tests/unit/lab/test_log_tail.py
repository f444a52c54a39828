"""Log tails are short, printable and hold the cause."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.lab.workers.log_tail import LOG_EXCERPT_BYTES, LOG_EXCERPT_LINES, clean_log_tail, name_shortage


def test_keeps_the_last_thirty_lines() -> None:
    """The last thirty of forty lines, without a trailing newline."""
    log = "".join(f"line {number}\n" for number in range(40)).encode()
    assert [f"line {number}" for number in range(10, 40)] == clean_log_tail(log).split("\n")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"10%\r20%\r100%\r\nnext\r\n", "100%\nnext"),
        (b"a\x00b\x08c\td", "abc\td"),
        ("safe\u202egnp.exe\u200b".encode(), "safegnp.exe"),
        (b"caf\xe9", "caf\ufffd"),
        (b"", ""),
        (b"\n\n", ""),
    ],
)
def test_cleans(log: bytes, expected: str) -> None:
    """Escapes, overwritten progress, control and hidden characters go; broken UTF-8 is replaced."""
    assert expected == clean_log_tail(log)


def test_keeps_the_telling_end_of_a_crash() -> None:
    """The innermost frames of a fault handler's dump, and the lines before it."""
    lines = [f"said {number}" for number in range(40)]
    frames = [f'  File "a.py", line {number} in f' for number in range(50)]
    dump = [
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x1 (most recent call first):",
        *frames,
    ]
    tail = clean_log_tail("\n".join([*lines, *dump]).encode())
    assert [*lines[22:], *dump[:12]] == tail.split("\n")


LIBRARY = "/venv/lib/python3.12/site-packages"
GATE = "/srv/source/gate"


def make_dump(*frames: str) -> bytes:
    """A fault handler's dump of a process that the gate has aborted: frames of two threads."""
    threads = ["Thread 0x2 (most recent call first):", *frame_all("/usr/lib/python3.12/threading.py")]
    current = ["Current thread 0x1 (most recent call first):", *frame_all(*frames)]
    dump = [
        "Fatal Python error: Aborted",
        "",
        *threads,
        "",
        *current,
        "",
        "Extension modules: numpy (total: 1)",
    ]
    return "\n".join(["step 1", *dump]).encode()


def frame_all(*paths: str) -> list[str]:
    """A frame of each."""
    return [f'  File "{path}", line 7 in f' for path in paths]


def test_a_hang_shows_the_frame_of_the_user_first_and_none_of_the_gate() -> None:
    """Nor frames of pytest, nor the gate's abort."""
    of_user = ["/home/me/gate/model.py", f"{LIBRARY}/torch/nn/module.py", "/home/me/gate/blocks.py"]
    of_gate = [f"{GATE}/measure/trial.py", f"{GATE}/suite/fixture.py", f"{LIBRARY}/_pytest/python.py"]
    tail = clean_log_tail(make_dump(*of_user, *of_gate, "<frozen runpy>"), of_hang=True)
    assert tail.split("\n") == ["step 1", "It was at (most recent call first):", *frame_all(*of_user)]


def test_a_hang_below_the_user_names_the_user_first_and_then_where_it_waits() -> None:
    """The user's frame, then its calls, innermost first."""
    inner = [f"{LIBRARY}/torch/compile.py", f"/cache/ab/c{'x' * 51}.py"]
    outer = [f"{LIBRARY}/torch/nn/module.py", "/home/me/train.py", f"{GATE}/worker/server.py"]
    tail = clean_log_tail(make_dump(*inner, "/home/me/model.py", *outer), of_hang=True)
    assert tail.split("\n") == [
        "step 1",
        "It was at (most recent call first):",
        *frame_all("/home/me/model.py"),
        "which had called (most recent call first):",
        *frame_all(*inner),
    ]


def test_a_hang_within_the_gate_shows_what_is_left() -> None:
    """The process ended before any code of the user, or without a fault handler."""
    tail = clean_log_tail(make_dump(f"{LIBRARY}/torch/__init__.py", f"{GATE}/worker/worker.py"), of_hang=True)
    assert tail.split("\n")[2:] == frame_all(f"{LIBRARY}/torch/__init__.py")
    assert clean_log_tail(make_dump(f"{GATE}/worker/worker.py"), of_hang=True).split("\n")[2:] == []
    assert clean_log_tail(b"said\n", of_hang=True) == "said"


def test_of_two_dumps_the_last_one_counts() -> None:
    """An earlier one is of a process that the worker had started."""
    earlier, last = make_dump("/home/me/earlier.py"), make_dump("/home/me/last.py")
    log = earlier + b"\nsaid between\n" + last
    hang = clean_log_tail(log, of_hang=True).split("\n")
    assert hang[-2:] == ["It was at (most recent call first):", *frame_all("/home/me/last.py")]
    assert hang[-4:-2] == ["said between", "step 1"]
    assert clean_log_tail(log).split("\n")[-9:] == last.decode().split("\n")[-9:]


@given(st.binary(max_size=3000), st.integers(1, 20))
def test_is_always_bounded_and_printable(log: bytes, times: int) -> None:
    """Any log's tail fits and has no control character but tab and newline."""
    tail = clean_log_tail(log * times)
    assert len(tail.encode()) <= LOG_EXCERPT_BYTES
    assert tail.count("\n") < LOG_EXCERPT_LINES
    assert not [c for c in tail if unicodedata.category(c).startswith("C") and c not in "\t\n"]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("terminate called after throwing an instance of 'std::bad_alloc'", "memory"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "memory"),
        ("OSError: [Errno 28] No space left on device", "disk"),
        ("ValueError: memory of a goldfish", ""),
    ],
)
def test_finds_what_was_short(tail: str, expected: str) -> None:
    """The usual messages for a lack of memory or disk."""
    assert expected == name_shortage(tail)


def test_endless_line_leaves_room_for_the_others() -> None:
    """An error with hundreds of options in a line keeps its begin and the lines before it."""
    tail = clean_log_tail(b'  File "model.py", line 3\nRuntimeError: options are ' + b"x, " * 9000)
    first, second = tail.splitlines()
    assert first == '  File "model.py", line 3'
    assert second.startswith("RuntimeError: options are x, x")
    assert (len(second), second[-4:]) == (504, " ...")
    assert clean_log_tail(b"x" * 500) == "x" * 500
