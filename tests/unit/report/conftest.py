"""Verdicts by hand, one a situation that a report must tell well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from gate.metrics import SPECS, Family, Role
from gate.records import (
    Case,
    CaseFailure,
    Change,
    Comparison,
    Estimate,
    Explanation,
    FailureKind,
    MachineShift,
    Metric,
    Outcome,
    Provenance,
    Reason,
    Status,
    Verdict,
)
from tests.hosts import CPU_HOST

MIB = 1024 * 1024
BERT = "bert/inference-float32-smoke-default"
RESNET = "resnet50/inference-float32-smoke-default"
LSTM = "lstm/training-float32-smoke-default"
UNET = "unet/inference-bfloat16-smoke-reduce-overhead"
ENVIRONMENT = replace(
    CPU_HOST, libraries={"transformers": "5.23.0", "diffusers": "0.39.0", "pyyaml": "6.0.2"}
)
HEALTHY: Mapping[Metric, float] = {
    Metric.WARM_SPEEDUP: 1.42,
    Metric.COMPILED_LATENCY: 0.0121,
    Metric.EAGER_LATENCY: 0.01718,
    Metric.COLD_COMPILE_TIME: 11.24,
    Metric.WARM_COMPILE_TIME: 2.31,
    Metric.PEAK_MEMORY: 412.5 * MIB,
    Metric.MEMORY_RATIO: 0.87,
    Metric.DRIFT: -0.02,
    Metric.GRAPH_BREAKS: 0,
    Metric.RECOMPILES: 0,
    Metric.COMPILE_CALLS: 4228323,
    Metric.GENERATED_KERNELS: 23,
}
HOST = {
    Metric.WARM_SPEEDUP,
    Metric.COMPILED_LATENCY,
    Metric.EAGER_LATENCY,
    Metric.COLD_COMPILE_TIME,
    Metric.WARM_COMPILE_TIME,
}


def estimate(value: float, n: int = 1) -> Estimate:
    return Estimate(centre=value, low=value * 0.99, high=value * 1.01, noise=0.01, n=n)


def unchanged(case_id: str, metric: Metric, value: float) -> Comparison:
    exact = SPECS[metric].family is Family.EXACT
    return Comparison(
        case_id=case_id,
        metric=metric,
        status=Status.UNCHANGED,
        reason=Reason.EXACT_EQUAL if exact else Reason.WITHIN_NOISE,
        sentence="The same in every trial." if exact else "No sign of a change.",
        decides=SPECS[metric].role is Role.DECIDES,
        baseline=estimate(value, 5),
        candidate=estimate(value),
        change=Change(centre=0.0, low=0.0, high=0.0, detectable=1.0)
        if exact
        else Change(centre=-0.004, low=-0.021, high=0.013, detectable=0.06),
        threshold=SPECS[metric].threshold,
    )


def healthy(case_id: str) -> tuple[Comparison, ...]:
    return tuple(unchanged(case_id, metric, value) for metric, value in HEALTHY.items())


def moved(base: Comparison, value: float, change: Change, sentence: str) -> Comparison:
    exact = SPECS[base.metric].family is Family.EXACT
    return replace(
        base,
        status=Status.REGRESSED if change.centre > 0 else Status.IMPROVED,
        reason=Reason.EXACT_CHANGED if exact else Reason.BEYOND_BAR,
        sentence=sentence,
        candidate=estimate(value, 3),
        change=change,
    )


def swap(comparisons: tuple[Comparison, ...], *others: Comparison) -> tuple[Comparison, ...]:
    by_key = {(one.case_id, one.metric): one for one in others}
    return tuple(by_key.get((one.case_id, one.metric), one) for one in comparisons)


def verdict(outcome: Outcome, headline: str, *groups: tuple[Comparison, ...]) -> Verdict:
    comparisons = tuple(one for group in groups for one in group)
    return Verdict(
        outcome=outcome,
        headline=headline,
        cases=tuple(Case(id=name, model=name.split("/")[0]) for name in (BERT, RESNET, LSTM)),
        comparisons=comparisons,
        failures=(),
        explanations=(),
        next_steps=(),
        notes=(),
        machine=MachineShift(canary=0.004, suite=0.012, known=True),
        environment=ENVIRONMENT,
        provenance=Provenance(
            commit="9f1c2d3e4b5a697887", created="2026-03-20T09:00:00Z", gate_version="0.1.0"
        ),
        baseline_provenance=(
            Provenance(
                commit="1a2b3c4d5e6f708192",
                created="2026-03-08T09:00:00Z",
                author="the maintainers",
                reason="first baselines",
            ),
        ),
        baseline_environments=("cpu-amd-epyc-7b13-torch2.13.0-1a2b3c4d",),
        trials=3,
        wall_s=142.0,
        toolchain_s=9.3,
        overhead_s=7.4,
    )


def make_pass() -> Verdict:
    headline = "Nothing regressed: 30 comparisons in 3 cases."
    return verdict(Outcome.PASS, headline, healthy(BERT), healthy(RESNET), healthy(LSTM))


def make_regressed_bert() -> tuple[Comparison, ...]:
    bert = {one.metric: one for one in healthy(BERT)}
    slower = moved(
        bert[Metric.COMPILED_LATENCY],
        0.0158,
        Change(centre=0.306, low=0.271, high=0.342, detectable=0.07),
        "12.1 ms -> 15.8 ms, 30.6 % worse (interval +27.1 % to +34.2 %, + is worse): beyond the threshold of"
        " 5 % and 20 us by more than chance, noise and the machine explain.",
    )
    speedup = moved(
        bert[Metric.WARM_SPEEDUP],
        1.09,
        Change(centre=0.303, low=0.262, high=0.345, detectable=0.07),
        "Compiling gains less than it did.",
    )
    broken = moved(
        bert[Metric.GRAPH_BREAKS],
        1,
        Change(centre=1.0, low=1.0, high=1.0, detectable=1.0),
        "One more in every trial.",
    )
    advisory = replace(
        moved(
            unchanged(BERT, Metric.COMPILE_PEAK_MEMORY, 1210 * MIB),
            1390 * MIB,
            Change(centre=0.149, low=0.12, high=0.178, detectable=0.05),
            "More memory while compiling.",
        ),
        decides=False,
    )
    return (*swap(healthy(BERT), slower, speedup, broken), advisory)


def make_regressed_resnet() -> tuple[Comparison, ...]:
    resnet = {one.metric: one for one in healthy(RESNET)}
    drift = moved(
        resnet[Metric.DRIFT],
        1.45,
        Change(centre=1.47, low=1.44, high=1.5, detectable=0.1),
        "The compiled result is further from fp64 than before.",
    )
    suspect = replace(
        resnet[Metric.COLD_COMPILE_TIME],
        status=Status.INCONCLUSIVE,
        reason=Reason.UNCORROBORATED,
        sentence="The clock says longer, Python calls say the same work.",
        candidate=estimate(12.6),
        change=Change(centre=0.121, low=-0.03, high=0.29, detectable=0.18),
    )
    return swap(healthy(RESNET), drift, suspect)


def make_regression() -> Verdict:
    found = verdict(
        Outcome.REGRESSION,
        "4 regressions in 2 of 3 cases, worst: bert graph_breaks 0 -> 1.",
        make_regressed_bert(),
        make_regressed_resnet(),
        healthy(LSTM),
    )
    accept = (
        f"Fix it, or take responsibility: compile-gate baseline accept '{BERT}' compiled_latency"
        " --allow 38% --reason '...' --expires 2026-04-19"
    )
    return replace(
        found,
        explanations=(
            Explanation(
                case_id=BERT,
                kind="graph_break",
                sentence="New graph break at encoder.py:41: call to print().",
            ),
            Explanation(case_id=BERT, kind="identity", sentence="Generated code differs in 4 of 23 kernels."),
            Explanation(
                case_id=BERT,
                kind="eager",
                sentence="Eager moved by +0.2 %: the change is the compiled code's.",
            ),
            Explanation(
                case_id=RESNET,
                kind="workload",
                sentence="Outputs are now float32 computed from bfloat16 weights.",
            ),
        ),
        next_steps=("Look at the generated code that changed.", accept),
    )


def make_inconclusive() -> Verdict:
    bert = {one.metric: one for one in healthy(BERT)}
    suspect = replace(
        bert[Metric.COMPILED_LATENCY],
        status=Status.INCONCLUSIVE,
        reason=Reason.SUSPECT,
        sentence="Looks slower, not settled after 3 trials.",
        candidate=estimate(0.0129, 3),
        change=Change(centre=0.066, low=-0.011, high=0.149, detectable=0.091),
    )
    found = verdict(
        Outcome.INCONCLUSIVE,
        "1 comparison of 30 is suspicious and not settled.",
        swap(healthy(BERT), suspect),
        healthy(RESNET),
        healthy(LSTM),
    )
    steps = ("Measure more: `compile-gate check --select bert/inference-float32-smoke-default --trials 5`.",)
    shift = MachineShift(canary=0.052, suite=0.047, known=True)
    return replace(found, next_steps=steps, machine=shift)


def _lost(case_id: str, status: Status, reason: Reason, sentence: str) -> tuple[Comparison, ...]:
    whole = Comparison(
        case_id=case_id,
        metric=Metric.COMPILED_LATENCY,
        status=status,
        reason=reason,
        sentence=sentence,
        decides=True,
    )
    return (whole,)


def make_incomplete() -> Verdict:
    crash = CaseFailure(
        case_id=BERT,
        trial=1,
        kind=FailureKind.CRASH,
        stage="compile",
        message="worker died on signal 11 (SIGSEGV)",
        log_tail='Fatal Python error: Segmentation fault\n\n  File "model.py", line 12\n\x1b[31mred\x1b[0m\n',
    )
    hang = CaseFailure(
        case_id=RESNET, trial=1, kind=FailureKind.HANG, stage="rounds", message="no result after 300 s"
    )
    found = verdict(
        Outcome.INCOMPLETE,
        "3 of 3 cases could not be measured.",
        _lost(BERT, Status.FAILED, Reason.CASE_FAILED, "Failed: worker died on signal 11 (SIGSEGV)."),
        _lost(RESNET, Status.FAILED, Reason.CASE_FAILED, "Failed: no result after 300 s."),
        _lost(LSTM, Status.MISSING, Reason.NOT_RUN, "Planned, but no trial came back."),
    )
    steps = ("Read the log of the first: `out/logs/`.", "Continue with `compile-gate check --resume`.")
    return replace(found, failures=(crash, hang), next_steps=steps, trials=0)


def _measured(case_id: str, status: Status, reason: Reason, metrics: set[Metric]) -> tuple[Comparison, ...]:
    return tuple(
        replace(
            one, status=status, reason=reason, sentence="Measured, not judged.", baseline=None, change=None
        )
        if one.metric in metrics
        else one
        for one in healthy(case_id)
    )


def make_nothing_compared() -> Verdict:
    found = verdict(
        Outcome.NOTHING_COMPARED,
        "Measured 3 cases; no baseline applies to any.",
        *(_measured(name, Status.NEW, Reason.NO_BASELINE, set(Metric)) for name in (BERT, RESNET, LSTM)),
    )
    return replace(
        found,
        baseline_provenance=(),
        baseline_environments=(),
        machine=MachineShift(),
        next_steps=("Record baselines on this machine: `compile-gate baseline refresh --trials 5`.",),
    )


def make_accepted() -> Verdict:
    base = {one.metric: one for one in healthy(BERT)}[Metric.PEAK_MEMORY]
    change = Change(centre=0.064, low=0.064, high=0.064, detectable=0.03)
    more = moved(
        base, 439 * MIB, change, "Accepted up to +8 % until 2026-06-01 by the maintainers: a larger cache."
    )
    accepted = replace(more, status=Status.ACCEPTED, reason=Reason.ACCEPTED)
    found = verdict(
        Outcome.PASS,
        "Nothing regressed; 1 accepted change.",
        swap(healthy(BERT), accepted),
        healthy(RESNET),
        healthy(LSTM),
    )
    return replace(found, notes=("The acceptance of lstm/* cold_compile_time expired on 2026-03-01.",))


def make_improved() -> Verdict:
    base = {one.metric: one for one in healthy(LSTM)}
    change = Change(centre=-0.182, low=-0.2, high=-0.163, detectable=0.06)
    faster = moved(base[Metric.COMPILED_LATENCY], 0.0099, change, "Faster, beyond the noise between trials.")
    found = verdict(
        Outcome.PASS,
        "Nothing regressed; 1 improvement.",
        healthy(BERT),
        healthy(RESNET),
        swap(healthy(LSTM), faster),
    )
    why = Explanation(case_id=LSTM, kind="identity", sentence="Generated code differs in 9 of 23 kernels.")
    return replace(found, explanations=(why,))


def make_other_machine() -> Verdict:
    names = (BERT, RESNET, LSTM)
    found = verdict(
        Outcome.PASS,
        "Nothing regressed in what could be judged here; times were only measured.",
        *(_measured(name, Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT, HOST) for name in names),
    )
    steps = (
        "To judge times too, record this machine's baselines: `compile-gate baseline refresh --trials 5`.",
    )
    return replace(found, machine=MachineShift(), next_steps=steps)


def make_many_rows() -> Verdict:
    names = [f"model_{index:03d}/inference-float32-smoke-default" for index in range(120)]
    groups = []
    for index, name in enumerate(names):
        base = {one.metric: one for one in healthy(name)}[Metric.COMPILED_LATENCY]
        centre = 0.10 + index / 400
        change = Change(centre=centre, low=centre - 0.03, high=centre + 0.03, detectable=0.06)
        groups.append(
            swap(healthy(name), moved(base, 0.0121 * (1 + centre), change, "Slower in every trial."))
        )
    found = verdict(Outcome.REGRESSION, "120 regressions in 120 of 120 cases.", *groups)
    cases = tuple(Case(id=name, model=name.split("/")[0]) for name in names)
    return replace(found, cases=cases, machine=MachineShift(canary=0.31, suite=0.29, known=True), trials=120)


SITUATIONS: Mapping[str, Callable[[], Verdict]] = {
    "pass": make_pass,
    "regression": make_regression,
    "inconclusive": make_inconclusive,
    "incomplete": make_incomplete,
    "nothing_compared": make_nothing_compared,
    "accepted": make_accepted,
    "improved": make_improved,
    "other_machine": make_other_machine,
    "many_rows": make_many_rows,
}


@pytest.fixture(params=SITUATIONS)
def situation(request: pytest.FixtureRequest) -> tuple[str, Verdict]:
    """Every situation in turn: its name and its verdict."""
    return request.param, SITUATIONS[request.param]()


@pytest.fixture(scope="session")
def verdicts() -> Mapping[str, Verdict]:
    """All situations by name."""
    return {name: make() for name, make in SITUATIONS.items()}
