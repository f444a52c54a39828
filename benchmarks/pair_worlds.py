"""Simulates whole pull requests in many worlds of noise, through the code that ships.

    python benchmarks/pair_worlds.py [--worlds NAME ...] [--requests 1000] [--faulty 300] [--last] [--list]

Each row is one world: so many requests of unchanged code, and as many as ``--faulty`` in which the first
case's compiled latency is 5 % slower (or what the row says; with ``--last``, the last one's). Each is
screened against stored baselines and settled by pairs as ``check --base`` does, with as much time as it
needs or what the world has. Red is a request with a regression that is none; open one whose other cases
are INCONCLUSIVE; caught, open and missed are of the slower case. Seconds are the median of what all pairs
of a request take. Intervals are exact (Clopper and Pearson), 95 %.

Noise is of natural logarithms. A process of a case is slower or faster by the world's own noise, of which
in a lottery some are of another speed; of trials 65 % of the variance is of the sitting, nine tenths of
which eager shares, unless the world says what it does not share. A pair's compiled and eager latency vary
apart by what the world says, and compile times of pairs by 20 % by the clock and by 10 % in processor
time, which move together by 0.74.
The same seed draws the same requests whatever the rule is: run it at two commits to compare them.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from pair_power import COMPILES, HOST, LATENCIES, POLICY, PROCESSOR_S, SHOWS, make_trial, show_cause

from gate.check import Checked, CheckTerms, PairSlot, Rehearsal, check_beside, want_whole
from gate.check.procedure import EXACT_TRIALS
from gate.check.schedule import Slot, compute_trial_s
from gate.decide.evidence.baselines import make_baselines
from gate.decide.evidence.pairs import Pair
from gate.decide.stats.rate import compute_rate
from gate.records import (
    BaseArm,
    Case,
    Conditions,
    Metric,
    Pairing,
    Provenance,
    Run,
    Status,
    Trial,
)

SITTING_SHARE = 0.65
SHARED_BY_EAGER = 0.9  # of a sitting
AUTOCORRELATION = 0.95  # of the drift, from block to block
CLOCK_SD, PROCESSOR_SD, TOGETHER = 0.20, 0.10, 0.74
TRIAL_COMPILE_SD = 0.03
TRIAL_PROCESSOR_SD = 0.05  # of a cold compile's CPU time, besides what of the sitting it shares
Shape = Callable[[random.Random], float]


def draw_normal(rng: random.Random) -> float:
    """Normal noise of standard deviation 1."""
    return rng.gauss(0, 1)


def draw_heavy(rng: random.Random) -> float:
    """Student's t with three degrees of freedom, of standard deviation 1."""
    return rng.gauss(0, 1) / math.sqrt(2 * rng.gammavariate(1.5, 1.0))


@dataclass(frozen=True, kw_only=True)
class World:
    """How a machine and its cases vary, and what is stored."""

    told: str
    cases: int = 20
    shape: Shape = draw_normal
    apart_sd: float | None = None  # of trials, what eager does not share; else 59 % of ``trial_sd``
    trial_sd: float = 0.01
    canary_sd: float = 0.01
    pair_sd: float = 0.01
    loud_sd: float | None = None  # of the first case's pairs, where they vary otherwise
    eager: float = 1.0  # how eager's pairs vary, in compiled's
    lottery: tuple[float, float] = (0.0, 1.0)  # the share of processes that are slower, and by which factor
    drift: float = 0.0  # of the machine within a pair, from block to block
    shift: float = 0.0  # how much slower this sitting is than the stored one, as a logarithm
    shifted: frozenset[str] = frozenset(("compiled", "eager", "canary"))  # what gets slower by it
    shifted_cases: float = 1.0  # their share
    persistent: float = 0.0  # what stays the same in all pairs of one check
    pair_s: float = 30.0  # of a whole pair
    budget_s: float = math.inf  # for all pairs of a check
    stored: int = 5
    slower: Metric = Metric.COMPILED_LATENCY
    slows_eager: bool = False  # as much as compiled
    fault: float = 0.05
    shows: str = SHOWS[0]  # in what the cause of the slowdown can be seen besides: see pair_power
    works: bool = True  # whether a longer compile takes more CPU time, and does not only wait

    def share(self, sitting: float, rng: random.Random) -> tuple[float, float, float]:
        """What moves a trial's compiled calls and eager's together, and the noise that each has apart."""
        process_sd = self.trial_sd * math.sqrt(1 - SITTING_SHARE)
        if self.apart_sd is None:
            return sitting, SHARED_BY_EAGER * sitting, process_sd
        together = sitting + process_sd * self.shape(rng)
        return together, together, self.apart_sd

    def draw_jump(self, rng: random.Random) -> float:
        """By how much a process happens to be of the slow kind."""
        share, factor = self.lottery
        return math.log(factor) if share and rng.random() < share else 0.0


