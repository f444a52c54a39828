"""Is this machine fit to judge? Checks of what :mod:`gate.lab.probe` found."""

from collections.abc import Iterator

from gate.devices import CPU, get_kind
from gate.installation import COMPILER_FIX, HEADERS_FIX, OLDEST_TORCH, PATH_FIX, is_older, is_one_word
from gate.lab.arms.interpreter import SLOW_IMPORT_FIX
from gate.lab.host.fitness import FOREIGN_MEMORY_LIMIT, STEAL_LIMIT
from gate.lab.host.gpu import GpuState, describe_unlisted
from gate.lab.host.mps import describe_service
from gate.lab.probe import MachineState
from gate.lab.trials.bench import MIN_FREE_BYTES
from gate.records.events import Check, CheckLevel
from gate.sizes import GIB
from gate.units import format_percent

_BUSY_LOAD = 0.25  # a core: other work this heavy shows in the tail of the latencies
_FULL_LOAD = 1.0  # a core: every measurement competes
_LOW_MEMORY_BYTES = 4 * GIB  # the large reference models need about this much to compile
_NO_MEMORY_BYTES = GIB  # importing torch and compiling the smallest model needs about this much
_ROOMY = 4  # times the least free disk: a run of many cases and its logs
_TORCH_FIX = "Install torch for {}."


def examine_machine(state: MachineState) -> tuple[Check, ...]:
    of_gpu = _examine_gpu(state) if get_kind(state.device).is_gpu else []
    return (
        _judge_python(state),
        _judge_torch(state),
        _judge_compiler(state),
        *_examine_host(state),
        _judge_git(state),
        _judge_lock(state),
        _judge_variables(state),
        *of_gpu,
        _judge_cases(state),
    )


def is_fit(checks: tuple[Check, ...]) -> bool:
    return all(check.level != CheckLevel.FAIL for check in checks)


def _grade(
    name: str, finding: str, fix: str = "", *, fails: bool = False, warns: bool = False, **numbers: float
) -> Check:
    level = CheckLevel.FAIL if fails else CheckLevel.WARN if warns else CheckLevel.OK
    return Check(name=name, level=level, finding=finding, fix=fix if fails or warns else "", numbers=numbers)


def _judge_python(state: MachineState) -> Check:
    if not state.python:
        fix = SLOW_IMPORT_FIX if state.is_slow else f"Try `{state.interpreter} -c 'import torch'`."
        what = f"{state.interpreter}, importing torch, {state.python_end}"
        return _grade("python", what, fix, fails=True)
    return _grade("python", f"{state.python} at {state.interpreter}")


def _judge_torch(state: MachineState) -> Check:
    if not state.torch:
        if not state.python:
            return _grade("torch", "unknown", "See what is said of python.", fails=True)
        fix = _TORCH_FIX.format(state.interpreter)
        return _grade("torch", state.torch_problem or "not installed", fix, fails=True)
    fix = f"Counters need torch {OLDEST_TORCH} or newer; some metrics may be missing."
    return _grade("torch", state.torch, fix, warns=is_older(state.torch, OLDEST_TORCH))


def _judge_compiler(state: MachineState) -> Check:
    problem = state.compiler_problem or ("" if state.compiler else "no C++ compiler")
    fix = COMPILER_FIX
    if not problem and state.headers_lacking:
        problem = f"no Python.h in {state.headers_lacking}"
        fix = HEADERS_FIX
    elif not problem and get_kind(state.device) is CPU and not is_one_word(state.torch_path):
        problem = f"C++ compilers stumble over characters of {state.torch_path}"
        fix = PATH_FIX
    return _grade("compiler", problem or state.compiler, fix, fails=bool(problem))


def _examine_host(state: MachineState) -> Iterator[Check]:
    per_core = state.load / max(1, state.cores)
    others = ", ".join(state.busiest) or "other work"
    fix = f"Stop {others}, or wait for its end; times measured now are too noisy to judge."
    load = f"{state.load:.2f} on {state.cores} cores"
    fails, warns = per_core >= _FULL_LOAD, per_core >= _BUSY_LOAD
    yield _grade("load", load, fix, fails=fails, warns=warns, load=state.load, cores=state.cores)
    fix = "Set `threads` in gate.yml to the cores there are."
    threads, fails = f"{state.threads} of {state.cores} cores", state.threads > state.cores
    yield _grade("threads", threads, fix, fails=fails, threads=state.threads, cores=state.cores)
    fix = "Set it to performance: `cpupower frequency-set -g performance`."
    clocks = f"governor {state.governor or 'unknown'}"
    yield _grade("clocks", clocks, fix, warns=state.governor not in ("", "performance"))
    fix = "Other virtual machines share these cores: use a dedicated machine to judge times."
    stolen = f"{format_percent(state.steal, signed=False)} of CPU time since boot"
    yield _grade("steal", stolen, fix, warns=state.steal > STEAL_LIMIT, share=state.steal)
    yield from _examine_room(state)


