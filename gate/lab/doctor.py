"""Is this machine fit to judge? Checks over what :mod:`gate.lab.probe` found; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gate.lab.fitness import STEAL_LIMIT
from gate.lab.gpu import GpuState
from gate.lab.trials import MIN_FREE_BYTES

_OLDEST_PYTHON = (3, 11)
_OLDEST_TORCH = (2, 11)  # the oldest whose internals the measuring code has been checked against
_BUSY_LOAD = 0.25  # a core: other work this heavy shows in the tail of the latencies
_FULL_LOAD = 1.0  # a core: every measurement competes
_LOW_MEMORY_BYTES = 4 * 2**30  # the large reference models need about this much to compile
_NO_MEMORY_BYTES = 2**30  # importing torch and compiling the smallest model needs about this much
_ROOMY = 4  # times the least free disk: a run of many cases and its logs
_FOREIGN_MEMORY = 0.05  # of a GPU's memory, used while no process shows: a container hides it
_GIB = 2**30


class Level(StrEnum):
    """How bad a finding is; one ``fail`` makes the machine unfit."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing looked at, what was found, and what mends it (empty when it is well)."""

    name: str
    level: Level
    finding: str
    mend: str = ""


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
    holder: int = 0  # process that holds the device's lock
    variables: tuple[str, ...] = ()  # set here, not handed to workers
    preloaded: str = ""  # LD_PRELOAD
    gpu: GpuState | None = None


def examine_machine(state: MachineState) -> tuple[Check, ...]:
    """Judge what was found, one check a subject; those of a GPU only when one is to be used."""
    checks = [look(state) for look in _LOOKS]
    if state.device != "cpu":
        checks.extend(_examine_gpu(state))
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
            mend="Name an interpreter that exists.",
        )
    finding = f"{state.python} at {state.interpreter}"
    if _parse_release(state.python) < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        return Check(name="python", level=Level.FAIL, finding=finding, mend=f"Use Python {oldest} or newer.")
    return Check(name="python", level=Level.OK, finding=finding)


def _look_at_torch(state: MachineState) -> Check:
    if not state.torch:
        finding = state.torch_problem or "not installed"
        return Check(
            name="torch", level=Level.FAIL, finding=finding, mend=f"Install torch for {state.interpreter}."
        )
    if _parse_release(state.torch) < _OLDEST_TORCH:
        oldest = ".".join(map(str, _OLDEST_TORCH))
        mend = f"Counters are known from torch {oldest} on; some metrics may be missing."
        return Check(name="torch", level=Level.WARN, finding=state.torch, mend=mend)
    return Check(name="torch", level=Level.OK, finding=state.torch)


def _look_at_compiler(state: MachineState) -> Check:
    if not state.compiler or state.compiler_problem:
        return Check(
            name="compiler",
            level=Level.FAIL,
            finding=state.compiler_problem or "no C++ compiler",
            mend="Install a C++ compiler (g++), or set CXX.",
        )
    return Check(name="compiler", level=Level.OK, finding=state.compiler)


def _look_at_load(state: MachineState) -> Check:
    finding = f"{state.load:.2f} on {state.cores} cores"
    mend = "Wait until other work has ended; times measured now are too noisy to judge."
    per_core = state.load / max(1, state.cores)
    level = Level.FAIL if per_core >= _FULL_LOAD else Level.WARN if per_core >= _BUSY_LOAD else Level.OK
    return Check(name="load", level=level, finding=finding, mend="" if level == Level.OK else mend)


def _look_at_threads(state: MachineState) -> Check:
    finding = f"{state.threads} of {state.cores} cores"
    if state.threads > state.cores:
        return Check(
            name="threads",
            level=Level.FAIL,
            finding=finding,
            mend="Set `threads` in gate.yml to the cores there are.",
        )
    return Check(name="threads", level=Level.OK, finding=finding)


def _look_at_clocks(state: MachineState) -> Check:
    governor = f"governor {state.governor}" if state.governor else "governor not told"
    turbo = f", turbo {state.turbo}" if state.turbo else ""
    if state.governor not in ("", "performance"):
        return Check(
            name="clocks",
            level=Level.WARN,
            finding=governor + turbo,
            mend="Set it to performance: `cpupower frequency-set -g performance`.",
        )
    return Check(name="clocks", level=Level.OK, finding=governor + turbo)


def _look_at_steal(state: MachineState) -> Check:
    finding = f"{100 * state.steal:.1f} % of processor time since boot"
    if state.steal > STEAL_LIMIT:
        return Check(
            name="steal",
            level=Level.WARN,
            finding=finding,
            mend="Neighbours share these cores: use a machine of your own to judge times.",
        )
    return Check(name="steal", level=Level.OK, finding=finding)


def _look_at_memory(state: MachineState) -> Check:
    finding = f"{state.memory_bytes / _GIB:.1f} GiB available"
    if state.memory_bytes >= _LOW_MEMORY_BYTES:
        return Check(name="memory", level=Level.OK, finding=finding)
    level = Level.FAIL if state.memory_bytes < _NO_MEMORY_BYTES else Level.WARN
    return Check(name="memory", level=level, finding=finding, mend="End other programs, or raise the limit.")


