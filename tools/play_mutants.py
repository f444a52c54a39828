"""Change rooms of the product in small ways, one at a time, and list the changes that no test notices.

    python tools/play_mutants.py decide --count 40 --seed 1
    python tools/play_mutants.py --since HEAD~1     # the rooms and lines that changed since then

A room is a package or module of ``gate/``. The tests of all named rooms run once, to see which of them run
which lines. Then those that ran a changed line meet the change in a copy of the repository, those of its own
room first; if none did, as where only their processes run it, all of the room. What a function does is played
in forks (tools/fork_mutants.py), what importing does in a process each. A change that keeps its meaning is
listed in tools/equivalent_mutants.toml, with the reason. The status is 1 if fewer than 95 % of the others
were noticed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue

import coverage
from draw_mutants import Mutant, draw_mutants, filter_lines
from fork_mutants import ALIVE, DEAD, LIMIT_S, change_file
from rooms import QUICK, list_tests

from gate.programs import count_cores

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
NEEDED = 0.95
TRACED = f"{QUICK} and not untraced"
TESTS_S = 20.0  # of the tests that one change meets, as long as they took in the first run
TEST_LIMIT_S = 20  # of a test that takes seconds without a change
UNTESTED, SAME, WAITING = "untested", "equivalent", "waiting"


@dataclass(frozen=True, kw_only=True)
class RoomTests:
    """What the tests of rooms run: the lines of each file with their tests, and the seconds of each test.

    A line that was run outside of a test, as tests were imported, has the test ''.
    """

    lines: Mapping[str, Mapping[int, Collection[str]]]
    seconds: Mapping[str, float]

    def find(self, mutant: Mutant, root: Path, of_room: tuple[str, ...]) -> set[str]:
        """Find the tests that can notice a change; of a constant those of its users.

        What importing makes is also for the room's tests in files that have its name, or that the room names,
        such as those of schemas. What only processes of tests run, which are not traced, is for every test of
        the room.
        """
        lines = range(mutant.line, mutant.last + 1)
        tests = {test for line in lines for test in self._list(mutant.file, line)} - {""}
        if not tests and (names := find_names(mutant, root)):
            tests = {test for file, line in find_uses(names, root) for test in self._list(file, line)}
            inside = {test: test.partition("::")[0] for test in self.seconds if test.startswith(of_room)}
            tests |= {
                test for test, file in inside.items() if file in of_room or has_name(root / file, names)
            }
        return tests & self.seconds.keys() or {test for test in self.seconds if test.startswith(of_room)}

    def choose(self, mutant: Mutant, root: Path, of_room: tuple[str, ...]) -> list[str]:
        """Choose the tests that a change meets: as many of its room as time allows, and as many others.

        Those come first whose names share most words with the file and the function, then the quickest.
        """
        chosen: list[str] = []
        tests = self.find(mutant, root, of_room)
        inside = {test for test in tests if test.startswith(of_room)}
        words = list_words(f"{mutant.file} {mutant.function}")

        def rank(test: str) -> tuple[int, float, str]:
            return -len(words & list_words(test.partition("[")[0])), self.seconds[test], test

        for group in (inside, tests - inside):
            left_s = TESTS_S
            for test in sorted(group, key=rank):
                if self.seconds[test] <= left_s:
                    left_s -= self.seconds[test]
                    chosen.append(test)
        return chosen

    def is_imported(self, mutant: Mutant) -> bool:
        """Whether importing runs what was changed."""
        lines = range(mutant.line, mutant.last + 1)
        return not mutant.function or any("" in self._list(mutant.file, line) for line in lines)

    def _list(self, file: str, line: int) -> Collection[str]:
        return self.lines.get(file, {}).get(line, ())


@cache
def list_words(name: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z]+", name.lower()))


def find_names(mutant: Mutant, root: Path) -> set[str]:
    """Find the names that a change outside of all functions gives another value."""
    names = set()
    for node in ast.walk(ast.parse((root / mutant.file).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.stmt) or not node.lineno <= mutant.line <= (node.end_lineno or 0):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= mutant.line:
                return set()  # no test runs this line
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def has_name(path: Path, names: Collection[str]) -> bool:
    """Whether a file has one of these names; a file that is not there has none."""
    return path.is_file() and not list_names(path).isdisjoint(names)


@cache
def list_names(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def find_uses(names: Collection[str], root: Path) -> Iterator[tuple[str, int]]:
    """Find the lines of the product that have one of these names."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    for path in sorted((root / "gate").rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if pattern.search(line):
                yield str(path.relative_to(root)), number


