"""One trial: a cold and a warm process on one private, at first empty, compile cache."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.check.schedule import WHOLE, Content
from gate.check.work import Part
from gate.devices import DEFAULT_DEVICE, is_target
from gate.errors import MachineError
from gate.lab.host.fitness import HostSample, describe_host, find_crowd, read_host
from gate.lab.host.gpu import GpuState, read_memory_share, show_alone
from gate.lab.host.provenance import read_time
from gate.lab.trials.merging import merge_results
from gate.lab.workers.environment import (
    make_worker_environment,
    note_dropped_variables,
)
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import JobOutcome, WorkerJob, load_result, run_worker
from gate.records import (
    BASE_ARM,
    Arm,
    Case,
    CaseFailure,
    Code,
    Disturbance,
    Fact,
    Trial,
    name_words,
)
from gate.records.protocol import (
    WORKER_ARGUMENTS,
    Checkouts,
    Sampling,
    Stage,
    WorkerRequest,
    WorkerResult,
    WorkerRole,
    WorkingTree,
)

# Caches, logs and results of one trial stay far below this; less left means that a trial may fail for
# want of disk, which would be blamed on its case.
MIN_FREE_BYTES = 512 * 1024 * 1024

# These time rounds, so pytest-benchmark has something to write.
_WITH_ROUNDS = frozenset({WorkerRole.COLD, WorkerRole.ROUNDS})

# Stands for a second process where a trial has none.
_NO_PROCESS = WorkerResult(role=WorkerRole.WARM, stage=Stage.START)

# Caches of a trial take some tens of MB: kept ones must never be what fills a disk.
MIN_FREE_TO_KEEP_BYTES = 8 * MIN_FREE_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class LabSettings:
    """How to measure. ``worker`` is the interpreter's arguments before the request's path."""

    out: Path
    device: str = DEFAULT_DEVICE
    threads: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    trial_timeout_s: float = 300.0  # of each worker process
    lock_timeout_s: float = 60.0
    worker: tuple[str, ...] = WORKER_ARGUMENTS
    keeps_caches: bool = False  # those of each case's last trial, for its pairs to begin with
    checkouts: Checkouts | None = None  # of head and its base, where what a trial imports is to be compared
    tree: WorkingTree | None = None  # of the arm that is no checkout of its own
    cores: tuple[int, ...] = ()  # of a lane that shares a CPU with others; () for all near the device
    traces: bool = False  # whether torch's structured trace is recorded after each trial that compiled


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """An arm, the settings, and where to measure.

    ``toolchain`` is the scratch directory of whoever primed, ``scratch`` itself unless it is given;
    ``folder`` keeps the logs of an arm of a pair apart from those of trials on their own.
    """

    arm: Arm
    settings: LabSettings
    scratch: Path
    toolchain: Path | None = None
    folder: str = ""
    pool: ServerPool = field(default_factory=ServerPool)  # whoever opens something with it closes it
    gpu: GpuState | None = None  # that workers measure on, where nvidia-smi tells
    place: str = ""  # what its trials call where they ran

    @property
    def primer_cache(self) -> Path:
        """The cache directory that the primer filled: toolchain files only."""
        return (self.toolchain or self.scratch) / "primer"

    @property
    def trial_cache(self) -> Path:
        """The cache directory of the trial at hand; the same path for each, so that keys agree."""
        return self.scratch / "cache"

    def find_kept(self, case: Case) -> Path:
        """The directory that keeps the caches of the case's last trial, where they are kept."""
        return self.scratch / "kept" / make_case_path(case.id)

    @property
    def temporary(self) -> Path:
        """``TMPDIR`` of all workers of the run; holds the precompiled headers."""
        return (self.toolchain or self.scratch) / "tmp"


