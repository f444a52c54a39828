"""torch's structured trace of a trial, on request: recorded by a process in which nothing is measured.

torch reads ``TORCH_TRACE`` as it is imported, so a forked worker cannot be told; and writing a trace takes
time. So a process of its own compiles the case once more, on empty caches of its own, when all of the trial
has ended.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

from gate.lab.trials.trials import Bench, make_case_path, make_job, seed_cache
from gate.lab.workers.worker import run_worker
from gate.records import Case, CaseFailure, Code, Fact, Trial, quote_failure
from gate.records.protocol import Stage, WorkerRole

TRACE_FOLDER = "traces"
_NOT_TOLD = Fact(code=Code.NO_TRACE)


def add_trace(bench: Bench, case: Case, trial: Trial) -> Trial:
    """Add where torch's trace of such a trial lies, below the out directory, or why there is none.

    What goes wrong here is no failure of the case: its trial has been measured.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    begun = time.monotonic()
    name = make_case_path(case.id)
    path = TRACE_FOLDER / Path(bench.folder) / name.with_name(f"{name.name}-{trial.index}.log")
    problem = _record_trace(bench, case, trial.index, bench.settings.out / path)
    return replace(
        trial,
        trace="" if problem == _NOT_TOLD else str(path),
        stages_s={**trial.stages_s, Stage.TRACE: time.monotonic() - begun},
        unknown=(*trial.unknown, *([problem] if problem else [])),
    )


def _record_trace(bench: Bench, case: Case, index: int, path: Path) -> Fact | None:
    """Compile once in a process that imports torch itself, and keep what it wrote; what went wrong."""
    path.unlink(missing_ok=True)  # of an earlier run
    scratch = bench.scratch / TRACE_FOLDER
    own = replace(bench, scratch=scratch, toolchain=bench.toolchain or bench.scratch)
    written = scratch / "written"
    try:
        seed_cache(own)
        job = make_job(own, WorkerRole.TRACE, case, index)
        outcome = run_worker(replace(job, environment={**job.environment, "TORCH_TRACE": str(written)}))
        # A file a process: that of the worker itself is by far the largest.
        largest = max(written.glob("*.log"), key=lambda one: one.stat().st_size, default=None)
        if largest is None:
            return _NOT_TOLD
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(largest, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return quote_failure(Code.TRACE_CUT, outcome) if isinstance(outcome, CaseFailure) else None
