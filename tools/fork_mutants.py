"""A plugin of pytest that plays changes of the product in forks of one process that has collected the tests.

    python -m pytest -s -p fork_mutants --ends=FD TESTS < PLAYS

A play is a line of JSON: a change, and the tests that it meets in their order. A fork replaces the code of
the changed function and runs the tests until one fails; processes that they start find the change on disk. A
test that fails in a fork without any change is left out. What became of each play is a line in FD.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from draw_mutants import Mutant

DEAD, ALIVE = "dead", "alive"
LIMIT_S = 120.0  # a change that makes an endless loop was noticed


@contextmanager
def change_file(path: Path, mutant: Mutant) -> Iterator[bytes]:
    """Let a file hold a change, and restore it with its time, so that its bytecode stays valid."""
    text, status = path.read_bytes(), path.stat()
    changed = mutant.apply(text)
    path.write_bytes(changed)
    try:
        yield changed
    finally:
        path.write_bytes(text)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def find_code(code: CodeType, name: str, line: int) -> CodeType | None:
    """Find the code of a function by its qualified name and first line."""
    if (code.co_qualname, code.co_firstlineno) == (name, line):
        return code
    inner = (find_code(constant, name, line) for constant in code.co_consts if isinstance(constant, CodeType))
    return next((found for found in inner if found is not None), None)


def list_functions(top: Path) -> dict[tuple[str, str, int], list[FunctionType]]:
    """List the product's functions that were imported by file, qualified name and first line."""
    functions = defaultdict(list)
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename.startswith(f"{top}/gate/"):
            code = function.__code__
            functions[code.co_filename, code.co_qualname, code.co_firstlineno].append(function)
    return functions


@dataclass(kw_only=True)
class Player:
    """Plays changes of the copy ``top``, each in a fork."""

    top: Path
    items: Mapping[str, pytest.Item]
    functions: Mapping[tuple[str, str, int], Sequence[FunctionType]]
    begun: int = field(default_factory=lambda: os.memfd_create("begun"))  # the index of the running test
    passing: set[str] = field(default_factory=set)  # in a fork without a change
    failing: set[str] = field(default_factory=set)

    def play(self, mutant: Mutant, tests: Sequence[str]) -> str:
        """Play a change; what became of it."""
        while chosen := [test for test in tests if test in self.items and test not in self.failing]:
            failed = self._run_changed(mutant, chosen)
            if failed is None:
                return ALIVE
            if failed not in self.passing:
                (self.failing if self._fork([failed], None) else self.passing).add(failed)
            if failed in self.passing:
                return DEAD
        return ALIVE

    def _run_changed(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        path = self.top / mutant.file
        with change_file(path, mutant) as changed:
            code = find_code(compile(changed, str(path), "exec"), mutant.function, mutant.function_line)
            return self._fork(tests, (mutant, code))

    def _fork(self, tests: Sequence[str], change: tuple[Mutant, CodeType | None] | None) -> str | None:
        """Run tests in a fork, until one fails; return it."""
        if not (child := os.fork()):
            try:
                self._run_and_exit(tests, change)
            finally:
                os._exit(1)
        process = os.pidfd_open(child)
        select.select([process], [], [], LIMIT_S)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with what it left running
        _, status = os.waitpid(child, 0)
        os.close(process)
        return None if status == 0 else tests[int.from_bytes(os.pread(self.begun, 4, 0), "little")]

    def _run_and_exit(self, tests: Sequence[str], change: tuple[Mutant, CodeType | None] | None) -> None:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
        if change is not None and (code := change[1]) is not None:
            mutant = change[0]
            key = (str(self.top / mutant.file), mutant.function, mutant.function_line)
            for function in self.functions.get(key, ()):
                function.__code__ = code
        items = [self.items[test] for test in tests]
        for index, item in enumerate(items):
            os.pwrite(self.begun, index.to_bytes(4, "little"), 0)
            following = items[index + 1] if index + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                os._exit(1)
        os._exit(0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ends", type=int, help="file descriptor of what became of each")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Play all changes instead of running the tests once."""
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001 - of all forks
    top = session.config.rootpath
    player = Player(
        top=top, items={item.nodeid: item for item in session.items}, functions=list_functions(top)
    )
    with os.fdopen(session.config.getoption("--ends"), "w", encoding="utf-8", buffering=1) as ends:
        for line in sys.stdin:
            mutant, tests = json.loads(line)
            print(player.play(Mutant(**mutant), tests), file=ends)
    return True
