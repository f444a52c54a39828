"""Situations judged by baselines: a measured run each, with some of its values changed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gate.decide.evidence.baseline import make_baselines
from gate.metrics import COMPILE_TIMES, LATENCIES
from gate.records.cases import Metric
from gate.records.facts import Disturbance
from gate.records.run import Baseline, FailureKind, GraphBreak, Recompile, Run
from tests.recorded.runs import (
    CHAIN,
    HEAD,
    POLICY,
    SLOWER,
    STENCIL,
    SUM,
    Situation,
    accept,
    accept_lack,
    calm,
    condition,
    drop,
    edit,
    fail,
    keep,
    lengthen,
    name_torch,
    on_host,
    put,
    quarantine,
    recode,
    scale,
    slow_down,
    spread,
)
from tests.words import make_warnings


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Measured runs, and those derived from them."""

    base: Run
    head: Run
    crash: Run

    @cached_property
    def stored(self) -> tuple[Baseline, ...]:
        """The base's baselines."""
        return make_baselines(self.base, replace(self.base.provenance, author="Ada"))

    @cached_property
    def again(self) -> Run:
        """The base with two trials of each case."""
        return keep(self.base, trials=2)

    @cached_property
    def single(self) -> Run:
        """The base with one trial of each case."""
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
        """The baselines of ``quiet``."""
        return make_baselines(self.quiet, self.base.provenance)

    def make(
        self, name: str, run: Run, baselines: tuple[Baseline, ...] | None = None, **more: Any
    ) -> tuple[str, Situation]:
        """A named situation, judged by the base's baselines or the given ones."""
        return name, Situation(run=run, baselines=self.stored if baselines is None else baselines, **more)


