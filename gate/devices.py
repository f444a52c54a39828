"""What each kind of device is: one complete row a kind, without defaults, known without torch.

A new kind is a row here and a class in :mod:`gate.measure.device`: docs/dev/adding-a-device.md. A target is a
GPU that code can be compiled for on a machine without one: ``cuda:sm_90`` names it by compute capability.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gate.sizes import MIB

TARGET_KIND = "target"  # as ``Environment.device_kind``
TARGET_PATTERN = "cuda:sm_[0-9]{2,3}"
# What a target lacks, and the fix.
NO_TRITON = (
    "there is no module 'triton', which compiles for targets",
    "Install it beside the CPU build of torch: pip install 'triton>=3.6'.",
)
# Clock-event reasons of NVML (nvml.h, nvmlClocksEventReasons) that lower clocks below what was asked for, as
# nvidia-smi lists them before a run and NVML around each trial. The software power cap is normal under heavy
# matrix products, but it differs between runs all the same. Idle, application clocks, a sync boost and a
# display clock are normal.
_CLOCK_REASONS = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
_NUMBER = "[0-9]{1,2}"


@dataclass(frozen=True, slots=True)
class Board:
    """What Inductor and Triton ask of a GPU, by the board's data sheet."""

    name: str
    multiprocessors: int
    memory_gib: int
    l2_cache_mib: int
    threads: int  # of a multiprocessor
    shared_kib: int  # of a multiprocessor

    @property
    def block_shared_kib(self) -> int:
        return self.shared_kib - 1


# One board for each capability, of those that CI and clouds have most. In the order of the fields: a name,
# multiprocessors, GiB of memory, MiB of L2, threads and KiB of shared memory.
BOARDS: Mapping[int, Board] = {
    80: Board("NVIDIA A100-SXM4-80GB", 108, 80, 40, 2048, 164),
    86: Board("NVIDIA A10G", 80, 24, 6, 1536, 100),
    89: Board("NVIDIA L4", 58, 24, 48, 1536, 100),
    90: Board("NVIDIA H100 80GB HBM3", 132, 80, 50, 2048, 228),
    100: Board("NVIDIA B200", 148, 180, 126, 2048, 228),
    120: Board("NVIDIA GeForce RTX 5090", 170, 32, 96, 1536, 100),
}


def is_target(device: str) -> bool:
    """``cuda:sm_90`` is one, ``cuda:1`` is not."""
    return re.fullmatch(TARGET_PATTERN, device) is not None


def read_architecture(device: str) -> int:
    """90 of ``cuda:sm_90``; 0 for another device."""
    return int(device.rpartition("_")[2]) if is_target(device) else 0


def name_target(kind: str, capability: str) -> str:
    """``capability`` is as ``9.0``; empty where it is no target."""
    device = f"cuda:sm_{capability.replace('.', '')}"
    return device if kind == TARGET_KIND and is_target(device) else ""


def name_targets() -> str:
    return ", ".join(f"cuda:sm_{number}" for number in BOARDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Canaries:
    """Sizes of the fixed test programs: each call takes a few milliseconds."""

    matmul_size: int
    copy_bytes: int  # well above the caches
    calls: int  # of those two in one sample, where one is too short to be timed by itself
    waking_s: float  # of work before the first, until an idle clock has risen


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceKind:
    name: str  # torch's, and what --device calls it
    is_numbered: bool  # there may be several: "cuda:1"
    is_gpu: bool  # with a memory, a clock, a driver and a lock of its own; NVML and nvidia-smi report it
    has_cuda_graphs: bool
    has_tf32: bool  # float32 is multiplied in something coarser unless that is turned off
    draws_tuning: bool  # kernels are tuned by timing them, so each compile may choose others
    forks: bool  # its workers from a server; else each is a process of its own
    toolchain: str  # what compiles for it
    limits: Mapping[str, float]  # keys of gate.yml whose default is another than that of the file
    warmup_s: float  # before anything is timed, at least
    live_block_s: float  # of a live pair's blocks, at least
    canaries: Canaries
    asked_slowdown: float  # the smallest that selftest asks the gate to see, as a fraction


CPU = DeviceKind(
    name="cpu",
    is_numbered=False,
    is_gpu=False,
    has_cuda_graphs=False,
    has_tf32=False,
    draws_tuning=False,
    forks=True,
    toolchain="C++ compiler",
    limits={},
    warmup_s=0.0,
    # The speed of two virtual cores wanders within a tenth of a second: blocks of 10 ms show it in a third of
    # the time as much as blocks of 30 ms do. Calls that lead a block in have warmed its caches.
    live_block_s=0.010,
    canaries=Canaries(matmul_size=384, copy_bytes=16 * MIB, calls=1, waking_s=0.0),
    asked_slowdown=0.05,
)
CUDA = DeviceKind(
    name="cuda",
    is_numbered=True,
    is_gpu=True,
    has_cuda_graphs=True,
    has_tf32=True,
    draws_tuning=True,
    forks=False,  # it is not known whether forked ones measure the same on a GPU
    toolchain="CUDA toolchain",
    # Full-size models compile in minutes, a tuned one in up to 7, and a trial compiles six times. Two full
    # trials of the slowest case fit into either budget, and both, with a run of half an hour, into the 90
    # minutes of the example workflow.
    limits={"budget_s": 2400.0, "pair_budget_s": 2400.0, "trial_timeout_s": 1800.0},
    # Until the clock of an idle GPU has settled: in a pair it may have idled for minutes while the other arm
    # compiled.
    warmup_s=1.0,
    # Over this long it does not show that two programs in turn disturb each other's caches.
    live_block_s=0.030,
    # A copy takes 0.2 ms at 3 TB/s, of which launching and waiting are up to a tenth, and a matrix product in
    # bfloat16 as long.
    canaries=Canaries(matmul_size=4096, copy_bytes=256 * MIB, calls=20, waking_s=0.5),
    asked_slowdown=0.03,  # its times repeat better
)
# A GPU that is not there. Neither --device nor gate.yml names it, and of the
# machine it keeps no more than the CPU busy.
TARGET = replace(
    CPU,
    name=TARGET_KIND,
    forks=False,  # torch must know of a target before it is imported
    toolchain="compiler for the target",
)
KINDS: Mapping[str, DeviceKind] = {kind.name: kind for kind in (CPU, CUDA)}
DEFAULT_DEVICE = CPU.name


# What --device, gate.yml and the action's input take, as a regular expression and for a person.
DEVICE_PATTERN = "|".join(
    f"{kind.name}(:{_NUMBER})?" if kind.is_numbered else kind.name for kind in KINDS.values()
)
_FORMS = [form for kind in KINDS.values() for form in (kind.name, f"{kind.name}:N")[: 1 + kind.is_numbered]]
DEVICE_FORMS = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"


def get_kind(device: str) -> DeviceKind:
    """``device`` is as ``cuda:1``; DEVICE_PATTERN has checked it."""
    return TARGET if is_target(device) else KINDS[device.partition(":")[0]]


def is_gpu(kind: str) -> bool:
    """A kind that only another version knows counts as one."""
    return kind not in KINDS or KINDS[kind].is_gpu


def name_clock_reasons(mask: int) -> tuple[str, ...]:
    """Those that lower clocks."""
    return tuple(name for bit, name in _CLOCK_REASONS.items() if mask & bit)
