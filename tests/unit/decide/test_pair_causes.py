"""What may have caused a change that was seen side by side with a base on the same machine."""

from dataclasses import replace
from typing import Any

from gate.decide.side_by_side import confirm_screening, decide_side_by_side
from gate.decide.suspects import list_suspects
from gate.decide.verdict import conclude_verdict, screen_run
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.run import CodeIdentity, Conditions, Provenance
from gate.records.verdict import Status, Verdict
from gate.report.words.facts import describe_cause
from tests.hosts import CPU_HOST
from tests.make import POLICY, PairedCase, make_baseline, pair_up

LATENCY, EAGER, COLD = Metric.COMPILED_LATENCY, Metric.EAGER_LATENCY, Metric.COLD_COMPILE_TIME
CASE = "mlp/x"
# Five stored values with a spread of about 1 %.
FIVE = (0.990, 1.000, 1.010, 1.005, 0.995)
# Everything on the machine takes 8 % longer than when the baseline was recorded.
SLOWER = 1.08


def confirm_on_slower_machine(factor: float, cold: float = 1.0, **changes: Any) -> Verdict:
    """The verdict on one case that was screened on a slower machine, and has its pairs."""
    typical = {EAGER: 0.020, LATENCY: 0.010, COLD: 10.0}
    stored = make_baseline(
        CASE,
        {metric: tuple(value * one for one in FIVE) for metric, value in typical.items()},
        environment=CPU_HOST,
        provenance=Provenance(commit="old"),
        canaries_s={"loop": FIVE},
    )
    own = {EAGER: 1.0, LATENCY: factor, COLD: cold}
    alone = {metric: (typical[metric] * own[metric] * SLOWER,) for metric in typical}
    run = pair_up(PairedCase(alone=alone, head={LATENCY: 0.010 * factor}, **changes))
    seen = Conditions(canaries_s={"loop": SLOWER})
    run = replace(run, trials=tuple(replace(one, conditions=seen) for one in run.trials))
    screened = screen_run(run, (stored,), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    return conclude_verdict(run, screening, POLICY)


def list_codes(verdict: Verdict) -> list[Code]:
    """The causes that may account for something, the likeliest first."""
    return [one.fact.code for one in verdict.causes if one.weight > 0.1]


def test_machine_since_the_baselines_explains_no_pair() -> None:
    """Head is 10 % slower than a base beside it: that both are 8 % slower than in March is another matter."""
    verdict = confirm_on_slower_machine(1.10)

    regressed = {one.metric for one in verdict.comparisons if one.status is Status.REGRESSED}
    assert regressed == {LATENCY, Metric.WARM_SPEEDUP}
    assert list_codes(verdict) == [Code.UNEXPLAINED]
    assert Code.MACHINE_CHANGED in [note.code for note in verdict.notes]


def test_machine_since_the_baselines_explains_what_no_pair_looked_at() -> None:
    """The pairs measured latencies alone; a compile that takes 30 % longer has the baseline against it."""
    verdict = confirm_on_slower_machine(1.0, cold=1.30, full=0)

    assert list_codes(verdict) == [Code.MACHINE_CHANGED]


def test_what_pairs_convict_is_not_explained_by_what_explains_another_metric() -> None:
    """Latency is worst, by its pairs; that of the cold compile alone may be the machine is no first cause."""
    verdict = confirm_on_slower_machine(1.20, cold=1.30, full=0)

    assert list_codes(verdict) == [Code.UNEXPLAINED]


def test_same_code_beside_a_base_points_at_no_machine() -> None:
    """Compiled 20 % slower in both arms' same code, eager 12 %: what they share is no host either."""
    run = pair_up(PairedCase(head={LATENCY: 0.0120, EAGER: 0.0224}, spread=(0.0,) * 6))
    same = tuple(replace(one, identity=CodeIdentity(digest="1")) for one in run.trials)

    verdict = decide_side_by_side(replace(run, trials=same), POLICY)

    eager = (
        "Eager changed too, by +12.0 % (slower), and compiled by +20.0 % (slower): look at the model or its"
        " libraries, not at torch.compile."
    )
    code = (
        "The generated code is the same, and so is the machine: look at Python code outside the graphs, or"
        " at the libraries that it calls."
    )
    assert [describe_cause(one.fact) for one in verdict.causes] == [eager, code]
