"""How long complete checks take until the verdict, and where their seconds go.

    python benchmarks/verdict_seconds.py DIRECTORY [--checks 3] [--gate CHECKOUT]
        [--names two-slower two-same six-slower six-same]

DIRECTORY becomes a project with the six cases of ``verdict_models.py`` and their stored baselines. ``two``
checks two of them, ``six`` all. In a ``slower`` check the tower, one case of the two and two of the six, has
wider layers: its calls take a third to a half longer. In the ``same`` ones nothing got slower. Each changes a
file that all cases import; the base is the commit before. ``--gate`` runs the gate of another checkout.

Each check is a line of ``seconds.jsonl`` in DIRECTORY as it ends; started again, only what is missing there
is run, and the table is of all. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from complete_checks import commit, compute_wall_s, run_git

from gate.check.schedule import compute_trial_s
from gate.decide.evidence.pairs import list_pairs
from gate.files import codec
from gate.metrics import COMPILE_TIMES
from gate.records.protocol import Stage
from gate.records.run import Pairing, Run
from gate.records.verdict import Status

HIDDEN, WIDER = 1024, 1536
BASELINE_TRIALS = 5
TWO, SIX = "tower,convnext", "convnext,distilbert,whisper,gpt2,tower,trained"
NAMES: Mapping[str, tuple[str, int]] = {  # what is selected, and how wide the tower is
    "two-slower": (TWO, WIDER),
    "two-same": (TWO, HIDDEN),
    "six-slower": (SIX, WIDER),
    "six-same": (SIX, HIDDEN),
}
CONFIG = """\
version: 1
device: cpu
threads: 2
reference_models: false
models:
  - name: convnext
    factory: verdict_models:build_convnext
    sizes:
      tiny: {batch: 4, image: 64, num_labels: 64, hidden_sizes: [32, 64], depths: [1, 1], num_stages: 2}
    cases: [{size: tiny, expected_s: 25}]
  - name: distilbert
    factory: verdict_models:build_distilbert
    cases: [{expected_s: 25}]
  - name: whisper
    factory: verdict_models:build_whisper
    sizes:
      tiny:
        {batch: 2, num_mel_bins: 40, max_source_positions: 128, d_model: 64, encoder_layers: 1,
         encoder_attention_heads: 4, encoder_ffn_dim: 128}
    cases: [{size: tiny, expected_s: 25}]
  - name: gpt2
    factory: verdict_models:build_gpt2
    cases: [{task: training, expected_s: 40}]
  - name: tower
    factory: verdict_models:build_tower
    cases: [{expected_s: 20}]
  - name: trained
    factory: verdict_models:build_tower
    cases: [{task: training, expected_s: 30}]
"""


@dataclass(frozen=True, kw_only=True)
class Check:
    """What came of one check; seconds are of wall time, and what is left of ``seconds`` is the gate's own."""

    name: str
    gate: str  # the commit that ran
    outcome: str
    red: tuple[str, ...]
    open: tuple[str, ...]
    seconds: float
    prepared_s: float  # until the first trial began
    trials_s: float
    pairs_s: float
    pairs: int
    cold_pairs: int  # of them, those that timed a compile on empty caches
    trial_stages_s: Mapping[str, float]
    pair_stages_s: Mapping[str, float]  # of both arms, which are at work at the same time now and then


def main() -> None:
    """Run what is missing, and print the table."""
    options = parse_options()
    project: Path = options.directory.absolute()
    gate: Path = options.gate.absolute()
    if not (project / ".git").is_dir():
        make_project(project)
    for case in dict.fromkeys(case for name in options.names for case in NAMES[name][0].split(",")):
        record_baseline(project, gate, case)
    path, commit_id = (
        project / "seconds.jsonl",
        run_git(gate, "describe", "--always", "--dirty=+", "--exclude=*"),
    )
    for number in range(options.checks):
        for name in options.names:
            done = sum((check.name, check.gate) == (name, commit_id) for check in load_checks(path))
            if done <= number:
                check = run_check(project, gate, name, commit_id)
                with path.open("a") as lines:
                    lines.write(json.dumps(asdict(check)) + "\n")
    print("\n".join(describe_checks(load_checks(path))))


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--checks", type=int, default=3, help="of each name")
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--gate", type=Path, default=Path(__file__).parents[1], help="checkout of the gate")
    return parser.parse_args()


def make_project(project: Path) -> None:
    """Make the project and commit it."""
    project.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("verdict_models.py"), project)
    (project / "gate.yml").write_text(CONFIG)
    (project / ".gitignore").write_text("out/\nbaselines/\n__pycache__/\nseconds.jsonl\n")
    write_amounts(project, HIDDEN, "base")
    run_git(project, "init", "--quiet")
    commit(project, "Six cases")


