"""Runs to judge: four that were measured, and what their values are changed to for each situation.

Measured were four small models on two cores: three trials of each to record baselines from (``base``),
two after a change that makes one slower and breaks another's graph (``head``), both side by side
(``pairs``), and one that crashes (``crash``). Everything else follows from those by editing values.
"""

from __future__ import annotations

import gzip
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gate.cli.setup import note_idle, note_origin
from gate.decide.evidence.baselines import make_baselines
from gate.decide.side_by_side import confirm_screening, decide_side_by_side
from gate.decide.verdict import conclude_verdict, decide_verdict, screen_run
from gate.files.codec import RUN
from gate.metrics import SPECS
from gate.records import (
    Acceptance,
    Baseline,
    Disturbance,
    FailureKind,
    GraphBreak,
    Metric,
    Pairing,
    Policy,
    Quarantine,
    Recompile,
    Run,
    Trial,
    Verdict,
)
from tests.make import make_failure
from tests.told import warn

DIRECTORY = Path(__file__).parent
TODAY = "2026-11-22"
CHAIN = "chain/inference-float32-smoke-default"
STENCIL = "stencil/inference-float32-smoke-default"
HEAD = "head/inference-float32-smoke-default"
SUM = "sum/inference-bfloat16-smoke-default"
_LATENCIES = (Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY)
_COMPILES = (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME)
_COUNTS = (Metric.COMPILE_CALLS, Metric.CAPTURED_OPS, Metric.GENERATED_KERNELS)
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
        screening = confirm_screening(screen_run(run, situation.baselines, policy), run, policy)
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
    times = dict.fromkeys((*_LATENCIES, *_COMPILES), 1.0 + size)
    return replace(run, trials=tuple(scale(times)(one) if one.index % 2 else one for one in run.trials))


def calm(run: Run) -> Run:
    """Each trial almost as the first of its case."""
    first = {one.case_id: one for one in reversed(run.trials)}

    def change(trial: Trial) -> Trial:
        near = scale(dict.fromkeys((*_LATENCIES, *_COMPILES), 1.0 + 0.001 * trial.index))
        return replace(
            near(first[trial.case_id]), index=trial.index, conditions=first[trial.case_id].conditions
        )

    return edit(run, change)


def slow_down(factor: float, canaries: float | None = None) -> Callable[[Trial], Trial]:
    """Everything takes so much longer, the fixed test programs as well, or by their own factor."""

    def change(trial: Trial) -> Trial:
        slower = scale(dict.fromkeys((*_LATENCIES, *_COMPILES), factor))(trial)
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


SLOWER = {Metric.COMPILED_LATENCY: 1.6}


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Measured runs, and what most situations are made of."""

    base: Run
    head: Run
    crash: Run

    @cached_property
    def stored(self) -> tuple[Baseline, ...]:
        """The baselines that the base records."""
        return make_baselines(self.base, replace(self.base.provenance, author="Ada"))

    @cached_property
    def again(self) -> Run:
        """The base, measured again with two trials."""
        return keep(self.base, trials=2)

    @cached_property
    def one(self) -> Run:
        """The base, measured again with one trial."""
        return keep(self.base, trials=1)

    @cached_property
    def slower(self) -> Run:
        """The base with one slower case."""
        return edit(self.again, scale(SLOWER), CHAIN)

    @cached_property
    def quiet(self) -> Run:
        """The base almost without noise."""
        return calm(self.base)

    @cached_property
    def steady(self) -> tuple[Baseline, ...]:
        """The baselines that it records."""
        return make_baselines(self.quiet, self.base.provenance)

    def hold(
        self, name: str, run: Run, baselines: tuple[Baseline, ...] | None = None, **more: Any
    ) -> tuple[str, Situation]:
        """Judge a run by stored baselines: the base's, unless others are given."""
        return name, Situation(run=run, baselines=self.stored if baselines is None else baselines, **more)


