"""Is this machine fit to judge? A look at it, which takes seconds, and pure checks over what was found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from gate.devices import find_kind
from gate.errors import GateError
from gate.git import find_distrust
from gate.installation import OLDEST_TORCH, is_older
from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT, STEAL_LIMIT, find_crowd
from gate.lab.host.gpu import GpuState, find_service, look_up_gpu, name_lock, tell_service, tell_unlisted
from gate.lab.host.lock import find_holder
from gate.lab.host.provenance import load_provenance, run_git
from gate.lab.host.scratch import find_scratch_place
from gate.lab.trials.trials import MIN_FREE_BYTES, LabSettings
from gate.lab.workers.environment import list_dropped_variables
from gate.programs import ask_program, count_cores, read_free_bytes, read_text
from gate.records import Arm, Code, Fact, name_words
from gate.records.events import Check, CheckLevel

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
    headers_lacking: str = ""  # where Python's headers should be, and are not
    cores: int = 1
    load: float = 0.0  # 1-minute load average
    busiest: tuple[str, ...] = ()  # the programs that keep the cores busy now: "chromium (pid 123, 95 %)"
    steal: float = 0.0  # fraction of CPU time since boot that the hypervisor took
    governor: str = ""
    memory_bytes: int = 0  # available, within the container's limit
    disk_bytes: int = 0  # the least free of the scratch and the output directory
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
    of_gpu = _examine_gpu(state) if find_kind(state.device).is_gpu else []
    return (
        _look_at_python(state),
        _look_at_torch(state),
        _look_at_compiler(state),
        *_examine_host(state),
        _look_at_git(state),
        _look_at_lock(state),
        _look_at_variables(state),
        *of_gpu,
        _look_at_cases(state),
    )


def is_fit(checks: tuple[Check, ...]) -> bool:
    """Whether nothing found makes a verdict of this machine worthless."""
    return all(check.level != CheckLevel.FAIL for check in checks)


def _grade(name: str, fact: Fact, *, fails: bool = False, warns: bool = False) -> Check:
    level = CheckLevel.FAIL if fails else CheckLevel.WARN if warns else CheckLevel.OK
    return Check(name=name, level=level, fact=fact)


def _tell(code: Code, **words: str) -> Fact:
    return Fact(code=code, names=name_words(**words))


def _look_at_python(state: MachineState) -> Check:
    if not state.python:
        return _grade("python", _tell(Code.INTERPRETER_DEAD, interpreter=state.interpreter), fails=True)
    return _grade("python", _tell(Code.PYTHON_FOUND, version=state.python, interpreter=state.interpreter))


def _look_at_torch(state: MachineState) -> Check:
    if not state.torch and state.torch_problem:
        told = _tell(Code.TORCH_BROKEN, problem=state.torch_problem, interpreter=state.interpreter)
        return _grade("torch", told, fails=True)
    if not state.torch:
        return _grade("torch", _tell(Code.TORCH_LACKING, interpreter=state.interpreter), fails=True)
    told = _tell(Code.TORCH_FOUND, version=state.torch, needed=OLDEST_TORCH)
    return _grade("torch", told, warns=is_older(state.torch, OLDEST_TORCH))


def _look_at_compiler(state: MachineState) -> Check:
    if state.compiler_problem:
        told = _tell(Code.COMPILER_BROKEN, problem=state.compiler_problem)
    elif not state.compiler:
        told = _tell(Code.COMPILER_LACKING)
    elif state.headers_lacking:
        told = _tell(Code.HEADERS_LACKING, place=state.headers_lacking)
    else:
        return _grade("compiler", _tell(Code.COMPILER_FOUND, compiler=state.compiler))
    return _grade("compiler", told, fails=True)


def _examine_host(state: MachineState) -> Iterator[Check]:
    per_core = state.load / max(1, state.cores)
    numbers, names = {"load": state.load, "cores": state.cores}, {"crowd": state.busiest}
    load = Fact(code=Code.LOAD, numbers=numbers, names=names if state.busiest else {})
    yield _grade("load", load, fails=per_core >= _FULL_LOAD, warns=per_core >= _BUSY_LOAD)
    threads = Fact(code=Code.THREADS, numbers={"threads": state.threads, "cores": state.cores})
    yield _grade("threads", threads, fails=state.threads > state.cores)
    clocks = _tell(Code.GOVERNOR, governor=state.governor)
    yield _grade("clocks", clocks, warns=state.governor not in ("", "performance"))
    stolen = Fact(code=Code.STOLEN, numbers={"share": state.steal})
    yield _grade("steal", stolen, warns=state.steal > STEAL_LIMIT)
    memory = Fact(code=Code.FREE_MEMORY, numbers={"gib": state.memory_bytes / _GIB})
    fails, warns = (state.memory_bytes < limit for limit in (_NO_MEMORY_BYTES, _LOW_MEMORY_BYTES))
    yield _grade("memory", memory, fails=fails, warns=warns)
    disk = Fact(code=Code.FREE_DISK, numbers={"gib": state.disk_bytes / _GIB})
    fails, warns = (state.disk_bytes < limit for limit in (MIN_FREE_BYTES, _ROOMY * MIN_FREE_BYTES))
    yield _grade("disk", disk, fails=fails, warns=warns)


def _look_at_git(state: MachineState) -> Check:
    if problem := state.git_problem:
        return _grade("git", _tell(Code.UNUSABLE, what=problem.what, fix=problem.fix), warns=True)
    if not state.git or not state.commit:
        return _grade("git", _tell(Code.NO_COMMIT if state.git else Code.GIT_LACKING), warns=True)
    numbers, names = {"edited": int(state.dirty)}, name_words(git=state.git, commit=state.commit)
    return _grade("git", Fact(code=Code.COMMIT_FOUND, numbers=numbers, names=names))


def _look_at_lock(state: MachineState) -> Check:
    if problem := state.lock_problem:
        return _grade("lock", _tell(Code.UNUSABLE, what=problem.what, fix=problem.fix), fails=True)
    if state.holder:
        told = _tell(Code.DEVICE_HELD, device=state.device, holder=state.holder)
        return _grade("lock", told, warns=True)
    return _grade("lock", _tell(Code.DEVICE_FREE, device=state.device))


def _look_at_variables(state: MachineState) -> Check:
    if state.preloaded:
        return _grade("variables", _tell(Code.PRELOADED, library=state.preloaded), warns=True)
    return _grade("variables", Fact(code=Code.VARIABLES_WITHHELD, names={"variables": state.variables}))


def _look_at_cases(state: MachineState) -> Check:
    if state.unavailable:
        return _grade("cases", _tell(Code.CASES_UNAVAILABLE, text=state.unavailable), fails=True)
    return _grade("cases", _tell(Code.CASES_AVAILABLE))


def _examine_gpu(state: MachineState) -> list[Check]:
    ordinal = int(state.device.partition(":")[2] or 0)
    found = Fact(code=Code.TORCH_DEVICES, numbers={"devices": state.torch_devices})
    unlisted = [_grade("gpu", tell_unlisted(state.device), fails=True)]
    service = tell_service(state.mps) if state.mps else _tell(Code.SERVICE_UNUSED)
    return [
        _grade("device", found, fails=ordinal >= state.torch_devices),
        *(_examine_board(state.gpu) if state.gpu else unlisted),
        _look_at_guards(state),
        _grade("mps", service, fails=bool(state.mps)),
    ]


def _examine_board(gpu: GpuState) -> list[Check]:
    clocks = {"clock_mhz": gpu.clock_mhz, "max_clock_mhz": gpu.max_clock_mhz}
    found = Fact(
        code=Code.GPU_FOUND,
        numbers={**clocks, "temperature_c": gpu.temperature_c},
        names=name_words(model=gpu.name, driver=gpu.driver),
    )
    held_down = Fact(code=Code.CLOCKS_HELD_DOWN, names={"reasons": gpu.throttled})
    used = gpu.memory_used_mib / gpu.memory_total_mib if gpu.memory_total_mib else 0.0
    shared = Fact(code=Code.GPU_SHARED, numbers={"processes": gpu.processes, "used_mib": gpu.memory_used_mib})
    mode = _find_mode(gpu)
    return [
        _grade("gpu", found),
        _grade("throttling", held_down, fails=bool(gpu.throttled)),
        _grade("sharing", shared, fails=gpu.processes > 0, warns=used > FOREIGN_MEMORY_LIMIT),
        _grade("mode", Fact(code=mode), warns=mode is not Code.GPU_WHOLE),
    ]


def _find_mode(gpu: GpuState) -> Code:
    if gpu.exclusive:
        return Code.GPU_EXCLUSIVE
    if gpu.mig:
        return Code.GPU_CUT_UP
    return Code.GPU_WHOLE if gpu.persistent else Code.GPU_FORGETFUL


def _look_at_guards(state: MachineState) -> Check:
    """Judge whether anybody would see throttling and strangers during a trial: workers ask NVML."""
    if state.nvml_problem:
        told = _tell(Code.NVML_FAILS, problem=state.nvml_problem, interpreter=state.interpreter)
        return _grade("guards", told, fails=True)
    if state.gpu and state.gpu.blind:
        return _grade("guards", Fact(code=Code.NVML_BLIND, names={"unseen": state.gpu.blind}), warns=True)
    return _grade("guards", _tell(Code.NVML_ANSWERS))


_LIMIT_S = 120.0  # importing torch from a cold network disk takes a minute
_CPU = Path("/sys/devices/system/cpu")

# Runs in the arm's interpreter, prints one line of JSON.
_TORCH_PROBE = """
import json, os, platform, sysconfig
found = {"python": platform.python_version(), "torch": "", "problem": "", "devices": 0, "nvml": ""}
# Where Inductor and the compiler look.
places = [sysconfig.get_path("include"), sysconfig.get_path("include", "posix_prefix")]
for name in ("CPATH", "CPLUS_INCLUDE_PATH"):
    places += filter(None, os.environ.get(name, "").split(os.pathsep))
