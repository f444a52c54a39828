"""Four runs that were measured, how they are judged, and how their values are changed.

Measured were four small models on two cores: three trials of each to record baselines from (``base``),
two after a change that makes one slower and breaks another's graph (``head``), both side by side
(``pairs``), and one that crashes (``crash``).
"""

import gzip
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gate.cli.setup import note_idle, note_origin
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
    """Somebody accepts that none of the cases has a baseline."""
    commit = "a" * 40
    lack = Acceptance(case="", reason="the first run.", author="Ada", expires=expires, commit=commit)
    return replace(
        POLICY, acceptances=tuple(replace(lack, case=case.id) for case in run.cases), commits=(commit,)
    )


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is judged, by what, and how it was called."""

    run: Run
    baselines: tuple[Baseline, ...] = ()
    policy: Policy = POLICY
    beside: str = ""  # "confirm": suspects by their pairs; "pairs": everything by pairs
    config: str = ""  # as --config named it
    rules: str = ""  # the commit whose rules hold


def load(name: str) -> Run:
    """Load a measured run."""
    return RUN.decode(gzip.decompress((DIRECTORY / f"{name}.json.gz").read_bytes()), name)


def judge(situation: Situation) -> Verdict:
    """Judge as the commands do."""
    run, policy = situation.run, situation.policy
    if situation.beside == "pairs":
        verdict = decide_side_by_side(run, policy)
    elif situation.beside == "confirm":
        screened = screen_run(run, situation.baselines, policy)
        screening = confirm_screening(screened, run, policy, list_suspects(screened))
        verdict = conclude_verdict(run, screening, policy)
    else:
        verdict = decide_verdict(run, situation.baselines, policy)
    config: Any = SimpleNamespace(commit=situation.rules)
    options = Namespace(config=situation.config)
    return note_origin(note_idle(verdict, policy, run.cases), config, options)


def keep(run: Run, *case_ids: str, trials: int = 9) -> Run:
    """These cases of a run, and so many trials of each."""
    return replace(
        run,
        cases=tuple(case for case in run.cases if not case_ids or case.id in case_ids),
        trials=tuple(
            one for one in run.trials if (not case_ids or one.case_id in case_ids) and one.index <= trials
        ),
        failures=tuple(one for one in run.failures if not case_ids or one.case_id in case_ids),
        trials_planned=min(trials, run.trials_planned),
    )


def edit(run: Run, change: Callable[[Trial], Trial], *case_ids: str, arm: str = "head") -> Run:
    """Change each trial of these cases, or of all."""
    return replace(
        run,
        trials=tuple(
            change(one) if one.arm == arm and (not case_ids or one.case_id in case_ids) else one
            for one in run.trials
        ),
    )


def scale(factors: Mapping[Metric, float]) -> Callable[[Trial], Trial]:
    """Multiply samples."""

    def change(trial: Trial) -> Trial:
        samples = {
            metric: tuple(value * factors.get(metric, 1.0) for value in values)
            for metric, values in trial.samples.items()
        }
        return replace(trial, samples=samples)

    return change


def put(values: Mapping[Metric, float]) -> Callable[[Trial], Trial]:
    """Set values."""

    def change(trial: Trial) -> Trial:
        known = {metric: (value,) for metric, value in values.items()}
        return replace(trial, samples={**trial.samples, **known})

    return change


def drop(*metrics: Metric) -> Callable[[Trial], Trial]:
    """Take metrics away."""

    def change(trial: Trial) -> Trial:
        return replace(
            trial, samples={name: values for name, values in trial.samples.items() if name not in metrics}
        )

    return change


def condition(**values: Any) -> Callable[[Trial], Trial]:
    """Change what was seen of the machine."""
    return lambda trial: replace(trial, conditions=replace(trial.conditions, **values))


def fail(run: Run, case_id: str, kind: FailureKind, arm: str = "head") -> Run:
    """Let one trial of a case fail."""
    failure = make_failure(
        case_id,
        "BackendCompilerFailed: the backend raised\nKeyError: 'bias'",
        trial=0,
        kind=kind,
        log_tail="  File \"tiny/bench.py\", line 12, in build\nKeyError: 'bias'",
        arm=arm,
        log="out/logs/0.log",
    )
    kept = tuple(one for one in run.trials if one.case_id != case_id or one.arm != arm)
    return replace(run, failures=(*run.failures, failure), trials=kept)


def accept(metric: Metric, allowance: float, expires: str = "2026-12-31", case: str = "*") -> Policy:
    """A policy with one acceptance."""
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
    """One entry."""
    return Quarantine(
        case=case, metric=metric, owner="Ben", reason="it depends on the disk.", expires=expires
    )


def name_torch(release: str, baselines: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
    """Baselines as another torch would have recorded them."""
    return tuple(replace(one, environment=replace(one.environment, torch=release)) for one in baselines)


def on_host(cpu: str, baselines: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
    """Baselines as another host would have recorded them."""
    return tuple(
        replace(one, environment=replace(one.environment, cpu=cpu, device_model=cpu)) for one in baselines
    )


def spread(run: Run, size: float) -> Run:
    """Let the trials of a run differ by so much: each other trial is larger, in all times."""
    times = dict.fromkeys(TIMES, 1.0 + size)
    return replace(run, trials=tuple(scale(times)(one) if one.index % 2 else one for one in run.trials))


def calm(run: Run) -> Run:
    """Each trial almost as the first of its case."""
    first = {one.case_id: one for one in reversed(run.trials)}

    def change(trial: Trial) -> Trial:
        near = scale(dict.fromkeys(TIMES, 1.0 + 0.001 * trial.index))
        return replace(
            near(first[trial.case_id]), index=trial.index, conditions=first[trial.case_id].conditions
        )

    return edit(run, change)


def slow_down(factor: float, canaries: float | None = None) -> Callable[[Trial], Trial]:
    """Everything takes so much longer, the fixed test programs as well, or by their own factor."""

    def change(trial: Trial) -> Trial:
        slower = scale(dict.fromkeys(TIMES, factor))(trial)
        canaries_s = {
            name: (canaries or factor) * seconds for name, seconds in trial.conditions.canaries_s.items()
        }
        return condition(canaries_s=canaries_s)(slower)

    return change


def lengthen(trial: Trial) -> Trial:
    """A compile that does more, and takes longer in each phase."""
    phases_s = {name: 2.5 * seconds for name, seconds in trial.phases_s.items()}
    counted = put({Metric.COMPILE_CALLS: 9000000.0})(replace(trial, phases_s=phases_s))
    return scale({Metric.COLD_COMPILE_TIME: 2.5})(counted)


def recode(**changes: Any) -> Callable[[Trial], Trial]:
    """Slower, with other code."""
    return lambda trial: replace(scale(SLOWER)(trial), identity=replace(trial.identity, **changes))