def _look_at_disk(state: MachineState) -> Check:
    finding = f"{state.disk_bytes / _GIB:.1f} GiB free"
    if state.disk_bytes >= _ROOMY * MIN_FREE_BYTES:
        return Check(name="disk", level=Level.OK, finding=finding)
    level = Level.FAIL if state.disk_bytes < MIN_FREE_BYTES else Level.WARN
    return Check(name="disk", level=level, finding=finding, mend="Free some space, or set TMPDIR and --out.")


def _look_at_directories(state: MachineState) -> Check:
    if state.unwritable:
        return Check(
            name="directories",
            level=Level.FAIL,
            finding=f"cannot write to {', '.join(state.unwritable)}",
            mend="Make them writable, or set TMPDIR and --out.",
        )
    return Check(name="directories", level=Level.OK, finding="scratch and output are writable")


def _look_at_git(state: MachineState) -> Check:
    if not state.git or not state.commit:
        return Check(
            name="git",
            level=Level.WARN,
            finding="no commit here" if state.git else "not installed",
            mend="Runs and baselines will not say which commit they are of.",
        )
    changes = ", uncommitted changes" if state.dirty else ""
    return Check(name="git", level=Level.OK, finding=f"{state.git}, at {state.commit[:10]}{changes}")


def _look_at_lock(state: MachineState) -> Check:
    if state.holder:
        return Check(
            name="lock",
            level=Level.WARN,
            finding=f"{state.device} is in use by process {state.holder}",
            mend="Wait for it to end.",
        )
    return Check(name="lock", level=Level.OK, finding=f"{state.device} is free")


def _look_at_variables(state: MachineState) -> Check:
    if state.preloaded:
        return Check(
            name="variables",
            level=Level.WARN,
            finding=f"LD_PRELOAD is {state.preloaded}",
            mend="A preloaded allocator changes what is measured: unset it, or always set it.",
        )
    named = ", ".join(state.variables)
    finding = f"not handed to workers: {named}" if named else "nothing set that workers must not see"
    return Check(name="variables", level=Level.OK, finding=finding)


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
)


def _examine_gpu(state: MachineState) -> list[Check]:
    gpu = state.gpu
    checks = [_look_at_torch_device(state)]
    if gpu is None:
        mend = "Check the driver: `nvidia-smi` must list the device; see CUDA_VISIBLE_DEVICES too."
        finding = f"nvidia-smi does not know {state.device}"
        return [*checks, Check(name="gpu", level=Level.FAIL, finding=finding, mend=mend)]
    clocks = f"{gpu.clock_mhz:.0f} of {gpu.max_clock_mhz:.0f} MHz, {gpu.temperature_c:.0f} degrees"
    finding = f"{gpu.name}, driver {gpu.driver}, {clocks}"
    return [
        *checks,
        Check(name="gpu", level=Level.OK, finding=finding),
        _look_at_throttling(gpu),
        _look_at_processes(gpu),
        _look_at_sharing(gpu),
    ]


def _look_at_torch_device(state: MachineState) -> Check:
    ordinal = int(state.device.partition(":")[2] or 0)
    finding = f"torch sees {state.torch_devices} CUDA devices"
    if ordinal < state.torch_devices:
        return Check(name="device", level=Level.OK, finding=finding)
    mend = "Install a torch built for CUDA, or choose a device that exists (--device cpu)."
    return Check(name="device", level=Level.FAIL, finding=finding, mend=mend)


def _look_at_throttling(gpu: GpuState) -> Check:
    if gpu.throttled:
        return Check(
            name="throttling",
            level=Level.FAIL,
            finding=", ".join(gpu.throttled),
            mend="Let the device cool down, or look at its power supply and cooling.",
        )
    return Check(name="throttling", level=Level.OK, finding="none")


def _look_at_processes(gpu: GpuState) -> Check:
    used = gpu.memory_used_mib / gpu.memory_total_mib if gpu.memory_total_mib else 0.0
    finding = f"{gpu.processes} processes, {gpu.memory_used_mib:.0f} MiB in use"
    if gpu.processes:
        return Check(
            name="sharing", level=Level.FAIL, finding=finding, mend="End the other processes on the device."
        )
    if used > _FOREIGN_MEMORY:
        mend = "Somebody uses the device, perhaps from another container: have it to yourself."
        return Check(name="sharing", level=Level.WARN, finding=finding, mend=mend)
    return Check(name="sharing", level=Level.OK, finding=finding)


def _look_at_sharing(gpu: GpuState) -> Check:
    if gpu.mig:
        mend = "Other instances share memory bandwidth and power: judge times on a whole device."
        return Check(name="mode", level=Level.WARN, finding="MIG is enabled", mend=mend)
    if not gpu.persistent:
        mend = "Enable it (`nvidia-smi -pm 1`): the driver forgets its clocks between processes."
        return Check(name="mode", level=Level.WARN, finding="persistence mode is off", mend=mend)
    return Check(name="mode", level=Level.OK, finding="persistence mode on, MIG off")
