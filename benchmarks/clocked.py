"""Draws the trials and pairs of a request on a machine that has a clock, block by block in the real order.

The machine's speed wanders, a neighbour comes and goes, a device lowers its clocks: what a block takes
depends on the second at which it runs. Head's trials and all pairs are of one session, and what is stored is
of another. A trial that runs alone times eager and compiled in the order E C C E, C E E C. In a pair both
arms do so, in turns of 0 1 1 0 0 1 1 0; base starts first in odd pairs.

A trial is the same whenever it is asked for. A pair runs after those that were asked for before, so another
procedure meets the machine at other times.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from draws import (
    PROCESSOR_SHARE,
    QUIET_CALLS,
    SHARED_BY_EAGER,
    STRAY_PAIRS,
    TRIAL_PROCESSOR_SD,
    TYPICAL_S,
    Drawer,
    Moves,
)
from worlds import COLD, COMPILED, EAGER, WARM, ClockedWorld, Fault, World

from gate.check.schedule import is_base_first
from gate.devices import CPU, get_kind
from gate.records.cases import Metric
from gate.records.facts import Disturbance
from gate.records.run import BASE_ARM, CANDIDATE_ARM, Conditions, Pairing, Trial

LATENCIES = (COMPILED, EAGER)
SUPER_BLOCKS = 5
# What an arm times, block by block.
SCHEDULE = [
    metric
    for number in range(SUPER_BLOCKS)
    for metric in ((COMPILED, EAGER, EAGER, COMPILED) if number % 2 else (EAGER, COMPILED, COMPILED, EAGER))
]
# Which arm of a pair runs, 0 being the one that starts first.
TURNS = [turn ^ (number % 2) for number in range(SUPER_BLOCKS) for turn in (0, 1, 1, 0, 0, 1, 1, 0)]
BLOCK_S, BETWEEN_BLOCKS_S = 0.010, 0.015  # how long one runs, and from the start of one to the next
WARM_AFTER_S = 13.0  # a cold compile and what is around it; the other arm of a pair starts then, too
ALONE_BLOCKS, PAIR_BLOCKS = 0.75, 0.85  # of a trial and of a pair, what is over when blocks begin
FURTHER_PAIR = 0.4  # of a case's first pair, how long another one takes
WAITING_WORKS = 0.3  # of a compile that waits, how much of that costs CPU time
CROWDED_WORK = 0.1  # how much more CPU time (log) a compile takes beside a neighbour
HOST_CANARY_SD = 0.02
CANARY_BEFORE_S = 0.5  # blocks begin
SEEN_CROWD = 0.30  # a trial that lost more than this share of the machine says so
PROBES = 20  # of a span, to tell how busy it is
DROP_PROBES = 10


def make_drawer(seed: str, world: World, fault: Fault) -> Drawer:
    """The drawer that fits the world."""
    return (
        ClockedDrawer(seed, world, fault) if isinstance(world, ClockedWorld) else Drawer(seed, world, fault)
    )


class Wander:
    """Normal noise of which most stays the same from second to second."""

    def __init__(self, seed: str, sd: float, tau_s: float) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._kept = math.exp(-1 / tau_s)
        self._fresh_sd = sd * math.sqrt(1 - self._kept**2)
        self._values = [self._rng.gauss(0, sd)]

    def get(self, at_s: float) -> float:
        """Its value at a second."""
        while len(self._values) <= at_s:
            self._values.append(self._kept * self._values[-1] + self._rng.gauss(0, self._fresh_sd))
        return self._values[int(at_s)]


class Machine:
    """A machine in one session, at each second since that began."""

    def __init__(self, seed: str, world: ClockedWorld) -> None:
        self.world = world
        self._speed = Wander(f"{seed} speed", world.speed_sd, world.speed_tau_s)
        self._host = Wander(f"{seed} host", world.host_sd, world.host_tau_s)
        self._rng = random.Random(f"{seed} others")  # noqa: S311 - repeatable, not secret
        self._phase_s = self._rng.uniform(0, world.neighbour.period_s) if world.neighbour else 0.0
        self._drops: list[tuple[float, float]] = []  # begin and end of each so far

    def slow_calls(self, at_s: float) -> float:
        """How much slower it runs (log), besides what a neighbour takes."""
        ramp = self.world.ramp * min(at_s / self.world.ramp_s, 1.0)
        drop = self.world.drops.slower if self.world.drops and self.is_dropped(at_s) else 0.0
        return (self._speed.get(at_s) if self.world.speed_sd else 0.0) + ramp + drop

    def slow_host(self, at_s: float) -> float:
        """How much slower its host compiles (log), besides."""
        return self._host.get(at_s) if self.world.host_sd else 0.0

    def is_dropped(self, at_s: float) -> bool:
        """Whether its clocks are low."""
        drops = self.world.drops
        if drops is None:
            return False
        while not self._drops or self._drops[-1][1] < at_s:
            last_s = self._drops[-1][1] if self._drops else -drops.most_s
            begin_s = last_s + self._rng.expovariate(1 / drops.apart_s)
            self._drops.append((begin_s, begin_s + self._rng.uniform(drops.least_s, drops.most_s)))
        return any(begin_s <= at_s < end_s for begin_s, end_s in self._drops)

    def is_busy(self, at_s: float) -> bool:
        """Whether the neighbour runs."""
        neighbour = self.world.neighbour
        if neighbour is None:
            return False
        return (at_s + self._phase_s) % neighbour.period_s < neighbour.length_s

    def share_busy(self, begin_s: float, length_s: float) -> float:
        """The share of a span in which the neighbour runs."""
        if not self.world.neighbour:
            return 0.0
        return fmean(self.is_busy(begin_s + length_s * (probe + 0.5) / PROBES) for probe in range(PROBES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """A trial's calls, block by block: of all, and of those that nothing disturbed; 0.0 without any."""

    seconds: dict[Metric, list[float]] = field(default_factory=lambda: {metric: [] for metric in LATENCIES})
    quiet_s: dict[Metric, list[float]] = field(default_factory=lambda: {metric: [] for metric in LATENCIES})

    def put_into(self, trial: Trial, *, is_watched: bool) -> Trial:
        """The same trial with these for its latencies."""
        seconds, quiet_s = (
            {metric: tuple(blocks) for metric, blocks in side.items()}
            for side in (self.seconds, self.quiet_s)
        )
        return replace(
            trial, samples={**trial.samples, **seconds}, undisturbed_s=quiet_s if is_watched else {}
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Timer:
    """Times blocks on a machine; each trial says what a call takes on a calm one."""

    machine: Machine
    rng: random.Random

    def time_alone(self, trial: Trial, at_s: float) -> Timed:
        """All blocks of one process."""
        timed = Timed()
        for row, metric in enumerate(SCHEDULE):
            self._time_block(timed, trial, metric, at_s + row * BETWEEN_BLOCKS_S)
        return timed

    def time_pair(self, arms: Sequence[Trial], at_s: float, first: int) -> tuple[Timed, Timed]:
        """All blocks of two processes, which take turns."""
        timed, schedules = (Timed(), Timed()), (iter(SCHEDULE), iter(SCHEDULE))
        for row, turn in enumerate(TURNS):
            arm = turn ^ first
            now_s = at_s + row * BETWEEN_BLOCKS_S
            self._time_block(timed[arm], arms[arm], next(schedules[arm]), now_s)
        return timed

    def _time_block(self, timed: Timed, trial: Trial, metric: Metric, at_s: float) -> None:
        world, rng = self.machine.world, self.rng
        (typical_s,) = trial.samples[metric]
        slow = self.machine.slow_calls(at_s) + world.launched * self.machine.slow_host(at_s)
        calm_s = typical_s * world.latency_scale * math.exp(slow)
        all_s = quiet_s = calm_s * math.exp(rng.gauss(0, world.block_sd))
        if world.neighbour and self.machine.is_busy(at_s):
            all_s /= 1 - world.neighbour.share
            has_quiet = rng.random() < QUIET_CALLS
            quiet_s = calm_s * math.exp(rng.gauss(0, world.block_sd)) if has_quiet else 0.0
        share, factor = world.spikes
        if share and rng.random() < share:
            all_s *= factor
            quiet_s = all_s if quiet_s else 0.0
        timed.seconds[metric].append(self._read_clock(all_s, metric))
        timed.quiet_s[metric].append(self._read_clock(quiet_s, metric) if quiet_s else 0.0)

    def _read_clock(self, call_s: float, metric: Metric) -> float:
        """Seconds of a call as a block's time tells, in whole quanta."""
        world = self.machine.world
        if not world.quantum_s:
            return call_s
        calls = math.ceil(BLOCK_S / (TYPICAL_S[metric] * world.latency_scale))
        return max(1, round(call_s * calls / world.quantum_s)) * world.quantum_s / calls


class ClockedDrawer(Drawer):
    """Draws one request of a world that has a clock; the own threads of a change disturb no block of it."""

    world: ClockedWorld

    def __init__(self, seed: str, world: ClockedWorld, fault: Fault) -> None:
        super().__init__(seed, world, fault)
        self._scales[self.cases[0].id] *= world.loud_latency
        self._machines: dict[tuple[str, int], Machine] = {}  # by session
        self._trial_s = world.pair_s / 2
        # When the next pair begins: after the first trial of each case.
        self._next_s = 0.0 if world.command == "ab" else world.cases * self._trial_s

    def draw_sitting(self, trials: int, *, is_head: bool, night: int = 0) -> Iterator[Trial]:
        """As of every drawer: each trial begins when the one before it has ended."""
        world, rng = self.world, self._make_rng("sit", is_head, night)
        timer = Timer(machine=self._get_machine("head" if is_head else "stored", night), rng=rng)
        sds = {case_id: world.trial_sd * math.sqrt(scale) for case_id, scale in self._scales.items()}
        sittings = {name: sd * math.sqrt(world.sitting_share) * world.shape(rng) for name, sd in sds.items()}
        for step in range(trials * world.cases):
            case, index = self.cases[step % world.cases], step // world.cases + 1
            begin_s = step * self._trial_s
            moves = self._move_case(case.id, is_head=is_head, is_stored=not is_head)
            ratio = self._make_rng("ratio", case.id, is_head, night).gauss(0, world.ratio_sd)
            moves.times[COMPILED] += sittings[case.id] + ratio
            moves.times[EAGER] += SHARED_BY_EAGER * sittings[case.id]
            apart_sd = sds[case.id] * math.sqrt(1 - world.sitting_share)
            self._move_process(rng, moves, dict.fromkeys(LATENCIES, apart_sd))
            self._compile(timer, moves, begin_s, self._scale_compiles(case.id) * world.compile_sd)
            moves.processor += rng.gauss(0, TRIAL_PROCESSOR_SD)
            arm = CANDIDATE_ARM if is_head else BASE_ARM
            trial = self._make_trial(rng, (case.id, index), moves, arm)
            conditions = self._look_around(timer, begin_s)
            timed = timer.time_alone(trial, begin_s + ALONE_BLOCKS * self._trial_s)
            yield timed.put_into(replace(trial, arm=CANDIDATE_ARM, conditions=conditions), is_watched=False)

    def draw_pair(self, case_id: str, index: int) -> tuple[Trial, Trial]:
        """Base's and head's trial of a pair that measured everything, and begins when the last one ended."""
        world, rng = self.world, self._make_rng("pair", case_id, index)
        timer = Timer(machine=self._get_machine("head", 0), rng=rng)
        begin_s = self._next_s
        self._next_s += world.pair_s * (1.0 if index == 1 else FURTHER_PAIR)
        first = 0 if is_base_first(case_id, index) else 1
        stray = rng.choice((-1, 1)) * rng.uniform(0.04, 0.15) if rng.random() < STRAY_PAIRS else 0.0
        sd = world.pair_sd * self._scales[case_id] / math.sqrt(2)  # of one arm
        loud = self._scale_compiles(case_id) / math.sqrt(2)
        trials = []
        for arm, name in enumerate((BASE_ARM, CANDIDATE_ARM)):
            moves = self._move_case(case_id, is_head=name == CANDIDATE_ARM)
            for metric in LATENCIES:
                moves.times[metric] += stray * arm - world.first_gain * (arm == first)
            self._move_process(rng, moves, {COMPILED: sd, EAGER: sd * world.eager})
            wait = world.first_wait * (arm == first)
            moves.times[COLD] += wait
            moves.times[WARM] += wait
            start_s = begin_s if arm == first else begin_s + WARM_AFTER_S
            shared = self._compile(timer, moves, start_s, loud * world.clock_sd)
            moves.processor += WAITING_WORKS * wait + loud * world.processor_sd * shared
            trial = self._make_trial(rng, (case_id, index), moves, name)
            trials.append(replace(trial, pairing=Pairing.LIVE))
        both = timer.time_pair(trials, begin_s + PAIR_BLOCKS * world.pair_s, first)
        is_watched = world.device == CPU.name
        base, head = (
            timed.put_into(trial, is_watched=is_watched) for timed, trial in zip(both, trials, strict=True)
        )
        return base, head

    def _make_trial(self, rng: random.Random, slot: tuple[str, int], moves: Moves, arm: str) -> Trial:
        """As of every drawer; of a GPU the profiler knows how long it is busy."""
        trial = super()._make_trial(rng, slot, moves, arm)
        busy = {Metric.DEVICE_UTILIZATION: (1 - self.world.launched,)}
        is_gpu = get_kind(self.world.device).is_gpu
        return replace(trial, samples={**trial.samples, **busy}) if is_gpu else trial

    def _get_machine(self, session: str, night: int) -> Machine:
        key = (session, night)
        if key not in self._machines:
            self._machines[key] = Machine(f"{self.seed} machine {key}", self.world)
        return self._machines[key]

    def _scale_compiles(self, case_id: str) -> float:
        return self.world.loud_compile if case_id == self.cases[0].id else 1.0

    def _move_process(self, rng: random.Random, moves: Moves, sds: dict[Metric, float]) -> None:
        """Add what a process happens to be like: each latency's own noise, its speed and its memory."""
        world, jump = self.world, self.world.draw_jump(rng)
        jumps = {COMPILED: jump, EAGER: jump if world.eager_shares_lottery else world.draw_jump(rng)}
        for metric, sd in sds.items():
            moves.times[metric] += sd * world.shape(rng) + jumps[metric]
        share, factor = world.memory_jump
        if share and rng.random() < share:
            moves.memory += math.log(factor)

    def _compile(self, timer: Timer, moves: Moves, begin_s: float, sd: float) -> float:
        """Add what the machine and chance do to both compiles; return what CPU time shares of the latter."""
        world, rng, machine = self.world, timer.rng, timer.machine
        for metric, start_s in ((COLD, begin_s), (WARM, begin_s + WARM_AFTER_S)):
            length_s = TYPICAL_S[metric]
            middle_s = start_s + length_s / 2
            slow = machine.slow_host(middle_s)
            slow += 0.0 if get_kind(world.device).is_gpu else machine.slow_calls(middle_s)
            moves.times[metric] += slow
            busy = machine.share_busy(start_s, length_s)
            if world.neighbour:
                share = world.neighbour.share
                moves.times[metric] += math.log1p(busy * share / (1 - share))
            moves.processor += (slow + CROWDED_WORK * busy) * (metric is COLD)
        shared = rng.gauss(0, 1)
        apart = math.sqrt(1 - PROCESSOR_SHARE**2) * rng.gauss(0, 1)
        moves.times[COLD] += sd * (PROCESSOR_SHARE * shared + apart)
        moves.times[WARM] += sd * rng.gauss(0, 1)
        return shared

    def _look_around(self, timer: Timer, begin_s: float) -> Conditions:
        """What canaries and the device say of a trial."""
        world, rng, machine = self.world, timer.rng, timer.machine
        blocks_s = begin_s + ALONE_BLOCKS * self._trial_s
        loop = machine.slow_calls(blocks_s) + rng.gauss(0, world.canary_sd)
        crowd = 0.0
        if world.neighbour:
            crowd = machine.share_busy(begin_s, self._trial_s) * world.neighbour.share
            is_hit = machine.is_busy(blocks_s - CANARY_BEFORE_S)
            loop -= math.log(1 - world.neighbour.share) * is_hit
        canaries_s = {"loop": math.exp(loop)}
        if get_kind(world.device).is_gpu:
            host = machine.slow_host(blocks_s)
            canaries_s["python"] = math.exp(host + rng.gauss(0, HOST_CANARY_SD))
            canaries_s["launch"] = math.exp(host + rng.gauss(0, HOST_CANARY_SD))
        disturbances = (Disturbance.CROWDED,) if crowd > SEEN_CROWD else ()
        if world.drops and world.drops.are_flagged:
            probes = (begin_s + self._trial_s * probe / DROP_PROBES for probe in range(DROP_PROBES + 1))
            if any(map(machine.is_dropped, probes)):
                disturbances = (Disturbance.THROTTLED,)
        return Conditions(canaries_s=canaries_s, disturbances=disturbances)
