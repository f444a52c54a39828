"""Compile every reference model at full size for GPUs that are not there, and keep what came of it.

    nice -n 19 python tools/target_sizes.py --minutes 90
    python tools/generate_docs.py                       # the table of benchmarks/target_sizes.md

Each compile is a process of its own with empty caches and one compile thread, and a line of the data file
as soon as it is done, so that the next run goes on where this one was stopped. A case is compiled twice for
each target: its code and its binaries must be the same. Inference comes first, and smaller cases before
larger ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from gate.kinds import KIND_SPECS
from gate.measure.device.imitation import imitate_gpu
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records.cases import Case, DType, Mode

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).with_suffix(".jsonl")
TARGETS = ("cuda:sm_80", "cuda:sm_90")
SIZE = "full"
REPEATS = 2
COLUMNS = {
    "kernels": "generated_kernels",
    "configurations": "triton_configs",
    "launches": "code_launches",
    "registers": "registers",
    "stack bytes": "stack_memory",
    "bytes of binaries": "cubin_bytes",
}
SPENT = ("import_s", "build_s", "compile_s")  # processor seconds
# What must not differ between two compiles of one case for one target.
SAME = ("identity", "binaries", *COLUMNS.values())


def main() -> int:
    """Compile one case, or whatever is not compiled yet."""
    options = parse_options()
    if options.one:
        print(json.dumps(compile_case(*options.one)))
        return 0
    end = time.monotonic() + options.minutes * 60
    failed = 0
    for case, target in list_missing(choose_cases(), read_data(options.data), versions=read_versions()):
        left = end - time.monotonic()
        if left <= 0:
            break
        failed += not compile_apart(case, target, left, options.data)
    return int(failed > 0)


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=480.0, help="what still runs then is ended")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--one", nargs=2, metavar=("CASE", "TARGET"), help="compile it here, print a line")
    return parser.parse_args()


def choose_cases() -> list[Case]:
    """Choose each model's full size once for each task, in bfloat16 where it has that; inference first.

    Of several such cases the last that a target can compile.
    """
    chosen: dict[tuple[str, str], Case] = {}
    for case in load_cases(load_config(None)):
        is_wanted = case.size == SIZE and case.mode is Mode.DEFAULT and KIND_SPECS[case.kind].on_target
        if is_wanted and (case.dtype is DType.BFLOAT16 or (case.model, case.task) not in chosen):
            chosen[case.model, case.task] = case
    return sorted(chosen.values(), key=lambda case: (case.task, case.expected_s))


def read_data(data: Path) -> list[dict[str, Any]]:
    """Read what was compiled before."""
    lines = data.read_text(encoding="utf-8").splitlines() if data.exists() else []
    return [json.loads(line) for line in lines]


def render_sizes(lines: Sequence[dict[str, Any]]) -> str:
    """Render what was compiled as a table, a row for each case and target, and name what is missing."""
    compiled: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in lines:
        compiled.setdefault((line["case"], line["target"]), []).append(line)
    header = ("case", "target", *COLUMNS, "minutes", "twice the same")
    rows = [_render_row(key, compiled[key]) for key in sorted(compiled, key=_order_row)]
    table = ["| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *rows)]
    missing = [_name_missing(case, compiled) for case in choose_cases()]
    lacks = ", ".join(filter(None, missing))
    rest = f"Not compiled yet: {lacks}." if lacks else "All cases were compiled."
    return "\n".join([*table, "", rest])


def _name_missing(case: Case, compiled: Container[tuple[str, str]]) -> str:
    """Name a case that was not compiled, and for which target if it was for another; else nothing."""
    targets = [f"`{target}`" for target in TARGETS if (case.id, target) not in compiled]
    where = "" if len(targets) == len(TARGETS) else f" for {' and '.join(targets)}"
    return f"`{_shorten(case.id)}`{where}" if targets else ""


def _order_row(key: tuple[str, str]) -> tuple[int, str]:
    order = [case.id for case in choose_cases()]
    return (order.index(key[0]) if key[0] in order else len(order), key[1])


def _render_row(key: tuple[str, str], lines: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    first = lines[0]
    numbers = [f"{first[name]:,}" for name in COLUMNS.values()]
    minutes = sum(first[name] for name in SPENT) / 60
    same = all({name: line[name] for name in SAME} == {name: first[name] for name in SAME} for line in lines)
    answer = ("yes" if same else "**no**") if len(lines) >= REPEATS else "compiled once"
    return (f"`{_shorten(key[0])}`", f"`{key[1]}`", *numbers, f"{minutes:.1f}", answer)


def _shorten(case_id: str) -> str:
    return case_id.removesuffix(f"-{SIZE}-{Mode.DEFAULT}")


def read_versions() -> dict[str, str]:
    """Read what the code depends on beside the models."""
    return {name: version(name) for name in ("torch", "triton")}


def list_missing(
    cases: Iterable[Case], done: Sequence[dict[str, Any]], versions: dict[str, str]
) -> Iterator[tuple[Case, str]]:
    """List which cases are still to be compiled for which target, as often as is missing."""
    for case in cases:
        for target in TARGETS:
            wanted = {"case": case.id, "target": target, **versions}
            count = sum(wanted.items() <= line.items() for line in done)
            yield from [(case, target)] * (REPEATS - count)


def compile_apart(case: Case, target: str, limit_s: float, data: Path) -> bool:
    """Compile a case in a process of its own; whether its line could be written."""
    command = [sys.executable, str(Path(__file__)), "--one", case.id, target]
    print(time.strftime("%H:%M"), case.id, target, flush=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=limit_s)
    except subprocess.TimeoutExpired:
        print("  the time is up")
        return False
    if done.returncode:
        print(f"  failed: {done.stderr.strip().splitlines()[-1:]}")
        return False
    with data.open("a", encoding="utf-8") as stream:
        stream.write(done.stdout.splitlines()[-1] + "\n")
    return True


def compile_case(name: str, target: str) -> dict[str, Any]:
    """Compile a case in this process, which must not have imported torch yet; what is known of it."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # as in a worker: other processes know no target
    os.environ["OMP_NUM_THREADS"] = "1"
    (case,) = (case for case in choose_cases() if case.id == name)
    begun = time.monotonic()
    imitate_gpu(target)
    from gate.measure.device.target_device import TargetDevice  # noqa: PLC0415 - torch

    with tempfile.TemporaryDirectory() as directory:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(directory, "inductor"))
        os.environ["TRITON_CACHE_DIR"] = str(Path(directory, "triton"))
        compiled = _compile(case, TargetDevice(target))
        compiled["binaries"] = _hash_binaries(Path(directory))
    record = {"case": name, "target": target, **read_versions(), **compiled}
    return {**record, "wall_s": round(time.monotonic() - begun)}


