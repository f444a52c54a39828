"""Draws the trials and pairs of one request of a world.

A trial's time is slower or faster by the world's ``trial_sd``, of whose variance a share is of the case in
its sitting; eager shares nine tenths of that, unless the world says what it does not. Cases differ up to
2.7-fold in their noise. One sitting in fifty is slower by 3 to 10 % as a whole, which canaries see. A pair's
latencies vary apart, and one pair in fifty strays by 4 to 15 % in both. The clock of a pair's cold compile
and its CPU time move together by 0.74. Peak memory jumps by up to 3.7 MiB.

What is drawn depends on the seed alone, and not on what was asked for before: any procedure, and any value
of a constant, sees the same trials and pairs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from worlds import COLD, COMPILED, EAGER, WARM, Fault, World

from gate.devices import get_kind
from gate.metrics import SPECS
from gate.records.cases import Case, Metric, Policy
from gate.records.facts import Disturbance
from gate.records.protocol import Stage
from gate.records.run import (
    BASE_ARM,
    CANDIDATE_ARM,
    BaseArm,
    CodeIdentity,
    Conditions,
    Environment,
    Provenance,
    Run,
    Trial,
)

TYPICAL_S: Mapping[Metric, float] = {COMPILED: 0.010, EAGER: 0.020, COLD: 12.0, WARM: 3.0}
CALLS, PROCESSOR_S = 4e6, 10.0  # of a compile
MIB = 2**20
MEMORY, EAGER_MEMORY = 200 * MIB, 160 * MIB
JUMPS = (0, 0, 0, 0, 0, 0, 1.2, 2.4, 3.7)  # MiB of peak memory that an allocator happens to hold
SHARED_BY_EAGER = 0.9  # of what is of a sitting
PROCESSOR_SHARE = 0.74  # of a cold compile's clock, how much its CPU time moves along
TRIAL_PROCESSOR_SD = 0.05
STRAY_PAIRS = 0.02  # their share
AUTOCORRELATION = 0.95  # of a machine's speed, from block to block
SUPER_BLOCKS = 10
SEEN_CROWDING = 0.10  # a trial that lost more than this to a neighbour says so
HIT_BLOCK = 0.9  # what is lost in a block that is hit (log): the mean of 1.2 to 4 times
QUIET_CALLS = 0.6  # of the blocks that a neighbour hits, the share with an undisturbed call
HOST = Environment(
    device_kind="cpu",
    device_model="a CPU",
    device_uuid="",
    driver="",
    clocks="",
    cpu="a CPU",
    cores=2,
    threads=2,
    isa="avx2",
    torch="2.13.0",
    triton="",
    cuda="",
    python="3.11",
    compiler="g++ 12",
)
POLICY = Policy(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})


@dataclass(kw_only=True, slots=True)
class Moves:
    """By how much (log; drift in log2) what one trial measures is more than is typical."""

    times: dict[Metric, float] = field(default_factory=lambda: dict.fromkeys(TYPICAL_S, 0.0))
    processor: float = 0.0
    calls: float = 0.0
    memory: float = 0.0
    eager_memory: float = 0.0
    drift: float = 0.0
    breaks: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocks:
    """A latency's blocks in one arm of a pair: how slow (log) each was, whether a call was undisturbed."""

    speeds: list[float] = field(default_factory=list)
    quiet: list[bool] = field(default_factory=list)