has_headers = any(os.path.exists(os.path.join(place, "Python.h")) for place in places)
found["headers"] = "" if has_headers else places[0]
try:
    import torch
    found["torch"] = str(torch.__version__)
    found["devices"] = torch.cuda.device_count()
except BaseException as error:
    found["problem"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
try:
    import pynvml
    pynvml.nvmlInit()
except BaseException as error:
    found["nvml"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
print("\\n" + json.dumps(found))
"""


def probe_machine(arm: Arm, settings: LabSettings) -> MachineState:
    """Find out what the machine is like for measuring ``arm`` under ``settings``.

    Raises:
        MachineError: There is no place for scratch.
    """
    provenance = load_provenance(Path(arm.directory))
    gpu = look_up_gpu(settings.device, os.environ)
    python = ask_program([arm.python, "-P", "-c", _TORCH_PROBE], limit_s=_LIMIT_S).read_record()
    compiler, compiler_problem = probe_compiler()
    places = (find_scratch_place(), find_existing(settings.out))
    holder, lock_problem = _probe_lock(name_lock(settings.device, gpu))
    return MachineState(
        device=settings.device,
        threads=settings.threads,
        interpreter=arm.python,
        python=str(python.get("python", "")),
        torch=str(python.get("torch", "")),
        torch_problem=str(python.get("problem", "")),
        torch_devices=int(str(python.get("devices", 0))),
        compiler=compiler,
        compiler_problem=compiler_problem,
        headers_lacking=str(python.get("headers", "")),
        cores=count_cores(),
        load=os.getloadavg()[0],
        busiest=find_crowd(),
        steal=_probe_steal(),
        governor=read_text(_CPU / "cpu0" / "cpufreq" / "scaling_governor").strip(),
        memory_bytes=read_free_bytes() or int(psutil.virtual_memory().available),
        disk_bytes=min(shutil.disk_usage(place).free for place in places),
        git=run_git(Path(arm.directory), "--version"),
        git_problem=find_distrust(Path(arm.directory)),
        commit=provenance.commit,
        dirty=provenance.dirty,
        holder=holder,
        lock_problem=lock_problem,
        variables=list_dropped_variables(os.environ),
        preloaded=os.environ.get("LD_PRELOAD", ""),
        gpu=gpu,
        mps=find_service(os.environ),
        nvml_problem=str(python.get("nvml", "")),
    )


def probe_compiler() -> tuple[str, str]:
    """Find the C++ compiler that Inductor would use: its name and version, and what is wrong with it."""
    name = os.environ.get("CXX") or "g++"
    if shutil.which(name) is None:
        return "", f"{name} is not installed"
    version = ask_program([name, "-dumpfullversion", "-dumpversion"], limit_s=_LIMIT_S).output.splitlines()
    smallest = "#include <vector>\nint main() { return 0; }\n"
    tried = ask_program([name, "-x", "c++", "-fsyntax-only", "-"], limit_s=_LIMIT_S, given=smallest)
    told = f"{tried.out}{tried.err}{tried.problem}".strip()
    problem = f"{name} cannot compile: {told.splitlines()[0][:200]}" if told else ""
    return " ".join((Path(name).name, *version[:1])), problem


def _probe_lock(key: str) -> tuple[str, GateError | None]:
    try:
        return find_holder(key), None
    except GateError as error:
        return "", error


def find_existing(path: Path) -> Path:
    """Find the nearest directory on the way to ``path`` that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.is_dir())


def _probe_steal() -> float:
    times = psutil.cpu_times()
    total = sum(times)
    return float(getattr(times, "steal", 0.0)) / total if total else 0.0
