"""Made-up verdicts, one for each situation that a report must show; their words are the decision's own."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from gate.decide.conclude.outcome import decide_outcome
from gate.decide.explain.advice import list_next_steps, make_headline
from gate.decide.explain.inquiry import CAUSES
from gate.metrics import SPECS, Family, Role
from gate.records.cases import Case, Metric, Policy
from gate.records.codes import Code
from gate.records.facts import Fact, name_words
from gate.records.run import FailureKind, Provenance
from gate.records.verdict import (
    Cause,
    Change,
    Comparison,
    Estimate,
    MachineShift,
    PairBase,
    Reason,
    Status,
    Tally,
    Verdict,
)
from tests.hosts import CPU_HOST
from tests.make import make_failure, make_row, make_run, make_verdict

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


def estimate(value: float, n: int = 1, spread: float = 0.01) -> Estimate:
    return Estimate(centre=value, low=value * (1 - spread), high=value * (1 + spread), noise=spread, n=n)


def unchanged(case_id: str, metric: Metric, value: float) -> Comparison:
    exact = SPECS[metric].family is Family.EXACT
    return make_row(
        case_id,
        metric,
        Status.UNCHANGED,
        reason=Reason.BELOW_THRESHOLD,
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


def moved(base: Comparison, value: float, change: Change) -> Comparison:
    exact = SPECS[base.metric].family is Family.EXACT
    return replace(
        base,
        status=Status.REGRESSED if change.centre > 0 else Status.IMPROVED,
        reason=Reason.BEYOND_BAR,
        candidate=estimate(value, 3, spread=0.0 if exact else 0.01),
        change=change,
    )


def swap(comparisons: tuple[Comparison, ...], *others: Comparison) -> tuple[Comparison, ...]:
    by_key = {(row.case_id, row.metric): row for row in others}
    return tuple(by_key.get((row.case_id, row.metric), row) for row in comparisons)


def verdict(*groups: tuple[Comparison, ...]) -> Verdict:
    comparisons = tuple(row for group in groups for row in group)
    outcome = decide_outcome(comparisons, finished=True)
    cases = tuple(
        Case(id=name, model=name.split("/")[0]) for name in dict.fromkeys(row.case_id for row in comparisons)
    )
    provenance = Provenance(commit="9f1c2d3e4b5a697887", created="2026-03-20T09:00:00Z", gate_version="0.1.0")
    run = make_run(cases=cases, environment=ENVIRONMENT, provenance=provenance)
    return make_verdict(
        *comparisons,
        outcome=outcome,
        headline=make_headline(outcome, comparisons, cases),
        cases=cases,
        next_steps=list_next_steps(
            run, comparisons, Policy(thresholds={}, today="2026-03-20"), in_pairs=False
        ),
        machine=MachineShift(canary=0.004, suite=0.012, known=True),
        environment=ENVIRONMENT,
        provenance=provenance,
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
    return verdict(healthy(BERT), healthy(RESNET), healthy(LSTM))


def make_regressed_bert() -> tuple[Comparison, ...]:
    bert = {row.metric: row for row in healthy(BERT)}
    slower = moved(
        bert[Metric.COMPILED_LATENCY], 0.0158, Change(centre=0.306, low=0.271, high=0.342, detectable=0.07)
    )
    speedup = moved(
        bert[Metric.WARM_SPEEDUP], 1.09, Change(centre=0.303, low=0.262, high=0.345, detectable=0.07)
    )
    broken = moved(bert[Metric.GRAPH_BREAKS], 1, Change(centre=1.0, low=1.0, high=1.0, detectable=1.0))
    compiling = unchanged(BERT, Metric.COMPILE_PEAK_MEMORY, 1210 * MIB)
    advisory = replace(
        moved(compiling, 1390 * MIB, Change(centre=0.149, low=0.12, high=0.178, detectable=0.05)),
        decides=False,
    )
    return (*swap(healthy(BERT), slower, speedup, broken), advisory)


def make_regressed_resnet() -> tuple[Comparison, ...]:
    resnet = {row.metric: row for row in healthy(RESNET)}
    drift = moved(resnet[Metric.DRIFT], 1.45, Change(centre=1.47, low=1.44, high=1.5, detectable=0.1))
    suspect = replace(
        resnet[Metric.COLD_COMPILE_TIME],
        status=Status.INCONCLUSIVE,
        reason=Reason.UNCORROBORATED,
        candidate=estimate(12.6),
        change=Change(centre=0.121, low=-0.03, high=0.29, detectable=0.18),
    )
    return swap(healthy(RESNET), drift, suspect)


BERT_CAUSES = (
    Fact(code=Code.GRAPH_BREAK, names=name_words(reason="call to print().", location="encoder.py:41")),
    Fact(
        code=Code.CODE_CHANGED,
        numbers={"kernels": 23, "changed": 2, "added": 1},
        names={"changed": ("gelu", "softmax"), "added": ("copy",)},
    ),
)


def make_cause(case_id: str, fact: Fact) -> Cause:
    """A cause with the full weight of its fact."""
    return Cause(case_id=case_id, fact=fact, weight=CAUSES[fact.code][0])


def make_regression() -> Verdict:
    judged = verdict(make_regressed_bert(), make_regressed_resnet(), healthy(LSTM))
    causes = (
        *((BERT, fact) for fact in BERT_CAUSES),
        (RESNET, Fact(code=Code.WORKLOAD_CHANGED, names={"outputs": ("bfloat16", "float32")})),
    )
    explained = tuple(make_cause(name, fact) for name, fact in causes)
    return replace(judged, causes=explained)


def make_side_by_side() -> Verdict:
    """One case regressed in pairs; the README shows the beginning of its report."""
    bert = {row.metric: row for row in healthy(BERT)}
    change = Change(centre=0.306, low=0.289, high=0.323, detectable=0.05)
    slower = replace(moved(bert[Metric.COMPILED_LATENCY], 0.0158, change), reason=Reason.BEYOND_BAR)
    broken = moved(bert[Metric.GRAPH_BREAKS], 1, Change(centre=1.0, low=1.0, high=1.0, detectable=1.0))
    paired = [pair(row, 6) for row in (slower, broken)]
    judged = verdict(swap(healthy(BERT), *paired), healthy(RESNET), healthy(LSTM))
    base = PairBase(label="merge-base with main (5d6e7f8)", commit="5d6e7f8091a2b3c4")
    tally = Tally(trials=3, pairs=6, paired_cases=1)
    return replace(
        judged,
        causes=tuple(make_cause(BERT, fact) for fact in BERT_CAUSES),
        base=base,
        tally=tally,
    )


def pair(comparison: Comparison, pairs: int) -> Comparison:
    """The comparison as so many pairs decide it."""
    before, after = comparison.baseline, comparison.candidate
    assert before
    assert after
    return replace(
        comparison,
        pairs=pairs,
        threshold=SPECS[comparison.metric].side_by_side,
        baseline=replace(before, n=pairs),
        candidate=replace(after, n=pairs),
    )


def make_inconclusive() -> Verdict:
    bert = {row.metric: row for row in healthy(BERT)}
    suspect = replace(
        bert[Metric.COMPILED_LATENCY],
        status=Status.INCONCLUSIVE,
        reason=Reason.UNSETTLED,
        candidate=estimate(0.0129, 3),
        change=Change(centre=0.066, low=-0.011, high=0.149, detectable=0.091),
    )
    judged = verdict(swap(healthy(BERT), suspect), healthy(RESNET), healthy(LSTM))
    return replace(judged, machine=MachineShift(canary=0.052, suite=0.047, known=True))


def _lost(case_id: str, status: Status, reason: Reason, *remarks: Fact) -> tuple[Comparison, ...]:
    return (make_row(case_id, Metric.COMPILED_LATENCY, status, reason=reason, remarks=remarks),)


FAULT = "Fatal Python error: Segmentation fault"
LONG_PATH = f"/srv/builds/{'deep/' * 20}model.py"  # wider than any terminal: it must not be cut


def make_incomplete() -> Verdict:
    crash = make_failure(
        BERT,
        "worker died on signal 11 (SIGSEGV)",
        log_tail=f'{FAULT}\n\n  File "{LONG_PATH}", line 12\n\x1b[31mred\x1b[0m\n',
        log=f"out/logs/{BERT}/1-cold.log",
    )
    hang = make_failure(RESNET, "no result after 300 s", kind=FailureKind.HANG, stage="rounds")
    judged = verdict(
        *(
            _lost(failure.case_id, Status.FAILED, Reason.CASE_FAILED, failure.quote(Code.FAILURE))
            for failure in (crash, hang)
        ),
        _lost(LSTM, Status.MISSING, Reason.NOT_RUN),
    )
    return replace(judged, failures=(crash, hang), trials=0)


def _measured(case_id: str, status: Status, reason: Reason, metrics: set[Metric]) -> tuple[Comparison, ...]:
    return tuple(
        replace(row, status=status, reason=reason, baseline=None, change=None)
        if row.metric in metrics
        else row
        for row in healthy(case_id)
    )


def make_nothing_compared() -> Verdict:
    judged = verdict(
        *(_measured(name, Status.NEW, Reason.NO_BASELINE, set(Metric)) for name in (BERT, RESNET, LSTM))
    )
    return replace(judged, baseline_provenance=(), baseline_environments=(), machine=MachineShift())


def make_accepted() -> Verdict:
    base = {row.metric: row for row in healthy(BERT)}[Metric.PEAK_MEMORY]
    more = moved(base, 439 * MIB, Change(centre=0.064, low=0.064, high=0.064, detectable=0.03))
    names = name_words(author="the maintainers", expires="2026-06-01", reason="a larger cache")
    accepted = replace(
        more,
        status=Status.ACCEPTED,
        reason=Reason.ACCEPTED,
        found=more.reason,
        remarks=(Fact(code=Code.ACCEPTED_BY, names=names),),
    )
    judged = verdict(swap(healthy(BERT), accepted), healthy(RESNET), healthy(LSTM))
    expired = Fact(
        code=Code.ACCEPTANCE_EXPIRED,
        metrics=(Metric.COLD_COMPILE_TIME,),
        names=name_words(pattern="lstm/*", expires="2026-03-01", reason="a new pass"),
    )
    return replace(judged, notes=(expired,))


def make_improved() -> Verdict:
    base = {row.metric: row for row in healthy(LSTM)}
    change = Change(centre=-0.182, low=-0.2, high=-0.163, detectable=0.06)
    faster = moved(base[Metric.COMPILED_LATENCY], 0.0099, change)
    judged = verdict(healthy(BERT), healthy(RESNET), swap(healthy(LSTM), faster))
    changed = Fact(
        code=Code.CODE_CHANGED, numbers={"kernels": 23, "changed": 1}, names={"changed": ("gates",)}
    )
    return replace(judged, causes=(make_cause(LSTM, changed),))


def make_other_machine() -> Verdict:
    names = (BERT, RESNET, LSTM)
    judged = verdict(
        *(_measured(name, Status.NOT_COMPARABLE, Reason.OTHER_ENVIRONMENT, HOST) for name in names)
    )
    return replace(judged, machine=MachineShift())


def make_many_rows() -> Verdict:
    names = [f"model_{index:03d}/inference-float32-smoke-default" for index in range(120)]
    groups = []
    for index, name in enumerate(names):
        base = {row.metric: row for row in healthy(name)}[Metric.COMPILED_LATENCY]
        centre = 0.10 + index / 400
        change = Change(centre=centre, low=centre - 0.03, high=centre + 0.03, detectable=0.06)
        groups.append(swap(healthy(name), moved(base, 0.0121 * (1 + centre), change)))
    judged = verdict(*groups)
    return replace(judged, machine=MachineShift(canary=0.31, suite=0.29, known=True), trials=120)


SITUATIONS: Mapping[str, Callable[[], Verdict]] = {
    "pass": make_pass,
    "regression": make_regression,
    "side_by_side": make_side_by_side,
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
    """Each situation's name and verdict."""
    return request.param, SITUATIONS[request.param]()


@pytest.fixture(scope="session")
def verdicts() -> Mapping[str, Verdict]:
    return {name: make() for name, make in SITUATIONS.items()}
