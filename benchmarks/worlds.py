"""Worlds that requests are drawn in: how a machine and its cases vary, and what a change does to a case.

All noise is of natural logarithms; :mod:`draws` draws it, and ``decide_worlds.py`` judges what was drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gate.devices import CPU, CUDA
from gate.records.cases import DType, Metric
from gate.records.run import Pairing

COMPILED, EAGER = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY
COLD, WARM = Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME
Shape = Callable[[random.Random], float]


def draw_normal(rng: random.Random) -> float:
    """Normal noise of standard deviation 1."""
    return rng.gauss(0, 1)


def draw_heavy(rng: random.Random) -> float:
    """Student's t with three degrees of freedom, of standard deviation 1."""
    return rng.gauss(0, 1) / math.sqrt(2 * rng.gammavariate(1.5, 1.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """How a machine and its cases vary, what is stored, and which command judges; each ``sd`` is of logs."""

    command: str = "check"  # "check" with a base, "alone" without, "ab"
    days: int = 0  # of a history, with a trial of each case
    cases: int = 8
    stored: int = 5  # trials of a baseline
    device: str = CPU.name
    shape: Shape = draw_normal
    spread: float = 0.5  # by how much (log) a case may be noisier, or less noisy, than others
    trial_sd: float = 0.015
    sitting_share: float = 0.65  # of a trial's variance; eager shares nine tenths of what is of the sitting
    apart_sd: float | None = None  # what eager does not share of a trial, where it shares all else
    compile_sd: float = 0.03  # compile times of trials, besides what of the sitting they share
    canary_sd: float = 0.01
    pair_sd: float = 0.012
    eager: float = 1.0  # how much eager's pairs vary, in compiled's
    clock_sd: float = 0.08  # compile times of pairs
    processor_sd: float = 0.05  # CPU times of their cold compiles
    persistent_sd: float = 0.0  # what stays the same in all pairs of a case
    drift_sd: float = 0.0  # the machine's speed within a pair, from block to block
    trend: float = 0.0  # how much slower the machine gets in the course of head's sitting
    lottery: tuple[float, float] = (0.0, 1.0)  # the share of processes that are slower, and by which factor
    tuned: tuple[float, ...] = ()  # by how much (log) each configuration is slower that a compile may choose
    shift: float = 0.0  # how much slower head's sitting is than the stored one (log)
    shifted: frozenset[str] = frozenset(("compiled", "eager"))  # what gets slower by it
    uneven: float = 0.0  # how much the shift differs between cases, and of each between compiled and eager
    crept: float = 0.0  # how much slower earlier changes made the first case since its baseline (log)
    busy: float = 0.0  # the share of the time for which a neighbour has a core
    bad_sittings: float = 0.02  # their share
    numerics: tuple[float, float] = (0.05, 0.0)  # drift (log2) and its standard deviation between trials
    flicker: float = 0.0  # the share of processes in which a counter is one more
    limit: tuple[Metric, float] | None = None  # an absolute limit, and which share of it each case takes
    dtype: DType = DType.FLOAT32
    pairing: Pairing = Pairing.LIVE
    pair_s: float = 30.0  # of a whole pair
    budget_s: float = math.inf  # for all pairs of a request
    same_program: bool = False  # the change touches no file that an unchanged case imports

    def draw_jump(self, rng: random.Random) -> float:
        """By how much (log) a process happens to be of the slow kind."""
        share, factor = self.lottery
        return math.log(factor) if share and rng.random() < share else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """Another program that takes a share of the machine at the start of each period."""

    period_s: float
    length_s: float
    share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockDrops:
    """When a device lowers its clocks."""

    apart_s: float  # from the end of one to the next, on average
    least_s: float
    most_s: float
    slower: float  # how much slower the device is meanwhile (log)
    are_flagged: bool = True  # the device says so


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockedWorld(World):
    """A world whose machine changes with the time of day: :mod:`clocked` draws it, block by block.

    What it has of its own stands for the drifts, trends, shifts, neighbours and bad sittings of other worlds,
    which it does not have. Pairs are live.
    """

    canary_sd: float = 0.002  # besides what the machine itself is slower by
    speed_sd: float = 0.0  # the machine's speed
    speed_tau_s: float = 300.0  # after which 37 % of a difference in speed are left
    host_sd: float = 0.0  # likewise of what compiles
    host_tau_s: float = 600.0
    launched: float = 0.0  # the share of a call in which a GPU waits for its host
    ramp: float = 0.0  # how much slower the machine gets at the start of a session (log)
    ramp_s: float = 300.0
    neighbour: Neighbour | None = None
    drops: ClockDrops | None = None
    first_gain: float = 0.0  # how much faster calls are in the arm that starts first (log)
    first_wait: float = 0.0  # how much longer that arm compiles (log)
    latency_scale: float = 1.0  # a call's time over the typical one
    block_sd: float = 0.006  # each block's own
    quantum_s: float = 0.0  # the resolution of the clock that times a block
    spikes: tuple[float, float] = (0.0, 1.0)  # the share of blocks that are slower, and by which factor
    eager_shares_lottery: bool = False  # a process is slower in both latencies or in none
    loud_latency: float = 1.0  # how many times as noisy the first case is
    loud_compile: float = 1.0
    ratio_sd: float = 0.0  # what a case's ratio of compiled to eager differs by between sessions
    memory_jump: tuple[float, float] = (0.0, 1.0)  # the share of processes that hold more, and its factor


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What head changes in the first case; ``metric`` is ``None`` where nothing gets worse."""

    metric: Metric | None = None
    amount: float = 0.0  # a fraction; of drift in log2 units
    eager: bool = False  # eager gets as much slower
    new_code: bool = False  # the case's generated code differs
    all_new: bool = False  # that of every case: a refactoring, or a newer compiler
    calls: float = 0.0  # by which part of the amount (log) a compile makes more Python calls
    more_calls: float = 0.0  # a fraction by which it makes more of them, whatever gets worse
    own_threads: float = 0.0  # the share of compiled blocks that the case's own threads disturb
    works: bool = True  # whether a longer cold compile takes more CPU time, and does not only wait
    is_harmless: bool = False  # nobody should be convicted of it


LATENCY = Fault(metric=COMPILED, new_code=True)
FAULTS: Mapping[str, Fault] = {
    "nothing": Fault(is_harmless=True),
    "new-code": Fault(all_new=True, is_harmless=True),
    **{f"latency-{percent}": replace(LATENCY, amount=percent / 100) for percent in (1, 2, 3, 5, 8, 10, 30)},
    "latency-30-calls-6": replace(LATENCY, amount=0.30, more_calls=0.06),
    "latency-10-same-code": replace(LATENCY, amount=0.10, new_code=False),
    "own-threads": replace(LATENCY, own_threads=0.6),
    "both-10": Fault(metric=COMPILED, amount=0.10, eager=True),
    "cold-20": Fault(metric=COLD, amount=0.20, calls=0.5),
    "cold-50": Fault(metric=COLD, amount=0.50, calls=0.5),
    "cold-20-processor": Fault(metric=COLD, amount=0.20),
    "cold-50-processor": Fault(metric=COLD, amount=0.50),
    "cold-50-waits": Fault(metric=COLD, amount=0.50, works=False, is_harmless=True),
    "calls-6": Fault(more_calls=0.06, is_harmless=True),
    "warm-20": Fault(metric=WARM, amount=0.20),
    "warm-50": Fault(metric=WARM, amount=0.50),
    "warm-50-calls": Fault(metric=WARM, amount=0.50, calls=0.07),  # 3 % more, which is below their threshold
    "counter": Fault(metric=Metric.GRAPH_BREAKS, amount=1.0, new_code=True),
    "memory-5": Fault(metric=Metric.PEAK_MEMORY, amount=0.05, new_code=True),
    "eager-faster": Fault(metric=EAGER, amount=-0.10, is_harmless=True),
    "eager-memory": Fault(metric=Metric.MEMORY_RATIO, amount=0.10, is_harmless=True),  # eager needs less
    "drift-half": Fault(metric=Metric.DRIFT, amount=0.5, new_code=True),
    "drift-1": Fault(metric=Metric.DRIFT, amount=1.0, new_code=True),
}
NOTHING, NEW_CODE = "nothing", "new-code"

WITH_CANARY = frozenset(("compiled", "eager", "canary"))
CPU_WORLD = World()
QUIET = World(trial_sd=0.01, pair_sd=0.008, clock_sd=0.05, processor_sd=0.03)
WANDERING = World(trial_sd=0.10, canary_sd=0.15, pair_sd=0.016, clock_sd=0.20, processor_sd=0.10)
TOGETHER_WORLD = replace(WANDERING, trial_sd=0.06, apart_sd=0.01)
BUSY = replace(WANDERING, trial_sd=0.06, canary_sd=0.10, busy=0.5)
SHORT = replace(WANDERING, pair_s=50.0, budget_s=330.0)
HEAVY = World(shape=draw_heavy, trial_sd=0.04, canary_sd=0.05)
LOUD = replace(WANDERING, pair_sd=0.048)
LOTTERY = replace(WANDERING, lottery=(0.1, 3.0))
TUNED = replace(QUIET, device=CUDA.name, tuned=(0.0, 0.005, 0.01, 0.03))
STEADY = World(trial_sd=0.003, bad_sittings=0.0)
LIMITED = {
    f"limit-{cases}-{share}-{percent}": replace(
        STEADY, cases=cases, limit=(COLD, share), compile_sd=percent / 100
    )
    for cases in (1, 8, 60)
    for share in (0.9, 1.0)
    for percent in (3, 10, 20)
}
GPU_DROPS = ClockDrops(apart_s=1200.0, least_s=20.0, most_s=60.0, slower=0.15)
MEMORY_JUMP = (0.25, math.exp(0.06))
GPU = ClockedWorld(
    device=CUDA.name,
    trial_sd=0.003,
    pair_sd=0.003,
    block_sd=0.002,
    compile_sd=0.05,
    drops=GPU_DROPS,
)
# Seen beside an H100: a host of shared cores, whose Python and launches vary by 20 to 30 %.
GPU_HOST = replace(GPU, host_sd=0.25, host_tau_s=120.0)
GPU_LAUNCHES = replace(GPU_HOST, launched=0.8, block_sd=0.05)
ONE_TWO_SPEEDS = ClockedWorld(cases=1, lottery=(0.5, 1.10), eager_shares_lottery=True)
CLOCKED: Mapping[str, ClockedWorld] = {
    "loud-compile-6x": ClockedWorld(loud_compile=6.0, clock_sd=0.03, processor_sd=0.02, compile_sd=0.02),
    "loud-compile-3x": ClockedWorld(loud_compile=3.0, clock_sd=0.05, processor_sd=0.04),
    "one-loud-5x": ClockedWorld(loud_latency=5.0, trial_sd=0.008, pair_sd=0.008, spread=0.2),
    "mem-jumps": ClockedWorld(memory_jump=MEMORY_JUMP),
    "mem-jumps-1": ClockedWorld(cases=1, memory_jump=MEMORY_JUMP),
    "flicker-20": ClockedWorld(flicker=0.20),
    "one-two-speeds": ONE_TWO_SPEEDS,
    "one-two-speeds-apart": replace(ONE_TWO_SPEEDS, eager_shares_lottery=False),
    "bimodal-10-shared": replace(ONE_TWO_SPEEDS, cases=8),
    "ar1-2min": ClockedWorld(speed_sd=0.08, speed_tau_s=120.0),
    "ar1-20min": ClockedWorld(speed_sd=0.08, speed_tau_s=1200.0),
    "first-arm-2": ClockedWorld(first_gain=0.02, first_wait=0.15),
    "first-arm-5": ClockedWorld(first_gain=0.05, first_wait=0.30),
    "thermal-ramp": ClockedWorld(ramp=0.08),
    "neighbour-30s": ClockedWorld(neighbour=Neighbour(period_s=30.0, length_s=5.0, share=0.30)),
    "gpu-0.3": GPU,
    "gpu-0.3-unflagged": replace(GPU, drops=replace(GPU_DROPS, are_flagged=False)),
    "gpu-0.3-host-25": GPU_HOST,
    "gpu-launches-25": GPU_LAUNCHES,
    "quantized-10pct": ClockedWorld(
        quantum_s=0.001, latency_scale=0.105, block_sd=0.01, trial_sd=0.005, pair_sd=0.004
    ),
    "host-compile-25": ClockedWorld(host_sd=0.25, compile_sd=0.05),
    "alone-uneven-3": ClockedWorld(command="alone", ratio_sd=0.03, trial_sd=0.005, pair_sd=0.008),
    "alone-gpu-0.3-1": replace(GPU, command="alone", cases=1),
}
LIMITED_ALONE = ("limit-8-1.0-10", "limit-60-0.9-3")
SHARED_HOSTS = ("gpu-0.3-host-25", "gpu-launches-25")
CLOCKED_ALONE = (*SHARED_HOSTS, "gpu-0.3", "mem-jumps", "ar1-2min", "neighbour-30s", "one-two-speeds")
LOUD_COMPILES = ("loud-compile-6x", "loud-compile-3x")
CLOCKED_AB = (*SHARED_HOSTS, *LOUD_COMPILES, "mem-jumps", "mem-jumps-1", "flicker-20", "first-arm-5")
WORLDS: Mapping[str, World] = {
    "quiet": QUIET,
    "cpu": CPU_WORLD,
    "wandering": WANDERING,
    "wandering-330s": SHORT,
    "wandering-600s": replace(SHORT, budget_s=600.0),
    "wandering-default": replace(WANDERING, budget_s=600.0),
    "wandering-1": replace(WANDERING, cases=1),
    "wandering-20": replace(WANDERING, cases=20),
    "together": TOGETHER_WORLD,
    "same-program": replace(WANDERING, same_program=True),
    "busy": BUSY,
    "busier": replace(BUSY, busy=0.9),
    "100-cases": World(cases=100),
    "two-stored": World(stored=2),
    "steady-pairs": World(trial_sd=0.02, canary_sd=0.02, pair_sd=0.005),
    "loud": LOUD,
    "loud-1": replace(LOUD, cases=1),
    "loud-1-eager-half": replace(LOUD, cases=1, eager=0.5),
    "slow-processes": LOTTERY,
    "slow-processes-1": replace(LOTTERY, cases=1),
    "two-speeds": World(lottery=(0.25, 1.08)),
    "heavy-tails": replace(HEAVY, pair_sd=0.03, clock_sd=0.20, processor_sd=0.10),
    "trend": World(trend=0.10, drift_sd=0.02, canary_sd=0.02),
    "stale-8": World(shift=0.08),
    "stale-15": World(shift=0.15, shifted=frozenset(("compiled",))),
    "slower-8": World(shift=0.08, shifted=WITH_CANARY),
    "slower-25": World(shift=0.25, shifted=WITH_CANARY),
    "slower-25-uneven": World(shift=0.25, shifted=WITH_CANARY, uneven=0.3),
    "faster-8": World(shift=-0.08, shifted=WITH_CANARY),
    "creep": World(crept=0.08),
    "persistent-half": replace(WANDERING, pair_sd=0.01, persistent_sd=0.005),
    "persistent-1": replace(WANDERING, pair_sd=0.01, persistent_sd=0.01),
    "tuned": TUNED,
    "turns": World(pairing=Pairing.TURNS, pair_sd=0.03),
    "flicker": World(flicker=0.03),
    "half-precision": World(dtype=DType.BFLOAT16, numerics=(1.2, 0.12)),
    "at-the-limit": World(dtype=DType.BFLOAT16, numerics=(1.575, 0.003)),
    "alone-quiet": replace(QUIET, command="alone"),
    "alone-cpu": World(command="alone"),
    "alone-wandering": replace(WANDERING, command="alone"),
    "alone-together": replace(TOGETHER_WORLD, command="alone"),
    "alone-busy": replace(BUSY, command="alone"),
    "alone-stale-8": World(command="alone", shift=0.08),
    "alone-slower-8": World(command="alone", shift=0.08, shifted=WITH_CANARY),
    "alone-slower-25": World(command="alone", shift=0.25, shifted=WITH_CANARY),
    "alone-slower-25-uneven": World(command="alone", shift=0.25, shifted=WITH_CANARY, uneven=0.3),
    "alone-sittings": World(command="alone", sitting_share=0.95),
    "alone-half-precision": World(command="alone", dtype=DType.BFLOAT16, numerics=(1.2, 0.12)),
    "alone-two-speeds": World(command="alone", lottery=(0.25, 1.08)),
    "alone-heavy-tails": replace(HEAVY, command="alone"),
    "alone-tuned": replace(TUNED, command="alone"),
    "alone-2": World(command="alone", cases=2),
    "alone-1": World(command="alone", cases=1, trial_sd=0.03, canary_sd=0.05),
    "ab-cpu": World(command="ab"),
    "ab-wandering": replace(WANDERING, command="ab"),
    "ab-loud": replace(LOUD, command="ab"),
    "ab-turns": World(command="ab", pairing=Pairing.TURNS, pair_sd=0.03),
    "200-cases": World(cases=200),
    **LIMITED,
    **{f"alone-{name}": replace(LIMITED[name], command="alone") for name in LIMITED_ALONE},
    **CLOCKED,
    **{f"alone-{name}": replace(CLOCKED[name], command="alone") for name in CLOCKED_ALONE},
    **{f"ab-{name}": replace(CLOCKED[name], command="ab") for name in CLOCKED_AB},
    "alone-gpu-0.3-5-days": replace(GPU, command="alone", days=5),
    "alone-gpu-0.3-20-days": replace(GPU, command="alone", days=20),
    "alone-gpu-0.3-1-20-days": replace(GPU, command="alone", cases=1, days=20),
    "alone-uneven-3-20-days": replace(CLOCKED["alone-uneven-3"], days=20),
    "alone-sittings-20-days": World(command="alone", sitting_share=0.95, days=20),
}