def copy_repository(target: Path) -> None:
    """Copy what git has or would add."""
    listed = subprocess.run(
        ("git", "ls-files", "-zco", "--exclude-standard"), cwd=ROOT, check=True, capture_output=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def make_command(*arguments: str) -> tuple[str, ...]:
    # An explanation of two records that differ can take seconds, and a change can make an endless loop.
    quick = ("--assert=plain", "--tb=no", f"--timeout={TEST_LIMIT_S}")
    return (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *quick, *arguments)


def make_environment(top: Path, **more: str) -> dict[str, str]:
    """Make the environment of tests of a copy: their bytecode stays that of the unchanged files."""
    return os.environ | {"PYTHONPATH": f"{top}{os.pathsep}{ROOT / 'tools'}", **more}


def run_pytest(top: Path, limit_s: float | None, *arguments: str, **environment: str) -> int:
    """Run pytest in a copy of the repository; return its status, after a limit that of failed tests."""
    try:
        return subprocess.run(
            make_command(*arguments),
            cwd=top,
            env=make_environment(top, **environment),
            check=False,
            timeout=limit_s,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
    except subprocess.TimeoutExpired:
        return 1


def learn_tests(top: Path, tests: Sequence[str]) -> RoomTests:
    """Run the tests of rooms once, to see which lines each of them runs and how long it takes."""
    settings, data, report = (top / name for name in ("mutants.ini", "mutants.coverage", "mutants.xml"))
    settings.write_text(f"[run]\nsource = gate\ndata_file = {data}\n", encoding="utf-8")
    options = ("--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=")
    run_pytest(
        top,
        None,
        *options,
        f"--junit-xml={report}",
        *("-n", str(count_cores()), "--dist=worksteal", "-m", TRACED, *tests),
        PYTHONDONTWRITEBYTECODE="",
    )
    measured = coverage.CoverageData(str(data))
    measured.read()
    lines = {
        str(Path(file).relative_to(top)): {
            line: {context.rpartition("|")[0] for context in contexts}
            for line, contexts in measured.contexts_by_lineno(file).items()
        }
        for file in measured.measured_files()
    }
    passed = {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}": float(case.get("time", 0))
        for case in ET.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest wrote it just now
        if not list(case)  # neither failed nor skipped
    }
    return RoomTests(lines=lines, seconds=passed)


def play(mutant: Mutant, tests: Sequence[str], top: Path) -> str:
    """Play one change in a copy of the repository, by a process of its own."""
    chosen = top / "mutants.txt"
    chosen.write_text("\n".join(tests), encoding="utf-8")
    with change_file(top / mutant.file, mutant):
        status = run_pytest(top, LIMIT_S, "-x", "-p", "no:xdist", f"@{chosen}", PYTHONDONTWRITEBYTECODE="1")
    return ALIVE if status == 0 else DEAD


@contextmanager
def start_forks(top: Path, tests: Sequence[str]) -> Iterator[Callable[[Mutant, Sequence[str]], str]]:
    """Collect the tests in one process of a copy; yield what plays a change in a fork of it."""
    reading, writing = os.pipe()
    options = ("-s", "-p", "no:xdist", "-p", "fork_mutants", f"--ends={writing}", "-m", TRACED)
    with (
        subprocess.Popen(
            make_command(*options, *tests),
            cwd=top,
            env=make_environment(top, PYTHONDONTWRITEBYTECODE="1"),
            pass_fds=(writing,),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
        os.fdopen(reading, encoding="utf-8") as ends,
    ):
        os.close(writing)

        def play_in_fork(mutant: Mutant, chosen: Sequence[str]) -> str:
            print(json.dumps((asdict(mutant), chosen)), file=process.stdin, flush=True)
            return ends.readline().strip()

        yield play_in_fork


def find_reason(mutant: Mutant) -> str:
    """Find why a change keeps the meaning of its line; '' if it is not said to."""
    equivalent = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    keys = ("file", "source", "old", "new")
    return next(
        (
            str(entry["why"])
            for entry in equivalent
            if all(entry[key] == getattr(mutant, key) for key in keys)
        ),
        "",
    )


def list_changed_lines(since: str) -> dict[str, set[int]]:
    """List the lines of each file that are new since a commit."""
    command = ("git", "diff", "--no-ext-diff", "--no-color", "-U0", since, "--", "gate")
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines: dict[str, set[int]] = defaultdict(set)
    file = ""
    for line in output.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ ").partition("/")[2]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(hunk[1])
            lines[file] |= set(range(first, first + int(hunk[2] or 1)))
    return lines


def play_all(mutants: Mapping[str, Sequence[Mutant]], scratch: Path) -> dict[str, Counter[str]]:
    """Play the changes of each room, on all cores; count what became of them."""
    tests = sorted({path for room in mutants for path in list_tests(room)})
    tops = [scratch / str(number) for number in range(count_cores())]
    copy_repository(tops[0])
    learned = learn_tests(tops[0], tests)
    print(f"{len(learned.seconds)} tests pass; each change meets those that run it", flush=True)
    for top in tops[1:]:
        shutil.copytree(tops[0], top, symlinks=True)  # with its bytecode
    ends: dict[Mutant, str] = {}
    plays: dict[Mutant, list[str]] = {}
    for room, drawn in mutants.items():
        for mutant in drawn:
            plays[mutant] = learned.choose(mutant, ROOT, list_tests(room))
            ends[mutant] = SAME if find_reason(mutant) else WAITING if plays[mutant] else UNTESTED
    waiting: SimpleQueue[Mutant] = SimpleQueue()
    for mutant, end in ends.items():
        if end == WAITING:
            waiting.put(mutant)
        elif end == UNTESTED:
            show(mutant, end)

    def play_waiting(top: Path) -> None:
        with start_forks(top, tests) as play_in_fork, suppress(Empty):
            while True:
                mutant = waiting.get_nowait()
                play_this = partial(play, top=top) if learned.is_imported(mutant) else play_in_fork
                ends[mutant] = play_this(mutant, plays[mutant])
                show(mutant, ends[mutant])

    with ThreadPoolExecutor(len(tops)) as pool:
        list(pool.map(play_waiting, tops))
    return {room: Counter(ends[mutant] for mutant in drawn) for room, drawn in mutants.items()}


def show(mutant: Mutant, end: str) -> None:
    """Print what became of a change, unless it was noticed."""
    if end != DEAD:
        print(f"{end}: {mutant.file}:{mutant.line} {mutant.kind}: {mutant.old} -> {mutant.new}", flush=True)


def draw_room(room: str, options: argparse.Namespace) -> list[Mutant]:
    """Draw the changes of a room, where ``--since`` is given from the lines that changed."""
    if not options.since:
        return draw_mutants(ROOT, room, options.count, options.seed)
    mutants = draw_mutants(ROOT, room, sys.maxsize, options.seed)
    return filter_lines(mutants, list_changed_lines(options.since))[: options.count]


def list_changed_rooms(since: str) -> list[str]:
    """List the rooms that have changed lines."""
    return sorted({file.split("/")[1].removesuffix(".py") for file in list_changed_lines(since)})


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, play, and print what became of the changes of each room."""
    parser = argparse.ArgumentParser(description="List changes of a room that no test notices.")
    parser.add_argument("rooms", nargs="*", help="packages or modules of gate/, such as decide worker/server")
    parser.add_argument("--count", type=int, default=40, help="of each room (40)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (1)")
    parser.add_argument(
        "--since", help="only lines that changed since this commit; its rooms if none is named"
    )
    options = parser.parse_args(arguments)
    if not options.rooms and not options.since:
        parser.error("name a room, or --since")
    rooms = options.rooms or list_changed_rooms(options.since)
    mutants = {room: drawn for room in rooms if (drawn := draw_room(room, options))}
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        ends = play_all(mutants, Path(scratch))
    print("| room | drawn | dead | alive | untested | equivalent |\n| --- | --- | --- | --- | --- | --- |")
    for room, counted in ends.items():
        counts = " | ".join(str(counted[end]) for end in (DEAD, ALIVE, UNTESTED, SAME))
        print(f"| {room} | {counted.total()} | {counts} |")
    total = sum(ends.values(), Counter[str]())
    return 0 if total[DEAD] >= NEEDED * (total.total() - total[SAME]) else 1


if __name__ == "__main__":
    sys.exit(main())
