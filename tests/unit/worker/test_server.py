"""What a server of workers decides, in the test's own process: nothing is forked."""

import ctypes
import io
import mmap
import os
import socket
import sys
import tempfile
import types
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from gate.errors import UsageError
from gate.files.codec import decode
from gate.files.messages import ServerAnswer, ServerDoes, ServerOrder, receive, send
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import WorkerRequest, WorkerRole
from gate.worker import server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")

CASE = Case(id="bert/x", model="bert", factory="nets.model:build")
PAGE = mmap.PAGESIZE
READ, WRITE = server._POPULATE_READ, server._POPULATE_WRITE


class EndedError(Exception):
    """Instead of the end of the process."""


def make_request(directory: Path, **fields: Any) -> WorkerRequest:
    arguments = {
        "role": WorkerRole.COLD,
        "case": None,
        "device": "cpu",
        "threads": 1,
        "result": "r",
        **fields,
    }
    return WorkerRequest(directory=str(directory), **arguments)


@pytest.mark.parametrize(
    ("rights", "name", "advice"),
    [
        ("rw-p", "[heap]", WRITE),
        ("r--p", "/usr/lib/libc.so.6", READ),
        ("r-xp", "", READ),
        ("rw-s", "/srv/shared", None),
        ("---p", "", None),
        ("-w-p", "", None),
        ("r--p", "[vvar]", None),
        ("r-xp", "[vdso]", None),
    ],
)
def test_a_mapping_has_the_ranges_of_its_present_pages(rights: str, name: str, advice: int | None) -> None:
    """Private, readable ones of memory; the kernel's own and shared ones are left alone.

    Of its six pages from the second on, the first two are in memory, and the fifth.
    """
    present = 1 << 63
    entries = array("Q", [present, present, present + 5, present - 1, 0, present, 0, present])
    line = f"{PAGE:x}-{7 * PAGE:x} {rights} 00000000 00:00 0    {name}"
    ranges = list(server._list_mapping(line, io.BytesIO(entries.tobytes())))
    expected = [(PAGE, 2 * PAGE, advice), (5 * PAGE, PAGE, advice)]
    assert ranges == (expected if advice else [])


def test_pages_that_were_written_are_present() -> None:
    """Of this process, by its own page map."""
    with mmap.mmap(-1, 4 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[PAGE] = memory[2 * PAGE] = 1
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        ranges = server.list_present()
    held = [page_range for page_range in ranges if page_range.start <= address + PAGE]
    last = max(held)
    assert last.start + last.size >= address + 3 * PAGE
    assert last.advice == WRITE


def test_without_the_kernels_lists_nothing_is_mapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A container may hide them: workers then pay for their page faults."""
    monkeypatch.setattr(server, "_PAGE_MAP", tmp_path / "pagemap")
    assert server.list_present() == ()


def test_each_range_is_mapped_by_its_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the ranges."""
    libc = Mock()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: libc)
    server.map_pages((server.PageRange(PAGE, 2 * PAGE, READ), server.PageRange(8 * PAGE, PAGE, WRITE)))
    assert libc.madvise.mock_calls == [call(PAGE, 2 * PAGE, 22), call(8 * PAGE, PAGE, 23)]
    assert libc.madvise.argtypes == (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)  # 64 bits


MAIN, WATCHER, OTHER = (SimpleNamespace(name=name) for name in ("MainThread", "watcher", "other"))


