"""Is this machine fit to judge? Checks over what :mod:`gate.lab.doctor.probe` found; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gate.devices import find_kind
from gate.lab.doctor.gpu_checks import examine_gpu, look_at_cases, look_at_guards, look_at_service
from gate.lab.host.fitness import STEAL_LIMIT
from gate.lab.host.gpu import GpuState
from gate.lab.host.toolchain_place import CACHE_VARIABLE, ToolchainState
from gate.lab.trials.trials import MIN_FREE_BYTES
from gate.oldest import OLDEST_PYTHON, OLDEST_TORCH, is_older
from gate.records.findings import Check, CheckLevel, fail_check, grade_check, pass_check, warn_check

_BUSY_LOAD = 0.25  # a core: other work this heavy shows in the tail of the latencies
_FULL_LOAD = 1.0  # a core: every measurement competes
_LOW_MEMORY_BYTES = 4 * 2**30  # the large reference models need about this much to compile
_NO_MEMORY_BYTES = 2**30  # importing torch and compiling the smallest model needs about this much
_ROOMY = 4  # times the least free disk: a run of many cases and its logs
_GIB = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    """What was found. Words are empty and numbers 0 where the machine does not tell."""

    device: str
    threads: int
    interpreter: str
    python: str = ""  # "3.11.7"; empty when the interpreter does not run
    torch: str = ""
    torch_problem: str = ""  # why torch cannot be imported
    torch_devices: int = 0  # CUDA devices that torch sees
    compiler: str = ""  # "g++ 12.2.0"
    compiler_problem: str = ""
    cores: int = 1
    load: float = 0.0  # 1-minute load average
    steal: float = 0.0  # fraction of processor time since boot that the hypervisor took
    governor: str = ""
    turbo: str = ""  # "on" or "off"
    memory_bytes: int = 0  # available, within the container's limit
    disk_bytes: int = 0  # the least free of the scratch and the output directory
    unwritable: tuple[str, ...] = ()
    git: str = ""
    commit: str = ""
    dirty: bool = False
    holder: str = ""  # who holds the device's lock, in words
    lock_problem: str = ""  # why it cannot be taken by anybody here
    variables: tuple[str, ...] = ()  # set here, not handed to workers
    preloaded: str = ""  # LD_PRELOAD
    toolchain: ToolchainState = field(default_factory=ToolchainState)
    gpu: GpuState | None = None
    unavailable: str = ""  # which cases cannot run here, and why
    mps: str = ""  # where CUDA's Multi-Process Service listens
    nvml_problem: str = ""  # why workers cannot ask NVML what happens to the GPU


def examine_machine(state: MachineState) -> tuple[Check, ...]:
    """Judge what was found, one check a subject; those of a GPU only when one is to be used."""
    checks = [look(state) for look in _LOOKS]
    if find_kind(state.device).is_gpu:
        checks.extend(examine_gpu(state.device, state.torch_devices, state.gpu))
        checks.append(look_at_guards(state.gpu, state.nvml_problem, state.interpreter))
        checks.append(look_at_service(state.mps))
    checks.append(look_at_cases(state.unavailable))
    return tuple(checks)


def is_fit(checks: tuple[Check, ...]) -> bool:
    """Whether nothing found makes a verdict of this machine worthless."""
    return all(check.level != CheckLevel.FAIL for check in checks)


def _look_at_python(state: MachineState) -> Check:
    if not state.python:
        return fail_check("python", f"{state.interpreter} does not run", "Name an interpreter that exists.")
    finding = f"{state.python} at {state.interpreter}"
    fix = f"Use Python {OLDEST_PYTHON} or newer."
    return grade_check("python", finding, fix, fails=is_older(state.python, OLDEST_PYTHON))


def _look_at_torch(state: MachineState) -> Check:
    if not state.torch:
        finding = state.torch_problem or "not installed"
        return fail_check("torch", finding, f"Install torch for {state.interpreter}.")
    fix = f"Counters are known from torch {OLDEST_TORCH} on; some metrics may be missing."
    return grade_check("torch", state.torch, fix, warns=is_older(state.torch, OLDEST_TORCH))


def _look_at_compiler(state: MachineState) -> Check:
    if not state.compiler or state.compiler_problem:
        return fail_check(
            "compiler",
            state.compiler_problem or "no C++ compiler",
            "Install a C++ compiler (g++), or set CXX.",
        )
    return pass_check("compiler", state.compiler)


def _look_at_load(state: MachineState) -> Check:
    finding = f"{state.load:.2f} on {state.cores} cores"
    fix = "Wait until other work has ended; times measured now are too noisy to judge."
    per_core = state.load / max(1, state.cores)
    return grade_check("load", finding, fix, fails=per_core >= _FULL_LOAD, warns=per_core >= _BUSY_LOAD)


def _look_at_threads(state: MachineState) -> Check:
    finding = f"{state.threads} of {state.cores} cores"
    fix = "Set `threads` in gate.yml to the cores there are."
    return grade_check("threads", finding, fix, fails=state.threads > state.cores)


def _look_at_clocks(state: MachineState) -> Check:
    governor = f"governor {state.governor}" if state.governor else "governor unknown"
    turbo = f", turbo {state.turbo}" if state.turbo else ""
    fix = "Set it to performance: `cpupower frequency-set -g performance`."
    return grade_check("clocks", governor + turbo, fix, warns=state.governor not in ("", "performance"))


def _look_at_steal(state: MachineState) -> Check:
    finding = f"{100 * state.steal:.1f} % of processor time since boot"
    fix = "Neighbours share these cores: use a machine of your own to judge times."
    return grade_check("steal", finding, fix, warns=state.steal > STEAL_LIMIT)


def _look_at_memory(state: MachineState) -> Check:
    finding = f"{state.memory_bytes / _GIB:.1f} GiB available"
    fails, warns = (state.memory_bytes < limit for limit in (_NO_MEMORY_BYTES, _LOW_MEMORY_BYTES))
    return grade_check("memory", finding, "End other programs, or raise the limit.", fails=fails, warns=warns)


def _look_at_disk(state: MachineState) -> Check:
    finding = f"{state.disk_bytes / _GIB:.1f} GiB free"
    fails, warns = (state.disk_bytes < limit for limit in (MIN_FREE_BYTES, _ROOMY * MIN_FREE_BYTES))
    return grade_check("disk", finding, "Free some space, or set TMPDIR and --out.", fails=fails, warns=warns)


def _look_at_directories(state: MachineState) -> Check:
    if state.unwritable:
        return fail_check(
            "directories",
            f"cannot write to {', '.join(state.unwritable)}",
            "Make them writable, or set TMPDIR and --out.",
        )
    return pass_check("directories", "scratch and output are writable")


def _look_at_git(state: MachineState) -> Check:
    if not state.git or not state.commit:
        return warn_check(
            "git",
            "no commit here" if state.git else "not installed",
            "Runs and baselines will not say which commit they are of.",
        )
    changes = ", uncommitted changes" if state.dirty else ""
    return pass_check("git", f"{state.git}, at {state.commit[:10]}{changes}")


def _look_at_lock(state: MachineState) -> Check:
    if state.lock_problem:
        what, _, fix = state.lock_problem.partition("\n")
        return fail_check("lock", what, fix)
    if state.holder:
        return warn_check("lock", f"{state.device} is in use by {state.holder}", "Wait for it to end.")
    return pass_check("lock", f"{state.device} is free")


def _look_at_variables(state: MachineState) -> Check:
    if state.preloaded:
        return warn_check(
            "variables",
            f"LD_PRELOAD is {state.preloaded}",
            "A preloaded allocator changes what is measured: unset it, or always set it.",
        )
    named = ", ".join(state.variables)
    finding = f"not handed to workers: {named}" if named else "nothing set that workers must not see"
    return pass_check("variables", finding)


def _look_at_toolchain(state: MachineState) -> Check:
    kept = state.toolchain
    if kept.place.directory is None:
        fix = f"Have it removed, or set {CACHE_VARIABLE} to a directory of yours."
        return grade_check("toolchain", f"never kept: {kept.place.reason}", fix, warns=kept.place.trouble)
    what = f"{kept.entries} kept, {kept.size_bytes / 2**20:.0f} MiB" if kept.entries else "nothing kept yet"
    return pass_check("toolchain", f"{what}, in {kept.place.directory}")


_LOOKS: tuple[Callable[[MachineState], Check], ...] = (
    _look_at_python,
    _look_at_torch,
    _look_at_compiler,
    _look_at_load,
    _look_at_threads,
    _look_at_clocks,
    _look_at_steal,
    _look_at_memory,
    _look_at_disk,
    _look_at_directories,
    _look_at_git,
    _look_at_lock,
    _look_at_variables,
    _look_at_toolchain,
)
