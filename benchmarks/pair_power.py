"""Simulates pull requests through the procedure of a check, with drawn trials: false alarms, catches, cost.

    python benchmarks/pair_power.py [--requests 1000] [--faulty 300] [--cases 20] [--seed 1]
        [--kinds check ab alone] [--live-sd 0.006 0.031] [--trial-sd 0.1 0.1]
        [--compile-sd 0.196 0.103 0.74] [--slower cold_compile_time] [--faults 0.2 0.3 0.5]
        [--shows calls] [--pair-budget-s 330] [--pair-s 30]

Each request has 20 cases with compiled and eager latency, both compile times and a counter. ``check``
screens one trial a case against five stored ones of another sitting and runs suspects in pairs;
``ab`` runs every case in pairs; ``alone`` is ``check`` without a base, with up to three trials a case and
no pairs. A faulty request has one case whose compiled latency is slower, or
another metric that ``--slower`` names. All of it is :mod:`gate.check`, the procedure of the commands; what
is drawn stands in for processes. ``--shows`` says in what the cause of a slowdown can be seen besides: in the
generated code, as where a model changes; in Python calls, which rise by half as much as a compile's time,
as where the compiler has more to do; or in nothing but times. ``--pair-budget-s`` ends the pairs as a
check's ``pair_budget_s`` does, where a whole pair takes ``--pair-s`` seconds.

Noise, all of natural logarithms. A case's times vary between runs by 0.5 to 3 %, of whose variance 25 %
is common to a sitting, 40 % is of the case in a sitting and 35 % of one process; eager shares nine
tenths of what is of the sitting. Compile times vary by 1.5 to 3 % between processes besides. One
sitting in fifty is slower by 3 to 10 % as a whole. Canaries vary by 1 %. A live pair varies by 0.6 to
3.1 %, drawn anew for each case, one pair in fifty strays by 4 to 15 %, and compile times of a pair vary
by 2 to 4 %. ``--compile-sd`` gives pairs of compile times the noise that was measured on a shared
two-core machine instead: of the clock, of the CPU time of a cold compile, and how both move together.
A trial's CPU time is known then as well, and varies as its cold compile time does.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gate.check import (
    Checked,
    CheckTerms,
    PairSlot,
    Rehearsal,
    check_alone,
    check_beside,
    check_pairs,
    want_whole,
)
from gate.check.pair_schedule import LIGHT_PAIR_SHARE
from gate.check.procedure import EXACT_TRIALS
from gate.check.schedule import Slot
from gate.decide.evidence.baselines import make_baselines
from gate.decide.evidence.pairs import Pair
from gate.metrics import SPECS
from gate.records import (
    BaseArm,
    Case,
    CodeIdentity,
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
MAX_TRIALS = 3  # of ``check`` without a base
TYPICAL = dict(zip((*LATENCIES, *COMPILES), (0.010, 0.020, 12.0, 3.0), strict=True))
BASELINE_TRIALS = 5
SHARE_COMMON, SHARE_CASE, SHARE_PROCESS = 0.25, 0.40, 0.35
BETWEEN_SD, COMPILE_SD, LIVE_SD, COMPILE_PAIR_SD = (0.005, 0.03), (0.015, 0.03), (0.006, 0.031), (0.02, 0.04)
BAD_SITTING, STRAY_PAIR = 0.02, 0.02
CANARY_SD = 0.01
PROCESSOR_S = 10.0  # of a cold compile
CALLS = 4e6  # Python calls of a compile
SHOWN_CALLS = 0.5  # of a longer compile's time
SHOWS = ("code", "calls", "nothing")
OLD_CODE, NEW_CODE = CodeIdentity(digest="old"), CodeIdentity(digest="new")
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
    shows: str = SHOWS[0]  # in what the cause can be seen, one of SHOWS
    compile_sd: tuple[float, float, float] | None = None  # of the clock, of the processor, their correlation
    pair_s: float = 30.0  # of a whole pair
    pair_budget_s: float = math.inf


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
        shows=options.shows,
        compile_sd=tuple(options.compile_sd) if options.compile_sd else None,
        pair_s=options.pair_s,
        pair_budget_s=options.pair_budget_s,
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
        for index in range(1, trials + 1):
            moves = {
                Metric.COMPILED_LATENCY: sitting + rng.gauss(0, temper.process),
                Metric.EAGER_LATENCY: 0.9 * sitting + rng.gauss(0, temper.process),
                **{metric: sitting + rng.gauss(0, temper.compile_sd) for metric in COMPILES},
            }
            moves[request.metric] += slower
            loop_s = math.exp(canary + rng.gauss(0, CANARY_SD))
            trial = make_trial(case.id, index, moves, request.pair_s / 2)
            if request.compile_sd:
                trial = replace(trial, phases_s={"cpu_self": PROCESSOR_S * math.exp(moves[COMPILES[0]])})
            trial = replace(trial, conditions=Conditions(canaries_s={"loop": loop_s}))
            yield show_cause(trial, slower, request.shows)


def make_trial(case_id: str, index: int, moves: Mapping[Metric, float], wall_s: float) -> Trial:
    """Make a trial whose times are typical ones moved by so much, on the logarithmic scale."""
    samples = {metric: (TYPICAL[metric] * math.exp(move),) for metric, move in moves.items()}
    samples |= dict.fromkeys((Metric.GRAPH_BREAKS, Metric.EAGER_FALLBACKS), (0.0,))
    samples |= {Metric.COMPILE_CALLS: (CALLS,)}
    return Trial(
        case_id=case_id,
        index=index,
        samples=samples,
        stages_s={"rounds": wall_s},
        identity=OLD_CODE,
        workload={"inputs": "float32[8]", "parameters": "8", "settings": "", "runtime": "2 threads"},
    )


def show_cause(trial: Trial, slower: float, shows: str) -> Trial:
    """Let the cause of a slowdown be seen where ``shows`` says."""
    if slower and shows == "code":
        return replace(trial, identity=NEW_CODE)
    if slower and shows == "calls":
        calls = CALLS * math.exp(SHOWN_CALLS * slower)
        return replace(trial, samples={**trial.samples, Metric.COMPILE_CALLS: (calls,)})
    return trial


def draw_pair(request: Request, case_id: str, index: int) -> Pair:
    """One live pair that measured everything; all of its noise is put on the head."""
    rng, temper = request.rng, request.tempers[case_id]
    stray = rng.choice((-1, 1)) * rng.uniform(0.04, 0.15) if rng.random() < STRAY_PAIR else 0.0
    moves = {metric: stray + rng.gauss(0, temper.live_sd) for metric in LATENCIES}
    slower = request.slower.get(case_id, 0.0)
    processor = 0.0
    if request.compile_sd:
        clock_sd, processor_sd, together = request.compile_sd
        shared, apart = rng.gauss(0, 1), math.sqrt(1 - together**2)
        processor = processor_sd * shared + (slower if request.metric is COMPILES[0] else 0.0)
        clock = clock_sd * (together * shared + apart * rng.gauss(0, 1))
        moves |= {COMPILES[0]: clock, COMPILES[1]: rng.gauss(0, clock_sd)}
    else:
        moves |= {metric: rng.gauss(0, temper.compile_pair_sd) for metric in COMPILES}
    moves[request.metric] += slower
    still = dict.fromkeys(moves, 0.0)
    base, head = (make_trial(case_id, index, one, request.pair_s / 2) for one in (still, moves))
    if request.compile_sd:
        base = replace(base, phases_s={"cpu_self": PROCESSOR_S})
        head = replace(head, phases_s={"cpu_self": PROCESSOR_S * math.exp(processor)})
    return Pair(
        base=replace(base, arm="base", pairing=Pairing.LIVE),
        head=show_cause(replace(head, pairing=Pairing.LIVE), slower, request.shows),
    )


def make_rehearsal(request: Request, trials: Iterable[Trial]) -> Rehearsal:
    """Make what measures: these trials of head, and pairs that are drawn as they are asked for."""
    found = {(trial.case_id, trial.index): trial for trial in trials}

    def take_trial(slot: Slot) -> Trial:
        return found[slot.case.id, slot.index]

    def take_pair(slot: PairSlot) -> Pair:
        return draw_pair(request, slot.case.id, slot.index)

    return Rehearsal(take_trial=take_trial, take_pair=take_pair)


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


def make_terms(request: Request, max_trials: int) -> CheckTerms:
    """Store the trials of a sitting as ``baseline refresh`` does, and spend what ``check`` spends."""
    stored = tuple(draw_sitting(request, BASELINE_TRIALS, is_head=False))
    return CheckTerms(
        baselines=make_baselines(make_run(request, stored), Provenance()),
        policy=POLICY,
        max_trials=max_trials,
        pair_budget_s=request.pair_budget_s,
    )


def count_cost(checked: Checked, tally: Tally) -> Checked:
    """Count the cases that ran in pairs, and what all pairs cost, in trials."""
    pairs = [trial for trial in checked.run.trials if trial.pairing is not Pairing.ALONE]
    tally.suspects += len({trial.case_id for trial in pairs})
    tally.trials.append(sum(1.0 if COMPILES[0] in one.samples else LIGHT_PAIR_SHARE for one in pairs))
    return checked


def judge_check(request: Request, tally: Tally) -> tuple[Comparison, ...]:
    """``check --base``: screen against stored baselines, confirm the suspects."""
    terms = make_terms(request, EXACT_TRIALS)
    rehearsal = make_rehearsal(request, draw_sitting(request, EXACT_TRIALS, is_head=True))
    run = rehearsal.add_trials(make_run(request, ()), want_whole(request.tempers), terms.trials)
    return count_cost(check_beside(rehearsal, run, terms), tally).verdict.comparisons


def judge_ab(request: Request, tally: Tally) -> tuple[Comparison, ...]:
    """``ab``: every case in pairs."""
    rehearsal = make_rehearsal(request, ())
    checked = check_pairs(rehearsal, make_run(request, ()), POLICY, request.pair_budget_s)
    return count_cost(checked, tally).verdict.comparisons


def judge_alone(request: Request, tally: Tally) -> tuple[Comparison, ...]:
    """``check`` without a base: more trials of what is undecided, and only stored baselines beside them."""
    terms = make_terms(request, MAX_TRIALS)
    rehearsal = make_rehearsal(request, draw_sitting(request, MAX_TRIALS, is_head=True))
    run = rehearsal.add_trials(make_run(request, ()), want_whole(request.tempers), terms.trials)
    checked = check_alone(rehearsal, replace(run, base=None), terms)
    tally.trials.append(len(checked.run.trials) - len(request.cases))
    return checked.verdict.comparisons


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
    parser.add_argument("--shows", choices=SHOWS, default=SHOWS[0], help="of what is slower, besides times")
    parser.add_argument("--pair-s", type=float, default=30.0, help="seconds of a whole pair")
    parser.add_argument("--pair-budget-s", type=float, default=math.inf, help="seconds of all pairs")
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