def run_trial(bench: Bench, case: Case, index: int, content: Content = WHOLE) -> Part:
    """Measure ``case`` once; ``index`` counts from 1. The caches are gone afterwards, or kept for pairs.

    A trial that failed may have measured something: then both are there.

    Raises:
        MachineError: Too little disk, or the interpreter cannot be started.
    """
    check_disk(bench)
    begun, started = time.monotonic(), read_time()
    before = look_at_host(bench)
    try:
        seed_cache(bench)
        cold, warm, failure = _run_processes(bench, case, index, content)
        if failure is not None:
            shutil.rmtree(bench.find_kept(case), ignore_errors=True)
    finally:
        remove_cache(bench)
    if failure is not None:
        check_disk(bench)  # a full disk is the machine's fault, not the case's
        if not (cold.samples or warm.samples):
            return Part(failures=(failure,))
    blank = Trial(
        case_id=case.id,
        index=index,
        arm=bench.arm.name,
        extent=content.extent,
        started=started,
        place=bench.place,
    )
    trial = merge_results(blank, cold, warm, time.monotonic() - begun)
    if not is_target(bench.settings.device):  # how fit the host was matters to what is timed
        trial = add_host(trial, (before, look_at_host(bench)), bench.settings.threads)
    return Part(trials=(trial,), failures=(failure,) if failure else ())


def look_at_host(bench: Bench) -> HostSample:
    """Look at the host, and at its GPU's memory, which nobody should use: no worker of a trial is alive."""
    return replace(read_host(), foreign_memory=read_memory_share(bench.gpu))


def add_host(trial: Trial, samples: tuple[HostSample, HostSample], threads: int) -> Trial:
    """Add what happened on the host between both looks, and the settings that the trial did not get.

    The first look was before anything of the trial was started, the second once all of it has ended.
    """
    conditions = describe_host(trial.conditions, samples, threads)
    if Disturbance.CROWDED in conditions.disturbances:
        conditions = replace(conditions, crowd=find_crowd())  # most of them are still at work
    return replace(
        trial,
        conditions=conditions,
        warnings=(*trial.warnings, *note_dropped_variables(os.environ, of_stack=True)),
    )


def make_job(bench: Bench, role: WorkerRole, case: Case | None = None, index: int = 0) -> WorkerJob:
    """Make the job of one worker process of a trial, or of the primer."""
    settings, arm = bench.settings, bench.arm
    name = Path(bench.folder) / (make_case_path(case.id) if case else role)
    benchmark = settings.out / "benchmark" / name.with_name(f"{name.name}-{index}.json")
    cache = bench.trial_cache if case else bench.primer_cache
    device, shown = show_alone(bench.gpu, settings.device)
    request = WorkerRequest(
        role=role,
        case=case,
        device=device,
        threads=settings.threads,
        directory=arm.directory,
        checkout=arm.checkout,
        origin=arm.origin,
        models=arm.models,
        checkouts=settings.checkouts,
        tree=None if arm.checkout else settings.tree,
        parent=os.getpid(),
        result=str(bench.scratch / f"{role}.json"),
        benchmark_json=str(benchmark.absolute()) if role in _WITH_ROUNDS else "",
        sampling=settings.sampling,
    )
    return WorkerJob(
        request=request,
        python=arm.python,
        environment={
            **make_worker_environment(os.environ, cache, bench.temporary, settings.threads, role),
            **_set_extensions(bench),
            **arm.variables,
            **shown,
        },
        log=settings.out / "logs" / name / f"{index}-{role}.log",
        limit_s=settings.trial_timeout_s,
        arguments=settings.worker,
        trial=index,
        arm=arm.name,
    )


def _set_extensions(bench: Bench) -> Mapping[str, str]:
    """Where ``torch.utils.cpp_extension.load`` builds: a place of its own for each arm of a comparison.

    It goes by the extension's name alone, and whoever finds a build under way loads what that one built.
    """
    if not bench.arm.checkout and bench.arm.name != BASE_ARM:
        return {}
    return {"TORCH_EXTENSIONS_DIR": str(bench.temporary / f"extensions-{bench.arm.name}")}