def _wander(told: str, cases: int, pair_sd: float) -> World:
    """Describe cases that are all suspect, since their trials vary by 10 %."""
    return World(told=f"{told}, trials 10 %", cases=cases, trial_sd=0.1, canary_sd=0.15, pair_sd=pair_sd)


BLIND, COMPILED_ONLY = frozenset(("compiled", "eager")), frozenset(("compiled",))
PERSISTENT = {"half": 0.005, "1": 0.01, "2": 0.02}
SDS = {"1": 0.01, "1.6": 0.016, "2.4": 0.024, "3.2": 0.032, "4.8": 0.048, "8": 0.08}
LOTTERIES = {"lottery-8": (0.1, 1.08), "lottery-25": (0.25, 1.08), "lottery-3x": (0.1, 3.0)}


def _list_suspects(cases: int) -> Iterator[tuple[str, World]]:
    """The worlds of so many cases that are all suspect."""
    told = f"{cases} suspect{'s' * (cases > 1)}"
    for name, sd in SDS.items():
        yield f"{cases}-sd-{name}", _wander(f"{told}, pairs {name} %", cases, sd)
    half = _wander(f"{told}, pairs 4.8 %, eager's 2.4 %", cases, 0.048)
    yield f"{cases}-sd-4.8-half", replace(half, eager=0.5)
    tails = _wander(f"{told}, pairs 3 %, heavy tails", cases, 0.03)
    yield f"{cases}-heavy", replace(tails, shape=draw_heavy)
    for name, (share, factor) in LOTTERIES.items():
        slow = _wander(f"{told}, {share:.0%} of processes {factor:g} times as slow", cases, 0.012)
        yield f"{cases}-{name}", replace(slow, lottery=(share, factor))


def _list_together() -> Iterator[tuple[str, World]]:
    """The worlds in which a machine's wandering is shared by eager and compiled, but for 1 % of each."""
    told = "8 cases, trials 6 % of which eager shares all but 1 %, pairs 1.6 %"
    together = World(told=told, cases=8, trial_sd=0.06, apart_sd=0.01, canary_sd=0.15, pair_sd=0.016)
    yield "together", together
    yield "together-code", replace(together, told=f"{told}, slower by the same code", shows="nothing")
    yield (
        "together-eager",
        replace(together, told=f"{told}, eager slower as well", shows="nothing", slows_eager=True),
    )


def _list_compiles() -> Iterator[tuple[str, World]]:
    """The worlds in which a cold compile takes longer, and what shows it."""
    for shows in SHOWS:
        told = f"8 cases; a cold compile +30 %, which {shows} {'show' if shows == 'calls' else 'shows'}"
        world = _wander(told, 8, 0.016)
        yield shows, replace(world, slower=Metric.COLD_COMPILE_TIME, fault=0.3, shows=shows)
    waits = _wander("8 cases; a cold compile waits for 30 %", 8, 0.016)
    yield (
        "waits",
        replace(waits, slower=Metric.COLD_COMPILE_TIME, fault=0.3, shows="nothing", works=False),
    )