@pytest.mark.parametrize(
    ("threads", "children", "lasts", "obstacle"),
    [
        ([MAIN], [], False, None),
        (
            [MAIN, WATCHER],
            [],
            False,
            Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread="watcher")),
        ),
        ([MAIN], [12], False, Fact(code=Code.IMPORT_STARTS_PROCESSES)),
        ([MAIN], [], True, Fact(code=Code.IMPORT_STARTS_THREADS)),
        (
            [MAIN, WATCHER, OTHER],
            [12],
            True,
            Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread="watcher")),
        ),
        ([MAIN], [12], True, Fact(code=Code.IMPORT_STARTS_PROCESSES)),
    ],
)
def test_what_forbids_a_fork_is_named(
    monkeypatch: pytest.MonkeyPatch,
    threads: list[Any],
    children: list[int],
    obstacle: Fact | None,
    *,
    lasts: bool,
) -> None:
    """A thread of Python by its name, a process, or threads that a library keeps."""
    listed = SimpleNamespace(enumerate=lambda: threads, main_thread=lambda: MAIN)
    monkeypatch.setattr(server, "threading", listed)
    monkeypatch.setattr(server, "list_children", lambda _: children)
    monkeypatch.setattr(server, "_has_lasting_threads", lambda: lasts)
    assert server._find_obstacle() == obstacle


@pytest.mark.parametrize(
    ("tasks", "lasts"), [([1], False), ([2, 2, 1], False), ([2] * 3 + [1], False), ([2] * 4 + [1], True)]
)
def test_threads_that_a_fork_ends_are_none(
    monkeypatch: pytest.MonkeyPatch, tasks: list[int], *, lasts: bool
) -> None:
    """They are gone within half a second; a look takes a quarter here."""
    counts, now_s = iter(tasks), [10.0]

    def list_tasks() -> Iterator[int]:
        return iter(range(next(counts)))

    def pass_time(seconds: float) -> None:
        assert 0.0 < seconds < 0.1
        now_s[0] += 0.25

    monkeypatch.setattr(server, "Path", lambda _: SimpleNamespace(iterdir=list_tasks))
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=pass_time))
    monkeypatch.setattr(os, "fork", fork_with_threads)
    monkeypatch.setattr(os, "_exit", Mock(side_effect=EndedError))
    monkeypatch.setattr(os, "waitpid", waits := Mock())
    assert server._has_lasting_threads() is lasts
    waits.assert_called_once_with(4242, 0)


def fork_with_threads() -> int:
    """As Python warns of it."""
    warnings.warn("multi-threaded, use of fork() may lead to deadlocks", DeprecationWarning, stacklevel=2)
    return 4242


def test_what_is_forked_to_end_threads_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes nothing down."""
    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(os, "_exit", Mock(side_effect=EndedError))
    with pytest.raises(EndedError):
        server._has_lasting_threads()
    os._exit.assert_called_once_with(0)  # type: ignore[attr-defined] # the mock


@pytest.fixture
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Undo afterwards what becoming an arm's process changes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(server, "_FIRST_PATH", (*sys.path,))
    monkeypatch.setattr(server, "_ROOT_PATH", [])
    monkeypatch.setattr(server, "_VARIABLES", {})


@pytest.mark.usefixtures("_bare")
def test_an_arm_has_its_directory_variables_and_path(tmp_path: Path) -> None:
    """What one arm has is not left over for the next."""
    os.environ |= {"TRITON_CACHE_DIR": "/old", "TORCH_EXTENSIONS_DIR": "/old", "HOME": "/me"}
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        assert not server._enter_arm(make_request(directory), {"TRITON_CACHE_DIR": str(directory)})
        assert Path.cwd() == directory
        assert sys.path == [*server._FIRST_PATH, str(directory)]
    assert server._ROOT_PATH == [*server._FIRST_PATH, str(first)]
    assert os.environ["TRITON_CACHE_DIR"] == str(second)
    assert os.environ["HOME"] == "/me"
    assert "TORCH_EXTENSIONS_DIR" not in os.environ


@pytest.mark.usefixtures("_bare")
def test_what_an_import_added_to_the_path_stays(tmp_path: Path) -> None:
    """It comes after the arm's own, once."""
    server._enter_arm(make_request(tmp_path), {})
    sys.path.insert(0, "/added")
    (tmp_path / "other").mkdir()
    server._enter_arm(make_request(tmp_path / "other"), {})
    assert sys.path == [*server._FIRST_PATH, str(tmp_path / "other"), "/added"]


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    ("of", "files", "is_otherwise"),
    [
        ("arm", {"acme.py": ""}, True),
        ("root", {"acme.py": ""}, True),
        ("arm", {"acme/__init__.py": ""}, True),
        ("arm", {"other.py": ""}, False),
        ("arm", {"gate/__init__.py": ""}, False),
        ("arm", {"acme/model.py": ""}, False),
        ("both", {"acme.py": ""}, False),
    ],
)
def test_an_arm_may_have_an_imported_module_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, of: str, files: dict[str, str], *, is_otherwise: bool
) -> None:
    """Where only it or only the root looks lies a module of that name; the gate itself is no such module."""
    monkeypatch.setitem(sys.modules, "acme.model", types.ModuleType("acme.model"))
    root, arm = tmp_path / "root", tmp_path / "arm"
    places = {"arm": [arm], "root": [root], "both": [root]}[of]
    for directory in (root, arm):
        directory.mkdir()
        for name, content in files.items() if directory in places else ():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(content)
    assert not server._enter_arm(make_request(root), {})
    assert server._enter_arm(make_request(root if of == "both" else arm), {}) is is_otherwise


