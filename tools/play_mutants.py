"""Change rooms of the product in small ways, one at a time, and list the changes that no test notices.

    python tools/play_mutants.py decide --count 40 --seed 1
    python tools/play_mutants.py --since HEAD~1     # the rooms and lines that changed since then

A room is a package or module of ``gate/``. Its tests run once, to see which of them run which lines; then
those that ran a changed line meet the change, the quickest first, in a copy of the repository. A change that
keeps its meaning is listed in tools/equivalent_mutants.toml, with the reason. The status is 1 if fewer than
95 % of the others were noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import coverage
from draw_mutants import Mutant, draw_mutants, filter_lines
from rooms import QUICK, list_tests

from gate.programs import count_cores

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
NEEDED = 0.95
TESTS_S = 20.0  # of the tests that one change meets, as long as they took in the first run
LIMIT_S = 120.0  # a change that makes an endless loop was noticed
DEAD, ALIVE, UNTESTED, SAME = "dead", "alive", "untested", "equivalent"


@dataclass(frozen=True, kw_only=True)
class RoomTests:
    """What the tests of a room run: the lines of each file with their tests, and the seconds of each test."""

    lines: Mapping[str, Mapping[int, Collection[str]]]
    seconds: Mapping[str, float]

    def choose(self, mutant: Mutant, root: Path) -> list[str]:
        """Choose the tests that can notice a change, the quickest first; of a constant those of its users."""
        of_file = self.lines.get(mutant.file, {})
        tests = {test for line in range(mutant.line, mutant.last + 1) for test in of_file.get(line, ())}
        if not tests and (names := find_names(mutant, root)):
            tests = {test for file, line in find_uses(names, root) for test in self._list(file, line)}
        chosen, total_s = [], 0.0
        for test in sorted(tests & self.seconds.keys(), key=lambda name: (self.seconds[name], name)):
            total_s += self.seconds[test]
            if total_s > TESTS_S:
                break
            chosen.append(test)
        return chosen

    def _list(self, file: str, line: int) -> Collection[str]:
        return self.lines.get(file, {}).get(line, ())


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


def run_pytest(top: Path, limit_s: float | None, *arguments: str) -> int:
    """Run pytest in a copy of the repository; return its status, after a limit that of failed tests."""
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
    environment = os.environ | {"PYTHONPATH": str(top), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        return subprocess.run(
            command,
            cwd=top,
            env=environment,
            check=False,
            timeout=limit_s,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
    except subprocess.TimeoutExpired:
        return 1


def learn_tests(top: Path, tests: Sequence[str]) -> RoomTests:
    """Run the tests of a room once, to see which lines each of them runs and how long it takes."""
    settings, data, report = (top / name for name in ("mutants.ini", "mutants.coverage", "mutants.xml"))
    settings.write_text(f"[run]\nsource = gate\ndata_file = {data}\n", encoding="utf-8")
    run_pytest(
        top,
        None,
        *(
            "--cov",
            f"--cov-config={settings}",
            "--cov-context=test",
            "--cov-report=",
            f"--junit-xml={report}",
        ),
        *("-n", str(count_cores()), "--dist=worksteal", "-m", f"{QUICK} and not untraced", *tests),
    )
    measured = coverage.CoverageData(str(data))
    measured.read()
    lines = {
        str(Path(file).relative_to(top)): {
            line: {context.rpartition("|")[0] for context in contexts if context}
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
    """Play one change in a copy of the repository."""
    if not tests:
        return UNTESTED
    path, chosen = top / mutant.file, top / "mutants.txt"
    chosen.write_text("\n".join(tests), encoding="utf-8")
    text = path.read_bytes()
    path.write_bytes(mutant.apply(text))
    cached = [*path.parent.glob(f"__pycache__/{path.stem}.*.pyc")]
    try:
        for compiled in cached:  # it may be as old and as large as the changed file
            compiled.unlink()
        status = run_pytest(top, LIMIT_S, "-x", "-p", "no:xdist", f"@{chosen}")
    finally:
        path.write_bytes(text)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
    return ALIVE if status == 0 else DEAD


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


def play_all(mutants: Sequence[Mutant], tests: Sequence[str], scratch: Path) -> list[str]:
    """Play each change, on all cores; return what became of each."""
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(count_cores()):
        copy_repository(scratch / str(number))
        copies.put(scratch / str(number))
    first = scratch / "0"
    learned = learn_tests(first, tests)
    print(f"{len(learned.seconds)} tests pass; {len(mutants)} changes meet those that run them", flush=True)

    def play_one(mutant: Mutant) -> str:
        if find_reason(mutant):
            return SAME
        chosen = learned.choose(mutant, ROOT)
        top = copies.get()
        end = play(mutant, chosen, top)
        copies.put(top)
        if end != DEAD:
            print(
                f"{end}: {mutant.file}:{mutant.line} {mutant.kind}: {mutant.old} -> {mutant.new}", flush=True
            )
        return end

    with ThreadPoolExecutor(count_cores()) as pool:
        return list(pool.map(play_one, mutants))


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
    total: Counter[str] = Counter()
    rows = [
        "| room | drawn | dead | alive | untested | equivalent |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for room in options.rooms or list_changed_rooms(options.since):
        if mutants := draw_room(room, options):
            with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
                ends = Counter(play_all(mutants, list_tests(room), Path(scratch)))
            counts = " | ".join(str(ends[end]) for end in (DEAD, ALIVE, UNTESTED, SAME))
            rows.append(f"| {room} | {len(mutants)} | {counts} |")
            total += ends
    print("\n".join(rows))
    return 0 if total[DEAD] >= NEEDED * (total.total() - total[SAME]) else 1


if __name__ == "__main__":
    sys.exit(main())