WORLDS: Mapping[str, World] = {
    "quiet": World(told="all times vary by 1 %"),
    "heavy": World(told="the same, heavy tails", shape=draw_heavy),
    **{
        name: World(
            told=f"{share:.0%} of processes {factor:g} times as slow", pair_sd=0.012, lottery=(share, factor)
        )
        for name, (share, factor) in LOTTERIES.items()
        if share < 0.2  # noqa: PLR2004 - the third is for suspects alone
    },
    "drift": World(told="the machine drifts by 2 % within a pair, AR(1)", drift=0.02),
    "stale-3": World(told="baselines 3 % too fast", shift=0.03),
    "stale-8": World(told="baselines 8 % too fast", shift=0.08),
    "stale-8-blind": World(told="the same, canaries do not see it", shift=0.08, shifted=BLIND),
    "stale-8-compiled": World(told="the same, compiled only", shift=0.08, shifted=COMPILED_ONLY),
    "stale-third": World(
        told="the same, a third of the cases", shift=0.08, shifted=BLIND, shifted_cases=0.33
    ),
    "noisy-20": World(told="pairs vary by 4.8 %", pair_sd=0.048),
    "two-pairs": World(told="time for one case's first two pairs", pair_s=50.0, budget_s=80.0),
    "short": World(told="330 s of pairs, 50 s each", pair_s=50.0, budget_s=330.0),
    "short-wandering": replace(
        _wander("8 suspects, pairs 1.6 %, 330 s of pairs, 50 s each", 8, 0.016), pair_s=50.0, budget_s=330.0
    ),
    "three-stored": World(told="three stored trials", stored=3),
    "cases-1": World(told="one case", cases=1),
    "cases-10": World(told="10 cases", cases=10),
    "cases-50": World(told="50 cases", cases=50),
    "cases-200": World(told="200 cases", cases=200),
    "wandering": _wander("20 suspects, pairs 1.6 %", 20, 0.016),
    "wandering-8": _wander("8 cases, pairs 1.6 %", 8, 0.016),
    "same-code": replace(_wander("8 cases, pairs 1.6 %, slower by the same code", 8, 0.016), shows="nothing"),
    **dict(_list_together()),
    **{f"compile-{name}": world for name, world in _list_compiles()},
    "one-loud": replace(_wander("8 suspects, pairs 0.8 %, the first case's 5 %", 8, 0.008), loud_sd=0.05),
    **{
        f"persistent-{name}": replace(
            _wander(f"8 suspects, pairs 1 %, {100 * sd:g} % in all pairs of a check", 8, 0.01), persistent=sd
        )
        for name, sd in PERSISTENT.items()
    },
    **{name: world for cases in (1, 2, 8) for name, world in _list_suspects(cases)},
}