class Drawer:
    """Draws one request; each trial and pair is the same whenever it is asked for."""

    def __init__(self, seed: str, world: World, fault: Fault) -> None:
        self.seed, self.world, self.fault = seed, world, fault
        self.cases = tuple(_make_case(number, world) for number in range(world.cases))
        self.faulty = "" if fault.is_harmless else self.cases[0].id
        rng = self._make_rng("temper")
        self._scales = {case.id: math.exp(rng.uniform(-1, 1) * world.spread) for case in self.cases}

    def make_run(self, *, has_base: bool) -> Run:
        """The run that a command begins with: nothing is measured."""
        kind = get_kind(self.world.device)
        host = replace(HOST, device_kind=kind.name, device_model="a GPU" if kind.is_gpu else "a CPU")
        base = BaseArm(
            label="main",
            environment=host,
            provenance=Provenance(),
            cases=self.cases,
            other_changes=() if self.world.same_program else None,
        )
        return Run(
            cases=self.cases,
            environment=host,
            provenance=Provenance(),
            finished=True,
            base=base if has_base else None,
        )

    def draw_stored(self) -> Run:
        """The run that baselines are made of."""
        run = self.make_run(has_base=False)
        return replace(run, trials=tuple(self.draw_sitting(self.world.stored, is_head=False)))

    def draw_sitting(self, trials: int, *, is_head: bool, night: int = 0) -> Iterator[Trial]:
        """So many trials of every case, each alone, in one sitting: first all the first ones.

        Without ``is_head`` they are of what is stored; each ``night`` is another sitting.
        """
        world, rng = self.world, self._make_rng("sit", is_head, *([night] if night else []))
        bad = rng.uniform(0.03, 0.10) if rng.random() < world.bad_sittings else 0.0
        sds = {case_id: world.trial_sd * math.sqrt(scale) for case_id, scale in self._scales.items()}
        sittings = {name: sd * math.sqrt(world.sitting_share) * world.shape(rng) for name, sd in sds.items()}
        steps = max(trials * world.cases - 1, 1)
        for step in range(trials * world.cases):
            case, index = self.cases[step % world.cases], step // world.cases + 1
            moves = self._move_case(case.id, is_head=is_head, is_stored=not is_head)
            if is_head and world.uneven:
                for metric in TYPICAL_S:
                    uneven = self._make_rng("uneven", case.id, metric).gauss(0, world.uneven)
                    moves.times[metric] += world.shift * uneven
            if is_head and case is self.cases[0]:
                moves.times[COMPILED] += self.fault.own_threads * HIT_BLOCK
            slow = bad + (world.trend * step / steps if is_head else 0.0)
            conditions = self._disturb(rng, moves, (sittings[case.id], sds[case.id]), slow, is_head=is_head)
            arm = CANDIDATE_ARM if is_head else BASE_ARM
            trial = self._make_trial(rng, (case.id, index), moves, arm)
            yield replace(trial, arm=CANDIDATE_ARM, conditions=conditions)

    def draw_pair(self, case_id: str, index: int) -> tuple[Trial, Trial]:
        """Base's and head's trial of a pair that measured everything; what both differ by is put on head."""
        world, rng = self.world, self._make_rng("pair", case_id, index)
        sd = world.pair_sd * self._scales[case_id]
        compiled, eager = (
            sd * world.shape(rng) + world.draw_jump(rng) - world.draw_jump(rng) for _ in range(2)
        )
        if rng.random() < STRAY_PAIRS:
            stray = rng.choice((-1, 1)) * rng.uniform(0.04, 0.15)
            compiled, eager = compiled + stray, eager + stray
        shared = rng.gauss(0, 1)
        moves = self._move_case(case_id, is_head=True)
        moves.times[COMPILED] += compiled + self._make_rng("persistent", case_id).gauss(
            0, world.persistent_sd
        )
        moves.times[EAGER] += world.eager * eager
        apart = math.sqrt(1 - PROCESSOR_SHARE**2) * rng.gauss(0, 1)
        moves.times[COLD] += world.clock_sd * (PROCESSOR_SHARE * shared + apart)
        moves.times[WARM] += world.clock_sd * rng.gauss(0, 1)
        moves.processor += world.processor_sd * shared
        own_threads = self.fault.own_threads if case_id == self.cases[0].id else 0.0
        blocks = {
            metric: _draw_blocks(rng, world, own_threads * (metric is COMPILED))
            for metric in (COMPILED, EAGER)
        }
        base = self._make_trial(rng, (case_id, index), self._move_case(case_id, is_head=False), BASE_ARM)
        head = self._make_trial(rng, (case_id, index), moves, CANDIDATE_ARM)
        if world.drift_sd or world.busy or own_threads:
            base, head = (_cut_blocks(side, blocks, arm) for arm, side in enumerate((base, head)))
        return replace(base, pairing=world.pairing), replace(head, pairing=world.pairing)

    def _make_rng(self, *parts: object) -> random.Random:
        return random.Random(f"{self.seed} {parts}")  # noqa: S311 - repeatable, not secret

    def _move_case(self, case_id: str, *, is_head: bool, is_stored: bool = False) -> Moves:
        """What earlier changes and this one do to a case."""
        fault, moves = self.fault, Moves()
        if case_id != self.cases[0].id or is_stored:
            return moves
        moves.times[COMPILED] += self.world.crept
        if not is_head:
            return moves
        moves.calls += math.log1p(fault.more_calls)
        if fault.metric is None:
            return moves
        amount = math.log1p(fault.amount)
        moves.calls += fault.calls * amount
        if fault.metric in moves.times:
            moves.times[fault.metric] += amount
            moves.times[EAGER] += amount * fault.eager
            moves.processor += amount * (fault.metric is COLD and fault.works)
        moves.memory += amount * (fault.metric is Metric.PEAK_MEMORY)
        moves.eager_memory -= amount * (fault.metric is Metric.MEMORY_RATIO)
        moves.drift += fault.amount * (fault.metric is Metric.DRIFT)
        moves.breaks += fault.amount * (fault.metric is Metric.GRAPH_BREAKS)
        return moves

    def _disturb(
        self, rng: random.Random, moves: Moves, noise: tuple[float, float], slow: float, *, is_head: bool
    ) -> Conditions:
        """Add to a trial what the sitting, its process and a neighbour cost; return what the host says of it.

        ``noise`` is the case's in this sitting, and its standard deviation; ``slow`` is the whole machine's.
        """
        world, (sitting, sd) = self.world, noise
        apart_sd = sd * math.sqrt(1 - world.sitting_share)
        together, shared = sitting, SHARED_BY_EAGER * sitting
        if world.apart_sd is not None:
            together = shared = sitting + apart_sd * world.shape(rng)
            apart_sd = world.apart_sd
        shift = dict.fromkeys(world.shifted, world.shift * is_head)
        is_busy = bool(world.busy) and rng.random() < world.busy
        crowd = rng.uniform(0.05, 0.40) if is_busy else 0.0
        for metric, common, name in ((COMPILED, together, "compiled"), (EAGER, shared, "eager")):
            moves.times[metric] += common + apart_sd * world.shape(rng) + world.draw_jump(rng) + slow
            moves.times[metric] += shift.get(name, 0.0) + crowd * rng.uniform(0.7, 1.3)
        for metric in (COLD, WARM):
            moves.times[metric] += sitting + slow + rng.gauss(0, world.compile_sd) + crowd
        moves.processor += PROCESSOR_SHARE * sitting + rng.gauss(0, TRIAL_PROCESSOR_SD) + slow
        canary = slow + shift.get("canary", 0.0) + rng.gauss(0, world.canary_sd) + crowd * rng.uniform(0, 1)
        is_seen = crowd > SEEN_CROWDING
        return Conditions(
            canaries_s={"loop": math.exp(canary)}, disturbances=(Disturbance.CROWDED,) if is_seen else ()
        )

    def _make_trial(self, rng: random.Random, slot: tuple[str, int], moves: Moves, arm: str) -> Trial:
        """One whole trial, ``slot`` being its case and index."""
        world, fault, (case_id, index) = self.world, self.fault, slot
        is_first = case_id == self.cases[0].id
        is_new = arm == CANDIDATE_ARM and (fault.all_new or (fault.new_code and is_first))
        peak = MEMORY * math.exp(moves.memory) + rng.choice(JUMPS) * MIB
        calls = float(round(CALLS * math.exp(moves.calls + rng.gauss(0, 0.0005))))
        level, level_sd = world.numerics
        drift = level + moves.drift + (rng.gauss(0, 0.03) if is_new else 0.0)
        drift += rng.gauss(0, level_sd) if level_sd else 0.0
        breaks = moves.breaks + (world.flicker > 0 and rng.random() < world.flicker)
        tuned = rng.randrange(len(world.tuned)) if world.tuned else None
        moves.times[COMPILED] += 0.0 if tuned is None else world.tuned[tuned]
        samples = {metric: (TYPICAL_S[metric] * math.exp(move),) for metric, move in moves.times.items()}
        samples |= {
            Metric.GRAPH_BREAKS: (float(breaks),),
            Metric.EAGER_FALLBACKS: (0.0,),
            Metric.COMPILE_CALLS: (calls,),
            Metric.PEAK_MEMORY: (peak,),
            Metric.MEMORY_RATIO: (peak / (EAGER_MEMORY * math.exp(moves.eager_memory)),),
            Metric.DRIFT: (drift,),
        }
        return Trial(
            case_id=case_id,
            index=index,
            arm=arm,
            samples=samples,
            stages_s={Stage.ROUNDS: world.pair_s / 2},
            identity=CodeIdentity(
                digest="new" if is_new else "old",
                tuned="" if tuned is None else f"choice {tuned}",
            ),
            workload={"inputs": "float32[8]", "parameters": "8", "settings": "", "runtime": "2 threads"},
            phases_s={"cpu_self": PROCESSOR_S * math.exp(moves.processor)},
            changed_imports=() if world.same_program and arm == CANDIDATE_ARM and not is_new else None,
        )


