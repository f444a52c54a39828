"""Plants a slowdown into one commit of many, in a throw-away repository, and has the real `bisect` find it.

    python benchmarks/bisect_planted.py FILE [--runs 10] [--commits 32] [--layers 2] [--minutes 20]

FILE gets a line of JSON a run; runs that it has are not run again, unless they failed. Each run
plants at another commit: a tower of 20 layers gets so many more, 10 % more work with 2. Every other commit
changes a comment. The metric is named, since a search for whatever is worse takes counters first.

Found: the commit that was planted, and seen again. Wrong: another one, and seen again. Candidates: some
commits were skipped, and the planted one is among those that are left. Could not tell: the command says so,
and the planted one is not named. Failed: anything else, with what was said last. Intervals are exact, 95 %.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from gate.decide.stats import compute_rate
from gate.files.codec import BISECTION, RUN
from gate.records.studies import Mark

FOUND, WRONG, CANDIDATES, UNTOLD, FAILED = "found", "wrong", "candidates", "could not tell", "failed"
LAYERS = 20
CASE, METRIC = "tower/inference-float32-smoke-default", "compiled_latency"
_NAMED = re.compile(r"^first bad: ([0-9a-f]{7,}) ", re.MULTILINE)
_CANDIDATE = re.compile(r"^  ([0-9a-f]{7}) ", re.MULTILINE)
_CONFIG = """\
version: 1
device: cpu
threads: 1
reference_models: false
models:
  - {name: tower, factory: "tower:build", cases: [{task: inference, dtype: float32}]}
"""
_MODEL = '''\
"""A tower of equal layers; change {number}."""

import torch

from gate import Workload

LAYERS = {layers}


class Tower(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256, 256) / 16)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        for _ in range(LAYERS):
            value = torch.tanh(value @ self.weight)
        return value


def build() -> Workload:
    return Workload(forward=Tower(), inputs=(torch.randn(64, 256),))
'''


@dataclass(frozen=True, kw_only=True)
class PlantedRun:
    """What came of one bisection; a line of the file."""

    run: int
    planted: int  # number of the commit
    outcome: str
    found: int | None
    exit_code: int
    change: float | None  # of the bad end, as its pairs saw it
    steps: int
    skipped: int
    pairs: int  # of the ends, the steps, and what was found
    minutes: float
    load: tuple[float, float]  # of the machine over a minute, before and after
    cores: int | None
    said: str = ""  # what was said last, where it failed


def plant(top: Path, commits: int, planted: int, layers: int) -> list[str]:
    """Make the repository; return its commits' ids, the good end first."""
    _git(top, "init", "--quiet", "--initial-branch=main")
    (top / "gate.yml").write_text(_CONFIG, encoding="utf-8")
    (top / ".gitignore").write_text("out/\n__pycache__/\n", encoding="utf-8")
    ids = []
    for number in range(commits + 1):
        text = _MODEL.format(number=number, layers=LAYERS + (layers if number >= planted else 0))
        (top / "tower.py").write_text(text, encoding="utf-8")
        _git(top, "add", ".")
        _git(top, "commit", "--quiet", "--message", f"Change {number}")
        ids.append(_git(top, "rev-parse", "HEAD"))
    return ids


def _git(top: Path, *arguments: str) -> str:
    who = ("-c", "user.name=planted", "-c", "user.email=planted@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=top, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run_once(run: int, planted: int, options: argparse.Namespace) -> PlantedRun:
    """Plant and bisect once."""
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        top = Path(directory)
        ids = plant(top, options.commits, planted, options.layers)
        command = [sys.executable, "-m", "gate", "bisect", CASE, METRIC, "--good", ids[0], "--quiet"]
        before, begun = os.getloadavg()[0], time.monotonic()
        done = subprocess.run(
            [*command, "--minutes", str(options.minutes)],
            cwd=top,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        minutes = (time.monotonic() - begun) / 60
        outcome, named = read_outcome(done.returncode, done.stdout, ids, planted)
        path = top / "out" / "bisect" / "bisection.json"
        state = BISECTION.load(path) if path.is_file() else None
        steps = state.steps if state else ()
        if options.show:
            print(done.stdout)
        return PlantedRun(
            run=run,
            planted=planted,
            outcome=outcome,
            found=named,
            exit_code=done.returncode,
            change=state.change if state else None,
            steps=len(steps),
            skipped=sum(step.mark is Mark.SKIP for step in steps),
            pairs=count_all_pairs(top / "out" / "bisect"),
            minutes=round(minutes, 2),
            load=(round(before, 2), round(os.getloadavg()[0], 2)),
            cores=os.cpu_count(),
            said="" if outcome == FOUND else done.stdout.strip()[-600:],
        )


def count_all_pairs(out: Path) -> int:
    """All pairs of a search, by the runs that it left."""
    return sum(RUN.load(path).pair_counts[CASE] for path in out.glob("*/run.json"))


def read_outcome(code: int, output: str, ids: list[str], planted: int) -> tuple[str, int | None]:
    """What the command says: its outcome, and the number of the commit that it names."""
    named = _NAMED.search(output)
    number_named = next(
        (number for number, commit_id in enumerate(ids) if named and commit_id.startswith(named[1])), None
    )
    if code == 0 and number_named is not None:
        return (FOUND if number_named == planted else WRONG), number_named
    if code == 11:  # noqa: PLR2004 - could not tell
        return (CANDIDATES if ids[planted][:7] in _CANDIDATE.findall(output) else UNTOLD), number_named
    return FAILED, number_named


def read_lines(path: Path) -> list[Mapping[str, object]]:
    """Read the runs that the file has, the last line of each."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return list({line["run"]: line for line in map(json.loads, lines)}.values())


def describe(lines: list[Mapping[str, object]]) -> str:
    """All runs in a line."""
    tally = Counter(str(line["outcome"]) for line in lines)
    rate = compute_rate(tally[FOUND], len(lines))
    outcomes = ", ".join(f"{count} {name}" for name, count in tally.most_common())
    steps, pairs, minutes = (
        sum(float(str(line[name])) for line in lines) / len(lines) for name in ("steps", "pairs", "minutes")
    )
    longest = max(float(str(line["minutes"])) for line in lines)
    share = f"{tally[FOUND]} of {len(lines)} found ({rate.low:.0%} to {rate.high:.0%})"
    return (
        f"{share}: {outcomes}; {steps:.1f} steps, {pairs:.0f} pairs and {minutes:.1f} minutes each, "
        f"{longest:.1f} at most"
    )


def main() -> int:
    """Run what the file lacks, and tell what it has then."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--commits", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2, help=f"more than {LAYERS}; 0 plants nothing")
    parser.add_argument("--minutes", type=float, default=20.0, help="of a whole search, as of `bisect`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what `bisect` says")
    options = parser.parse_args()
    order = random.Random(options.seed).sample(range(1, options.commits + 1), options.commits)  # noqa: S311
    finished = {line["run"] for line in read_lines(options.file) if line["outcome"] != FAILED}
    for run in range(options.runs):
        if run in finished:
            continue
        result = run_once(run, order[run % len(order)], options)
        with options.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        effort = f"{result.steps} steps, {result.pairs} pairs and {result.minutes:.1f} minutes"
        print(f"run {run}: planted at {result.planted}, {result.outcome} in {effort}", flush=True)
    print(describe(read_lines(options.file)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
