"""``python -m gate.worker.server DESCRIPTOR PARENT``: imports what workers need, and forks them. Linux only.

Importing torch takes longer than what most workers do, so it is done once. The server opens no device,
compiles nothing and starts no thread, so a fork works as a process of its own. For each module of factories
it can fork another server.
"""

import ctypes
import fcntl
import importlib
import mmap
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import warnings
from array import array
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import PathFinder
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from gate.errors import GateError
from gate.files import codec
from gate.files.messages import ServerAnswer, ServerDoes, ServerOrder, close_descriptors, receive, send
from gate.measure.checkout import check_source, set_search_path
from gate.programs import die_with_parent, end_process, list_children
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import ARM_VARIABLES, WorkerRequest
from gate.worker import worker
from gate.worker.imported import check_edits, list_imported_packages

_MAPS = Path("/proc/self/maps")
_PAGE_MAP = Path("/proc/self/pagemap")
_ENTRY_BYTES = 8  # of the page map, one a page
_PRESENT = 1 << 63  # proc(5): the page is in memory
# madvise(2), Linux 5.14 and later: as if each page were read, or written to. Older kernels refuse.
_POPULATE_READ, _POPULATE_WRITE = 22, 23
_OF_THE_KERNEL = ("[vvar]", "[vdso]", "[vsyscall]")
_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>
_FIRST_DESCRIPTOR = 300  # of our own: clear of the numbers that workers know their channels by
_THREADS_END_S = 0.5  # a thread that was joined is gone from /proc a moment later
_THREADS_LOOK_S = 0.002
_SHIFT_PAGES = 1024  # 4 MiB: two huge pages, so that every place within one is as likely
RequestHandler = Callable[[str, float], object]  # of a request's path, from a time.perf_counter() on
# What a worker imports before it measures. A user's own test is collected by a pytest that wants to
# rewrite plugins as it imports them: for those it finds none imported.
_FOR_FACTORIES = ("pytest", "pytest_benchmark.plugin")
# What importing made of environment variables; None: it removed this one. A worker, which imports nothing
# of that again, finds them so all the same.
_VARIABLES: dict[str, str | None] = {}
_FIRST_PATH = tuple(sys.path)
_ROOT_PATH: list[str] = []  # by which the root has imported
_KEPT: list[mmap.mmap] = []  # what shifts addresses, for as long as this process lives


class PageRange(NamedTuple):
    start: int  # in bytes, as the size
    size: int
    advice: int  # to madvise(2), by which they are mapped


def list_present() -> tuple[PageRange, ...]:
    try:
        with _PAGE_MAP.open("rb") as page_map:
            return tuple(
                page_range
                for line in _MAPS.read_text(errors="replace").splitlines()
                for page_range in _list_mapping(line, page_map)
            )
    except OSError:
        return ()