def list_times(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Times and their changes."""
    hold = runs.hold
    head, again, one, slower, quiet, steady = (
        runs.head,
        runs.again,
        runs.one,
        runs.slower,
        runs.quiet,
        runs.steady,
    )
    yield hold("same", again)
    yield hold("calm", keep(quiet, trials=2), steady)
    yield hold(
        "calm_faster", edit(keep(quiet, trials=2), scale({Metric.COMPILED_LATENCY: 0.5}), HEAD), steady
    )
    yield hold("calm_some_baselines", keep(quiet, trials=2), steady[1:])
    yield hold("one_trial", one)
    yield hold("changed", head)
    yield hold("changed_other_config", head, config="ci/gate.yml")
    yield hold("changed_base_rules", head, config="ci/gate.yml", rules="1a2b3c4d5e6f")
    yield hold("slower", slower)
    yield hold("slower_everywhere", edit(again, scale(SLOWER)))
    yield hold("slower_one_trial", edit(one, scale(SLOWER), CHAIN))
    yield hold(
        "slower_by_many_ways",
        edit(again, scale({**SLOWER, Metric.COLD_COMPILE_TIME: 2.5, Metric.PEAK_MEMORY: 1.5})),
    )
    yield hold("a_little_slower", edit(again, scale({Metric.COMPILED_LATENCY: 1.12}), CHAIN))
    yield hold("faster", edit(again, scale({Metric.COMPILED_LATENCY: 0.5}), CHAIN, HEAD))
    yield hold(
        "eager_faster", edit(again, scale({Metric.EAGER_LATENCY: 0.5, Metric.WARM_SPEEDUP: 0.5}), CHAIN)
    )
    yield hold("eager_slower_too", edit(again, scale(dict.fromkeys(_LATENCIES, 1.6)), CHAIN))


def list_values(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Memory, drift, counters and what the compiler did."""
    hold = runs.hold
    base, again = runs.base, runs.again
    yield hold("memory", edit(again, scale({Metric.PEAK_MEMORY: 1.5, Metric.MEMORY_RATIO: 1.5}), STENCIL))
    yield hold("memory_of_eager", edit(again, scale({Metric.MEMORY_RATIO: 1.5}), STENCIL))
    yield hold("drift", edit(again, put({Metric.DRIFT: 2.5}), HEAD))
    yield hold("drift_alone", edit(again, put({Metric.DRIFT: 12.0}), SUM), ())
    yield hold(
        "drift_alone_accepted",
        edit(again, put({Metric.DRIFT: 12.0}), SUM),
        (),
        policy=accept(Metric.DRIFT, 20.0),
    )
    above = edit(base, put({Metric.DRIFT: 12.0}), SUM)
    yield hold("drift_above_as_before", keep(above, trials=2), make_baselines(above, above.provenance))
    yield hold(
        "counters", edit(again, put({Metric.GRAPH_BREAKS: 3.0, Metric.COMPILE_CALLS: 900000.0}), CHAIN, SUM)
    )
    unstable = replace(
        again, trials=tuple(put({Metric.GRAPH_BREAKS: float(t.index - 1)})(t) for t in again.trials)
    )
    yield hold("counter_unstable", unstable)
    breaks = tuple(
        GraphBreak(reason=f"call to {name}\n  a long hint", location=f"tiny/bench.py:{line}")
        for line, name in enumerate(("print", "item", "tolist", "numpy", "open"), 20)
    )
    yield hold(
        "graph_breaks",
        edit(again, lambda t: put({Metric.GRAPH_BREAKS: 5.0})(replace(t, graph_breaks=breaks)), CHAIN),
    )
    yield hold(
        "recompiles",
        edit(
            again,
            lambda t: put({Metric.RECOMPILES: 2.0})(
                replace(t, recompile_reasons=tuple(Recompile(guard=f"size of {x} changed") for x in "xy"))
            ),
            CHAIN,
        ),
    )
    yield hold(
        "cache_misses", edit(again, put({Metric.CACHE_MISSES: 2.0, Metric.WARM_COMPILE_TIME: 40.0}), CHAIN)
    )


def list_incomplete(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """What did not come back, failed or was stopped."""
    hold = runs.hold
    base, crash, again, one, slower = runs.base, runs.crash, runs.again, runs.one, runs.slower
    yield hold("not_measured", edit(again, drop(Metric.PEAK_MEMORY), CHAIN))
    yield hold("nothing_measured", edit(one, lambda t: replace(t, samples={}), CHAIN), ())
    yield hold("not_run", replace(again, trials=tuple(t for t in again.trials if t.case_id != CHAIN)))
    yield hold(
        "trials_missing",
        replace(again, trials=tuple(t for t in again.trials if t.case_id != CHAIN or t.index > 1)),
    )
    yield hold("crashed", crash)
    for kind in (FailureKind.ERROR, FailureKind.HANG):
        yield hold(f"failed_{kind.value}", fail(again, STENCIL, kind))
    yield hold("failed_and_slower", fail(slower, STENCIL, FailureKind.ERROR))
    yield hold("stopped", replace(keep(base, CHAIN, HEAD, trials=2), finished=False))
    yield hold("stopped_and_slower", replace(slower, finished=False))


def list_baselines(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Baselines that are missing, of elsewhere, or noisy."""
    hold = runs.hold
    base, head, stored, again, slower = runs.base, runs.head, runs.stored, runs.again, runs.slower
    yield hold("no_baselines", again, ())
    yield hold(
        "waived",
        again,
        (),
        policy=accept_lack(again, "2026-12-31"),
    )
    yield hold(
        "waiver_expired",
        again,
        (),
        policy=accept_lack(again, "2026-10-31"),
    )
    yield hold("some_baselines", again, stored[:2])
    yield hold("other_host", again, on_host("AMD EPYC 9654", stored))
    yield hold("other_host_and_code", head, on_host("AMD EPYC 9654", stored))
    yield hold("other_stack", again, name_torch("2.12.0", stored))
    yield hold("redefined", again, tuple(replace(b, definition="other") for b in stored))
    yield hold(
        "not_recorded",
        again,
        tuple(
            replace(b, trials={m: v for m, v in b.trials.items() if m is not Metric.PEAK_MEMORY})
            for b in stored
        ),
    )
    yield hold("few_trials", slower, make_baselines(keep(base, trials=1), base.provenance))
    noisy = make_baselines(spread(base, 0.9), base.provenance)
    yield hold("noisy", again, noisy)
    yield hold(
        "noisy_and_slower",
        edit(again, scale({Metric.COMPILED_LATENCY: 1.8, Metric.COLD_COMPILE_TIME: 1.5}), CHAIN),
        make_baselines(spread(base, 0.3), base.provenance),
    )
    yield hold("zero", edit(again, put({Metric.COMPILED_LATENCY: 0.0}), CHAIN))


def list_permitted(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """What is accepted or quarantined."""
    hold = runs.hold
    stored, again, slower = runs.stored, runs.again, runs.slower
    yield hold("accepted", slower, policy=accept(Metric.COMPILED_LATENCY, 0.9))
    yield hold("accepted_too_little", slower, policy=accept(Metric.COMPILED_LATENCY, 0.2))
    yield hold("acceptance_expired", slower, policy=accept(Metric.COMPILED_LATENCY, 0.9, "2026-11-01"))
    yield hold("unused_acceptance", slower, policy=accept(Metric.PEAK_MEMORY, 0.9, case="gone/*"))
    yield hold("quarantined", slower, policy=replace(POLICY, quarantine=(quarantine("chain/*"),)))
    yield hold(
        "quarantined_metric",
        slower,
        policy=replace(POLICY, quarantine=(quarantine("*", Metric.COMPILED_LATENCY),)),
    )
    yield hold("quarantined_quiet", again, policy=replace(POLICY, quarantine=(quarantine("head/*"),)))
    yield hold(
        "quarantine_expired",
        slower,
        policy=replace(POLICY, quarantine=(quarantine("chain/*", expires="2026-11-01"),)),
    )
    yield hold(
        "all_quarantined",
        slower,
        policy=replace(POLICY, quarantine=(quarantine("chain/*"), quarantine("*", expires="2027-01-01"))),
    )
    yield hold(
        "quarantined_no_baselines",
        again,
        stored[:1],
        policy=replace(POLICY, quarantine=(quarantine(stored[0].case_id),)),
    )


def list_machines(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """A machine that was disturbed, or is slower."""
    hold = runs.hold
    again, slower, quiet, steady = runs.again, runs.slower, runs.quiet, runs.steady
    busy = condition(foreign_cores=1.9, swapped_bytes=96 * 2**20, disturbances=tuple(Disturbance))
    yield hold("disturbed", edit(slower, busy, CHAIN))
    yield hold(
        "disturbed_one", replace(slower, trials=tuple(busy(t) if t.index > 1 else t for t in slower.trials))
    )
    yield hold("machine_slower", edit(keep(quiet, trials=2), slow_down(1.1)), steady)
    yield hold(
        "machine_slower_and_case",
        edit(edit(keep(quiet, trials=2), slow_down(1.1)), scale(SLOWER), CHAIN),
        steady,
    )
    yield hold("other_speed", edit(keep(quiet, trials=2), slow_down(1.39)), steady)
    yield hold("other_speed_unsteady", edit(again, slow_down(1.39)))
    yield hold(
        "other_speed_and_breaks",
        edit(edit(keep(quiet, trials=2), slow_down(0.68)), put({Metric.GRAPH_BREAKS: 3.0}), CHAIN),
        steady,
    )
    yield hold("canaries_slower", edit(slower, condition(canaries_s={})))


def list_code(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Compiles and code that changed, and what a report notes beside."""
    hold = runs.hold
    stored, again, slower = runs.stored, runs.again, runs.slower
    yield hold("compile_slower", edit(again, scale(dict.fromkeys(_COMPILES, 1.6)), CHAIN, STENCIL))
    yield hold("compile_works_more", edit(again, lengthen, CHAIN))
    yield hold("phases_unknown", edit(again, lengthen, CHAIN), tuple(replace(b, phases_s={}) for b in stored))
    yield hold(
        "phases_same",
        edit(again, lambda t: replace(lengthen(t), phases_s=dict(stored[0].phases_s)), stored[0].case_id),
    )
    kernels = {"cpp_fused_a": "1", "cpp_fused_b": "2", "cpp_fused_c": "3", "cpp_fused_d": "4"}
    yield hold("code_changed", edit(again, recode(digest="0" * 16, kernels=kernels), CHAIN))
    yield hold("kernels_unknown", edit(again, recode(digest="0" * 16, kernels={}), CHAIN))
    yield hold(
        "tuned",
        edit(again, recode(tuned="f" * 16), CHAIN),
        tuple(replace(b, identity=replace(b.identity, tuned="e" * 16)) for b in stored),
    )
    yield hold(
        "workload_changed",
        edit(slower, lambda t: replace(t, workload=dict.fromkeys(t.workload, "12")), CHAIN),
    )
    yield hold(
        "throttled",
        edit(slower, condition(throttled=("thermal slowdown", "power brake"), foreign_processes=2), CHAIN),
    )
    yield hold(
        "warned",
        edit(
            again,
            lambda t: replace(
                t, warnings=warn("the cache could not be kept", f"trial {t.index} was cut short")
            ),
        ),
    )
    yield hold(
        "warned_much",
        replace(
            again, trials=tuple(replace(t, warnings=warn(f"warning {n}")) for n, t in enumerate(again.trials))
        ),
    )
    yield hold(
        "old",
        again,
        tuple(
            replace(b, provenance=replace(b.provenance, created="2026-01-02T03:04:05+00:00")) for b in stored
        ),
    )
    yield hold("uncommitted", replace(slower, provenance=replace(slower.provenance, dirty=True)))


STORED = (
    list_times,
    list_values,
    list_incomplete,
    list_baselines,
    list_permitted,
    list_machines,
    list_code,
)


def list_beside(pairs: Run) -> Iterator[tuple[str, Situation]]:
    """Situations that pairs decide alone."""
    source = pairs.base
    assert source is not None

    def hold(name: str, run: Run, **more: Any) -> tuple[str, Situation]:
        return name, Situation(run=run, beside="pairs", **more)

    yield hold("pairs_as_measured", pairs)
    pairs = keep(pairs, STENCIL, HEAD, SUM, trials=99)
    few = replace(pairs, trials=tuple(t for t in pairs.trials if t.index <= 2))
    yield hold("pairs", pairs)
    yield hold("pairs_other_config", pairs, config="ci/gate.yml")
    yield hold("pairs_few", few)
    yield hold("pairs_one", replace(pairs, trials=tuple(t for t in pairs.trials if t.index <= 1)))
    yield hold("pairs_slower", edit(pairs, scale(SLOWER), HEAD))
    yield hold("pairs_both_slower", edit(pairs, scale(dict.fromkeys(_LATENCIES, 1.6)), HEAD))
    yield hold("pairs_faster", edit(pairs, scale({Metric.COMPILED_LATENCY: 0.6}), HEAD, STENCIL, CHAIN))
    yield hold("pairs_a_little", edit(few, scale({Metric.COMPILED_LATENCY: 1.03}), HEAD))
    yield hold(
        "pairs_in_turn",
        replace(
            pairs,
            trials=tuple(
                replace(t, pairing=Pairing.TURNS) if t.pairing is Pairing.LIVE else t for t in pairs.trials
            ),
        ),
    )
    yield hold("pairs_base_failed", fail(pairs, HEAD, FailureKind.ERROR, arm="base"))
    yield hold("pairs_head_failed", fail(pairs, HEAD, FailureKind.CRASH))
    yield hold("pairs_stopped", replace(pairs, finished=False))
    gone = replace(source.cases[0], id="gone/inference-float32-smoke-default", model="gone")
    yield hold("pairs_vanished", replace(pairs, base=replace(source, cases=(*source.cases, gone))))
    yield hold(
        "pairs_new",
        replace(
            pairs, base=replace(source, cases=()), trials=tuple(t for t in pairs.trials if t.arm == "head")
        ),
    )
    yield hold(
        "pairs_redefined",
        replace(
            pairs, base=replace(source, cases=tuple(replace(c, definition="other") for c in source.cases))
        ),
    )
    yield hold("pairs_accepted", pairs, policy=accept(Metric.COMPILED_LATENCY, 9.0))
    yield hold(
        "pairs_disturbed",
        edit(pairs, condition(swapped_bytes=96 * 2**20, disturbances=(Disturbance.SWAPPED,)), HEAD),
    )
    older = replace(source, label="torch 2.12.0", environment=replace(source.environment, torch="2.12.0"))
    yield hold("upgrade", replace(pairs, base=older))
    yield hold(
        "upgrade_better",
        edit(replace(pairs, base=older), scale({Metric.COMPILED_LATENCY: 0.4, Metric.PEAK_MEMORY: 0.5})),
    )
    yield hold("same_stack", replace(pairs, base=replace(source, label="torch 2.13.0")))


def list_confirmed(base: Run, pairs: Run) -> Iterator[tuple[str, Situation]]:
    """Situations of a screening whose suspects are confirmed by pairs, or not."""
    stored = make_baselines(base, replace(base.provenance, author="Ada"))
    source = pairs.base
    assert source is not None
    pairs = keep(pairs, STENCIL, HEAD, SUM, trials=99)
    anchored = replace(POLICY, has_anchor=True)
    screened = keep(base, STENCIL, HEAD, SUM, trials=2).trials

    def confirm(
        name: str, change: Mapping[Metric, float], *case_ids: str, **more: Any
    ) -> tuple[str, Situation]:
        alone = edit(replace(pairs, trials=screened), scale(change), *case_ids)
        trials = (*alone.trials, *(t for t in pairs.trials if t.pairing is not Pairing.ALONE))
        run = replace(pairs, trials=trials, trials_planned=2, **more.pop("run", {}))
        return name, Situation(run=run, baselines=more.pop("baselines", stored), beside="confirm", **more)

    yield confirm("confirmed", SLOWER, STENCIL)
    yield confirm("acquitted", SLOWER, HEAD)
    yield confirm("acquitted_all", {**SLOWER, Metric.PEAK_MEMORY: 1.5}, policy=anchored)
    yield confirm("unpaired", SLOWER, HEAD, run={"base": replace(source, cases=())})
    yield confirm(
        "unpaired_redefined",
        SLOWER,
        HEAD,
        run={"base": replace(source, cases=tuple(replace(c, definition="other") for c in source.cases))},
    )
    yield confirm(
        "unpaired_accepted",
        {Metric.COMPILED_LATENCY: 1.15},
        HEAD,
        run={"base": replace(source, cases=())},
        policy=accept(Metric.COMPILED_LATENCY, 0.9),
    )
    failing = fail(pairs, HEAD, FailureKind.ERROR, arm="base")
    yield confirm("unpaired_failed", SLOWER, HEAD, run={"failures": failing.failures})
    yield confirm("confirm_no_baselines", {}, baselines=())
    yield (
        "no_pair",
        Situation(
            run=replace(
                pairs,
                trials=edit(replace(pairs, trials=screened), scale(SLOWER), HEAD).trials,
                trials_planned=2,
            ),
            baselines=stored,
            beside="confirm",
        ),
    )


def list_situations() -> dict[str, Situation]:
    """All situations by name."""
    base, head, pairs, crash = map(load, ("base", "head", "pairs", "crash"))
    recorded = Recorded(base=base, head=head, crash=crash)
    stored = (named for list_some in STORED for named in list_some(recorded))
    return dict((*stored, *list_beside(pairs), *list_confirmed(base, pairs)))
