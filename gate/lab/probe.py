"""What the machine is like for measuring: it takes seconds to find out."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil

from gate.errors import GateError
from gate.git import find_distrust
from gate.lab.arms.checkouts import run_git
from gate.lab.arms.interpreter import IMPORT_LIMIT_S
from gate.lab.arms.provenance import load_provenance
from gate.lab.host.device_lock import describe_holder
from gate.lab.host.fitness import read_crowd
from gate.lab.host.gpu import GpuState, look_up_gpu, name_lock
from gate.lab.host.mps import find_service
from gate.lab.host.scratch import get_scratch_root
from gate.lab.trials.bench import LabSettings
from gate.lab.workers.worker_environment import list_dropped_variables
from gate.programs import ask_program, count_cores, read_free_bytes, read_text
from gate.records.run import Arm

_CPU = Path("/sys/devices/system/cpu")
# Runs in the arm's interpreter, prints one line of JSON.
_TORCH_PROBE = """
import json, os, platform, sysconfig
answer = {"python": platform.python_version(), "torch": "", "path": "", "problem": "", "devices": 0}
# Where Inductor and the compiler look.
directories = [sysconfig.get_path("include"), sysconfig.get_path("include", "posix_prefix")]
for name in ("CPATH", "CPLUS_INCLUDE_PATH"):
    directories += filter(None, os.environ.get(name, "").split(os.pathsep))
has_headers = any(os.path.exists(os.path.join(directory, "Python.h")) for directory in directories)
answer["headers"] = "" if has_headers else directories[0]
try:
    import torch
    answer["torch"] = str(torch.__version__)
    answer["path"] = os.path.dirname(torch.__file__)
    answer["devices"] = torch.cuda.device_count()
except BaseException as error:
    answer["problem"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
try:
    import pynvml
    pynvml.nvmlInit()
except BaseException as error:
    answer["nvml"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
print("\\n" + json.dumps(answer))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    device: str
    threads: int
    interpreter: str
    python: str = ""  # "3.11.7"; empty when the interpreter gives no answer
    python_end: str = ""  # how it ended as it imported torch, if without an answer
    is_slow: bool = False  # for its time was up
    torch: str = ""
    torch_path: str = ""  # its directory
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
    git_problem: GateError | None = None  # why it does not answer in this checkout
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


def probe_machine(arm: Arm, settings: LabSettings) -> MachineState:
    """Examine the machine for measuring ``arm`` under ``settings``.

    Raises:
        MachineError: There is no place for scratch.
    """
    provenance = load_provenance(Path(arm.directory))
    gpu = look_up_gpu(settings.device, os.environ)
    answer = ask_program([arm.python, "-P", "-c", _TORCH_PROBE], limit_s=IMPORT_LIMIT_S)
    python = answer.read_record()
    compiler, compiler_problem = probe_compiler()
    times = psutil.cpu_times()
    directories = (get_scratch_root(), find_existing(settings.out))
    holder, lock_problem = _probe_lock(name_lock(settings.device, gpu))
    return MachineState(
        device=settings.device,
        threads=settings.threads,
        interpreter=arm.python,
        python=str(python.get("python", "")),
        python_end="" if python else answer.describe_end(),
        is_slow=answer.is_late,
        torch=str(python.get("torch", "")),
        torch_path=str(python.get("path", "")),
        torch_problem=str(python.get("problem", "")),
        torch_devices=int(str(python.get("devices", 0))),
        compiler=compiler,
        compiler_problem=compiler_problem,
        headers_lacking=str(python.get("headers", "")),
        cores=count_cores(),
        load=os.getloadavg()[0],
        busiest=read_crowd(),
        steal=float(getattr(times, "steal", 0.0)) / (sum(times) or 1.0),
        governor=read_text(_CPU / "cpu0" / "cpufreq" / "scaling_governor").strip(),
        memory_bytes=read_free_bytes(),
        disk_bytes=min(shutil.disk_usage(directory).free for directory in directories),
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
    name = os.environ.get("CXX") or "g++"
    if shutil.which(name) is None:
        return "", f"{name} is not installed"
    version = ask_program(
        [name, "-dumpfullversion", "-dumpversion"], limit_s=IMPORT_LIMIT_S
    ).output.splitlines()
    smallest = b"#include <vector>\nint main() { return 0; }\n"
    tried = ask_program([name, "-x", "c++", "-fsyntax-only", "-"], limit_s=IMPORT_LIMIT_S, given=smallest)
    message = f"{tried.out}{tried.err}{tried.problem}".strip()
    problem = f"{name} cannot compile: {message.splitlines()[0][:200]}" if message else ""
    return " ".join((Path(name).name, *version[:1])), problem


def _probe_lock(key: str) -> tuple[str, GateError | None]:
    try:
        return describe_holder(key), None
    except GateError as error:
        return "", error


def find_existing(path: Path) -> Path:
    return next(directory for directory in (path, *path.absolute().parents) if directory.is_dir())