class FakeTorch(ModuleType):
    """Has as many threads as an import sets."""

    threads = 4

    def get_num_threads(self) -> int:
        return self.threads


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch, _bare: None) -> list[str]:
    """What a server imports, without torch."""
    imported: list[str] = []
    fakes = {
        "torch": FakeTorch("torch"),
        "gate.measure.workload.build": SimpleNamespace(load_module=imported.append),
        "gate.suite.fixture": SimpleNamespace(import_compiler=lambda: imported.append("compiler")),
    }
    for name, fake in fakes.items():
        monkeypatch.setitem(sys.modules, name, fake)
    monkeypatch.setattr(server, "importlib", SimpleNamespace(import_module=imported.append))
    monkeypatch.setattr(server, "check_source", lambda factory, _: imported.append(f"checks {factory}"))
    monkeypatch.setattr(server, "check_edits", lambda _: imported.append("edits"))
    monkeypatch.setattr(server, "list_imported_packages", lambda _: imported.append("packages"))
    monkeypatch.setattr(server, "_find_obstacle", lambda: None)
    return imported


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (
            "nets.model:build",
            [
                *("pytest", "pytest_benchmark.plugin", "compiler"),
                *("checks nets.model:build", "nets.model:build", "edits", "packages"),
            ],
        ),
        ("", ["compiler", "edits", "packages"]),
        (None, ["compiler", "edits", "packages"]),
    ],
)
def test_a_factorys_module_is_imported_with_pytest(
    imports: list[str], tmp_path: Path, factory: str | None, expected: list[str]
) -> None:
    """A user's own test finds no plugin imported; a root has no case."""
    case = None if factory is None else replace(CASE, factory=factory, node="" if factory else "t.py::t")
    assert server._import_modules(make_request(tmp_path, case=case), {}) == ServerAnswer()
    assert imports == expected


