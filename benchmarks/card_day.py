"""A day on a card: what is seen there alone, the most valuable part first, 25 minutes in all.

    python benchmarks/card_day.py FOLDER --device cuda     # nine minutes; again, or another day, it goes on
    python benchmarks/card_day.py FOLDER --small           # all parts on a CPU, with small cases

Each part is a command of compile-gate in a process of its own, with a time of its own. What one left behind
is continued: FOLDER holds all there is, in five files. ``table.md`` is for docs/gpu.md, and ``baselines.zip``
is unpacked into ``baselines/``. A part that fails, or is cut off, is a row that says so.

``target`` compiles for a card without one, with a CPU build of torch: run it before (``--only target``), and
it is compared with what the card compiled.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE, TABLE, LOG, WORK, BASELINES = "day.json", "table.md", "log.txt", "work.zip", "baselines.zip"
CHECKPOINT_S = 45.0  # what is lost at most when this is killed
ENDING_S = 20.0  # that a command gets to save what it has
LEAST_S = 20.0  # with less left no part is begun
LOG_LINES = 40  # of each command that are kept
ENDED = frozenset({"done", "failed"})
SUCCESS, USAGE = 0, 2
PR_SET_PDEATHSIG = 1  # prctl(2)
JUDGED = (0, 3, 10, 11)  # a verdict was given, whichever
COMPARED = ("graph_breaks", "unique_graphs", "captured_ops", "generated_kernels")
FAULTS = {"break": "graph_breaks", "slow": "compiled_latency", "keep": "memory_growth", "wrong": "drift"}
# By what they take on a card, the least first.
PULL_REQUEST = (
    "elementwise/inference-bfloat16-full-default",
    "stencil/inference-float32-full-default",
    "vit/inference-bfloat16-full-default",
    "bert/inference-bfloat16-full-default",
    "resnet50/inference-bfloat16-full-default",
    "lstm/training-bfloat16-full-default",
    "bert/training-bfloat16-full-default",
    "llama/inference-bfloat16-full-default",
    "unet/inference-bfloat16-full-default",
)
GRAPHED = "elementwise/inference-float32-full-*,!*-default"
SMALL = {"threads": 1, "max_trials": 1, "sampling": {"super_blocks": 3, "drift_seeds": 1}}  # of gate.yml
TARGETED = "elementwise/inference-bfloat16-full-default,stencil/inference-float32-full-default"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One command: its arguments, the directory of its results, and the statuses of one that did its work."""

    arguments: tuple[str, ...]
    out: str = ""
    good: tuple[int, ...] = (SUCCESS,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Commands with a time for all of them, and who reads what they left."""

    name: str
    about: str
    minutes: float
    list_steps: Callable[[Day], Sequence[Step]]
    describe: Callable[[Day], str]


@dataclass(kw_only=True, slots=True)
class Row:
    """What came of a part: ``status`` is open, done, failed or cut off."""

    status: str = "open"
    seconds: float = 0.0
    found: str = ""
    finished: int = 0  # of its steps


class Day:
    """The folder, what is unpacked of it, and a row for each part."""

    def __init__(self, folder: Path, device: str, *, small: bool) -> None:
        self.folder, self.device, self.small = folder, device, small
        folder.mkdir(parents=True, exist_ok=True)
        self.work = Path(tempfile.mkdtemp(prefix="card-day-"))
        if (folder / WORK).exists():
            shutil.unpack_archive(folder / WORK, self.work)
        self.log = folder / LOG
        state = folder / STATE
        rows = json.loads(state.read_text()) if state.exists() else {}
        self.rows = {part.name: Row(**rows.get(part.name, {})) for part in PARTS}
        make_project(self.work / "project", small=small)

    def keep(self) -> None:
        """Save rows, table and what commands left, each file whole or as it was."""
        for name, root in ((WORK, self.work), (BASELINES, self.work / "baselines")):
            if root.exists():
                packed = shutil.make_archive(str(self.work.with_suffix(f".{name}")), "zip", root)
                shutil.move(packed, self.folder / f"{name}.new")
                (self.folder / f"{name}.new").replace(self.folder / name)
        rows = {name: asdict(row) for name, row in self.rows.items()}
        for name, text in ((STATE, json.dumps(rows, indent=1)), (TABLE, render(self))):
            pending = self.folder / f"{name}.new"
            pending.write_text(text, encoding="utf-8")
            pending.replace(self.folder / name)

    def left_s(self, part: Part) -> float:
        """The seconds that are left of a part's time, 0 of next to none.

        A processor, which is there every day, gets all it needs.
        """
        left_s = 60 * part.minutes - self.rows[part.name].seconds
        return math.inf if self.small else left_s if left_s >= LEAST_S else 0.0

    def find_log(self, out: str) -> Path:
        """Where a command's output goes; its own directory takes no other file."""
        return self.work / "logs" / f"{out.replace('/', '-')}.txt"

    def load(self, out: str, file: str = "run.json") -> dict[str, Any]:
        """What a command left, empty where it left nothing."""
        path = self.work / out / file
        with suppress(OSError, ValueError):
            return dict(json.loads(path.read_text()))
        return {}


def make_project(project: Path, *, small: bool) -> None:
    """Make a repository whose head plants a fault into each of four cases; as it was, if it is there."""
    if project.exists():
        return
    project.mkdir(parents=True)
    shutil.copy(ROOT / "benchmarks" / "card_day_models.py", project)
    size: dict[str, Any] = {"width": 64, "rows": 64} if small else {"width": 1024, "rows": 65536}
    backend = {"backend": "eager"} if small else {}

    def make_model(name: str, arguments: dict[str, Any], **case: object) -> dict[str, Any]:
        factory = "build_interleaved" if name == "interleaved" else "build"
        cases = [{"size": "day", "task": "inference", "expected_s": 10, **case}]
        return {
            "name": name,
            "factory": f"card_day_models:{factory}",
            "sizes": {"day": arguments},
            "cases": cases,
        }

    config = {
        "version": 1,
        "reference_models": False,
        "select": "*",
        **(SMALL if small else {}),
        "models": [
            *(make_model(fault, {**size, "fault": fault}, **backend) for fault in FAULTS),
            make_model("plain", size),
            make_model("graphed", size, mode=["reduce-overhead"]),
            make_model("interleaved", {"rows": 2048}, **backend),
        ],
    }
    (project / "gate.yml").write_text(json.dumps(config, indent=1))  # JSON is YAML
    (project / ".gitignore").write_text("__pycache__\n")
    for planted in (False, True):
        (project / "planted.json").write_text(json.dumps(planted))
        if shutil.which("git"):
            commands = ("init -q -b main", "add -A", "commit -q -m day", "checkout -q -b head")
            for command in commands[1:3] if planted else commands:
                run_git(project, *command.split())


def run_git(project: Path, *arguments: str) -> None:
    """Run git as somebody, whatever the user's git signs or hooks."""
    who = ("-c", "user.name=card_day", "-c", "user.email=card_day@localhost")
    variables = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(("git", *who, *arguments), cwd=project, check=True, capture_output=True, env=variables)


def list_baseline_steps(day: Day) -> list[Step]:
    """A baseline of each case, the quickest first."""
    cases = ("plain/*",) if day.small else PULL_REQUEST
    choice = ("--trials", "3", *(("--anyway",) if day.small else ("--reference-models",)))
    return [
        Step(
            arguments=(
                *("baseline", "refresh", "--select", case, *choice),
                *("--baselines", str(day.work / "baselines")),
            ),
            out=f"refresh/{case.replace('/', '-').replace('*', 'all')}",
        )
        for case in cases
    ]


def list_unchanged_steps(day: Day) -> list[Step]:
    """A check of what nobody changed, with the baselines of today."""
    choice = (
        ("--select", "plain/*") if day.small else ("--reference-models", "--select", ",".join(PULL_REQUEST))
    )
    stored = ("--no-base", "--baselines", str(day.work / "baselines"))
    return [Step(arguments=("check", *choice, *stored), out="unchanged", good=JUDGED)]


def list_fault_steps(day: Day) -> list[Step]:
    """A check of a head with four faults; on a CPU with one."""
    cases = "break/*" if day.small else ",".join(f"{fault}/*" for fault in FAULTS)
    choice = ("--select", cases, *(("--counts-only",) if day.small else ()))
    return [Step(arguments=("check", "--base", "main", *choice), out="faults", good=JUDGED)]


def list_graph_steps(day: Day) -> list[Step]:
    """Pairs of a program with itself."""
    choice = ("--select", "graphed/*") if day.small else ("--reference-models", "--select", GRAPHED)
    once = ("--trials", "1", "--pairs", "1" if day.small else "2", "--anyway")
    good = (SUCCESS, 12) if day.small else (SUCCESS,)  # one pair is too few to judge by
    return [Step(arguments=("calibrate", *choice, *once), out="graphs", good=good)]


def list_target_steps(day: Day) -> list[Step]:
    """Compile for a card that need not be there; a torch for CUDA refuses."""
    choice = ("--select", "plain/*") if day.small else ("--reference-models", "--select", TARGETED)
    return [Step(arguments=("measure", "--target", "cuda:sm_90", "--trials", "1", *choice), out="target")]


def list_selftest_steps(day: Day) -> list[Step]:
    """Five faults; on a CPU one, if a minute is enough for it."""
    choice = (
        ("--select", "plain/*", "--faults", "wrong_eps", "--minutes", "1")
        if day.small
        else (
            *("--reference-models", "--select", PULL_REQUEST[0], "--minutes", "7"),
            *("--faults", "graph_break,memory-10%,wrong_eps,lost_cache,slowdown-30%"),
        )
    )
    return [Step(arguments=("selftest", "--quick", *choice), out="selftest", good=(0, 10, 12))]


def describe_outcome(out: str) -> Callable[[Day], str]:
    """Make what reads a verdict: its outcome, what regressed, and how long it took."""

    def describe(day: Day) -> str:
        verdict, run = day.load(out, "verdict.json"), day.load(out)
        cases = len({trial["case_id"] for trial in run.get("trials", [])})
        red = [row for row in verdict.get("comparisons", []) if row["status"] == "REGRESSED"]
        rows_red = ", ".join(f"{row['case_id']} {row['metric']}" for row in red if row.get("decides"))
        minutes = f"{cases} of {len(run.get('cases', []))} cases in {run.get('wall_s', 0) / 60:.1f} min"
        return "; ".join(filter(None, (str(verdict.get("outcome", "no verdict")), rows_red, minutes)))

    return describe


def describe_faults(day: Day) -> str:
    """Whether each fault is seen in its metric."""
    rows = day.load("faults", "verdict.json").get("comparisons", [])
    seen = []
    for fault, metric in FAULTS.items():
        fault_rows = [
            row for row in rows if row["case_id"].startswith(f"{fault}/") and row["metric"] == metric
        ]
        seen.append(f"{fault}: {metric} {fault_rows[0]['status'] if fault_rows else 'not measured'}")
    return f"{', '.join(seen)}; {describe_outcome('faults')(day)}"


def describe_first(day: Day) -> str:
    """Its last line, which counts the results."""
    path = day.find_log("first")
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    failed = [line for line in lines if line.startswith("FAILED")]
    return "; ".join((*failed[:3], *(line.partition(". ")[0] for line in lines[-1:])))


def describe_doctor(day: Day) -> str:
    """What is not as it should be."""
    path = day.find_log("doctor")
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return "; ".join((*(line for line in lines if line.startswith("FAIL")), *lines[-1:]))


def describe_baselines(day: Day) -> str:
    """How many there are."""
    recorded = sorted((day.work / "baselines").rglob("*.json"))
    return f"{len(recorded)} files of baselines"


def describe_graphs(day: Day) -> str:
    """How pairs came about, and by how much their sides differ."""
    trials = [trial for trial in day.load("graphs").get("trials", []) if trial["pairing"] == "live"]
    graphs = [
        trial["samples"]["cudagraph_launches"][0]
        for trial in trials
        if "cudagraph_launches" in trial["samples"]
    ]
    calls: dict[tuple[str, int], list[float]] = {}
    for trial in trials:
        if values := trial["samples"].get("compiled_latency"):
            calls.setdefault((trial["case_id"], trial["index"]), []).append(statistics.median(values))
    moves = [abs(max(both) / min(both) - 1) for both in calls.values() if len(both) == 2]  # noqa: PLR2004
    difference = f"arms differ by {100 * max(moves):.1f} % at most" if moves else "no pair came about"
    return f"{len(trials)} live trials, {max(graphs, default=0):g} CUDA graphs a call, {difference}"


def describe_target(day: Day) -> str:
    """Whether the card compiled what was compiled without one."""
    target, here = day.load("target"), list_trials(day, but="target")
    versions = {run.get("environment", {}).get("torch", "") for run in (target, day.load("unchanged"))}
    sentences = []
    for trial in target.get("trials", []):
        measured = next(
            (other for other in here if other["case_id"] == trial["case_id"] and other["identity"]["digest"]),
            None,
        )
        if measured is None:
            sentences.append(f"{trial['case_id']} was not measured here")
            continue
        apart = [name for name in COMPARED if trial["samples"].get(name) != measured["samples"].get(name)]
        is_same = trial["identity"]["digest"] == measured["identity"]["digest"]
        sentences.append(
            f"{trial['case_id']}: {'same' if is_same else 'other'} code, "
            f"{'other ' + ', '.join(apart) if apart else 'same counts'}"
        )
    more = f"; torch {' and '.join(sorted(versions - {''}))}" if len(versions - {""}) > 1 else ""
    return ("; ".join(sentences) or "nothing was compiled") + more


def describe_interleaved(day: Day) -> str:
    """Its drift: 64 where numbers are wrong."""
    drifts = [
        trial["samples"]["drift"][0]
        for trial in day.load("interleaved").get("trials", [])
        if "drift" in trial["samples"]
    ]
    return (
        f"drift {drifts[0]:g}, which is {'wrong' if drifts[0] > 1 else 'right'}" if drifts else "not measured"
    )


def describe_selftest(day: Day) -> str:
    """What was caught."""
    path = day.work / "selftest" / "selftest.xml"
    tests = ET.parse(path).iter("testcase") if path.exists() else ()  # noqa: S314 - ours
    tried = ((test.get("name", ""), test.find("properties/property[@name='result']")) for test in tests)
    attempts = ((re.sub(r"test_fault\[|-.*", "", name), result) for name, result in tried)
    return (
        ", ".join(f"{fault} {result.get('value')}" for fault, result in attempts if result is not None)
        or "nothing was tried"
    )


PARTS = (
    Part(
        name="doctor",
        about="is the card fit",
        minutes=0.5,
        list_steps=lambda _: [Step(arguments=("doctor",), out="doctor", good=(0, 4))],
        describe=describe_doctor,
    ),
    Part(
        name="first contact",
        about="what failed before",
        minutes=2.5,
        list_steps=lambda day: [
            Step(
                arguments=(
                    *("first-contact", "--minutes", "2", "--only"),
                    "a_peak_counts_what_is_held" if day.small else "canaries_repeat,a_graph",
                ),
                out="first",
                good=(0, 4, 12),
            )
        ],
        describe=describe_first,
    ),
    Part(
        name="baselines",
        about="`baseline refresh` of `tag:pr`",
        minutes=7,
        list_steps=list_baseline_steps,
        describe=describe_baselines,
    ),
    Part(
        name="unchanged",
        about="`check` of what nobody changed",
        minutes=4,
        list_steps=list_unchanged_steps,
        describe=describe_outcome("unchanged"),
    ),
    Part(
        name="faults",
        about="`check` of four planted faults",
        minutes=5,
        list_steps=list_fault_steps,
        describe=describe_faults,
    ),
    Part(
        name="graphs",
        about="pairs with CUDA graphs",
        minutes=2.5,
        list_steps=list_graph_steps,
        describe=describe_graphs,
    ),
    Part(
        name="target",
        about="code for a card, compiled without it",
        minutes=0.5,
        list_steps=list_target_steps,
        describe=describe_target,
    ),
    Part(
        name="interleaved",
        about="right Triton, wrong machine code",
        minutes=0.5,
        list_steps=lambda _: [
            Step(arguments=("measure", "--trials", "1", "--select", "interleaved/*"), out="interleaved")
        ],
        describe=describe_interleaved,
    ),
    Part(
        name="selftest",
        about="`selftest` of five faults",
        minutes=2.5,
        list_steps=list_selftest_steps,
        describe=describe_selftest,
    ),
)


def main() -> int:
    """Run the parts that are left, and print the table; 0 once none is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=9.0, help="of this call")
    parser.add_argument(
        "--only", nargs="+", choices=[part.name for part in PARTS], help="these alone; again, if done"
    )
    parser.add_argument("--small", action="store_true", help="small cases, for a CPU")
    options = parser.parse_args()
    end_s = time.monotonic() + 60 * options.minutes
    day = Day(options.folder.absolute(), options.device, small=options.small)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for part in choose_parts(day, options.only):
            if end_s - time.monotonic() >= LEAST_S:
                run_part(day, part, end_s)
    finally:
        day.keep()
        shutil.rmtree(day.work, ignore_errors=True)
    print((day.folder / TABLE).read_text())
    return 0 if all(row.status in ENDED for row in day.rows.values()) else 1


def choose_parts(day: Day, only: Sequence[str] | None) -> list[Part]:
    """What is left, in order; what has had its time comes after all that has not."""
    if only:
        for name in only:
            if day.rows[name].status in ENDED:
                day.rows[name] = Row()
        return [part for part in PARTS if part.name in only]
    left = [part for part in PARTS if day.rows[part.name].status not in ENDED]
    return sorted(left, key=lambda part: not day.left_s(part))


def run_part(day: Day, part: Part, end_s: float) -> None:
    """Run the commands that are left of a part, within its time; whatever happens is a row."""
    row, begun = day.rows[part.name], time.monotonic()
    before_s, limit_s = row.seconds, min(end_s, begun + (day.left_s(part) or 60 * part.minutes))
    row.status = "cut off"  # what holds if this is killed
    try:
        steps = part.list_steps(day)
        for step in steps[row.finished :]:
            status = run_step(day, step, limit_s, row, before_s - begun)
            if status is None:
                break
            if status not in step.good:
                row.status = "failed"
                row.found = f"exit {status}: {read_end(day.find_log(step.out))}"
                break
            row.finished += 1
        else:
            row.status = "done"
        if row.status != "failed":
            row.found = part.describe(day)
    except Exception as error:  # noqa: BLE001 - one part's failure is no other's
        row.status, row.found = "failed", f"{type(error).__name__}: {error}"
    row.seconds = before_s + time.monotonic() - begun
    print(f"{part.name}: {row.status} after {row.seconds:.0f} s: {row.found}", flush=True)
    day.keep()


def run_step(day: Day, step: Step, limit_s: float, row: Row, offset_s: float) -> int | None:
    """Run a command to its end, or ask it to save what it has; ``None`` where there was no time."""
    out = day.work / step.out
    can_resume = step.arguments[0] in {"check", "measure", "calibrate", "baseline"}
    has_run = can_resume and (out / "run.json").exists()
    status = run_command(day, step, ("--resume",) if has_run else (), limit_s, row, offset_s)
    if has_run and status == USAGE:  # of another card, or another day's software: from the start
        shutil.rmtree(out)
        status = run_command(day, step, (), limit_s, row, offset_s)
    return status


def run_command(  # noqa: PLR0913, PLR0917 - as above
    day: Day, step: Step, more: tuple[str, ...], limit_s: float, row: Row, offset_s: float
) -> int | None:
    """Run it in a process group of its own; what it has is kept from time to time."""
    device = () if "--target" in step.arguments else ("--device", day.device)
    out = () if step.arguments[0] == "doctor" else ("--out", str(day.work / step.out))
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    log = day.find_log(step.out)
    log.parent.mkdir(exist_ok=True)
    arguments = (sys.executable, "-P", "-m", "gate", *step.arguments, *device, *out, *more)
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            arguments,
            cwd=day.work / "project",
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path},
            process_group=0,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - nothing here has threads
        )
        try:
            for wait_s in list_waits(limit_s):
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(wait_s)
                row.seconds = offset_s + time.monotonic()
                day.keep()
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_S)
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            with day.log.open("a", encoding="utf-8") as whole:
                whole.write(f"\n$ compile-gate {' '.join(arguments[4:])}\n{read_end(log, LOG_LINES)}\n")


def end_with_parent() -> None:
    """Ask the kernel to ask this process to end once the one that started it is gone, however it went."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def list_waits(limit_s: float) -> Iterator[float]:
    """How long to wait before each look, until the limit."""
    while (left_s := limit_s - time.monotonic()) > 0:
        yield min(left_s, CHECKPOINT_S)


def read_end(log: Path, lines: int = 3) -> str:
    """The last lines of a log."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "\n".join(text.strip().splitlines()[-lines:])


def list_trials(day: Day, but: str = "") -> list[dict[str, Any]]:
    """All trials that are there, of all runs but one."""
    runs = sorted(path for path in day.work.rglob("run.json") if path.parent.name != but)
    return [trial for path in runs for trial in json.loads(path.read_text()).get("trials", [])]


def render(day: Day) -> str:
    """The table of the parts, and of the cases what a trial is and takes."""
    lines = ["| part | what | status | seconds | seen |", "| --- | --- | --- | --- | --- |"]
    for part in PARTS:
        row = day.rows[part.name]
        seen = " ".join(row.found.replace("|", "/").split())
        lines.append(f"| {part.name} | {part.about} | {row.status} | {row.seconds:.0f} | {seen} |")
    lines += ["", "| case | eager, ms | compiled, ms | launches | a trial's seconds, by part |"]
    lines += ["| --- | --- | --- | --- | --- |", *render_trials(day)]
    return "\n".join(lines) + "\n"


def render_trials(day: Day) -> Iterator[str]:
    """A row a case, of its first trial that measured everything."""
    trials: dict[str, dict[str, Any]] = {}
    for trial in list_trials(day):
        if trial["samples"].get("compiled_latency") and trial["extent"] == "whole":
            trials.setdefault(trial["case_id"], trial)
    for case_id, trial in sorted(trials.items()):
        ms = [
            f"{1e3 * statistics.median(trial['samples'][name]):.4g}" if trial["samples"].get(name) else "-"
            for name in ("eager_latency", "compiled_latency")
        ]
        launches = trial["samples"].get("launches")
        longest = sorted(trial["stages_s"].items(), key=lambda stage: -stage[1])[:6]
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in longest)
        total = sum(trial["stages_s"].values())
        cells = (case_id, *ms, f"{launches[0]:g}" if launches else "-", f"{total:.0f}: {stages}")
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