def _compile(case: Case, device: Any) -> dict[str, Any]:  # noqa: ANN401 - its module imports torch
    """Compile; with the counts, the processor seconds of importing, of drawing weights and of compiling."""
    from gate.measure.context import WorkerContext  # noqa: PLC0415 - torch
    from gate.measure.kinds.protocol import make_protocol  # noqa: PLC0415 - torch
    from gate.measure.logbook import Logbook  # noqa: PLC0415 - torch
    from gate.measure.target import compile_target  # noqa: PLC0415 - torch
    from gate.measure.workload.build import load_factory  # noqa: PLC0415 - torch
    from gate.records.protocol import Sampling, WorkerRole  # noqa: PLC0415

    load_factory(case.factory)
    read_s = [_read_processor_s()]
    workload = make_protocol(case).build()
    read_s.append(_read_processor_s())
    logbook = Logbook(None, WorkerRole.COLD)
    context = WorkerContext(case=case, device=device, sampling=Sampling(), logbook=logbook, directory="")
    with compile_target(context, workload):
        read_s.append(_read_processor_s())
    result = logbook.result
    samples = {str(metric): int(values[0]) for metric, values in result.samples.items()}
    spent = [round(after - before, 1) for before, after in pairwise((0.0, *read_s))]
    return {
        **samples,
        "identity": result.identity.digest,
        **dict(zip(("import_s", "build_s", "compile_s"), spent, strict=True)),
    }


def _hash_binaries(directory: Path) -> str:
    """Hash all binaries, in whatever order they were compiled."""
    hashes = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.rglob("*.cubin"))
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]


def _read_processor_s() -> float:
    """Read the CPU time of this process and of the compilers that it started, in seconds."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    sys.exit(main())