@pytest.mark.usefixtures("imports")
def test_what_an_import_makes_of_variables_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New, other and removed ones; not those of the arm, which were set before."""
    os.environ |= {"CHANGED": "1", "REMOVED": "1", "KEPT": "1"}

    def load(_: str) -> None:
        os.environ |= {"CHANGED": "2", "NEW": "1"}
        del os.environ["REMOVED"]

    monkeypatch.setattr(sys.modules["gate.measure.workload.build"], "load_module", load)
    request = make_request(tmp_path, case=CASE)
    assert server._import_modules(request, {"TRITON_CACHE_DIR": "/t"}) == ServerAnswer()
    assert server._VARIABLES == {"CHANGED": "2", "NEW": "1", "REMOVED": None}


@pytest.mark.usefixtures("imports")
def test_an_arm_that_may_have_something_else_imports_nothing(
    imports: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own root does."""
    monkeypatch.setattr(server, "_enter_arm", lambda *_: True)
    assert server._import_modules(make_request(tmp_path), {}) == ServerAnswer(is_otherwise=True)
    assert imports == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such layer"), "ValueError"),
        (SystemExit(1), "SystemExit"),
        (UsageError("nets is imported from elsewhere", "Install it."), "nets is imported from elsewhere"),
    ],
)
@pytest.mark.usefixtures("imports")
def test_a_module_that_cannot_be_imported_is_the_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the exception's class, as its message may be anything; the gate's own errors say what is wrong."""

    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(sys.modules["gate.measure.workload.build"], "load_module", fail)
    answer = server._import_modules(make_request(tmp_path, case=CASE), {})
    fact = Fact(code=Code.IMPORT_FAILED, names=name_words(exception=reason))
    assert answer == ServerAnswer(problem=fact)
    assert type(error).__name__ in capsys.readouterr().err  # in the server's log


@pytest.mark.usefixtures("imports")
@pytest.mark.parametrize("threads", [4, 2])
def test_a_module_that_sets_threads_has_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """So its worker is not forked; else what forbids a fork decides."""
    obstacle = Fact(code=Code.IMPORT_STARTS_PROCESSES)
    monkeypatch.setattr(server, "_find_obstacle", lambda: obstacle)
    torch = sys.modules["torch"]
    load = lambda _: setattr(torch, "threads", threads)  # noqa: E731 - one line
    monkeypatch.setattr(sys.modules["gate.measure.workload.build"], "load_module", load)
    answer = server._import_modules(make_request(tmp_path, case=CASE), {})
    assert answer.problem == (obstacle if threads == 4 else Fact(code=Code.IMPORT_SETS_THREADS))


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (None, 0, ""),
        (SystemExit(), 0, ""),
        (SystemExit(0), 0, ""),
        (SystemExit(7), 7, ""),
        (SystemExit("no model"), 1, "no model\n"),
        (KeyboardInterrupt(), 1, "KeyboardInterrupt"),
        (ValueError("seen"), 1, "ValueError: seen"),
    ],
)
def test_a_process_ends_as_an_interpreter_does(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
    status: int,
    said: str,
) -> None:
    """Whatever its work raises, it does not go on as a server."""

    def work() -> None:
        if error:
            raise error

    def end(given: int) -> None:
        assert given == status
        raise EndedError

    monkeypatch.setattr(server, "end_process", end)
    with pytest.raises(EndedError):
        server._end_after(work)
    assert said in capsys.readouterr().err


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[server._Server, socket.socket]]:
    """A server and the lab's end of its line; a fork only has a number."""
    ours, theirs = socket.socketpair()
    ours.settimeout(30.0)
    monkeypatch.setattr(server, "die_with_parent", Mock())
    monkeypatch.setattr(ctypes, "CDLL", Mock())
    monkeypatch.setattr(os, "fork", lambda: 4242)
    given = theirs.detach()
    serving = server._Server(given, lambda *_: None)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(given)  # under another number alone
    yield serving, ours
    serving._line.close()
    ours.close()


def ask(
    serving: tuple[server._Server, socket.socket], order: ServerOrder, given: Sequence[int] = ()
) -> ServerAnswer:
    """The answer to one order, after which the lab hangs up."""
    process, ours = serving
    send(ours, order, given)
    ours.shutdown(socket.SHUT_WR)
    process.serve(os.getppid())
    return decode(ServerAnswer, receive(ours)[0], "answer")


def test_a_servers_line_is_clear_of_its_workers_numbers(
    serving: tuple[server._Server, socket.socket],
) -> None:
    """A compiler that it starts does not inherit it."""
    process, _ = serving
    assert process._line.fileno() >= 300
    assert not process._line.get_inheritable()


def test_a_server_ends_when_the_lab_hangs_up(serving: tuple[server._Server, socket.socket]) -> None:
    """Or with the lab; what its workers leave behind becomes its own child."""
    process, ours = serving
    ours.shutdown(socket.SHUT_WR)
    process.serve(4321)
    server.die_with_parent.assert_called_once_with(4321)  # type: ignore[attr-defined] # the mock
    ctypes.CDLL(None).prctl.assert_called_once_with(36, 1, 0, 0, 0)  # type: ignore[attr-defined] # the mock