@dataclass(frozen=True, kw_only=True)
class Drawer:
    """Draws the trials and pairs of one request; by its seed a pair is the same whenever it is drawn."""

    seed: str
    world: World
    cases: tuple[Case, ...]
    slower: Mapping[str, float]

    def draw_sitting(self, trials: int, *, is_head: bool) -> Iterator[Trial]:
        """Trials of every case, each alone, in one sitting."""
        rng, world = self._make_rng(is_head), self.world
        shift = world.shift if is_head else 0.0
        for case in self.cases:
            moved = shift if rng.random() < world.shifted_cases else 0.0
            sitting = world.trial_sd * math.sqrt(SITTING_SHARE) * world.shape(rng)
            for index in range(1, trials + 1):
                together, shared, apart_sd = world.share(sitting, rng)
                own, other = (apart_sd * world.shape(rng) + world.draw_jump(rng) for _ in range(2))
                moves = {
                    LATENCIES[0]: together + own + moved * ("compiled" in world.shifted),
                    LATENCIES[1]: shared + other + moved * ("eager" in world.shifted),
                    **{metric: sitting + rng.gauss(0, TRIAL_COMPILE_SD) for metric in COMPILES},
                }
                moves[world.slower] += self.slower.get(case.id, 0.0) * is_head
                moves[LATENCIES[1]] += self.slower.get(case.id, 0.0) * is_head * world.slows_eager
                canary = shift * ("canary" in world.shifted) + rng.gauss(0, world.canary_sd)
                slower = self.slower.get(case.id, 0.0) * is_head
                processor = TOGETHER * sitting + rng.gauss(0, TRIAL_PROCESSOR_SD)
                processor += slower * (world.slower is COMPILES[0] and world.works)
                trial = replace(
                    make_trial(case.id, index, moves, world.pair_s / 2),
                    conditions=Conditions(canaries_s={"loop": math.exp(canary)}),
                    phases_s={"cpu_self": PROCESSOR_S * math.exp(processor)},
                )
                yield show_cause(trial, slower, world.shows)

    def draw_pair(self, slot: PairSlot) -> Pair:
        """One live pair that measured everything; its noise is put on the head."""
        world, case_id = self.world, slot.case.id
        persistent = self._make_rng(case_id).gauss(0, world.persistent)
        rng = self._make_rng(case_id, slot.index)
        is_loud = world.loud_sd is not None and case_id == self.cases[0].id
        sd = world.loud_sd if is_loud and world.loud_sd else world.pair_sd
        own, other = (sd * world.shape(rng) + world.draw_jump(rng) - world.draw_jump(rng) for _ in range(2))
        shared = rng.gauss(0, 1)
        clock = TOGETHER * shared + math.sqrt(1 - TOGETHER**2) * rng.gauss(0, 1)
        moves = {
            LATENCIES[0]: own + persistent,
            LATENCIES[1]: world.eager * other,
            COMPILES[0]: CLOCK_SD * clock,
            COMPILES[1]: rng.gauss(0, CLOCK_SD),
        }
        slower = self.slower.get(case_id, 0.0)
        moves[world.slower] += slower
        moves[LATENCIES[1]] += slower * world.slows_eager
        processor = PROCESSOR_SD * shared + slower * (world.slower is COMPILES[0] and world.works)
        spent = PROCESSOR_S * math.exp(processor)
        still = dict.fromkeys(moves, 0.0)
        base, head = (make_trial(case_id, slot.index, one, world.pair_s / 2) for one in (still, moves))
        base, head = _drift(rng, world.drift, (base, head))
        return Pair(
            base=replace(base, arm="base", pairing=Pairing.LIVE, phases_s={"cpu_self": PROCESSOR_S}),
            head=show_cause(
                replace(head, pairing=Pairing.LIVE, phases_s={"cpu_self": spent}), slower, world.shows
            ),
        )

    def _make_rng(self, *parts: object) -> random.Random:
        return random.Random(f"{self.seed} {parts}")  # noqa: S311 - repeatable, not secret


def _drift(rng: random.Random, sd: float, arms: tuple[Trial, Trial]) -> tuple[Trial, Trial]:
    """Time both arms in ten super-blocks on a machine that drifts; the order turns within each."""
    if not sd:
        return arms
    speed = rng.gauss(0, sd)
    moves: tuple[list[float], list[float]] = ([], [])
    for arm in (0, 1, 1, 0) * 10:
        moves[arm].append(speed)
        speed = AUTOCORRELATION * speed + math.sqrt(1 - AUTOCORRELATION**2) * rng.gauss(0, sd)
    base, head = (
        replace(
            trial,
            samples={
                **trial.samples,
                **{
                    metric: tuple(trial.samples[metric][0] * math.exp(move) for move in path)
                    for metric in LATENCIES
                },
            },
        )
        for trial, path in zip(arms, moves, strict=True)
    )
    return base, head


@dataclass
class Tally:
    """What came of many requests of one kind."""

    requests: int = 0
    red: int = 0
    open: int = 0
    caught: int = 0
    undecided: int = 0
    pairs: int = 0
    seconds: list[float] = field(default_factory=list)  # of the pairs of each request

    def count(self, checked: Checked, faulty: tuple[str, Metric] | None) -> None:
        """Count one request; of a faulty case the slower metric counts, and no other."""
        judged = [row for row in checked.verdict.comparisons if row.decides]
        slow = next((row.status for row in judged if (row.case_id, row.metric) == faulty), None)
        others = {row.status for row in judged if faulty is None or row.case_id != faulty[0]}
        self.requests += 1
        self.pairs += sum(trial.pairing is not Pairing.ALONE for trial in checked.run.trials) // 2
        alone = (trial for trial in checked.run.trials if trial.pairing is Pairing.ALONE)
        self.seconds.append(checked.run.wall_s - sum(map(compute_trial_s, alone)))
        self.red += Status.REGRESSED in others
        self.open += Status.INCONCLUSIVE in others
        self.caught += slow is Status.REGRESSED
        self.undecided += slow is Status.INCONCLUSIVE


