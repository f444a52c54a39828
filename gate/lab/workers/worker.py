"""One worker process: its environment, its request, and what came of it.

A worker inherits the caller's environment, because that is where compilers, drivers, proxies, licence
files and model caches are found. It does not inherit what would change the measurement without
showing in the environment's fingerprint: settings of torch, Triton, OpenMP and the allocators, and
hooks of coverage tools and pytest. ``PYTHONPATH`` stays, since module systems on clusters find torch
by it; its relative entries are made absolute, because a worker runs in its arm's directory.

Of its log the end is told, as text that is safe to print and short to store.
"""

import json
import os
import re
import signal
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from gate.errors import FileError
from gate.files import codec
from gate.files.disk import describe_write_error
from gate.lab.workers.process import ProcessCommand, ProcessExit, run_process
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.protocol import Stage, WorkerFailure, WorkerRequest, WorkerResult, WorkerRole
from gate.records.run import CaseFailure, FailureKind

# Settings of the measured stack, of threads and allocators, and of tools that hook into every Python
# process.
_STACK_PREFIXES = (
    *("TORCH", "PYTORCH_", "TRITON", "INDUCTOR_", "AOT_", "ATEN_"),
    *("NVIDIA_TF32", "CUBLAS", "CUDNN", "CUDA_CACHE_", "CUDA_LAUNCH_BLOCKING"),
)
# Set on many machines, and of no interest.
_TOOL_PREFIXES = ("PYTEST_", "COVERAGE_", "COV_CORE_", "CODSPEED_", "PYTHON")
_DROPPED_PREFIXES = (
    *_STACK_PREFIXES,
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_"),
    *_TOOL_PREFIXES,
)