def record_baseline(project: Path, gate: Path, case: str) -> None:
    """Record the baseline of a case, unless it is there."""
    if not list((project / "baselines").glob(f"*/{case}*")):
        run_git(project, "reset", "--quiet", "--hard", find_first(project))
        trials = ("--trials", str(BASELINE_TRIALS), "--out", f"out/baseline-{case}")
        run_gate(project, gate, "baseline", "refresh", "--anyway", "--select", case, *trials)


def find_first(project: Path) -> str:
    """The project's first commit, in which nothing is slower."""
    return run_git(project, "rev-list", "--max-parents=0", "HEAD")


def write_amounts(project: Path, hidden: int, text: str) -> None:
    """Write the file that every case imports."""
    (project / "amounts.py").write_text(f"# {text}\nTOWER_HIDDEN = {hidden}\n")


def run_check(project: Path, gate: Path, name: str, commit_id: str) -> Check:
    """Commit the change of this name upon the project's first commit, and check it against that one."""
    first = find_first(project)
    run_git(project, "reset", "--quiet", "--hard", first)
    selected, hidden = NAMES[name]
    write_amounts(project, hidden, f"{name} at {time.time_ns()}")
    commit(project, name)
    out = project / "out" / name
    shutil.rmtree(out, ignore_errors=True)
    begun = time.monotonic()
    run_gate(project, gate, "check", "--base", first, "--select", selected, "--out", str(out))
    seconds = time.monotonic() - begun
    verdict, run = codec.VERDICT.load(out / "verdict.json"), codec.RUN.load(out / "run.json")
    rows = [row for row in verdict.comparisons if row.decides]
    alone = [trial for trial in run.trials if trial.pairing is Pairing.ALONE]
    pairs = [pair for case_pairs in list_pairs(run.trials).values() for pair in case_pairs]
    return Check(
        name=name,
        gate=commit_id,
        outcome=verdict.outcome.value,
        red=tuple(f"{row.case_id} {row.metric}" for row in rows if row.status is Status.REGRESSED),
        open=tuple(f"{row.case_id} {row.metric}" for row in rows if row.status is Status.INCONCLUSIVE),
        seconds=seconds,
        prepared_s=run.toolchain_s,
        trials_s=sum(map(compute_trial_s, alone)),
        pairs_s=sum(map(compute_wall_s, pairs)),
        pairs=len(pairs),
        cold_pairs=sum(not {*COMPILE_TIMES}.isdisjoint(pair.head.samples) for pair in pairs),
        trial_stages_s=sum_stages(run, paired=False),
        pair_stages_s=sum_stages(run, paired=True),
    )


def sum_stages(run: Run, *, paired: bool) -> Mapping[str, float]:
    """Sum the stages of a run's trials, or of its pairs, the longest first."""
    total: Counter[str] = Counter()
    for trial in run.trials:
        if (trial.pairing is not Pairing.ALONE) == paired:
            overhead_s = trial.overhead_s - trial.stages_s.get(Stage.START, 0.0)
            total.update({**trial.stages_s, "ends": overhead_s})
    return {stage: round(seconds, 2) for stage, seconds in total.most_common()}


def run_gate(project: Path, gate: Path, *arguments: str) -> None:
    """Run compile-gate in the project; whatever it finds, its files say it."""
    environment = {**os.environ, "PYTHONPATH": str(gate)}
    command = (sys.executable, "-m", "gate", *arguments)
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    (project / "out").mkdir(exist_ok=True)
    (project / "out" / f"{arguments[0]}.log").write_text(f"{done.stdout}\n{done.stderr}")


def load_checks(path: Path) -> list[Check]:
    """Load the checks that have ended."""
    lines = path.read_text().splitlines() if path.is_file() else []
    records = [json.loads(line) for line in lines]
    return [Check(**{**record, **{key: tuple(record[key]) for key in ("red", "open")}}) for record in records]


def describe_checks(checks: Sequence[Check]) -> Iterator[str]:
    """One row for each name and commit, with medians."""
    yield "| check | gate | checks | outcomes | seconds | warm-up | trials | pairs | cold | their seconds |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in NAMES:
        for gate in dict.fromkeys(check.gate for check in checks):
            of_gate = [check for check in checks if (check.name, check.gate) == (name, gate)]
            if of_gate:
                yield describe_name(of_gate)


def describe_name(checks: Sequence[Check]) -> str:
    """The row of one name, of one commit."""
    outcomes = ", ".join(
        f"{count} {outcome}" for outcome, count in Counter(o.outcome for o in checks).items()
    )
    parts = ("seconds", "prepared_s", "trials_s", "pairs", "cold_pairs", "pairs_s")
    cells = (
        *(checks[0].name, checks[0].gate, str(len(checks)), outcomes),
        *(f"{median(getattr(check, part) for check in checks):.0f}" for part in parts),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