def judge_drawn(drawer: Drawer) -> Checked:
    """Judge one request as ``check --base`` does."""
    world = drawer.world
    base = BaseArm(label="main", environment=HOST, provenance=Provenance(), cases=drawer.cases)
    run = Run(cases=drawer.cases, environment=HOST, provenance=Provenance(), finished=True, base=base)
    stored = replace(run, base=None, trials=tuple(drawer.draw_sitting(world.stored, is_head=False)))
    found = {(one.case_id, one.index): one for one in drawer.draw_sitting(EXACT_TRIALS, is_head=True)}

    def take_trial(slot: Slot) -> Trial:
        return found[slot.case.id, slot.index]

    rehearsal = Rehearsal(take_trial=take_trial, take_pair=drawer.draw_pair)
    terms = CheckTerms(
        baselines=make_baselines(stored, Provenance()),
        policy=POLICY,
        max_trials=EXACT_TRIALS,
        pair_budget_s=world.budget_s,
    )
    run = rehearsal.add_trials(run, want_whole(case.id for case in drawer.cases), terms.trials)
    return check_beside(rehearsal, run, terms)


def simulate(name: str, requests: int, seed: int, *, slower: bool, place: int = 0) -> Tally:
    """Judge so many requests of a world; the case at ``place`` is the slower one."""
    world, tally = WORLDS[name], Tally()
    cases = tuple(
        Case(id=f"m{n}/a", model=f"m{n}", factory="m:f", definition="d") for n in range(world.cases)
    )
    fault = {cases[place].id: math.log1p(world.fault)} if slower else {}
    faulty = (cases[place].id, world.slower) if slower else None
    for number in range(requests):
        drawer = Drawer(seed=f"{seed} {name} {number}", world=world, cases=cases, slower=fault)
        tally.count(judge_drawn(drawer), faulty)
    return tally


def describe(hits: int, of: int) -> str:
    """A share in percent with its exact interval."""
    if not of:
        return "-"
    rate = compute_rate(hits, of)
    return f"{100 * hits / of:.1f} ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


def describe_cost(tally: Tally) -> tuple[str, str]:
    """The mean number of pairs, and the median of their seconds."""
    if not tally.requests:
        return "-", "-"
    return f"{tally.pairs / tally.requests:.1f}", f"{median(tally.seconds):.0f}"


def describe_world(name: str, quiet: Tally, faulty: Tally) -> str:
    """One row of the table."""
    missed = faulty.requests - faulty.caught - faulty.undecided
    cells = (
        name,
        WORLDS[name].told,
        str(quiet.requests),
        describe(quiet.red, quiet.requests),
        describe(quiet.open, quiet.requests),
        *describe_cost(quiet),
        str(faulty.requests),
        *(describe(hits, faulty.requests) for hits in (faulty.caught, faulty.undecided, missed)),
        *describe_cost(faulty),
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| world | noise | unchanged | red, % | open, % | pairs | seconds | slower | caught, % | open, %"
    " | missed, % | pairs | seconds |"
)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="NAME")
    parser.add_argument("--requests", type=int, default=1000, help="of unchanged code")
    parser.add_argument("--faulty", type=int, default=300, help="with one slower case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--last", action="store_true", help="slow the last case, and not the first")
    parser.add_argument("--list", action="store_true", help="name the worlds and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name}: {world.told}" for name, world in WORLDS.items()))
        return 0
    started = time.perf_counter()
    print(f"{HEAD}\n|{' --- |' * (HEAD.count('|') - 1)}")
    for name in options.worlds:
        quiet, faulty = (
            simulate(name, requests, options.seed, slower=slower, place=-1 if options.last else 0)
            for requests, slower in ((options.requests, False), (options.faulty, True))
        )
        print(describe_world(name, quiet, faulty), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
