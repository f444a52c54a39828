"""torch's structured trace of a trial."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

from gate.lab.trials.bench import Bench, make_case_path, make_job, seed_cache
from gate.lab.workers.worker import run_worker
from gate.records.cases import Case
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.protocol import Stage, WorkerRole
from gate.records.run import CaseFailure, Trial

TRACE_FOLDER = "traces"
_NO_TRACE = Fact(code=Code.NO_TRACE)


def add_trace(bench: Bench, case: Case, trial: Trial) -> Trial:
    """Add the path of torch's trace, below the out directory, or why there is none.

    torch reads ``TORCH_TRACE`` as it is imported: too late in a forked worker. So another process compiles
    the case once more, on empty caches, after the trial, which an error there does not fail.

    Raises:
        MachineError: The interpreter cannot be started, or a disk is full.
    """
    begun = time.monotonic()
    name = make_case_path(case.id)
    path = TRACE_FOLDER / Path(bench.folder) / name.with_name(f"{name.name}-{trial.index}.log")
    problem = _record_trace(bench, case, trial.index, bench.settings.out / path)
    return replace(
        trial,
        trace="" if problem == _NO_TRACE else str(path),
        stages_s={**trial.stages_s, Stage.TRACE: time.monotonic() - begun},
        unknown=(*trial.unknown, *([problem] if problem else [])),
    )


def _record_trace(bench: Bench, case: Case, index: int, path: Path) -> Fact | None:
    path.unlink(missing_ok=True)  # of an earlier run
    scratch = bench.scratch / TRACE_FOLDER
    tracing = replace(bench, scratch=scratch, toolchain=bench.toolchain or bench.scratch)
    written = scratch / "written"
    try:
        seed_cache(tracing)
        job = make_job(tracing, WorkerRole.TRACE, case, index)
        outcome = run_worker(replace(job, environment={**job.environment, "TORCH_TRACE": str(written)}))
        # A file a process: that of the worker itself is by far the largest.
        largest = max(written.glob("*.log"), key=lambda log: log.stat().st_size, default=None)
        if largest is None:
            return _NO_TRACE
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(largest, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return outcome.quote(Code.TRACE_CUT) if isinstance(outcome, CaseFailure) else None