def map_pages(ranges: tuple[PageRange, ...]) -> None:
    """Map pages that this process has inherited: page faults that a process of its own has paid by then."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, size, advice in ranges:
        libc.madvise(start, size, advice)


def _list_mapping(line: str, page_map: BinaryIO) -> Iterator[PageRange]:
    addresses, rights, *_ = fields = line.split()
    if not rights.startswith("r") or rights.endswith("s") or fields[-1] in _OF_THE_KERNEL:
        return
    first, last = (int(address, 16) // mmap.PAGESIZE for address in addresses.split("-"))
    page_map.seek(first * _ENTRY_BYTES)
    entries = array("Q", page_map.read((last - first) * _ENTRY_BYTES))
    page = first
    for is_present, group in groupby(entries, lambda entry: entry >= _PRESENT):
        pages = sum(1 for _ in group)
        if is_present:
            advice = _POPULATE_WRITE if "w" in rights else _POPULATE_READ
            yield PageRange(page * mmap.PAGESIZE, pages * mmap.PAGESIZE, advice)
        page += pages


def main(run: RequestHandler = worker.run_request) -> NoReturn:
    """Serve until the lab hangs up; workers ``run`` their requests.

    Nothing is taken down at the end: that takes more than a second with torch's libraries.
    """
    descriptor, parent = map(int, sys.argv[1:])
    _end_after(lambda: _Server(descriptor, run).serve(parent))


class _Server:
    def __init__(self, descriptor: int, run: RequestHandler) -> None:
        # Under a number that no worker needs; compilers do not inherit it.
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
        os.close(descriptor)
        self._line = socket.socket(fileno=moved)
        self._run = run
        self._branches: set[int] = set()
        self._pages: tuple[PageRange, ...] = ()  # of what was imported

    def serve(self, parent: int) -> None:
        die_with_parent(parent)
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        while True:
            received, descriptors = receive(self._line)
            if received is None:
                return
            answer = self._obey(codec.decode(ServerOrder, received, "order"), descriptors)
            close_descriptors(descriptors)
            send(self._line, answer)

    def _obey(self, order: ServerOrder, descriptors: tuple[int, ...]) -> ServerAnswer:
        if order.does is ServerDoes.IMPORT and order.request is not None:
            answer = _import_modules(order.request, order.variables)
            self._pages = list_present()
            return answer
        if order.does is ServerDoes.REAP:
            return ServerAnswer(status=self._reap(order.pid))
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            self._line.close()
            if order.does is ServerDoes.BRANCH:
                _end_after(lambda: _Server(descriptors[0], self._run).serve(parent))
            else:
                die_with_parent(parent)
                _end_after(lambda: self._work(order, descriptors))
        if order.does is ServerDoes.BRANCH:
            self._branches = {
                branch for branch in self._branches if not os.waitpid(branch, os.WNOHANG)[0]
            } | {pid}
        return ServerAnswer(pid=pid)

    def _work(self, order: ServerOrder, descriptors: tuple[int, ...]) -> None:
        begun = time.perf_counter()
        _become_worker(order, descriptors)
        map_pages(self._pages)
        self._run(order.path, begun)

    def _reap(self, pid: int) -> int:
        """Wait for a worker's end, end what it left behind, and return the worker's status."""
        _, status = os.waitpid(pid, 0)
        # Who ends leaves its own children to this process: they are looked for again.
        while left := set(list_children(os.getpid())) - self._branches:
            for child in left:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)


def _import_modules(request: WorkerRequest, variables: Mapping[str, str]) -> ServerAnswer:
    case = request.case
    try:
        if _enter_arm(request, variables):
            return ServerAnswer(is_otherwise=True)
        before = dict(os.environ)
        import torch  # noqa: PLC0415 - what this process is for

        from gate.measure.workload.build import load_module  # noqa: PLC0415 - torch
        from gate.suite.fixture import import_compiler  # noqa: PLC0415 - torch

        for name in _FOR_FACTORIES if case and case.factory else ():
            importlib.import_module(name)
        import_compiler()
        threads = torch.get_num_threads()
        if case and case.factory:
            check_source(case.factory, request)
            load_module(case.factory)  # a function that it lacks is the case's fault
        check_edits(request)
        list_imported_packages(request)  # what that reads stays in memory
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module does as it is imported
        traceback.print_exc()
        reason = error.what if isinstance(error, GateError) else type(error).__name__  # no class of ours
        return ServerAnswer(problem=Fact(code=Code.IMPORT_FAILED, names=name_words(exception=reason)))
    changed = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
    _VARIABLES.update({name: os.environ.get(name) for name in changed})
    # A worker sets its own before it imports, so there the module has the last word.
    sets_threads = torch.get_num_threads() != threads
    problem = Fact(code=Code.IMPORT_SETS_THREADS) if sets_threads else _find_obstacle()
    return ServerAnswer(problem=problem)


def _enter_arm(request: WorkerRequest, variables: Mapping[str, str]) -> bool:
    """Become a process of the arm: its directory, variables and search path.

    Return whether a module of an imported one's name lies where only this arm looks, or only the root's.
    """
    os.chdir(request.directory)
    for name in ARM_VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(variables)
    added = [entry for entry in sys.path if entry not in {*_FIRST_PATH, *_ROOT_PATH}]  # by what was imported
    sys.path[:] = _FIRST_PATH
    set_search_path(request)
    _ROOT_PATH[:] = _ROOT_PATH or sys.path
    differing = sorted({*_ROOT_PATH}.symmetric_difference(sys.path))
    sys.path += added
    names = {name.partition(".")[0] for name in sys.modules} - {"gate"} if differing else set()
    specs = (PathFinder.find_spec(name, differing) for name in names)
    return any(spec is not None and spec.has_location for spec in specs)


def _find_obstacle() -> Fact | None:
    """Find what forbids a fork: a thread is not copied, and a lock that it holds is held for ever."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if threads:
        return Fact(code=Code.IMPORT_STARTS_THREADS, names=name_words(thread=threads[0]))
    if list_children(os.getpid()):
        return Fact(code=Code.IMPORT_STARTS_PROCESSES)
    return Fact(code=Code.IMPORT_STARTS_THREADS) if _has_lasting_threads() else None


def _has_lasting_threads() -> bool:
    """Whether there are threads that no library ends before a fork: those of a parallel loop of OpenMP.

    OpenBLAS, of which NumPy and SciPy bring a copy each, ends its own (``pthread_atfork``, in its
    ``driver/others/blas_server.c``).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is what is asked
        child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    until = time.monotonic() + _THREADS_END_S
    while lasts := len(list(Path("/proc/self/task").iterdir())) > 1:
        if time.monotonic() > until:
            break
        time.sleep(_THREADS_LOOK_S)
    return lasts


def _become_worker(order: ServerOrder, descriptors: tuple[int, ...]) -> None:
    os.setsid()
    output, *channel = (
        fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR) for descriptor in descriptors
    )
    for standard in (sys.stdout, sys.stderr):
        os.dup2(output, standard.fileno())
    for descriptor in channel:
        os.dup2(descriptor, order.channel)
    close_descriptors((output, *channel))
    os.environ.clear()
    os.environ.update(order.variables)
    for name, value in _VARIABLES.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None  # what was imported may have asked for it, before TMPDIR was the run's own
    _shift_addresses()


def _shift_addresses() -> None:
    """Place later allocations as no sibling does, as processes of their own would."""
    pages = [secrets.randbelow(_SHIFT_PAGES) + 1 for _ in range(2)]
    _KEPT.append(mmap.mmap(-1, pages[0] * mmap.PAGESIZE, prot=mmap.PROT_READ))  # never touched: no memory
    libc = ctypes.CDLL(None)
    libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, (ctypes.c_long,)
    libc.sbrk(pages[1] * mmap.PAGESIZE)


def _end_after(work: Callable[[], object]) -> NoReturn:
    status = 1
    try:
        work()
        status = 0
    except SystemExit as error:  # as an interpreter ends
        if error.code is None or isinstance(error.code, int):
            status = error.code or 0
        else:
            sys.stderr.write(f"{error.code}\n")
    except BaseException:  # noqa: BLE001 - the child must not go on as a server
        traceback.print_exc()
    finally:
        end_process(status)


if __name__ == "__main__":
    main()
