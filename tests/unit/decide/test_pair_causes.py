"""Causes of a change seen in pairs on one machine."""

from dataclasses import replace
from typing import Any

from gate.decide.side_by_side import confirm_screening, decide_side_by_side
from gate.decide.suspects import list_suspects
from gate.decide.verdict import conclude_verdict, screen_run
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.run import CodeIdentity, Conditions, Provenance
from gate.records.verdict import Status, Verdict
from tests.hosts import CPU_HOST
from tests.make import POLICY, PairedCase, make_baseline, pair_up
from tests.words import describe_causes

LATENCY, EAGER, COLD = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.COLD_COMPILE_TIME
CASE = "mlp/x"
# Five stored values with a spread of about 1 %.
FIVE = (0.990, 1.000, 1.010, 1.005, 0.995)
# Everything on the machine takes 8 % longer than when the baseline was recorded.
SLOWER = 1.08


def confirm_on_slower_machine(factor: float, cold: float = 1.0, **changes: Any) -> Verdict:
    """The verdict on one case with pairs, measured on a slower machine than its baseline."""
    typical = {EAGER: 0.020, LATENCY: 0.010, COLD: 10.0}
    stored = make_baseline(
        CASE,
        {metric: tuple(value * scale for scale in FIVE) for metric, value in typical.items()},
        environment=CPU_HOST,
        provenance=Provenance(commit="old"),
        canaries_s={"loop": FIVE},
    )
    factors = {EAGER: 1.0, LATENCY: factor, COLD: cold}
    alone = {metric: (typical[metric] * factors[metric] * SLOWER,) for metric in typical}
    run = pair_up(PairedCase(alone=alone, head={LATENCY: 0.010 * factor}, **changes))
    seen = Conditions(canaries_s={"loop": SLOWER})
    run = replace(run, trials=tuple(replace(trial, conditions=seen) for trial in run.trials))
    screened = screen_run(run, (stored,), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    return conclude_verdict(run, screening, POLICY)


def list_codes(verdict: Verdict) -> list[Code]:
    """Codes of likely causes, the likeliest first."""
    return [cause.fact.code for cause in verdict.causes if cause.weight > 0.1]


def test_machine_since_the_baselines_explains_no_pair() -> None:
    """A machine 8 % slower than at the baselines does not explain 10 % in pairs."""
    verdict = confirm_on_slower_machine(1.10)

    regressed = {row.metric for row in verdict.comparisons if row.status is Status.REGRESSED}
    assert regressed == {LATENCY, Metric.WARM_SPEEDUP}
    assert list_codes(verdict) == [Code.UNEXPLAINED]
    assert Code.MACHINE_CHANGED in [note.code for note in verdict.notes]


def test_machine_since_the_baselines_explains_what_no_pair_looked_at() -> None:
    """A slower machine explains a compile without a pair, 30 % above its baseline."""
    verdict = confirm_on_slower_machine(1.0, cold=1.30, full=0)

    assert list_codes(verdict) == [Code.MACHINE_CHANGED]


def test_what_pairs_convict_is_not_explained_by_what_explains_another_metric() -> None:
    """A machine that may explain the compile is not the first cause of the latency."""
    verdict = confirm_on_slower_machine(1.20, cold=1.30, full=0)

    assert list_codes(verdict) == [Code.UNEXPLAINED]


def test_same_code_in_pairs_points_at_no_machine() -> None:
    """Causes are eager 12 % slower and the same code, not the machine."""
    run = pair_up(PairedCase(head={LATENCY: 0.0120, EAGER: 0.0224}, spread=(0.0,) * 6))
    same = tuple(replace(trial, identity=CodeIdentity(digest="1")) for trial in run.trials)

    verdict = decide_side_by_side(replace(run, trials=same), POLICY)

    eager = (
        "Eager changed too, by +12.0 % (slower), and compiled by +20.0 % (slower): look at the model or its"
        " libraries, not at torch.compile."
    )
    code = (
        "The generated code is the same, and so is the machine: look at Python code outside the graphs, or"
        " at the libraries that it calls."
    )
    assert describe_causes(verdict) == [eager, code]
