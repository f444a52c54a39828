"""Simulates pull requests through the real screen and the real pairs: false alarms, catches, cost.

    python benchmarks/pair_power.py [--requests 1000] [--faulty 300] [--cases 20] [--seed 1]
        [--kinds check ab alone] [--live-sd 0.006 0.031] [--trial-sd 0.1 0.1]
        [--compile-sd 0.196 0.103 0.74] [--slower cold_compile_time] [--faults 0.2 0.3 0.5]

Each request has 20 cases with compiled and eager latency, both compile times and a counter. ``check``
screens one trial a case against five stored ones of another sitting and runs suspects in pairs;
``ab`` runs every case in pairs; ``alone`` is ``check`` without a base, with up to three trials a case and
no pairs. A faulty request has one case whose compiled latency is slower, or
another metric that ``--slower`` names.

Noise, all of natural logarithms. A case's times vary between runs by 0.5 to 3 %, of whose variance 25 %
is common to a sitting, 40 % is of the case in a sitting and 35 % of one process; eager shares nine
tenths of what is of the sitting. Compile times vary by 1.5 to 3 % between processes besides. One
sitting in fifty is slower by 3 to 10 % as a whole. Canaries vary by 1 %. A live pair varies by 0.6 to
3.1 %, drawn anew for each case, one pair in fifty strays by 4 to 15 %, and compile times of a pair vary
by 2 to 4 %. ``--compile-sd`` gives pairs of compile times the noise that was measured on a shared
two-core machine instead: of the clock, of the processor time of a cold compile, and how both move together.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gate.calibration import Effort
from gate.decide import (
    LOOKS,
    Suspect,
    collect_values,
    confirm_screening,
    decide_side_by_side,
    list_suspects,
    list_unsettled,
    screen_run,
)
from gate.decide.evidence import group_cases
from gate.decide.rehearsal import Request as Drawn
from gate.decide.rehearsal import judge_request
from gate.metrics import SPECS
from gate.records import (
    BaseArm,
    Baseline,
    Case,
    Comparison,
    Conditions,
    Environment,
    Metric,
    Pairing,
    Policy,
    Provenance,
    Run,
    Status,
    Trial,
)

LATENCIES = (Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY)
COMPILES = (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME)
EFFORT = Effort(baseline_trials=5, trials=1, max_trials=3, requests=1)  # what ``check`` spends
TYPICAL = dict(zip((*LATENCIES, *COMPILES), (0.010, 0.020, 12.0, 3.0), strict=True))
BASELINE_TRIALS = 5
SHARE_COMMON, SHARE_CASE, SHARE_PROCESS = 0.25, 0.40, 0.35
BETWEEN_SD, COMPILE_SD, LIVE_SD, COMPILE_PAIR_SD = (0.005, 0.03), (0.015, 0.03), (0.006, 0.031), (0.02, 0.04)
BAD_SITTING, STRAY_PAIR = 0.02, 0.02
CANARY_SD = 0.01
PROCESSOR_S = 10.0  # of a cold compile
LATENCY_PAIR_COST = 0.4  # of a trial, for each arm
FAULTS = (0.02, 0.03, 0.05, 0.10)
Z = 1.96
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


@dataclass(frozen=True, kw_only=True)
class Temper:
    """How noisy one case is."""

    common: float
    own: float
    process: float
    compile_sd: float
    live_sd: float
    compile_pair_sd: float


@dataclass(frozen=True, kw_only=True)
class Request:
    """One pull request: its cases, their tempers, and how much slower each is."""

    rng: random.Random
    cases: tuple[Case, ...]
    tempers: Mapping[str, Temper]
    slower: Mapping[str, float]
    metric: Metric = Metric.COMPILED_LATENCY  # which is slower
    compile_sd: tuple[float, float, float] | None = None  # of the clock, of the processor, their correlation


@dataclass
class Tally:
    """What came of many requests of one kind."""

    requests: int = 0
    alarms: int = 0
    inconclusive: int = 0
    caught: int = 0
    open: int = 0
    suspects: int = 0
    trials: list[float] = field(default_factory=list)


def make_request(rng: random.Random, options: argparse.Namespace, fault: float) -> Request:
    """Draw the cases of a request; the first has the fault."""
    plan = tuple(
        Case(id=f"m{n}/a", model=f"m{n}", factory="m:f", definition="d") for n in range(options.cases)
    )
    slower = {plan[0].id: math.log1p(fault)} if fault else {}
    return Request(
        rng=rng,
        cases=plan,
        tempers={case.id: draw_temper(rng, options) for case in plan},
        slower=slower,
        metric=Metric(options.slower),
        compile_sd=tuple(options.compile_sd) if options.compile_sd else None,
    )


def draw_temper(rng: random.Random, options: argparse.Namespace) -> Temper:
    """Draw how noisy a case is."""
    between = rng.uniform(*(options.trial_sd or BETWEEN_SD))
    low, high = map(math.log, options.live_sd)
    return Temper(
        common=between * math.sqrt(SHARE_COMMON),
        own=between * math.sqrt(SHARE_CASE),
        process=between * math.sqrt(SHARE_PROCESS),
        compile_sd=rng.uniform(*(options.trial_sd or COMPILE_SD)),
        live_sd=math.exp(rng.uniform(low, high)),
        compile_pair_sd=rng.uniform(*COMPILE_PAIR_SD),
    )


def draw_sitting(request: Request, trials: int, *, is_head: bool) -> Iterator[Trial]:
    """Trials of every case, each alone, in one sitting of the machine."""
    rng = request.rng
    common = rng.gauss(0, 1)
    bad = rng.uniform(0.03, 0.10) if rng.random() < BAD_SITTING else 0.0
    for case in request.cases:
        temper = request.tempers[case.id]
        sitting = temper.common * common + temper.own * rng.gauss(0, 1) + bad
        slower = request.slower.get(case.id, 0.0) if is_head else 0.0
        canary = temper.common * common + bad
        for index in range(trials):
            moves = {
                Metric.COMPILED_LATENCY: sitting + rng.gauss(0, temper.process),
                Metric.EAGER_LATENCY: 0.9 * sitting + rng.gauss(0, temper.process),
                **{metric: sitting + rng.gauss(0, temper.compile_sd) for metric in COMPILES},
            }
            moves[request.metric] += slower
            loop_s = math.exp(canary + rng.gauss(0, CANARY_SD))
            yield make_trial(case.id, index, moves, Conditions(canaries_s={"loop": loop_s}))


def make_trial(case_id: str, index: int, moves: Mapping[Metric, float], conditions: Conditions) -> Trial:
    """Make a trial whose times are typical ones moved by so much, on the logarithmic scale."""
    samples = {metric: (TYPICAL[metric] * math.exp(move),) for metric, move in moves.items()}
    if COMPILES[0] in moves:
        samples |= {Metric.GRAPH_BREAKS: (0.0,), Metric.COMPILE_CALLS: (4e6,)}
    return Trial(case_id=case_id, index=index, samples=samples, conditions=conditions)


def draw_pair(request: Request, case_id: str, index: int, *, full: bool) -> tuple[Trial, Trial]:
    """One live pair; all of its noise is put on the head."""
    rng, temper = request.rng, request.tempers[case_id]
    stray = rng.choice((-1, 1)) * rng.uniform(0.04, 0.15) if rng.random() < STRAY_PAIR else 0.0
    moves = {metric: stray + rng.gauss(0, temper.live_sd) for metric in LATENCIES}
    slower = request.slower.get(case_id, 0.0)
    processor = 0.0
    if full and request.compile_sd:
        clock_sd, processor_sd, together = request.compile_sd
        shared, apart = rng.gauss(0, 1), math.sqrt(1 - together**2)
        processor = processor_sd * shared + (slower if request.metric is COMPILES[0] else 0.0)
        clock = clock_sd * (together * shared + apart * rng.gauss(0, 1))
        moves |= {COMPILES[0]: clock, COMPILES[1]: rng.gauss(0, clock_sd)}
    elif full:
        moves |= {metric: rng.gauss(0, temper.compile_pair_sd) for metric in COMPILES}
    if request.metric in moves:
        moves[request.metric] += slower
    still = dict.fromkeys(moves, 0.0)
    base, head = (make_trial(case_id, index, one, Conditions()) for one in (still, moves))
    if full and request.compile_sd:
        base = replace(base, phases_s={"cpu_self": PROCESSOR_S})
        head = replace(head, phases_s={"cpu_self": PROCESSOR_S * math.exp(processor)})
    return (
        replace(base, arm="base", pairing=Pairing.LIVE),
        replace(head, pairing=Pairing.LIVE),
    )


def run_pairs(request: Request, run: Run, suspects: tuple[Suspect, ...] | None) -> tuple[Run, float]:
    """Add pairs up to each look for what is not settled; give their cost in trials as well."""
    cost = 0.0
    done = dict.fromkeys((case.id for case in request.cases), 0)
    for look in LOOKS:
        new: list[Trial] = []
        for one in list_unsettled(run, POLICY, suspects):
            full = look == 1 or not set(one.metrics) <= {*LATENCIES, Metric.WARM_SPEEDUP}
            for index in range(done[one.case_id] + 1, look + 1):
                new += draw_pair(request, one.case_id, index, full=full)
                cost += 2.0 if full else 2.0 * LATENCY_PAIR_COST
            done[one.case_id] = look
        if not new:
            break
        run = replace(run, trials=(*run.trials, *new))
    return run, cost


def make_run(request: Request, trials: tuple[Trial, ...]) -> Run:
    """Make the run of a request, with a base that has the same cases."""
    base = BaseArm(label="main", environment=HOST, provenance=Provenance(), cases=request.cases)
    return Run(
        cases=request.cases,
        environment=HOST,
        provenance=Provenance(),
        trials=trials,
        finished=True,
        base=base,
    )


def make_baselines(trials: Iterable[Trial]) -> tuple[Baseline, ...]:
    """Store the trials of a sitting as ``baseline refresh`` does."""
    by_case: dict[str, list[Trial]] = {}
    for trial in trials:
        by_case.setdefault(trial.case_id, []).append(trial)
    return tuple(
        Baseline(
            case_id=case_id,
            definition="d",
            environment=HOST,
            provenance=Provenance(),
            trials=collect_values(found),
            canaries_s={"loop": tuple(trial.conditions.canaries_s["loop"] for trial in found)},
        )
        for case_id, found in by_case.items()
    )


def judge_check(request: Request, tally: Tally) -> tuple[Comparison, ...]:
    """``check --base``: screen against stored baselines, confirm the suspects."""
    baselines = make_baselines(draw_sitting(request, BASELINE_TRIALS, is_head=False))
    run = make_run(request, tuple(draw_sitting(request, 1, is_head=True)))
    screening = screen_run(run, baselines, POLICY)
    suspects = list_suspects(screening)
    run, cost = run_pairs(request, run, suspects)
    tally.suspects += len(suspects)
    tally.trials.append(cost)
    return confirm_screening(screening, run, POLICY).comparisons


def judge_ab(request: Request, tally: Tally) -> tuple[Comparison, ...]:
    """``ab``: every case in pairs."""
    run, cost = run_pairs(request, make_run(request, ()), None)
    tally.suspects += len(request.cases)
    tally.trials.append(cost)
    return decide_side_by_side(run, POLICY).comparisons


def judge_alone(request: Request, tally: Tally) -> tuple[Comparison, ...]:
    """``check`` without a base: more trials of what is undecided, and only stored baselines beside them."""
    drawn = Drawn(
        baselines=make_baselines(draw_sitting(request, BASELINE_TRIALS, is_head=False)),
        candidates=group_cases(draw_sitting(request, EFFORT.max_trials, is_head=True)),
    )
    judged = judge_request(make_run(request, ()), drawn, POLICY, EFFORT)
    tally.trials.append(judged.trials - len(request.cases))
    return judged.verdict.comparisons


JUDGES = {"check": judge_check, "ab": judge_ab, "alone": judge_alone}


def count_requests(options: argparse.Namespace, kind: str, fault: float, requests: int) -> Tally:
    """Simulate so many requests of one kind."""
    rng = random.Random(f"{options.seed} {kind} {fault}")  # noqa: S311 - repeatable, not secret
    tally = Tally(requests=requests)
    for _ in range(requests):
        request = make_request(rng, options, fault)
        rows = [row for row in JUDGES[kind](request, tally) if row.decides]
        faulty = [row for row in rows if row.case_id in request.slower and row.metric is request.metric]
        others = [row for row in rows if row not in faulty and row.case_id not in request.slower]
        tally.alarms += any(row.status is Status.REGRESSED for row in others)
        tally.inconclusive += any(row.status is Status.INCONCLUSIVE for row in others)
        tally.caught += any(row.status is Status.REGRESSED for row in faulty)
        tally.open += any(row.status is Status.INCONCLUSIVE for row in faulty)
    return tally


def describe_share(count: int, total: int) -> str:
    """A share in percent with its Wilson interval."""
    share, square = count / total, Z * Z
    centre = (share + square / (2 * total)) / (1 + square / total)
    half = Z * math.sqrt(share * (1 - share) / total + square / (4 * total**2)) / (1 + square / total)
    return f"{100 * share:.1f} % ({100 * (max(0.0, centre - half)):.1f} to {100 * (centre + half):.1f})"


def describe_tally(kind: str, fault: float, tally: Tally, cases: int) -> str:
    """One row of the table."""
    total, spent = tally.requests, sorted(tally.trials)
    cells = (
        kind,
        f"+{100 * fault:.0f} %" if fault else "nothing",
        str(total),
        describe_share(tally.alarms, total),
        describe_share(tally.inconclusive, total),
        describe_share(tally.caught, total) if fault else "-",
        describe_share(tally.open, total) if fault else "-",
        f"{tally.suspects / total:.1f}",
        f"{sum(spent) / total / cases:.2f}",
        f"{spent[int(0.95 * total)] / cases:.2f}",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| command | slower | requests | false alarm | others open | caught | left open | cases in pairs"
    " | trials of pairs a case | 95 of 100 below |"
)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1000, help="without a fault")
    parser.add_argument("--faulty", type=int, default=300, help="of each size of fault")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=JUDGES, default=["check", "ab"])
    parser.add_argument("--live-sd", nargs=2, type=float, default=LIVE_SD, help="range between cases")
    parser.add_argument("--trial-sd", nargs=2, type=float, help="range between cases, of all times")
    parser.add_argument("--compile-sd", nargs=3, type=float, help="clock, processor, correlation")
    parser.add_argument("--slower", choices=[LATENCIES[0], COMPILES[0]], default=LATENCIES[0])
    parser.add_argument("--faults", nargs="*", type=float, default=FAULTS)
    options = parser.parse_args()
    started = time.perf_counter()
    print(HEAD)
    print("|" + " --- |" * (HEAD.count("|") - 1))
    for kind in options.kinds:
        for fault in (0.0, *options.faults):
            requests = options.faulty if fault else options.requests
            tally = count_requests(options, kind, fault, requests)
            print(describe_tally(kind, fault, tally, options.cases), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