def run_job(bench: Bench, job: WorkerJob, later: Sequence[WorkerJob] = ()) -> JobOutcome:
    """Run one worker to its end, forked if possible; raises as ``run_worker``.

    The servers of ``later`` jobs are opened with its own.
    """
    (opened,) = bench.pool.open((job,), later)
    return run_worker(opened)


def make_case_path(case_id: str) -> Path:
    """Make a relative path of a case id that stays below the directory it is put in."""
    parts = [re.sub(r"[^A-Za-z0-9._-]", "_", part).lstrip(".") for part in case_id.split("/")]
    return Path(*[part for part in parts if part] or ["case"])


def check_disk(bench: Bench) -> None:
    """Check that there is room for another trial.

    Raises:
        MachineError: There is not, in the scratch or the output directory.
    """
    for place in (bench.scratch, bench.settings.out):
        free = shutil.disk_usage(place).free
        if free < MIN_FREE_BYTES:
            raise MachineError(
                f"{place}: {free // 2**20} MiB free, a trial may need {MIN_FREE_BYTES // 2**20} MiB",
                "Free some space, or set TMPDIR (or --out) to a larger disk; then continue with --resume.",
            )


def _run_processes(
    bench: Bench, case: Case, index: int, content: Content
) -> tuple[WorkerResult, WorkerResult, CaseFailure | None]:
    """Run the cold process, then the warm one unless it failed; of one that failed, what it had written."""
    has_warm = content.warm and not is_target(bench.settings.device)
    later = [make_job(bench, WorkerRole.WARM, case, index)] if has_warm else []
    cold = run_job(bench, make_job(bench, WorkerRole.COLD, case, index), later)
    if isinstance(cold, CaseFailure):
        return _load_part(bench, WorkerRole.COLD), _NO_PROCESS, cold
    _keep_cache(bench, case)
    if not content.warm:
        return cold, _NO_PROCESS, None
    if not later:
        return cold, repeat_samples(cold), None  # nothing is run: a second process would find the same
    warm = run_job(bench, later[0])
    if isinstance(warm, CaseFailure):
        return cold, _load_part(bench, WorkerRole.WARM), warm
    return cold, warm, None


def repeat_samples(cold: WorkerResult) -> WorkerResult:
    """Stand in for the warm process of a target's trial, which has none: the first tells all there is."""
    return WorkerResult(role=WorkerRole.WARM, stage=Stage.DONE, samples=cold.samples)


def _load_part(bench: Bench, role: WorkerRole) -> WorkerResult:
    """Load what a failed process wrote before: each sample was complete when it was written."""
    left = load_result(Path(make_job(bench, role).request.result))
    told = Fact(code=Code.PROCESS_FAILED, names=name_words(role=role))
    part = left if isinstance(left, WorkerResult) else WorkerResult(role=role, stage=Stage.START)
    return replace(part, warnings=(*part.warnings, told))


def remove_cache(bench: Bench) -> None:
    """Remove the caches of a trial; what cannot be removed now goes with the scratch directory."""
    shutil.rmtree(bench.trial_cache, ignore_errors=True)


def seed_cache(bench: Bench, source: Path | None = None) -> None:
    """Give the trial a copy of ``source``; unless it is given, of the primer's toolchain files alone."""
    remove_cache(bench)  # of a trial that was interrupted
    source = source or bench.primer_cache
    if source.is_dir():
        shutil.copytree(source, bench.trial_cache, symlinks=True)
    else:
        bench.trial_cache.mkdir(parents=True)


def _keep_cache(bench: Bench, case: Case) -> None:
    """Keep what the cold process left, in the place of what a trial before left, if there is room.

    The warm process adds code of other programs, as of the same model in float32: whoever began with that
    would be taken for another program by its code.
    """
    if not bench.settings.keeps_caches or shutil.disk_usage(bench.scratch).free < MIN_FREE_TO_KEEP_BYTES:
        return
    kept = bench.find_kept(case)
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(bench.trial_cache, kept, symlinks=True)
