"""What the doctor found of a machine, and what fixes it, in words."""

from __future__ import annotations

from collections.abc import Mapping

from gate.records import Code, Fact
from gate.records.events import Check, CheckLevel
from gate.records.protocol import Prerequisite
from gate.report.words.failures import PREREQUISITE_FIXES
from gate.report.words.templates import fill

_PHRASES: Mapping[Code, str] = {
    Code.INTERPRETER_DEAD: "{interpreter} dies as it imports torch",
    Code.PYTHON_FOUND: "{version} at {interpreter}",
    Code.TORCH_LACKING: "not installed",
    Code.TORCH_BROKEN: "{problem}",
    Code.TORCH_FOUND: "{version}",
    Code.COMPILER_LACKING: "no C++ compiler",
    Code.COMPILER_BROKEN: "{problem}",
    Code.COMPILER_FOUND: "{compiler}",
    Code.HEADERS_LACKING: "no Python.h in {place}",
    Code.LOAD: "{load:.2f} on {cores} cores",
    Code.THREADS: "{threads} of {cores} cores",
    Code.GOVERNOR: "governor [{governor}|unknown]",
    Code.STOLEN: "{share:part} of CPU time since boot",
    Code.FREE_MEMORY: "{gib:.1f} GiB available",
    Code.FREE_DISK: "{gib:.1f} GiB free",
    Code.GIT_LACKING: "not installed",
    Code.NO_COMMIT: "no commit here",
    Code.COMMIT_FOUND: "{git}, at {commit:.10}[{edited:?}, uncommitted changes]",
    Code.UNUSABLE: "{what}",
    Code.DEVICE_HELD: "{device} is in use by {holder}",
    Code.DEVICE_FREE: "{device} is free",
    Code.PRELOADED: "LD_PRELOAD is {library}",
    Code.VARIABLES_WITHHELD: ("[not handed to workers: {variables}|nothing set that workers must not see]"),
    Code.CASES_UNAVAILABLE: "{text}",
    Code.CASES_AVAILABLE: "all that are selected can run here",
    Code.TORCH_DEVICES: "torch sees {devices} CUDA devices",
    Code.GPU_UNLISTED: "nvidia-smi is missing, or does not list {device}",
    Code.GPU_FOUND: ("{model}, driver {driver}, {clock_mhz} of {max_clock_mhz} MHz, {temperature_c} degrees"),
    Code.CLOCKS_HELD_DOWN: "[{reasons}|none]",
    Code.GPU_SHARED: "{processes} processes, {used_mib} MiB in use",
    Code.GPU_EXCLUSIVE: "compute mode is exclusive process",
    Code.GPU_CUT_UP: "MIG is enabled",
    Code.GPU_FORGETFUL: "persistence mode is off",
    Code.GPU_WHOLE: "persistence mode on, MIG off",
    Code.NVML_FAILS: "workers cannot ask NVML: {problem}",
    Code.NVML_BLIND: "the driver does not report {unseen}",
    Code.NVML_ANSWERS: "NVML answers",
    Code.SERVICE_IN_USE: (
        "CUDA's Multi-Process Service ({place}) shares the GPU: its clients cannot be distinguished"
    ),
    Code.SERVICE_UNUSED: "the Multi-Process Service is not in use",
}
_TORCH_FIX = "Install torch for {interpreter}."
_COMPILER_FIX = PREREQUISITE_FIXES[Prerequisite.CXX_COMPILER]
_GIT_FIX = "Runs and baselines will not name their commit."
# Of those that are ever anything but well.
_FIXES: Mapping[Code, str] = {
    Code.INTERPRETER_DEAD: _TORCH_FIX,
    Code.TORCH_LACKING: _TORCH_FIX,
    Code.TORCH_BROKEN: _TORCH_FIX,
    Code.TORCH_FOUND: "Counters need torch {needed} or newer; some metrics may be missing.",
    Code.COMPILER_LACKING: _COMPILER_FIX,
    Code.COMPILER_BROKEN: _COMPILER_FIX,
    Code.HEADERS_LACKING: PREREQUISITE_FIXES[Prerequisite.PYTHON_HEADERS],
    Code.LOAD: "Stop [{crowd}|other work], or wait for its end; times measured now are too noisy to judge.",
    Code.THREADS: "Set `threads` in gate.yml to the cores there are.",
    Code.GOVERNOR: "Set it to performance: `cpupower frequency-set -g performance`.",
    Code.STOLEN: "Other virtual machines share these cores: use a dedicated machine to judge times.",
    Code.FREE_MEMORY: "End other programs, or raise the limit.",
    Code.FREE_DISK: "Free some space, or set TMPDIR and --out.",
    Code.GIT_LACKING: _GIT_FIX,
    Code.NO_COMMIT: _GIT_FIX,
    Code.UNUSABLE: "{fix}",
    Code.DEVICE_HELD: "Wait for it to end.",
    Code.PRELOADED: "A preloaded allocator changes what is measured: unset it, or always set it.",
    Code.CASES_UNAVAILABLE: (
        "Leave them out of `select` in gate.yml: a check in which they are planned is INCOMPLETE."
    ),
    Code.TORCH_DEVICES: ("Install a torch built for CUDA, or choose a device that exists (--device cpu)."),
    Code.GPU_UNLISTED: (
        "Check the driver (535 or newer): `nvidia-smi` must list the device; see CUDA_VISIBLE_DEVICES too."
    ),
    Code.CLOCKS_HELD_DOWN: "Let the device cool down, or look at its power supply and cooling.",
    Code.GPU_SHARED: "End the other processes on the device, perhaps in another container.",
    Code.GPU_EXCLUSIVE: (
        "Set it to default (`nvidia-smi -c 0`): two arms of a pair cannot use it at once, only in turns."
    ),
    Code.GPU_CUT_UP: "Other instances share memory bandwidth and power: judge times on a whole device.",
    Code.GPU_FORGETFUL: ("Enable it (`nvidia-smi -pm 1`): the driver forgets its clocks between processes."),
    Code.NVML_FAILS: (
        "Install nvidia-ml-py for {interpreter}; a container needs the driver's `utility` part too."
    ),
    Code.NVML_BLIND: "Disturbed trials may look undisturbed: use a card whose driver reports it.",
    Code.SERVICE_IN_USE: (
        "Stop it (`echo quit | nvidia-cuda-mps-control`), or let the gate's processes not find it: set"
        " {variable} to an empty directory."
    ),
}


def describe_finding(fact: Fact) -> str:
    """Describe what was found."""
    return fill(_PHRASES[fact.code], fact)


def advise_finding(fact: Fact) -> str:
    """Advise what fixes a finding that is not well."""
    return fill(_FIXES[fact.code], fact)


def advise_check(check: Check) -> str:
    """Advise what fixes a check's finding; empty where it is well."""
    return "" if check.level is CheckLevel.OK else advise_finding(check.fact)