def _examine_room(state: MachineState) -> Iterator[Check]:
    gib, fix = state.memory_bytes / GIB, "End other programs, or raise the limit."
    fails, warns = (state.memory_bytes < limit for limit in (_NO_MEMORY_BYTES, _LOW_MEMORY_BYTES))
    yield _grade("memory", f"{gib:.1f} GiB available", fix, fails=fails, warns=warns, gib=gib)
    gib, fix = state.disk_bytes / GIB, "Free some space, or set TMPDIR and --out."
    fails, warns = (state.disk_bytes < limit for limit in (MIN_FREE_BYTES, _ROOMY * MIN_FREE_BYTES))
    yield _grade("disk", f"{gib:.1f} GiB free", fix, fails=fails, warns=warns, gib=gib)


def _judge_git(state: MachineState) -> Check:
    if problem := state.git_problem:
        return _grade("git", problem.what, problem.fix, warns=True)
    if not state.git or not state.commit:
        lack = "no commit here" if state.git else "not installed"
        return _grade("git", lack, "Runs and baselines will not name their commit.", warns=True)
    edited = ", uncommitted changes" if state.dirty else ""
    return _grade("git", f"{state.git}, at {state.commit[:10]}{edited}", edited=int(state.dirty))


def _judge_lock(state: MachineState) -> Check:
    if problem := state.lock_problem:
        return _grade("lock", problem.what, problem.fix, fails=True)
    if state.holder:
        held = f"{state.device} is in use by {state.holder}"
        return _grade("lock", held, "Wait for it to end.", warns=True)
    return _grade("lock", f"{state.device} is free")


def _judge_variables(state: MachineState) -> Check:
    if state.preloaded:
        fix = "A preloaded allocator changes what is measured: unset it, or always set it."
        return _grade("variables", f"LD_PRELOAD is {state.preloaded}", fix, warns=True)
    withheld = f"not handed to workers: {', '.join(state.variables)}"
    return _grade("variables", withheld if state.variables else "nothing set that workers must not see")


def _judge_cases(state: MachineState) -> Check:
    fix = "Leave them out of `select` in gate.yml: a check in which they are planned is INCOMPLETE."
    finding = state.unavailable or "all that are selected can run here"
    return _grade("cases", finding, fix, fails=bool(state.unavailable))


def _examine_gpu(state: MachineState) -> list[Check]:
    ordinal = int(state.device.partition(":")[2] or 0)
    fix = "Install a torch built for CUDA, or choose a device that exists (--device cpu)."
    finding = f"torch sees {state.torch_devices} CUDA devices"
    fails = ordinal >= state.torch_devices
    unlisted, shared = describe_unlisted(state.device), describe_service(state.mps)
    alone = "the Multi-Process Service is not in use"
    return [
        _grade("device", finding, fix, fails=fails, devices=state.torch_devices),
        *(_examine_board(state.gpu) if state.gpu else [_grade("gpu", *unlisted, fails=True)]),
        _judge_guards(state),
        _grade("mps", *shared, fails=True) if state.mps else _grade("mps", alone),
    ]


def _examine_board(gpu: GpuState) -> list[Check]:
    speed, most, heat = gpu.clock_mhz, gpu.max_clock_mhz, gpu.temperature_c
    board = f"{gpu.name}, driver {gpu.driver}, {speed:.0f} of {most:.0f} MHz, {heat:.0f} degrees"
    cool = "Let the device cool down, or look at its power supply and cooling."
    processes, used_mib = gpu.processes, gpu.memory_used_mib
    sharing = f"{processes} processes, {used_mib:.0f} MiB in use"
    warns = used_mib > FOREIGN_MEMORY_LIMIT * gpu.memory_total_mib > 0
    end = "End the other processes on the device, perhaps in another container."
    return [
        _grade("gpu", board, clock_mhz=speed, max_clock_mhz=most, temperature_c=heat),
        _grade("throttling", ", ".join(gpu.throttled) or "none", cool, fails=bool(gpu.throttled)),
        _grade(
            "sharing", sharing, end, fails=processes > 0, warns=warns, processes=processes, used_mib=used_mib
        ),
        _judge_mode(gpu),
    ]


def _judge_mode(gpu: GpuState) -> Check:
    if gpu.exclusive:
        finding, turns = "compute mode is exclusive process", "two arms of a pair cannot use it at once"
        fix = f"Set it to default (`nvidia-smi -c 0`): {turns}, only in turns."
    elif gpu.mig:
        finding = "MIG is enabled"
        fix = "Other instances share memory bandwidth and power: judge times on a whole device."
    elif not gpu.persistent:
        finding = "persistence mode is off"
        fix = "Enable it (`nvidia-smi -pm 1`): the driver forgets its clocks between processes."
    else:
        return _grade("mode", "persistence mode on, MIG off")
    return _grade("mode", finding, fix, warns=True)


def _judge_guards(state: MachineState) -> Check:
    if state.nvml_problem:
        finding = f"workers cannot ask NVML: {state.nvml_problem}"
        needed = f"Install nvidia-ml-py for {state.interpreter}"
        fix = f"{needed}; a container needs the driver's `utility` part too."
        return _grade("guards", finding, fix, fails=True)
    if state.gpu and state.gpu.blind:
        finding = f"the driver does not report {', '.join(state.gpu.blind)}"
        fix = "Disturbed trials may look undisturbed: use a card whose driver reports it."
        return _grade("guards", finding, fix, warns=True)
    return _grade("guards", "NVML answers")
