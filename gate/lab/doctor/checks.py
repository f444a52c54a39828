"""Is this machine fit to judge? Checks over what :mod:`gate.lab.doctor.probe` found; pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gate.devices import find_kind
from gate.errors import GateError
from gate.installation import OLDEST_PYTHON, OLDEST_TORCH, is_older
from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT, STEAL_LIMIT
from gate.lab.host.gpu import GpuState, tell_service, tell_unlisted
from gate.lab.trials.trials import MIN_FREE_BYTES
from gate.records import Code, Fact, name_words
from gate.records.events import Check, CheckLevel, fail_check, grade_check, pass_check, warn_check


def examine_gpu(device: str, torch_devices: int, gpu: GpuState | None) -> list[Check]:
    """Judge what nvidia-smi says of ``device``, and whether torch sees it; pure."""
    checks = [_look_at_torch_device(device, torch_devices)]
    if gpu is None:
        return [*checks, fail_check("gpu", tell_unlisted(device))]
    clocks = {"clock_mhz": gpu.clock_mhz, "max_clock_mhz": gpu.max_clock_mhz}
    told = Fact(
        code=Code.GPU_FOUND,
        numbers={**clocks, "temperature_c": gpu.temperature_c},
        names=name_words(model=gpu.name, driver=gpu.driver),
    )
    return [
        *checks,
        pass_check("gpu", told),
        _look_at_throttling(gpu),
        _look_at_processes(gpu),
        _look_at_sharing(gpu),
    ]


def look_at_guards(gpu: GpuState | None, problem: str, interpreter: str) -> Check:
    """Judge whether anybody would see throttling and strangers during a trial: workers ask NVML."""
    if problem:
        names = name_words(problem=problem, interpreter=interpreter)
        return fail_check("guards", Fact(code=Code.NVML_FAILS, names=names))
    if gpu and gpu.blind:
        return warn_check("guards", Fact(code=Code.NVML_BLIND, names={"unseen": gpu.blind}))
    return pass_check("guards", Fact(code=Code.NVML_ANSWERS))


def look_at_service(place: str) -> Check:
    """Judge whether workers would share the device through CUDA's Multi-Process Service."""
    if place:
        return fail_check("mps", tell_service(place))
    return pass_check("mps", Fact(code=Code.SERVICE_UNUSED))


def look_at_cases(unavailable: str) -> Check:
    """Judge whether the selected cases can run here at all."""
    if unavailable:
        return fail_check("cases", Fact(code=Code.CASES_UNAVAILABLE, names=name_words(text=unavailable)))
    return pass_check("cases", Fact(code=Code.CASES_AVAILABLE))


def _look_at_torch_device(device: str, torch_devices: int) -> Check:
    ordinal = int(device.partition(":")[2] or 0)
    told = Fact(code=Code.TORCH_DEVICES, numbers={"devices": torch_devices})
    return grade_check("device", told, fails=ordinal >= torch_devices)


def _look_at_throttling(gpu: GpuState) -> Check:
    told = Fact(code=Code.CLOCKS_HELD_DOWN, names={"reasons": gpu.throttled})
    return grade_check("throttling", told, fails=bool(gpu.throttled))


def _look_at_processes(gpu: GpuState) -> Check:
    used = gpu.memory_used_mib / gpu.memory_total_mib if gpu.memory_total_mib else 0.0
    numbers = {"processes": gpu.processes, "used_mib": gpu.memory_used_mib}
    told = Fact(code=Code.GPU_SHARED, numbers=numbers)
    return grade_check("sharing", told, fails=gpu.processes > 0, warns=used > FOREIGN_MEMORY_LIMIT)


def _look_at_sharing(gpu: GpuState) -> Check:
    if gpu.exclusive:
        return warn_check("mode", Fact(code=Code.GPU_EXCLUSIVE))
    if gpu.mig:
        return warn_check("mode", Fact(code=Code.GPU_CUT_UP))
    if not gpu.persistent:
        return warn_check("mode", Fact(code=Code.GPU_FORGETFUL))
    return pass_check("mode", Fact(code=Code.GPU_WHOLE))


_BUSY_LOAD = 0.25  # a core: other work this heavy shows in the tail of the latencies
_FULL_LOAD = 1.0  # a core: every measurement competes
_LOW_MEMORY_BYTES = 4 * 2**30  # the large reference models need about this much to compile
_NO_MEMORY_BYTES = 2**30  # importing torch and compiling the smallest model needs about this much
_ROOMY = 4  # times the least free disk: a run of many cases and its logs
_GIB, _MIB = 2**30, 2**20


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
    headers_lacking: str = ""  # where Python's headers should be, and are not
    cores: int = 1
    load: float = 0.0  # 1-minute load average
    busiest: tuple[str, ...] = ()  # the programs that keep the cores busy now: "chromium (pid 123, 95 %)"
    steal: float = 0.0  # fraction of CPU time since boot that the hypervisor took
    governor: str = ""
    turbo: str = ""  # "on" or "off"
    memory_bytes: int = 0  # available, within the container's limit
    disk_bytes: int = 0  # the least free of the scratch and the output directory
    unwritable: tuple[str, ...] = ()
    git: str = ""
    git_problem: GateError | None = None  # why it says nothing of this checkout
    commit: str = ""
    dirty: bool = False
    holder: str = ""  # who holds the device's lock, in words
    lock_problem: GateError | None = None  # why it cannot be taken by anybody here
    variables: tuple[str, ...] = ()  # set here, not handed to workers
    preloaded: str = ""  # LD_PRELOAD
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
        return fail_check("python", _tell(Code.INTERPRETER_DEAD, interpreter=state.interpreter))
    told = _tell(Code.PYTHON_FOUND, version=state.python, interpreter=state.interpreter, needed=OLDEST_PYTHON)
    return grade_check("python", told, fails=is_older(state.python, OLDEST_PYTHON))


