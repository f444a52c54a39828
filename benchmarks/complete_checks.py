"""Runs complete checks of known truth, as a user would: red, open, caught, seconds to the verdict.

    python benchmarks/complete_checks.py DIRECTORY [--checks 20] [--busy]
        [--kinds elsewhere unchanged rewritten +5 +10] [--kept benchmarks/complete_checks.jsonl]

DIRECTORY becomes a project with the six cases of ``checked_models.py`` and its stored baselines. Each
check is of a commit in which the compiled calls of one case, of each in turn, take 5 or 10 % longer than the
baselines say, or nothing gets slower: what changes then is a file that all cases read, one that none
imports (``elsewhere``), or a constant in every case's generated code (``rewritten``). Its base is the commit
before. ``--busy`` keeps one core busy half of the time, as another program would. Each check is written to a
file as it ends, with the machine and the commit of the gate that it ran on: started again, only what is
missing there is run, and the table is of all. A check takes minutes; on a machine that does something else
the figures are of that too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import checked_models

from gate.decide.evidence.pairs import Pair, list_pairs
from gate.decide.stats import compute_rate
from gate.files import codec
from gate.records.cases import Metric
from gate.records.verdict import Outcome, Status
from gate.store.baselines import load_baselines

# By how much the compiled calls of one case take longer.
KINDS: Mapping[str, float] = {"elsewhere": 0.0, "unchanged": 0.0, "rewritten": 0.0, "+5": 0.05, "+10": 0.10}
ELSEWHERE = "elsewhere"  # what changes is a file that no case imports
REWRITTEN = "rewritten"  # a constant in the generated code of every case
BASELINE_TRIALS = 5
BUSY_S = 0.05  # of each tenth of a second
CASE = "{name}/inference-float32-only-default"
CONFIG = """\
version: 1
device: cpu
threads: 2
reference_models: false
select: tag:checked
models:
{models}"""
MODEL = """\
  - name: {name}
    factory: checked_models:build
    arguments: {{name: {name}}}
    sizes: {{only: {{}}}}
    cases: [{{size: only, task: inference, dtype: float32, tags: [checked], expected_s: 25}}]
"""
_BURN = """\
import time
while True:
    end = time.monotonic() + {0}
    while time.monotonic() < end:
        pass
    time.sleep({0})
"""


@dataclass(frozen=True, kw_only=True)
class Check:
    """What came of one check. ``slowed`` is the case that was made slower, "" for none."""

    kind: str
    number: int
    busy: bool
    slowed: str
    outcome: str
    found: str  # of the slowed case's compiled latency: its status
    red: tuple[str, ...]  # what regressed although nothing was planted there
    open: tuple[str, ...]  # what else is INCONCLUSIVE
    seconds: float
    pairs: int
    suspects_s: tuple[float, ...]  # what the pairs of each case that had some took together
    machine: str  # its processor
    gate: str  # the commit that ran

    @property
    def key(self) -> tuple[str, int, bool]:
        """What identifies it among all."""
        return self.kind, self.number, self.busy

    @property
    def is_caught(self) -> bool:
        """Whether it is red for the slowed case, by its latency or by another metric."""
        latency_is = self.found == Status.REGRESSED.value
        return latency_is or (self.outcome == Outcome.REGRESSION.value and not self.red)


def main() -> None:
    """Run what is missing, and print the table."""
    options = parse_options()
    project: Path = options.directory.absolute()
    if not (project / "baselines").is_dir():
        make_project(project)
    path = options.kept or project / "checks.jsonl"
    checks = load_checks(path)
    done = {check.key for check in checks}
    with keep_busy(wanted=options.busy):
        for number in range(options.checks):
            for kind in options.kinds:
                if (kind, number, options.busy) in done:
                    continue
                checks.append(run_check(project, kind, number, busy=options.busy))
                with path.open("a") as lines:
                    lines.write(json.dumps(asdict(checks[-1])) + "\n")
                sys.stderr.write(f"{checks[-1]}\n")
    print("\n".join(describe_checks(checks)))


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--checks", type=int, default=20, help="of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--busy", action="store_true", help="keep one core busy half of the time")
    parser.add_argument("--kept", type=Path, help="the file of checks; default: checks.jsonl of DIRECTORY")
    return parser.parse_args()


def make_project(project: Path) -> None:
    """Make the project, commit it and record its baselines."""
    project.mkdir(parents=True, exist_ok=True)
    shutil.copy(checked_models.__file__, project / "checked_models.py")
    models = "".join(MODEL.format(name=name) for name in checked_models.NAMES)
    (project / "gate.yml").write_text(CONFIG.format(models=models))
    (project / ".gitignore").write_text("out/\nchecks.jsonl\nbaselines/\n__pycache__/\n")
    (project / "amounts.json").write_text("{}\n")
    run_git(project, "init", "--quiet")
    commit(project, "Six models")
    run_gate(project, "baseline", "refresh", "--anyway", "--trials", str(BASELINE_TRIALS)).check_returncode()


def run_check(project: Path, kind: str, number: int, *, busy: bool) -> Check:
    """Commit what is planted upon the project's first commit, and check it against that one."""
    first = run_git(project, "rev-list", "--max-parents=0", "HEAD")
    run_git(project, "reset", "--quiet", "--hard", first)  # a check that was killed left its own commit
    name = checked_models.NAMES[number % len(checked_models.NAMES)]
    slowed = CASE.format(name=name) if KINDS[kind] else ""
    amounts = {name: KINDS[kind] * find_latency(project, slowed)} if slowed else {}
    if kind == REWRITTEN:
        amounts = {"scale": checked_models.OTHER_SCALE}
    if kind == ELSEWHERE:
        (project / "elsewhere.py").write_text(f"CHECK = {number}\n")
    else:
        (project / "amounts.json").write_text(json.dumps({**amounts, "check": number + 1}) + "\n")
    commit(project, f"{kind}, {name}")
    out = project / "out" / f"{kind}-{number}{'-busy' if busy else ''}"
    begun = time.monotonic()
    ended = run_gate(project, "check", "--base", first, "--out", str(out))
    seconds = time.monotonic() - begun
    path = out / "verdict.json"
    if not path.is_file():
        sys.exit(f"{out}: the check gave no verdict (status {ended.returncode}):\n{ended.stderr[-2000:]}")
    verdict = codec.VERDICT.load(path)
    rows = [row for row in verdict.comparisons if row.decides]
    others = [row for row in rows if row.case_id != slowed]
    latencies = {row.case_id: row.status.value for row in rows if row.metric is Metric.COMPILED_LATENCY}
    run = codec.RUN.load(out / "run.json")
    return Check(
        kind=kind,
        number=number,
        busy=busy,
        slowed=slowed,
        outcome=verdict.outcome.value,
        found=latencies.get(slowed, ""),
        red=tuple(f"{row.case_id} {row.metric}" for row in others if row.status is Status.REGRESSED),
        open=tuple(f"{row.case_id} {row.metric}" for row in others if row.status is Status.INCONCLUSIVE),
        seconds=seconds,
        pairs=sum(map(len, list_pairs(run.trials).values())),
        suspects_s=tuple(
            round(sum(map(compute_wall_s, pairs)), 1) for pairs in list_pairs(run.trials).values()
        ),
        machine=run.environment.cpu,
        gate=find_commit(),
    )


