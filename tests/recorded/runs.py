"""Measured runs, their verdicts, and changes of their values.

Measured were four small models on two cores: three trials of each to record baselines from (``base``), two
after a change that makes one slower and breaks another's graph (``head``), both side by side (``pairs``),
and one that crashes (``crash``).
"""

import gzip
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gate.cli.setup import note_origin
from gate.decide.explain.notes import note_idle
from gate.decide.side_by_side import confirm_screening, decide_side_by_side
from gate.decide.suspects import list_suspects
from gate.decide.verdict import conclude_verdict, decide_verdict, screen_run
from gate.files.codec import RUN
from gate.metrics import COMPILE_TIMES, LATENCIES, SPECS
from gate.records.cases import Acceptance, Metric, Policy, Quarantine
from gate.records.run import Baseline, FailureKind, Run, Trial
from gate.records.verdict import Verdict
from tests.make import make_failure

DIRECTORY = Path(__file__).parent
TODAY = "2026-11-22"
CHAIN = "chain/inference-float32-smoke-default"
STENCIL = "stencil/inference-float32-smoke-default"
HEAD = "head/inference-float32-smoke-default"
SUM = "sum/inference-bfloat16-smoke-default"
SLOWER = {Metric.COMPILED_LATENCY: 1.6}
TIMES = (*LATENCIES, *COMPILE_TIMES)
POLICY = Policy(
    thresholds={metric: spec.threshold for metric, spec in SPECS.items()}, today=TODAY, error_budget=0.01
)


def accept_lack(run: Run, expires: str) -> Policy:
    """A policy that accepts that no case has a baseline."""
    commit = "a" * 40
    lack = Acceptance(case="", reason="the first run.", author="Ada", expires=expires, commit=commit)
    return replace(
        POLICY, acceptances=tuple(replace(lack, case=case.id) for case in run.cases), commits=(commit,)
    )


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A run, and how it is judged."""

    run: Run
    baselines: tuple[Baseline, ...] = ()
    policy: Policy = POLICY
    judged_by: str = ""  # "confirm": suspects by their pairs; "pairs": everything by pairs
    config: str = ""  # as --config named it
    rules: str = ""  # the commit whose rules hold


def load(name: str) -> Run:
    return RUN.decode(gzip.decompress((DIRECTORY / f"{name}.json.gz").read_bytes()), name)


def judge(situation: Situation) -> Verdict:
    run, policy = situation.run, situation.policy
    if situation.judged_by == "pairs":
        verdict = decide_side_by_side(run, policy)
    elif situation.judged_by == "confirm":
        screened = screen_run(run, situation.baselines, policy)
        screening = confirm_screening(screened, run, policy, list_suspects(screened))
        verdict = conclude_verdict(run, screening, policy)
    else:
        verdict = decide_verdict(run, situation.baselines, policy)
    config: Any = SimpleNamespace(commit=situation.rules)
    options = Namespace(config=situation.config)
    verdict = note_origin(verdict, config, options)
    return replace(verdict, notes=(*verdict.notes, *note_idle(policy, run.cases)))


def keep(run: Run, *case_ids: str, trials: int = 9) -> Run:
    """The run with these cases and so many trials of each."""
    return replace(
        run,
        cases=tuple(case for case in run.cases if not case_ids or case.id in case_ids),
        trials=tuple(
            trial
            for trial in run.trials
            if (not case_ids or trial.case_id in case_ids) and trial.index <= trials
        ),
        failures=tuple(failure for failure in run.failures if not case_ids or failure.case_id in case_ids),
        trials_planned=min(trials, run.trials_planned),
    )


def edit(run: Run, change: Callable[[Trial], Trial], *case_ids: str, arm: str = "head") -> Run:
    """The run with each trial of these cases, or of all, changed."""
    return replace(
        run,
        trials=tuple(
            change(trial) if trial.arm == arm and (not case_ids or trial.case_id in case_ids) else trial
            for trial in run.trials
        ),
    )


def scale(factors: Mapping[Metric, float]) -> Callable[[Trial], Trial]:
    def change(trial: Trial) -> Trial:
        samples = {
            metric: tuple(value * factors.get(metric, 1.0) for value in values)
            for metric, values in trial.samples.items()
        }
        return replace(trial, samples=samples)

    return change


def put(values: Mapping[Metric, float]) -> Callable[[Trial], Trial]:
    def change(trial: Trial) -> Trial:
        samples = {metric: (value,) for metric, value in values.items()}
        return replace(trial, samples={**trial.samples, **samples})

    return change


def drop(*metrics: Metric) -> Callable[[Trial], Trial]:
    def change(trial: Trial) -> Trial:
        return replace(
            trial, samples={name: values for name, values in trial.samples.items() if name not in metrics}
        )

    return change


def condition(**values: Any) -> Callable[[Trial], Trial]:
    """Set fields of the trial's conditions."""
    return lambda trial: replace(trial, conditions=replace(trial.conditions, **values))