def _look_at_torch(state: MachineState) -> Check:
    if not state.torch and state.torch_problem:
        told = _tell(Code.TORCH_BROKEN, problem=state.torch_problem, interpreter=state.interpreter)
        return fail_check("torch", told)
    if not state.torch:
        return fail_check("torch", _tell(Code.TORCH_LACKING, interpreter=state.interpreter))
    told = _tell(Code.TORCH_FOUND, version=state.torch, needed=OLDEST_TORCH)
    return grade_check("torch", told, warns=is_older(state.torch, OLDEST_TORCH))


def _look_at_compiler(state: MachineState) -> Check:
    if state.compiler_problem:
        return fail_check("compiler", _tell(Code.COMPILER_BROKEN, problem=state.compiler_problem))
    if not state.compiler:
        return fail_check("compiler", _tell(Code.COMPILER_LACKING))
    if state.headers_lacking:
        return fail_check("compiler", _tell(Code.HEADERS_LACKING, place=state.headers_lacking))
    return pass_check("compiler", _tell(Code.COMPILER_FOUND, compiler=state.compiler))


def _look_at_load(state: MachineState) -> Check:
    numbers, names = {"load": state.load, "cores": state.cores}, {"crowd": state.busiest}
    told = Fact(code=Code.LOAD, numbers=numbers, names=names if state.busiest else {})
    per_core = state.load / max(1, state.cores)
    return grade_check("load", told, fails=per_core >= _FULL_LOAD, warns=per_core >= _BUSY_LOAD)


def _look_at_threads(state: MachineState) -> Check:
    told = Fact(code=Code.THREADS, numbers={"threads": state.threads, "cores": state.cores})
    return grade_check("threads", told, fails=state.threads > state.cores)


def _look_at_clocks(state: MachineState) -> Check:
    told = _tell(Code.GOVERNOR, governor=state.governor, turbo=state.turbo)
    return grade_check("clocks", told, warns=state.governor not in ("", "performance"))


def _look_at_steal(state: MachineState) -> Check:
    told = Fact(code=Code.STOLEN, numbers={"share": state.steal})
    return grade_check("steal", told, warns=state.steal > STEAL_LIMIT)


def _look_at_memory(state: MachineState) -> Check:
    told = Fact(code=Code.FREE_MEMORY, numbers={"gib": state.memory_bytes / _GIB})
    fails, warns = (state.memory_bytes < limit for limit in (_NO_MEMORY_BYTES, _LOW_MEMORY_BYTES))
    return grade_check("memory", told, fails=fails, warns=warns)


def _look_at_disk(state: MachineState) -> Check:
    told = Fact(code=Code.FREE_DISK, numbers={"gib": state.disk_bytes / _GIB})
    fails, warns = (state.disk_bytes < limit for limit in (MIN_FREE_BYTES, _ROOMY * MIN_FREE_BYTES))
    return grade_check("disk", told, fails=fails, warns=warns)


def _look_at_directories(state: MachineState) -> Check:
    if state.unwritable:
        return fail_check("directories", Fact(code=Code.UNWRITABLE, names={"places": state.unwritable}))
    return pass_check("directories", _tell(Code.WRITABLE))


def _look_at_git(state: MachineState) -> Check:
    if problem := state.git_problem:
        return warn_check("git", _tell(Code.UNUSABLE, what=problem.what, fix=problem.fix))
    if not state.git or not state.commit:
        return warn_check("git", _tell(Code.NO_COMMIT if state.git else Code.GIT_LACKING))
    numbers, names = {"edited": int(state.dirty)}, name_words(git=state.git, commit=state.commit)
    return pass_check("git", Fact(code=Code.COMMIT_FOUND, numbers=numbers, names=names))


def _look_at_lock(state: MachineState) -> Check:
    if problem := state.lock_problem:
        return fail_check("lock", _tell(Code.UNUSABLE, what=problem.what, fix=problem.fix))
    if state.holder:
        return warn_check("lock", _tell(Code.DEVICE_HELD, device=state.device, holder=state.holder))
    return pass_check("lock", _tell(Code.DEVICE_FREE, device=state.device))


def _look_at_variables(state: MachineState) -> Check:
    if state.preloaded:
        return warn_check("variables", _tell(Code.PRELOADED, library=state.preloaded))
    told = Fact(code=Code.VARIABLES_WITHHELD, names={"variables": state.variables})
    return pass_check("variables", told)


def _tell(code: Code, **words: str) -> Fact:
    return Fact(code=code, names=name_words(**words))


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