def test_a_server_is_told_its_line_and_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its arguments; what its workers run is given."""
    served, run = Mock(), Mock()
    monkeypatch.setattr(sys, "argv", ["server.py", "91", "4321"])
    monkeypatch.setattr(server, "_Server", served)
    monkeypatch.setattr(server, "_end_after", lambda work: work())
    server.main(run)
    assert served.mock_calls == [call(91, run), call().serve(4321)]


@pytest.mark.parametrize("does", [ServerDoes.RUN, ServerDoes.BRANCH])
def test_a_fork_is_answered_by_its_number(
    serving: tuple[server._Server, socket.socket], does: ServerDoes
) -> None:
    """The descriptors are its own then; a branch is no worker's left-over."""
    reading, writing = os.pipe()
    assert ask(serving, ServerOrder(does=does), [writing]) == ServerAnswer(pid=4242)
    os.close(writing)
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert serving[0]._branches == ({4242} if does is ServerDoes.BRANCH else set())


@pytest.mark.parametrize("does", [ServerDoes.RUN, ServerDoes.BRANCH])
def test_what_is_forked_does_its_work_and_ends(
    serving: tuple[server._Server, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    does: ServerDoes,
) -> None:
    """A branch serves on the line that it was given; the server's own line is closed in both."""
    process, dies, steps = serving[0], Mock(), Mock()
    process._work = steps.work  # type: ignore[method-assign] # as far as it is asked for

    def end(work: Callable[[], object]) -> None:
        work()
        raise EndedError

    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(server, "die_with_parent", dies)
    monkeypatch.setattr(server, "_end_after", end)
    monkeypatch.setattr(server, "_Server", steps.make)
    order = ServerOrder(does=does, request=make_request(tmp_path))
    with pytest.raises(EndedError):
        process._obey(order, (91, 92))
    assert process._line.fileno() == -1
    if does is ServerDoes.RUN:
        dies.assert_called_once_with(os.getpid())
        assert steps.mock_calls == [call.work(order, (91, 92))]
    else:
        assert steps.mock_calls == [call.make(91, process._run), call.make().serve(os.getpid())]


def test_branches_that_ended_are_waited_for_with_the_next_one(
    serving: tuple[server._Server, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else asks for them."""
    serving[0]._branches = {11, 12}
    monkeypatch.setattr(os, "waitpid", lambda pid, options: (pid, 0) if pid == 11 and options else (0, 0))
    ask(serving, ServerOrder(does=ServerDoes.BRANCH))
    assert serving[0]._branches == {12, 4242}


def test_an_import_remembers_the_pages_that_it_leaves(
    serving: tuple[server._Server, socket.socket], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its workers map them before they measure."""
    pages, problem = (server.PageRange(PAGE, PAGE, READ),), Fact(code=Code.IMPORT_SETS_THREADS)
    monkeypatch.setattr(server, "list_present", lambda: pages)
    monkeypatch.setattr(server, "_import_modules", lambda *_: ServerAnswer(problem=problem))
    order = ServerOrder(does=ServerDoes.IMPORT, request=make_request(tmp_path))
    assert ask(serving, order) == ServerAnswer(problem=problem)
    assert serving[0]._pages == pages


@pytest.mark.parametrize(("raw", "status"), [(0, 0), (7 << 8, 7), (9, -9)])
def test_what_a_worker_left_behind_is_killed_until_nothing_is_left(
    serving: tuple[server._Server, socket.socket], monkeypatch: pytest.MonkeyPatch, raw: int, status: int
) -> None:
    """A child of a child comes to the server once that is gone; its branches are no worker's."""
    left, ended = [[12, 99], [13, 99], [99]], list[tuple[str, int]]()
    serving[0]._branches = {99}

    def wait(pid: int, options: int) -> tuple[int, int]:
        assert options == 0
        ended.append(("waits", pid))
        return pid, raw if pid == 78 else 9

    monkeypatch.setattr(server, "list_children", lambda _: left.pop(0))
    monkeypatch.setattr(os, "waitpid", wait)
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.append((f"kills {number:d}", pid)))
    assert ask(serving, ServerOrder(does=ServerDoes.REAP, pid=78)) == ServerAnswer(status=status)
    kills = [(word, pid) for pid in (12, 13) for word in ("kills 9", "waits")]
    assert ended == [("waits", 78), *kills]


def test_a_worker_runs_its_request_on_pages_that_are_mapped(
    serving: tuple[server._Server, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes a process of its own first; its time begins before that."""
    steps: list[object] = []
    process, order = serving[0], ServerOrder(does=ServerDoes.RUN, path="/request.json")
    clock = iter((5.0, 6.0, 7.0))
    monkeypatch.setattr(server, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(
        server, "_become_worker", lambda *given: steps.append(("becomes", next(clock), *given))
    )
    monkeypatch.setattr(server, "map_pages", lambda pages: steps.append(("maps", *pages)))
    process._run = lambda path, begun: steps.append((path, begun))
    process._work(order, (1, 2))
    assert steps == [("becomes", 6.0, order, (1, 2)), ("maps",), ("/request.json", 5.0)]


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.usefixtures("_bare")
def test_a_worker_has_its_output_channel_and_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, paired: bool
) -> None:
    """What an import has set or removed stays so; a temporary directory is looked for anew."""
    monkeypatch.setattr(os, "setsid", sessions := Mock())
    monkeypatch.setattr(server, "_shift_addresses", shifts := Mock())
    monkeypatch.setattr(server, "_VARIABLES", {"SET": "by the module", "REMOVED": None, "GONE": None})
    monkeypatch.setattr(tempfile, "tempdir", "/the/servers/own")
    out, err = (tmp_path / "out").open("wb"), (tmp_path / "err").open("wb")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    channel = os.open(os.devnull, os.O_RDONLY)  # a number that is free for it
    given = (writing, *((theirs.fileno(),) if paired else ()))
    variables = {"SET": "by the lab", "REMOVED": "1", "KEPT": "1"}
    order = ServerOrder(does=ServerDoes.RUN, variables=variables, channel=channel)
    server._become_worker(order, given)
    for standard in (out, err):
        os.write(standard.fileno(), b"said")
        standard.close()
    assert os.read(reading, 16) == b"saidsaid"
    if paired:
        os.write(channel, b"ready")
        assert ours.recv(16) == b"ready"
    assert dict(os.environ) == {"SET": "by the module", "KEPT": "1"}
    assert tempfile.tempdir is None
    shifts.assert_called_once_with()
    sessions.assert_called_once_with()
    for end in (ours, theirs):
        end.close()
    os.close(channel)
    os.close(writing)
    os.set_blocking(reading, False)
    assert os.read(reading, 1) == b""  # no other descriptor of it is left
    os.close(reading)


@pytest.mark.parametrize("draws", [(0, 1023), (1023, 0)])
def test_addresses_are_shifted_by_up_to_two_huge_pages(
    monkeypatch: pytest.MonkeyPatch, draws: tuple[int, int]
) -> None:
    """At least by a page, each of both ways of allocation."""
    asked, left, kept = list[int](), iter(draws), list[mmap.mmap]()

    def break_at(size: int) -> None:
        asked.append(size)

    def draw(below: int) -> int:
        assert below == 1024
        return next(left)

    monkeypatch.setattr(server, "secrets", SimpleNamespace(randbelow=draw))
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(sbrk=break_at))
    monkeypatch.setattr(server, "_KEPT", kept)
    server._shift_addresses()
    assert (len(kept[0]), *asked) == ((draws[0] + 1) * PAGE, (draws[1] + 1) * PAGE)
    kept[0].close()
