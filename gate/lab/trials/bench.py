"""A bench: an arm, where and how to measure it, the job of each worker process, and compile caches."""

import math
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.devices import DEFAULT_DEVICE
from gate.errors import MachineError
from gate.files import codec
from gate.lab.host.gpu import GpuState, show_alone
from gate.lab.workers.server_pool import ServerPool
from gate.lab.workers.worker import JobOutcome, WorkerJob, run_worker
from gate.lab.workers.worker_environment import make_worker_environment
from gate.records.cases import Case
from gate.records.events import Observer, WorkerPlanned, ignore_event
from gate.records.protocol import (
    CACHE_VARIABLES,
    OPTIONS_FILE,
    WORKER_ARGUMENTS,
    Checkouts,
    Sampling,
    WorkerRequest,
    WorkerRole,
    WorkingTree,
)
from gate.records.run import BASE_ARM, Arm
from gate.sizes import MIB

# Caches, logs and results of one trial stay far below this; less left means that a trial may fail for
# want of disk, which would be blamed on its case.
MIN_FREE_BYTES = 512 * MIB

# These time rounds, so pytest-benchmark has something to write.
_WITH_ROUNDS = frozenset({WorkerRole.COLD, WorkerRole.ROUNDS})

# Caches of a trial take some tens of MB: kept ones must never be what fills a disk.
MIN_FREE_TO_KEEP_BYTES = 8 * MIN_FREE_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class LabSettings:
    """``worker`` is the interpreter's arguments before the request's path."""

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
    counts_only: bool = False  # nothing that depends on the host is kept
    traces: bool = False  # whether torch's structured trace is recorded after each trial that compiled
    options: Mapping[str, str] = field(default_factory=dict)  # that workers set first: JSON by name
    tries_base: bool = False  # first whether it can import what it was lent


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """``toolchain`` is the scratch of whoever primed; ``folder`` keeps the logs of pairs apart."""

    arm: Arm
    settings: LabSettings
    scratch: Path
    toolchain: Path | None = None
    folder: str = ""
    pool: ServerPool = field(default_factory=ServerPool)  # whoever opens something with it closes it
    gpu: GpuState | None = None  # that workers measure on, where nvidia-smi lists it
    place: str = ""  # what its trials call where they ran
    observe: Observer = ignore_event

    @property
    def primer_cache(self) -> Path:
        return (self.toolchain or self.scratch) / "primer"

    @property
    def trial_cache(self) -> Path:
        """The same path for each trial, so that cache keys agree."""
        return self.scratch / "cache"

    def get_kept_caches(self, case: Case) -> Path:
        return self.scratch / "kept" / make_case_path(case.id)

    @property
    def temporary(self) -> Path:
        return (self.toolchain or self.scratch) / "tmp"


def make_job(bench: Bench, role: WorkerRole, case: Case | None = None, index: int = 0) -> WorkerJob:
    settings, arm = bench.settings, bench.arm
    name = Path(bench.folder) / (make_case_path(case.id) if case else role)
    benchmark = settings.out / "benchmark" / name.with_name(f"{name.name}-{index}.json")
    cache = bench.trial_cache if case else bench.primer_cache
    device, shown = show_alone(bench.gpu, settings.device)
    result = bench.scratch / f"{role}.json"
    bench.observe(WorkerPlanned(result=result))
    environment = {
        **make_worker_environment(os.environ, cache, bench.temporary, settings.threads, role),
        **_set_extensions(bench),
        **arm.variables,
        **shown,
    }
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
        result=str(result),
        benchmark_json=str(benchmark.absolute()) if role in _WITH_ROUNDS else "",
        sampling=settings.sampling,
        options=settings.options,
        caches={name: environment[name] for name in CACHE_VARIABLES},
    )
    return WorkerJob(
        request=request,
        argv=(arm.python, *settings.worker),
        directory=Path(arm.directory),
        environment=environment,
        log=settings.out / "logs" / name / f"{index}-{role}.log",
        limit_s=settings.trial_timeout_s,
        trial=index,
        arm=arm.name,
    )


def _set_extensions(bench: Bench) -> Mapping[str, str]:
    """``torch.utils.cpp_extension.load`` goes by the name alone: each arm builds in its own directory."""
    if not bench.arm.checkout and bench.arm.name != BASE_ARM:
        return {}
    return {"TORCH_EXTENSIONS_DIR": str(bench.temporary / f"extensions-{bench.arm.name}")}


def run_job(
    bench: Bench, job: WorkerJob, later: Sequence[WorkerJob] = (), most_s: float = math.inf
) -> JobOutcome:
    """Run one worker, forked if possible, for ``most_s`` at most; raises as ``run_worker``.

    The servers of ``later`` jobs are opened together with its own.
    """
    (opened,) = bench.pool.open((job,), later)
    return run_worker(replace(opened, limit_s=min(opened.limit_s, most_s)))


def make_case_path(case_id: str) -> Path:
    """A relative path that stays below the directory it is put in."""
    parts = [re.sub(r"[^A-Za-z0-9._-]", "_", part).lstrip(".") for part in case_id.split("/")]
    return Path(*[part for part in parts if part] or ["case"])


def check_disk(bench: Bench) -> None:
    """Check that there is room for another trial.

    Raises:
        MachineError: There is not, in the scratch or the output directory.
    """
    for directory in (bench.scratch, bench.settings.out):
        free = shutil.disk_usage(directory).free
        if free < MIN_FREE_BYTES:
            raise MachineError(
                f"{directory}: {free // MIB} MiB free, a trial may need {MIN_FREE_BYTES // MIB} MiB",
                "Free some space, or set TMPDIR (or --out) to a larger disk; then continue with --resume.",
            )


def load_options(bench: Bench) -> Mapping[str, str]:
    path = bench.primer_cache / "inductor" / OPTIONS_FILE
    plain = codec.parse_json(path.read_bytes(), path.name) if path.is_file() else {}
    return {name: str(value) for name, value in plain.items()} if isinstance(plain, dict) else {}


def remove_cache(bench: Bench) -> None:
    shutil.rmtree(bench.trial_cache, ignore_errors=True)


def seed_cache(bench: Bench, source: Path | None = None) -> None:
    """Copy ``source``, by default the primer's toolchain files alone."""
    remove_cache(bench)  # of a trial that was interrupted
    source = source or bench.primer_cache
    if source.is_dir():
        shutil.copytree(source, bench.trial_cache, symlinks=True)
    else:
        bench.trial_cache.mkdir(parents=True)


def keep_cache(bench: Bench, case: Case) -> None:
    """Keep what the cold process left, if there is room.

    The warm process adds code of other programs, as of the same model in float32.
    """
    if not bench.settings.keeps_caches or shutil.disk_usage(bench.scratch).free < MIN_FREE_TO_KEEP_BYTES:
        return
    kept = bench.get_kept_caches(case)
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(bench.trial_cache, kept, symlinks=True)