def _draw_blocks(rng: random.Random, world: World, own_threads: float) -> tuple[Blocks, Blocks]:
    """The blocks of one latency, base's and head's in turn, on a machine that drifts and has a neighbour.

    Head's own threads disturb so many of its blocks besides.
    """
    arms = (Blocks(), Blocks())
    if not (world.drift_sd or world.busy or own_threads):
        return arms
    speed = rng.gauss(0, world.drift_sd) if world.drift_sd else 0.0
    for arm in (0, 1, 1, 0) * SUPER_BLOCKS:
        is_hit = bool(world.busy) and rng.random() < world.busy
        is_hit = (own_threads * arm > 0 and rng.random() < own_threads) or is_hit
        arms[arm].speeds.append(speed + (math.log(rng.uniform(1.2, 4.0)) if is_hit else 0.0))
        arms[arm].quiet.append(not is_hit or rng.random() < QUIET_CALLS)
        if world.drift_sd:
            fresh = math.sqrt(1 - AUTOCORRELATION**2) * rng.gauss(0, world.drift_sd)
            speed = AUTOCORRELATION * speed + fresh
    return arms


def _cut_blocks(trial: Trial, blocks: Mapping[Metric, tuple[Blocks, Blocks]], arm: int) -> Trial:
    """The same trial with its latencies block by block, and what undisturbed calls took in each."""
    samples, quiet = dict(trial.samples), {}
    for metric, arms in blocks.items():
        (call_s,) = trial.samples[metric]
        samples[metric] = tuple(call_s * math.exp(speed) for speed in arms[arm].speeds)
        quiet[metric] = tuple(call_s if is_quiet else 0.0 for is_quiet in arms[arm].quiet)
    is_watched = any(not all(block.quiet) for arms in blocks.values() for block in arms)
    return replace(trial, samples=samples, undisturbed_s=quiet if is_watched else {})


def _make_case(number: int, world: World) -> Case:
    return Case(
        id=f"m{number}/a",
        model=f"m{number}",
        factory="m:f",
        definition="d",
        expected_s=world.pair_s,
        dtype=world.dtype,
    )
