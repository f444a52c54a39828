"""Is this machine fit to judge? Checks over what :mod:`gate.lab.probe` found; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gate.lab.findings import Check, Level
from gate.lab.fitness import STEAL_LIMIT
from gate.lab.gpu import GpuState
from gate.lab.gpu_checks import examine_gpu, look_at_cases, look_at_guards
from gate.lab.toolchain_place import CACHE_VARIABLE, ToolchainState
from gate.lab.trials import MIN_FREE_BYTES

_OLDEST_PYTHON = (3, 11)
_OLDEST_TORCH = (2, 11)  # the oldest whose internals the measuring code has been checked against
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
    unavailable: str = ""  # which cases the GPU cannot run, and why
    nvml_problem: str = ""  # why workers cannot ask NVML what happens to the GPU


def examine_machine(state: MachineState) -> tuple[Check, ...]:
    """Judge what was found, one check a subject; those of a GPU only when one is to be used."""
    checks = [look(state) for look in _LOOKS]
    if state.device != "cpu":
        checks.extend(examine_gpu(state.device, state.torch_devices, state.gpu))
        checks.append(look_at_guards(state.gpu, state.nvml_problem, state.interpreter))
        checks.append(look_at_cases(state.unavailable))
    return tuple(checks)


def is_fit(checks: tuple[Check, ...]) -> bool:
    """Whether nothing found makes a verdict of this machine worthless."""
    return all(check.level != Level.FAIL for check in checks)


def _parse_release(version: str) -> tuple[int, ...]:
    parts = version.split("+", maxsplit=1)[0].split(".")[:2]
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)


def _look_at_python(state: MachineState) -> Check:
    if not state.python:
        return Check(
            name="python",
            level=Level.FAIL,
            finding=f"{state.interpreter} does not run",
            fix="Name an interpreter that exists.",
        )
    finding = f"{state.python} at {state.interpreter}"
    if _parse_release(state.python) < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        return Check(name="python", level=Level.FAIL, finding=finding, fix=f"Use Python {oldest} or newer.")
    return Check(name="python", level=Level.OK, finding=finding)


def _look_at_torch(state: MachineState) -> Check:
    if not state.torch:
        finding = state.torch_problem or "not installed"
        return Check(
            name="torch", level=Level.FAIL, finding=finding, fix=f"Install torch for {state.interpreter}."
        )
    if _parse_release(state.torch) < _OLDEST_TORCH:
        oldest = ".".join(map(str, _OLDEST_TORCH))
        fix = f"Counters are known from torch {oldest} on; some metrics may be missing."
        return Check(name="torch", level=Level.WARN, finding=state.torch, fix=fix)
    return Check(name="torch", level=Level.OK, finding=state.torch)


def _look_at_compiler(state: MachineState) -> Check:
    if not state.compiler or state.compiler_problem:
        return Check(
            name="compiler",
            level=Level.FAIL,
            finding=state.compiler_problem or "no C++ compiler",
            fix="Install a C++ compiler (g++), or set CXX.",
        )
    return Check(name="compiler", level=Level.OK, finding=state.compiler)


def _look_at_load(state: MachineState) -> Check:
    finding = f"{state.load:.2f} on {state.cores} cores"
    fix = "Wait until other work has ended; times measured now are too noisy to judge."
    per_core = state.load / max(1, state.cores)
    level = Level.FAIL if per_core >= _FULL_LOAD else Level.WARN if per_core >= _BUSY_LOAD else Level.OK
    return Check(name="load", level=level, finding=finding, fix="" if level == Level.OK else fix)


def _look_at_threads(state: MachineState) -> Check:
    finding = f"{state.threads} of {state.cores} cores"
    if state.threads > state.cores:
        return Check(
            name="threads",
            level=Level.FAIL,
            finding=finding,
            fix="Set `threads` in gate.yml to the cores there are.",
        )
    return Check(name="threads", level=Level.OK, finding=finding)


def _look_at_clocks(state: MachineState) -> Check:
    governor = f"governor {state.governor}" if state.governor else "governor unknown"
    turbo = f", turbo {state.turbo}" if state.turbo else ""
    if state.governor not in ("", "performance"):
        return Check(
            name="clocks",
            level=Level.WARN,
            finding=governor + turbo,
            fix="Set it to performance: `cpupower frequency-set -g performance`.",
        )
    return Check(name="clocks", level=Level.OK, finding=governor + turbo)


def _look_at_steal(state: MachineState) -> Check:
    finding = f"{100 * state.steal:.1f} % of processor time since boot"
    if state.steal > STEAL_LIMIT:
        return Check(
            name="steal",
            level=Level.WARN,
            finding=finding,
            fix="Neighbours share these cores: use a machine of your own to judge times.",
        )
    return Check(name="steal", level=Level.OK, finding=finding)


def _look_at_memory(state: MachineState) -> Check:
    finding = f"{state.memory_bytes / _GIB:.1f} GiB available"
    if state.memory_bytes >= _LOW_MEMORY_BYTES:
        return Check(name="memory", level=Level.OK, finding=finding)
    level = Level.FAIL if state.memory_bytes < _NO_MEMORY_BYTES else Level.WARN
    return Check(name="memory", level=level, finding=finding, fix="End other programs, or raise the limit.")


def _look_at_disk(state: MachineState) -> Check:
    finding = f"{state.disk_bytes / _GIB:.1f} GiB free"
    if state.disk_bytes >= _ROOMY * MIN_FREE_BYTES:
        return Check(name="disk", level=Level.OK, finding=finding)
    level = Level.FAIL if state.disk_bytes < MIN_FREE_BYTES else Level.WARN
    return Check(name="disk", level=level, finding=finding, fix="Free some space, or set TMPDIR and --out.")


def _look_at_directories(state: MachineState) -> Check:
    if state.unwritable:
        return Check(
            name="directories",
            level=Level.FAIL,
            finding=f"cannot write to {', '.join(state.unwritable)}",
            fix="Make them writable, or set TMPDIR and --out.",
        )
    return Check(name="directories", level=Level.OK, finding="scratch and output are writable")


def _look_at_git(state: MachineState) -> Check:
    if not state.git or not state.commit:
        return Check(
            name="git",
            level=Level.WARN,
            finding="no commit here" if state.git else "not installed",
            fix="Runs and baselines will not say which commit they are of.",
        )
    changes = ", uncommitted changes" if state.dirty else ""
    return Check(name="git", level=Level.OK, finding=f"{state.git}, at {state.commit[:10]}{changes}")


def _look_at_lock(state: MachineState) -> Check:
    if state.lock_problem:
        what, _, fix = state.lock_problem.partition("\n")
        return Check(name="lock", level=Level.FAIL, finding=what, fix=fix)
    if state.holder:
        return Check(
            name="lock",
            level=Level.WARN,
            finding=f"{state.device} is in use by {state.holder}",
            fix="Wait for it to end.",
        )
    return Check(name="lock", level=Level.OK, finding=f"{state.device} is free")


def _look_at_variables(state: MachineState) -> Check:
    if state.preloaded:
        return Check(
            name="variables",
            level=Level.WARN,
            finding=f"LD_PRELOAD is {state.preloaded}",
            fix="A preloaded allocator changes what is measured: unset it, or always set it.",
        )
    named = ", ".join(state.variables)
    finding = f"not handed to workers: {named}" if named else "nothing set that workers must not see"
    return Check(name="variables", level=Level.OK, finding=finding)


def _look_at_toolchain(state: MachineState) -> Check:
    kept = state.toolchain
    if kept.place.directory is None:
        level = Level.WARN if kept.place.trouble else Level.OK
        fix = (
            f"Have it removed, or set {CACHE_VARIABLE} to a directory of yours." if kept.place.trouble else ""
        )
        return Check(name="toolchain", level=level, finding=f"never kept: {kept.place.reason}", fix=fix)
    what = f"{kept.entries} kept, {kept.size_bytes / 2**20:.0f} MiB" if kept.entries else "nothing kept yet"
    return Check(name="toolchain", level=Level.OK, finding=f"{what}, in {kept.place.directory}")


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