def list_times(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    make = runs.make
    head, again, single, slower, quiet, steady = (
        runs.head,
        runs.again,
        runs.single,
        runs.slower,
        runs.quiet,
        runs.steady,
    )
    yield make("same", again)
    yield make("calm", keep(quiet, trials=2), steady)
    yield make(
        "calm_faster", edit(keep(quiet, trials=2), scale({Metric.COMPILED_LATENCY: 0.5}), HEAD), steady
    )
    yield make("calm_some_baselines", keep(quiet, trials=2), steady[1:])
    yield make("one_trial", single)
    yield make("changed", head)
    yield make("changed_other_config", head, config="ci/gate.yml")
    yield make("changed_base_rules", head, config="ci/gate.yml", rules="1a2b3c4d5e6f")
    yield make("slower", slower)
    yield make("slower_everywhere", edit(again, scale(SLOWER)))
    yield make("slower_one_trial", edit(single, scale(SLOWER), CHAIN))
    yield make(
        "slower_by_many_ways",
        edit(again, scale({**SLOWER, Metric.COLD_COMPILE_TIME: 2.5, Metric.PEAK_MEMORY: 1.5})),
    )
    yield make("a_little_slower", edit(again, scale({Metric.COMPILED_LATENCY: 1.12}), CHAIN))
    yield make("faster", edit(again, scale({Metric.COMPILED_LATENCY: 0.5}), CHAIN, HEAD))
    yield make(
        "eager_faster", edit(again, scale({Metric.EAGER_LATENCY: 0.5, Metric.WARM_SPEEDUP: 0.5}), CHAIN)
    )
    yield make("eager_slower_too", edit(again, scale(dict.fromkeys(LATENCIES, 1.6)), CHAIN))


def list_values(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Memory, drift, counters and what the compiler did."""
    make = runs.make
    base, again = runs.base, runs.again
    yield make("memory", edit(again, scale({Metric.PEAK_MEMORY: 1.5, Metric.MEMORY_RATIO: 1.5}), STENCIL))
    yield make("memory_of_eager", edit(again, scale({Metric.MEMORY_RATIO: 1.5}), STENCIL))
    yield make("drift", edit(again, put({Metric.DRIFT: 2.5}), HEAD))
    yield make("drift_alone", edit(again, put({Metric.DRIFT: 12.0}), SUM), ())
    yield make(
        "drift_alone_accepted",
        edit(again, put({Metric.DRIFT: 12.0}), SUM),
        (),
        policy=accept(Metric.DRIFT, 20.0),
    )
    above = edit(base, put({Metric.DRIFT: 12.0}), SUM)
    yield make("drift_above_as_before", keep(above, trials=2), make_baselines(above, above.provenance))
    yield make(
        "counters", edit(again, put({Metric.GRAPH_BREAKS: 3.0, Metric.COMPILE_CALLS: 900000.0}), CHAIN, SUM)
    )
    unstable = replace(
        again, trials=tuple(put({Metric.GRAPH_BREAKS: float(t.index - 1)})(t) for t in again.trials)
    )
    yield make("counter_unstable", unstable)
    breaks = tuple(
        GraphBreak(reason=f"call to {name}\n  a long hint", location=f"tiny/bench.py:{line}")
        for line, name in enumerate(("print", "item", "tolist", "numpy", "open"), 20)
    )
    yield make(
        "graph_breaks",
        edit(again, lambda t: put({Metric.GRAPH_BREAKS: 5.0})(replace(t, graph_breaks=breaks)), CHAIN),
    )
    yield make(
        "recompiles",
        edit(
            again,
            lambda t: put({Metric.RECOMPILES: 2.0})(
                replace(t, recompile_reasons=tuple(Recompile(guard=f"size of {x} changed") for x in "xy"))
            ),
            CHAIN,
        ),
    )
    yield make(
        "cache_misses", edit(again, put({Metric.CACHE_MISSES: 2.0, Metric.WARM_COMPILE_TIME: 40.0}), CHAIN)
    )


def list_incomplete(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Missing, failed and stopped trials."""
    make = runs.make
    base, crash, again, single, slower = runs.base, runs.crash, runs.again, runs.single, runs.slower
    yield make("not_measured", edit(again, drop(Metric.PEAK_MEMORY), CHAIN))
    yield make("nothing_measured", edit(single, lambda t: replace(t, samples={}), CHAIN), ())
    yield make("not_run", replace(again, trials=tuple(t for t in again.trials if t.case_id != CHAIN)))
    yield make(
        "trials_missing",
        replace(again, trials=tuple(t for t in again.trials if t.case_id != CHAIN or t.index > 1)),
    )
    yield make("crashed", crash)
    for kind in (FailureKind.ERROR, FailureKind.HANG):
        yield make(f"failed_{kind.value}", fail(again, STENCIL, kind))
    yield make("failed_and_slower", fail(slower, STENCIL, FailureKind.ERROR))
    yield make("stopped", replace(keep(base, CHAIN, HEAD, trials=2), finished=False))
    yield make("stopped_and_slower", replace(slower, finished=False))


def list_baselines(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Baselines that are missing, of another environment, or noisy."""
    make = runs.make
    base, head, stored, again, slower = runs.base, runs.head, runs.stored, runs.again, runs.slower
    yield make("no_baselines", again, ())
    yield make(
        "waived",
        again,
        (),
        policy=accept_lack(again, "2026-12-31"),
    )
    yield make(
        "waiver_expired",
        again,
        (),
        policy=accept_lack(again, "2026-10-31"),
    )
    yield make("some_baselines", again, stored[:2])
    yield make("other_host", again, on_host("AMD EPYC 9654", stored))
    yield make("other_host_and_code", head, on_host("AMD EPYC 9654", stored))
    yield make("other_stack", again, name_torch("2.12.0", stored))
    yield make("redefined", again, tuple(replace(b, definition="other") for b in stored))
    yield make(
        "not_recorded",
        again,
        tuple(
            replace(b, trials={m: v for m, v in b.trials.items() if m is not Metric.PEAK_MEMORY})
            for b in stored
        ),
    )
    yield make("few_trials", slower, make_baselines(keep(base, trials=1), base.provenance))
    noisy = make_baselines(spread(base, 0.9), base.provenance)
    yield make("noisy", again, noisy)
    yield make(
        "noisy_and_slower",
        edit(again, scale({Metric.COMPILED_LATENCY: 1.8, Metric.COLD_COMPILE_TIME: 1.5}), CHAIN),
        make_baselines(spread(base, 0.3), base.provenance),
    )
    yield make("zero", edit(again, put({Metric.COMPILED_LATENCY: 0.0}), CHAIN))


def list_permitted(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Acceptances and quarantines."""
    make = runs.make
    stored, again, slower = runs.stored, runs.again, runs.slower
    yield make("accepted", slower, policy=accept(Metric.COMPILED_LATENCY, 0.9))
    yield make("accepted_too_little", slower, policy=accept(Metric.COMPILED_LATENCY, 0.2))
    yield make("acceptance_expired", slower, policy=accept(Metric.COMPILED_LATENCY, 0.9, "2026-11-01"))
    yield make("unused_acceptance", slower, policy=accept(Metric.PEAK_MEMORY, 0.9, case="gone/*"))
    yield make("quarantined", slower, policy=replace(POLICY, quarantine=(quarantine("chain/*"),)))
    yield make(
        "quarantined_metric",
        slower,
        policy=replace(POLICY, quarantine=(quarantine("*", Metric.COMPILED_LATENCY),)),
    )
    yield make("quarantined_quiet", again, policy=replace(POLICY, quarantine=(quarantine("head/*"),)))
    yield make(
        "quarantine_expired",
        slower,
        policy=replace(POLICY, quarantine=(quarantine("chain/*", expires="2026-11-01"),)),
    )
    yield make(
        "all_quarantined",
        slower,
        policy=replace(POLICY, quarantine=(quarantine("chain/*"), quarantine("*", expires="2027-01-01"))),
    )
    yield make(
        "quarantined_no_baselines",
        again,
        stored[:1],
        policy=replace(POLICY, quarantine=(quarantine(stored[0].case_id),)),
    )


def list_machines(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Disturbed and slower machines."""
    make = runs.make
    again, slower, quiet, steady = runs.again, runs.slower, runs.quiet, runs.steady
    busy = condition(foreign_cores=1.9, swapped_bytes=96 * 2**20, disturbances=tuple(Disturbance))
    yield make("disturbed", edit(slower, busy, CHAIN))
    yield make(
        "disturbed_one", replace(slower, trials=tuple(busy(t) if t.index > 1 else t for t in slower.trials))
    )
    yield make("machine_slower", edit(keep(quiet, trials=2), slow_down(1.1)), steady)
    yield make(
        "machine_slower_and_case",
        edit(edit(keep(quiet, trials=2), slow_down(1.1)), scale(SLOWER), CHAIN),
        steady,
    )
    yield make("other_speed", edit(keep(quiet, trials=2), slow_down(1.39)), steady)
    yield make("other_speed_unsteady", edit(again, slow_down(1.39)))
    yield make(
        "other_speed_and_breaks",
        edit(edit(keep(quiet, trials=2), slow_down(0.68)), put({Metric.GRAPH_BREAKS: 3.0}), CHAIN),
        steady,
    )
    yield make("canaries_slower", edit(slower, condition(canaries_s={})))


def list_code(runs: Recorded) -> Iterator[tuple[str, Situation]]:
    """Changed compiles and code, and further notes."""
    make = runs.make
    stored, again, slower = runs.stored, runs.again, runs.slower
    yield make("compile_slower", edit(again, scale(dict.fromkeys(COMPILE_TIMES, 1.6)), CHAIN, STENCIL))
    yield make("compile_works_more", edit(again, lengthen, CHAIN))
    yield make("phases_unknown", edit(again, lengthen, CHAIN), tuple(replace(b, phases_s={}) for b in stored))
    yield make(
        "phases_same",
        edit(again, lambda t: replace(lengthen(t), phases_s=dict(stored[0].phases_s)), stored[0].case_id),
    )
    kernels = {"cpp_fused_a": "1", "cpp_fused_b": "2", "cpp_fused_c": "3", "cpp_fused_d": "4"}
    yield make("code_changed", edit(again, recode(digest="0" * 16, kernels=kernels), CHAIN))
    yield make("kernels_unknown", edit(again, recode(digest="0" * 16, kernels={}), CHAIN))
    yield make(
        "tuned",
        edit(again, recode(tuned="f" * 16), CHAIN),
        tuple(replace(b, identity=replace(b.identity, tuned="e" * 16)) for b in stored),
    )
    yield make(
        "workload_changed",
        edit(slower, lambda t: replace(t, workload=dict.fromkeys(t.workload, "12")), CHAIN),
    )
    yield make(
        "throttled",
        edit(slower, condition(throttled=("thermal slowdown", "power brake"), foreign_processes=2), CHAIN),
    )
    yield make(
        "warned",
        edit(
            again,
            lambda t: replace(
                t, warnings=make_warnings("the cache could not be kept", f"trial {t.index} was cut short")
            ),
        ),
    )
    yield make(
        "warned_much",
        replace(
            again,
            trials=tuple(
                replace(trial, warnings=make_warnings(f"warning {n}")) for n, trial in enumerate(again.trials)
            ),
        ),
    )
    yield make(
        "old",
        again,
        tuple(
            replace(b, provenance=replace(b.provenance, created="2026-01-02T03:04:05+00:00")) for b in stored
        ),
    )
    yield make("uncommitted", replace(slower, provenance=replace(slower.provenance, dirty=True)))


STORED = (
    list_times,
    list_values,
    list_incomplete,
    list_baselines,
    list_permitted,
    list_machines,
    list_code,
)