def fail(run: Run, case_id: str, kind: FailureKind, arm: str = "head") -> Run:
    """The run with one failed case."""
    failure = make_failure(
        case_id,
        "BackendCompilerFailed: the backend raised\nKeyError: 'bias'",
        trial=0,
        kind=kind,
        log_tail="  File \"tiny/bench.py\", line 12, in build\nKeyError: 'bias'",
        arm=arm,
        log="out/logs/0.log",
    )
    kept = tuple(trial for trial in run.trials if trial.case_id != case_id or trial.arm != arm)
    return replace(run, failures=(*run.failures, failure), trials=kept)


def accept(metric: Metric, allowance: float, expires: str = "2026-12-31", case: str = "*") -> Policy:
    accepted = Acceptance(
        case=case,
        metric=metric,
        allowance=allowance,
        reason="a known price of safety.",
        author="Ada",
        expires=expires,
    )
    return replace(POLICY, acceptances=(accepted,))


def quarantine(case: str, metric: Metric | None = None, expires: str = "2026-12-01") -> Quarantine:
    return Quarantine(
        case=case, metric=metric, owner="Ben", reason="it depends on the disk.", expires=expires
    )


def name_torch(release: str, baselines: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
    """The baselines as of another torch."""
    return tuple(
        replace(baseline, environment=replace(baseline.environment, torch=release)) for baseline in baselines
    )


def on_host(cpu: str, baselines: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
    """The baselines as of another host."""
    return tuple(
        replace(baseline, environment=replace(baseline.environment, cpu=cpu, device_model=cpu))
        for baseline in baselines
    )


def spread(run: Run, size: float) -> Run:
    """The run with the times of every second trial larger by so much."""
    times = dict.fromkeys(TIMES, 1.0 + size)
    return replace(
        run, trials=tuple(scale(times)(trial) if trial.index % 2 else trial for trial in run.trials)
    )


def calm(run: Run) -> Run:
    """The run with each trial almost equal to its case's first."""
    first = {trial.case_id: trial for trial in reversed(run.trials)}

    def change(trial: Trial) -> Trial:
        near = scale(dict.fromkeys(TIMES, 1.0 + 0.001 * trial.index))
        return replace(
            near(first[trial.case_id]), index=trial.index, conditions=first[trial.case_id].conditions
        )

    return edit(run, change)


def slow_down(factor: float, canaries: float | None = None) -> Callable[[Trial], Trial]:
    """Multiply times by a factor, and canaries by it or by their own."""

    def change(trial: Trial) -> Trial:
        slower = scale(dict.fromkeys(TIMES, factor))(trial)
        canaries_s = {
            name: (canaries or factor) * seconds for name, seconds in trial.conditions.canaries_s.items()
        }
        return condition(canaries_s=canaries_s)(slower)

    return change


def lengthen(trial: Trial) -> Trial:
    """Make the compile do more and take longer in each phase."""
    phases_s = {name: 2.5 * seconds for name, seconds in trial.phases_s.items()}
    counted = put({Metric.COMPILE_CALLS: 9000000.0})(replace(trial, phases_s=phases_s))
    return scale({Metric.COLD_COMPILE_TIME: 2.5})(counted)


def recode(**changes: Any) -> Callable[[Trial], Trial]:
    """Make calls slower, with other code."""
    return lambda trial: replace(scale(SLOWER)(trial), identity=replace(trial.identity, **changes))
