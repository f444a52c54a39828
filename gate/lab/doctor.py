"""Is this machine fit to judge? A look at it, which takes seconds, and pure checks over what was found."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from gate.devices import find_kind
from gate.errors import GateError
from gate.git import find_distrust
from gate.installation import COMPILER_FIX, HEADERS_FIX, OLDEST_TORCH, is_older
from gate.lab.arms.checkouts import load_provenance, run_git
from gate.lab.arms.interpreter import IMPORT_LIMIT_S, SLOW_IMPORT_FIX
from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT, STEAL_LIMIT, find_crowd
from gate.lab.host.gpu import (
    GpuState,
    describe_service,
    describe_unlisted,
    find_service,
    look_up_gpu,
    name_lock,
)
from gate.lab.host.ownership import find_holder, find_scratch_place
from gate.lab.trials.bench import MIN_FREE_BYTES, LabSettings
from gate.lab.workers.worker import list_dropped_variables
from gate.programs import ask_program, count_cores, read_free_bytes, read_text
from gate.records.events import Check, CheckLevel
from gate.records.run import Arm
from gate.units import render_percent

_CPU = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    """What was found. Words are empty and numbers 0 where the machine does not tell."""

    device: str
    threads: int
    interpreter: str
    python: str = ""  # "3.11.7"; empty when the interpreter gives no answer
    python_end: str = ""  # how it ended as it imported torch, if without an answer
    is_slow: bool = False  # for its time was up
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
    answer = ask_program([arm.python, "-P", "-c", _TORCH_PROBE], limit_s=IMPORT_LIMIT_S)
    python = answer.read_record()
    compiler, compiler_problem = probe_compiler()
    times = psutil.cpu_times()
    places = (find_scratch_place(), find_existing(settings.out))
    holder, lock_problem = _probe_lock(name_lock(settings.device, gpu))
    return MachineState(
        device=settings.device,
        threads=settings.threads,
        interpreter=arm.python,
        python=str(python.get("python", "")),
        python_end="" if python else answer.describe_end(),
        is_slow=answer.is_late,
        torch=str(python.get("torch", "")),
        torch_problem=str(python.get("problem", "")),
        torch_devices=int(str(python.get("devices", 0))),
        compiler=compiler,
        compiler_problem=compiler_problem,
        headers_lacking=str(python.get("headers", "")),
        cores=count_cores(),
        load=os.getloadavg()[0],
        busiest=find_crowd(),
        steal=float(getattr(times, "steal", 0.0)) / (sum(times) or 1.0),
        governor=read_text(_CPU / "cpu0" / "cpufreq" / "scaling_governor").strip(),
        memory_bytes=read_free_bytes(),
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
    version = ask_program(
        [name, "-dumpfullversion", "-dumpversion"], limit_s=IMPORT_LIMIT_S
    ).output.splitlines()
    smallest = b"#include <vector>\nint main() { return 0; }\n"
    tried = ask_program([name, "-x", "c++", "-fsyntax-only", "-"], limit_s=IMPORT_LIMIT_S, given=smallest)
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


_BUSY_LOAD = 0.25  # a core: other work this heavy shows in the tail of the latencies
_FULL_LOAD = 1.0  # a core: every measurement competes
_LOW_MEMORY_BYTES = 4 * 2**30  # the large reference models need about this much to compile
_NO_MEMORY_BYTES = 2**30  # importing torch and compiling the smallest model needs about this much
_ROOMY = 4  # times the least free disk: a run of many cases and its logs
_GIB = 2**30
_TORCH_FIX = "Install torch for {}."


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


def _grade(
    name: str, finding: str, fix: str = "", *, fails: bool = False, warns: bool = False, **numbers: float
) -> Check:
    """Make a check; what is well needs no fix. ``numbers`` are of the finding, for programs."""
    level = CheckLevel.FAIL if fails else CheckLevel.WARN if warns else CheckLevel.OK
    return Check(name=name, level=level, finding=finding, fix=fix if fails or warns else "", numbers=numbers)


def _look_at_python(state: MachineState) -> Check:
    if not state.python:
        fix = SLOW_IMPORT_FIX if state.is_slow else f"Try `{state.interpreter} -c 'import torch'`."
        what = f"{state.interpreter}, importing torch, {state.python_end}"
        return _grade("python", what, fix, fails=True)
    return _grade("python", f"{state.python} at {state.interpreter}")


def _look_at_torch(state: MachineState) -> Check:
    if not state.torch:
        found, fix = state.torch_problem or "not installed", _TORCH_FIX.format(state.interpreter)
        found, fix = (found, fix) if state.python else ("unknown", "See what is said of python.")
        return _grade("torch", found, fix, fails=True)
    fix = f"Counters need torch {OLDEST_TORCH} or newer; some metrics may be missing."
    return _grade("torch", state.torch, fix, warns=is_older(state.torch, OLDEST_TORCH))


def _look_at_compiler(state: MachineState) -> Check:
    problem = state.compiler_problem or ("" if state.compiler else "no C++ compiler")
    fix = COMPILER_FIX
    if not problem and state.headers_lacking:
        problem = f"no Python.h in {state.headers_lacking}"
        fix = HEADERS_FIX
    return _grade("compiler", problem or state.compiler, fix, fails=bool(problem))


def _examine_host(state: MachineState) -> Iterator[Check]:
    per_core = state.load / max(1, state.cores)
    others = ", ".join(state.busiest) or "other work"
    fix = f"Stop {others}, or wait for its end; times measured now are too noisy to judge."
    load = f"{state.load:.2f} on {state.cores} cores"
    fails, warns = per_core >= _FULL_LOAD, per_core >= _BUSY_LOAD
    yield _grade("load", load, fix, fails=fails, warns=warns, load=state.load, cores=state.cores)
    fix = "Set `threads` in gate.yml to the cores there are."
    told, fails = f"{state.threads} of {state.cores} cores", state.threads > state.cores
    yield _grade("threads", told, fix, fails=fails, threads=state.threads, cores=state.cores)
    fix = "Set it to performance: `cpupower frequency-set -g performance`."
    clocks = f"governor {state.governor or 'unknown'}"
    yield _grade("clocks", clocks, fix, warns=state.governor not in ("", "performance"))
    fix = "Other virtual machines share these cores: use a dedicated machine to judge times."
    stolen = f"{render_percent(state.steal, signed=False)} of CPU time since boot"
    yield _grade("steal", stolen, fix, warns=state.steal > STEAL_LIMIT, share=state.steal)
    yield from _examine_room(state)


def _examine_room(state: MachineState) -> Iterator[Check]:
    gib, fix = state.memory_bytes / _GIB, "End other programs, or raise the limit."
    fails, warns = (state.memory_bytes < limit for limit in (_NO_MEMORY_BYTES, _LOW_MEMORY_BYTES))
    yield _grade("memory", f"{gib:.1f} GiB available", fix, fails=fails, warns=warns, gib=gib)
    gib, fix = state.disk_bytes / _GIB, "Free some space, or set TMPDIR and --out."
    fails, warns = (state.disk_bytes < limit for limit in (MIN_FREE_BYTES, _ROOMY * MIN_FREE_BYTES))
    yield _grade("disk", f"{gib:.1f} GiB free", fix, fails=fails, warns=warns, gib=gib)


def _look_at_git(state: MachineState) -> Check:
    if problem := state.git_problem:
        return _grade("git", problem.what, problem.fix, warns=True)
    if not state.git or not state.commit:
        lack = "no commit here" if state.git else "not installed"
        return _grade("git", lack, "Runs and baselines will not name their commit.", warns=True)
    edited = ", uncommitted changes" if state.dirty else ""
    return _grade("git", f"{state.git}, at {state.commit[:10]}{edited}", edited=int(state.dirty))


def _look_at_lock(state: MachineState) -> Check:
    if problem := state.lock_problem:
        return _grade("lock", problem.what, problem.fix, fails=True)
    if state.holder:
        held = f"{state.device} is in use by {state.holder}"
        return _grade("lock", held, "Wait for it to end.", warns=True)
    return _grade("lock", f"{state.device} is free")


def _look_at_variables(state: MachineState) -> Check:
    if state.preloaded:
        fix = "A preloaded allocator changes what is measured: unset it, or always set it."
        return _grade("variables", f"LD_PRELOAD is {state.preloaded}", fix, warns=True)
    withheld = f"not handed to workers: {', '.join(state.variables)}"
    return _grade("variables", withheld if state.variables else "nothing set that workers must not see")


def _look_at_cases(state: MachineState) -> Check:
    fix = "Leave them out of `select` in gate.yml: a check in which they are planned is INCOMPLETE."
    found = state.unavailable or "all that are selected can run here"
    return _grade("cases", found, fix, fails=bool(state.unavailable))


def _examine_gpu(state: MachineState) -> list[Check]:
    ordinal = int(state.device.partition(":")[2] or 0)
    fix = "Install a torch built for CUDA, or choose a device that exists (--device cpu)."
    found = f"torch sees {state.torch_devices} CUDA devices"
    fails = ordinal >= state.torch_devices
    unlisted, shared = describe_unlisted(state.device), describe_service(state.mps)
    alone = "the Multi-Process Service is not in use"
    return [
        _grade("device", found, fix, fails=fails, devices=state.torch_devices),
        *(_examine_board(state.gpu) if state.gpu else [_grade("gpu", *unlisted, fails=True)]),
        _look_at_guards(state),
        _grade("mps", *shared, fails=True) if state.mps else _grade("mps", alone),
    ]


def _examine_board(gpu: GpuState) -> list[Check]:
    speed, most, heat = gpu.clock_mhz, gpu.max_clock_mhz, gpu.temperature_c
    found = f"{gpu.name}, driver {gpu.driver}, {speed:.0f} of {most:.0f} MHz, {heat:.0f} degrees"
    cool = "Let the device cool down, or look at its power supply and cooling."
    processes, used_mib = gpu.processes, gpu.memory_used_mib
    told = f"{processes} processes, {used_mib:.0f} MiB in use"
    warns = used_mib > FOREIGN_MEMORY_LIMIT * gpu.memory_total_mib > 0
    end = "End the other processes on the device, perhaps in another container."
    return [
        _grade("gpu", found, clock_mhz=speed, max_clock_mhz=most, temperature_c=heat),
        _grade("throttling", ", ".join(gpu.throttled) or "none", cool, fails=bool(gpu.throttled)),
        _grade(
            "sharing", told, end, fails=processes > 0, warns=warns, processes=processes, used_mib=used_mib
        ),
        _look_at_mode(gpu),
    ]


def _look_at_mode(gpu: GpuState) -> Check:
    if gpu.exclusive:
        found, turns = "compute mode is exclusive process", "two arms of a pair cannot use it at once"
        fix = f"Set it to default (`nvidia-smi -c 0`): {turns}, only in turns."
    elif gpu.mig:
        found = "MIG is enabled"
        fix = "Other instances share memory bandwidth and power: judge times on a whole device."
    elif not gpu.persistent:
        found = "persistence mode is off"
        fix = "Enable it (`nvidia-smi -pm 1`): the driver forgets its clocks between processes."
    else:
        return _grade("mode", "persistence mode on, MIG off")
    return _grade("mode", found, fix, warns=True)


def _look_at_guards(state: MachineState) -> Check:
    """Judge whether anybody would see throttling and strangers during a trial: workers ask NVML."""
    if state.nvml_problem:
        found = f"workers cannot ask NVML: {state.nvml_problem}"
        needed = f"Install nvidia-ml-py for {state.interpreter}"
        fix = f"{needed}; a container needs the driver's `utility` part too."
        return _grade("guards", found, fix, fails=True)
    if state.gpu and state.gpu.blind:
        found = f"the driver does not report {', '.join(state.gpu.blind)}"
        fix = "Disturbed trials may look undisturbed: use a card whose driver reports it."
        return _grade("guards", found, fix, warns=True)
    return _grade("guards", "NVML answers")