def compute_wall_s(pair: Pair) -> float:
    """Wall time of a pair in seconds: both arms' stages lie beside each other, and so does their waiting."""
    return max(sum(trial.stages_s.values()) + trial.overhead_s for trial in (pair.base, pair.head))


def find_commit() -> str:
    """Find the commit of the gate that runs; with a + where files have changed since."""
    describe = ("git", "describe", "--always", "--dirty=+", "--exclude=*")
    done = subprocess.run(describe, cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def find_latency(project: Path, case_id: str) -> float:
    """Find the stored compiled latency of a case, in seconds."""
    (baseline,) = (
        baseline for baseline in load_baselines(project / "baselines") if baseline.case_id == case_id
    )
    return median(baseline.trials[Metric.COMPILED_LATENCY])


def run_gate(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run compile-gate in the project."""
    command = (sys.executable, "-m", "gate", *arguments)
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def run_git(project: Path, *arguments: str) -> str:
    """Run git in the project, and return what it prints."""
    done = subprocess.run(("git", *arguments), cwd=project, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def commit(project: Path, message: str) -> None:
    """Commit everything, also where nothing changed."""
    run_git(project, "add", "--all")
    author = ("-c", "user.name=check", "-c", "user.email=check@localhost")
    run_git(project, *author, "commit", "--quiet", "--allow-empty", "--message", message)


@contextmanager
def keep_busy(*, wanted: bool) -> Iterator[None]:
    """Let another program take one core half of the time, if wanted."""
    if not wanted:
        yield
        return
    with subprocess.Popen((sys.executable, "-c", _BURN.format(BUSY_S))) as other:
        try:
            yield
        finally:
            other.kill()


def load_checks(path: Path) -> list[Check]:
    """Load the checks that have ended."""
    lines = path.read_text().splitlines() if path.is_file() else []
    records = [json.loads(line) for line in lines]
    many = ("red", "open", "suspects_s")
    return [Check(**{**record, **{key: tuple(record[key]) for key in many}}) for record in records]


def describe_checks(checks: Sequence[Check]) -> Iterator[str]:
    """One row for each kind, quiet and busy."""
    yield (
        "| planted | other program | checks | red elsewhere, % | open, % | caught, % "
        "| pairs | seconds | a suspect's |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for busy in (False, True):
        for kind in KINDS:
            kind_checks = [check for check in checks if check.kind == kind and check.busy is busy]
            if kind_checks:
                yield describe_kind(kind, kind_checks)


def describe_kind(kind: str, checks: Sequence[Check]) -> str:
    """The row of one kind; a check counts as open by its outcome. Medians of pairs and seconds."""
    total = len(checks)
    suspects_s = [seconds for check in checks for seconds in check.suspects_s]
    caught = sum(check.is_caught for check in checks)
    cells = (
        kind,
        "half a core" if checks[0].busy else "none",
        str(total),
        describe_share(sum(bool(check.red) for check in checks), total),
        describe_share(sum(check.outcome == Outcome.INCONCLUSIVE.value for check in checks), total),
        describe_share(caught, total) if KINDS[kind] else "-",
        f"{median(check.pairs for check in checks):.0f}",
        f"{median(check.seconds for check in checks):.0f}",
        f"{median(suspects_s):.0f}" if suspects_s else "-",
    )
    return f"| {' | '.join(cells)} |"


def describe_share(hits: int, total: int) -> str:
    """A share in percent with its exact interval."""
    rate = compute_rate(hits, total)
    return f"{100 * hits / total:.0f} ({100 * rate.low:.0f} to {100 * rate.high:.0f})"


if __name__ == "__main__":
    main()