# These say where something is found, not how it runs.
_KEPT = frozenset(
    (
        *("TORCH_HOME", "TORCH_EXTENSIONS_DIR", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH"),
        # Without it cuBLAS refuses what a model that asks for deterministic algorithms needs.
        "CUBLAS_WORKSPACE_CONFIG",
        *("TRITON_PTXAS_BLACKWELL_PATH", "TRITON_CUOBJDUMP_PATH", "TRITON_NVDISASM_PATH"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"),
    )
)

_FIXED = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # a pool that is ready sometimes makes compile time bimodal
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",  # the defaults, said aloud: warm compile time relies on them
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    "PYTHONFAULTHANDLER": "1",  # a crash, and a hang that is aborted, leave a traceback in the log
    "PYTHONUNBUFFERED": "1",  # a worker that is killed has said all it had to say
    "MALLOC_ARENA_MAX": "1",  # arenas per thread make peak memory depend on scheduling
    "HF_HUB_OFFLINE": "1",  # reference models have random weights: nothing is downloaded
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # cuda:1 is what nvidia-smi and the lock call 1
}


# The number of Python calls in a compile follows the order of sets: it is the same in each process of a role.
# But the second process has another order than the first, as any two processes of a user have: what takes its
# graph from the order of a set of strings finds nothing in the caches.
_HASH_SEEDS = {WorkerRole.WARM: "1"}
_FIRST_HASH_SEED = "0"


def make_worker_environment(
    inherited: Mapping[str, str],
    cache: Path,
    temporary: Path,
    threads: int,
    role: WorkerRole = WorkerRole.COLD,
) -> dict[str, str]:
    """Make the environment of one worker from the caller's; ``threads`` is intra-op threads.

    ``cache`` is one trial's own; ``temporary`` is the run's: precompiled headers are made there once.
    """
    return {
        **keep_variables(inherited),
        **_FIXED,
        "PYTHONHASHSEED": _HASH_SEEDS.get(role, _FIRST_HASH_SEED),
        "OMP_NUM_THREADS": str(threads),
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
    }


def keep_variables(inherited: Mapping[str, str]) -> dict[str, str]:
    """Keep the caller's variables that every worker inherits."""
    dropped = set(list_dropped_variables(inherited))
    kept = {name: value for name, value in inherited.items() if name not in dropped}
    entries = filter(None, kept.pop("PYTHONPATH", "").split(os.pathsep))
    if python_path := os.pathsep.join(str(Path(entry).absolute()) for entry in entries):
        kept["PYTHONPATH"] = python_path
    return kept


def list_dropped_variables(inherited: Mapping[str, str]) -> tuple[str, ...]:
    """Name the variables that workers do not inherit, sorted; a reader may wonder about them."""
    return tuple(
        sorted(name for name in inherited if name.startswith(_DROPPED_PREFIXES) and name not in _KEPT)
    )


def note_dropped_variables(inherited: Mapping[str, str], *, of_stack: bool = False) -> tuple[Fact, ...]:
    """A note on the variables that workers do not inherit, as far as anybody asks about them.

    ``of_stack`` asks for settings of torch and its libraries only, which make another program of the same
    code; where a cache lies is none.
    """
    names = [name for name in list_dropped_variables(inherited) if not name.startswith(_TOOL_PREFIXES)]
    if of_stack:
        names = [name for name in names if name.startswith(_STACK_PREFIXES) and not name.endswith("_DIR")]
    return (Fact(code=Code.VARIABLES_DROPPED, names={"variables": tuple(names)}),) if names else ()


MAX_RESULT_BYTES = 64 * 1024 * 1024  # a real one is some tens of kilobytes; more is not ours


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerJob(ProcessCommand):
    """A request and how to run it; ``argv`` is that of any worker, before its request's path."""

    request: WorkerRequest
    trial: int = 0
    arm: str = "head"
    opened_s: float = 0.0  # its share of the seconds that opening servers took
    why_not: Fact | None = None  # warns that it has no server, and why


JobOutcome = WorkerResult | CaseFailure


def run_worker(job: WorkerJob) -> JobOutcome:
    """Run one worker on this machine to its end and judge it.

    Raises:
        MachineError: The interpreter cannot be started, or the disk is full.
        KeyboardInterrupt: Ctrl-C; nothing of the worker is left running.
    """
    result_path = Path(job.request.result)
    request_path = result_path.with_suffix(".request.json")
    result_path.unlink(missing_ok=True)
    if job.request.benchmark_json:
        make_directory(Path(job.request.benchmark_json).parent)
    codec.write_atomic(request_path, json.dumps(codec.encode(job.request), indent=1, sort_keys=True))
    ended = run_process(replace(job, argv=(*job.argv, str(request_path))))
    return judge_exit(job, ended, load_result(result_path))


def make_directory(path: Path) -> None:
    """Make a directory and its parents; raises as :func:`gate.files.disk.write_atomic`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise describe_write_error(path, error) from error


def load_result(path: Path) -> WorkerResult | Fact:
    """Read what a worker left, or say why not: a crash may have left nothing, or something unreadable."""
    try:
        if path.stat().st_size > MAX_RESULT_BYTES:
            return Fact(code=Code.RESULT_TOO_LARGE, numbers={"bytes": MAX_RESULT_BYTES})
        content = path.read_bytes()
    except FileNotFoundError:
        return Fact(code=Code.NO_RESULT)
    except OSError as error:
        names = name_words(message=error.strerror or "")
        return Fact(code=Code.RESULT_UNREADABLE, names=names)
    try:
        return codec.decode(WorkerResult, codec.parse_json(content, path.name), path.name)
    except FileError as error:
        return Fact(code=Code.RESULT_UNREADABLE, names=name_words(message=error.what))


def judge_exit(job: WorkerJob, ended: ProcessExit, left: WorkerResult | Fact) -> JobOutcome:
    """Decide what a worker's end means: its result, or how the case failed. Pure."""
    checkout, role = job.request.checkout or job.request.directory, name_words(role=job.request.role)
    log_tail = _name_from_top(clean_log_tail(ended.log_tail, of_hang=ended.use is not None), checkout)
    result = left if isinstance(left, WorkerResult) else None
    problem = left if isinstance(left, Fact) else Fact(code=Code.RESULT_UNFINISHED)
    stage = result.stage if result else Stage.START
    failure = CaseFailure(
        case_id=job.request.case.id if job.request.case else "",
        trial=job.trial,
        arm=job.arm,
        kind=FailureKind.CRASH,
        stage=stage,
        fact=problem,
        log_tail=log_tail,
        log=name_log(job.log),
    )
    if result and result.failure:
        return add_told(failure, result.failure, checkout)
    if ended.use:
        numbers = {"wall_s": ended.use.wall_s, "cpu_s": ended.use.cpu_s}
        late = (FailureKind.HANG, Code.HANGS) if ended.use.hangs else (FailureKind.TIMEOUT, Code.NO_END)
        return replace(failure, kind=late[0], fact=Fact(code=late[1], numbers=numbers, names=role))
    # Of the user's own checkout nothing is measured by mistake: a project may end its process by itself.
    is_whole = stage == Stage.DONE or (stage == Stage.ENDED and not job.request.checkout)
    if result and is_whole:
        return _accept(job, result, ended.status)
    kind, told = _judge_end(ended, problem)
    if shortage := find_shortage(log_tail):
        told = replace(told, names={**told.names, "shortage": (shortage,)})
    return replace(
        failure, kind=kind, fact=_clean_words(replace(told, names={**told.names, **role}), checkout)
    )


def _clean_words(told: Fact, checkout: str) -> Fact:
    """Make one printable line of each word that a worker sent."""
    cleaned = {
        name: tuple(" ".join(_clean(word, checkout).split()) for word in words)
        for name, words in told.names.items()
    }
    return replace(told, names=cleaned)


def _clean(text: str, checkout: str) -> str:
    return _name_from_top(clean_log_tail(text.encode(errors="replace")), checkout)


def _name_from_top(text: str, checkout: str) -> str:
    """Name files of an arm's checkout as they are called there: a directory is one machine's."""
    return text.replace(f"{checkout.rstrip('/')}/", "") if checkout.strip("/") else text


def add_told(failure: CaseFailure, told: WorkerFailure, checkout: str) -> CaseFailure:
    """Add what a worker tells of a failure; nothing that measured code says is trusted to be printable.

    Files are named from the top of ``checkout``, the arm's.
    """
    traceback = _clean(told.traceback, checkout)
    fact = _clean_words(told.fact, checkout)
    return replace(failure, kind=told.kind, fact=fact, log_tail=traceback or failure.log_tail)


def name_log(path: Path) -> str:
    """Name a log's path: from the current directory where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _accept(job: WorkerJob, result: WorkerResult, status: int) -> WorkerResult:
    """Add how it ended, how long opening its server took and, where it has none, why."""
    names = name_words(role=result.role)
    badly = Fact(code=Code.ENDED_BADLY, numbers={"status": status}, names=names) if status else None
    stages_s: dict[str, float] = {Stage.SERVER: job.opened_s} if job.opened_s else {}
    return replace(
        result,
        stages_s={**result.stages_s, **stages_s},
        warnings=(*result.warnings, *filter(None, (badly, job.why_not))),
    )


def _judge_end(ended: ProcessExit, problem: Fact) -> tuple[FailureKind, Fact]:
    if ended.status == -signal.SIGKILL:
        return FailureKind.KILLED, Fact(code=Code.SIGKILLED, numbers={"oom_kills": ended.oom_kills})
    return FailureKind.CRASH, replace(problem, numbers={**problem.numbers, "status": ended.status})


LOG_EXCERPT_LINES = 30  # a traceback and the lines that led to it
LOG_EXCERPT_BYTES = 8 * 1024  # kept in run.json for each failure, and pasted into comments
_LINE_CHARS = 500  # a path and some code; some errors of torch name all of its options in one line

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")

_FAULT = "Fatal Python error"  # begins the fault handler's dump
_CURRENT = "Current thread "
_FRAME = re.compile(r' +File "')
_FRAME_OF_GATE = re.compile(
    r' +File "(?:.*/gate/(?:measure|suite|worker)/|.*/(?:_pytest|pluggy)/|<frozen runpy>)'
)
_FRAME_OF_LIBRARY = re.compile(r' +File "(?:.*/lib/python\d|.*/c[a-z0-9]{51}\.py|<)')
_FAULT_LINES = 12  # of the dump, as many as a report shows; the rest of the 30 is what was said before

# What processes say when they run out of memory or disk, by what to call it.
_HINTS = {
    "memory": re.compile(
        r"bad_alloc|can't allocate memory|cannot allocate memory|out of memory|MemoryError", re.IGNORECASE
    ),
    "disk": re.compile(r"no space left on device|disk quota exceeded|file too large", re.IGNORECASE),
}


def clean_log_tail(log: bytes, *, of_hang: bool = False) -> str:
    """Take the last lines of a log: at most 30, at most 8 KiB, without control characters.

    Of a line that was overwritten by carriage returns, as progress bars do, the last state is kept.
    When Python's fault handler had the last word, the lines are those around its first one: it prints
    the innermost frame first, and the end of its dump is the same for every crash. In one
    ``of_hang``, which the gate asked for, the user's innermost frame comes first.
    """
    text = _ESCAPES.sub("", log.decode("utf-8", errors="replace")).strip("\r\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    faults = [number for number, line in enumerate(lines) if line.startswith(_FAULT)]
    if faults and of_hang:
        lines[faults[-1] :] = _list_frames(lines[faults[-1] :])
    end = faults[-1] + _FAULT_LINES if faults else len(lines)
    printable = "\n".join(map(_clean_line, lines[:end][-LOG_EXCERPT_LINES:]))
    return printable.encode()[-LOG_EXCERPT_BYTES:].decode(errors="ignore")


def _list_frames(dump: Sequence[str]) -> Iterator[str]:
    """List the frames of the thread that was at work, the user's innermost first, without the gate's."""
    begin = next((number for number, line in enumerate(dump) if line.startswith(_CURRENT)), 0)
    frames = takewhile(_FRAME.match, dump[begin + 1 :])
    kept = [line for line in frames if not _FRAME_OF_GATE.match(line)]
    own = next((number for number, line in enumerate(kept) if not _FRAME_OF_LIBRARY.match(line)), 0)
    yield "It was at (most recent call first):"
    yield from (kept[own], "which had called (most recent call first):", *kept[:own]) if own else kept


def find_shortage(log_tail: str) -> str:
    """Name what the log says was short: ``memory``, ``disk`` or ``""``."""
    return next((name for name, pattern in _HINTS.items() if pattern.search(log_tail)), "")


def _clean_line(line: str) -> str:
    # Without control, format (which hide or reverse text) and surrogate characters; a tab is harmless.
    kept = (one for one in line if one == "\t" or not unicodedata.category(one).startswith("C"))
    cleaned = "".join(kept).rstrip()
    return cleaned if len(cleaned) <= _LINE_CHARS else f"{cleaned[:_LINE_CHARS]} ..."
