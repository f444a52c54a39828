"""The paragraph on an upgrade: means worked out by hand, and whole paragraphs as golden files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from gate.decide.conclude.outcome import decide_outcome
from gate.metrics import SPECS, Role
from gate.publish.results import render_upgrade
from gate.publish.shown import find_stacks
from gate.records.cases import Case, Metric
from gate.records.verdict import Comparison, Estimate, PairBase, Status, Verdict
from tests import make
from tests.golden_files import check_golden
from tests.hosts import CUDA_HOST
from tests.make import make_change, make_row

ENVIRONMENT = replace(CUDA_HOST, device_uuid="", clocks="", torch="2.14.0+cu130")


def compare(case: Case, metric: Metric, change: float, status: Status = Status.UNCHANGED) -> Comparison:
    """A comparison by five pairs, of this change."""
    estimate = Estimate(centre=1.0, low=1.0, high=1.0, noise=0.0, n=5)
    return make_row(
        case.id,
        metric,
        status,
        decides=SPECS[metric].role is Role.DECIDES,
        baseline=estimate,
        candidate=estimate,
        change=make_change(change, detectable=0.05),
        pairs=5,
    )


def make_case(model: str, dtype: str = "float32") -> Case:
    return Case(id=f"{model}/inference-{dtype}-full-default", model=model)


def make_verdict(*comparisons: Comparison, cases: tuple[Case, ...] = ()) -> Verdict:
    named = dict.fromkeys(one.case_id for one in comparisons)
    return make.make_verdict(
        *comparisons,
        outcome=decide_outcome(comparisons, finished=True),
        cases=cases or tuple(Case(id=name, model=name.partition("/")[0]) for name in named),
        environment=ENVIRONMENT,
        base=PairBase(),
        base_environment=replace(ENVIRONMENT, torch="2.13.0"),
    )


BERT, BERT_BF16, LLAMA, UNET = (
    make_case("bert"),
    make_case("bert", "bfloat16"),
    make_case("llama"),
    make_case("unet"),
)


def make_mixed() -> Verdict:
    """Two cases of one model that cancel out, one that got slower, broke and drifted, one faster."""
    return make_verdict(
        compare(BERT, Metric.COMPILED_LATENCY, 0.25),
        compare(BERT_BF16, Metric.COMPILED_LATENCY, -0.2),
        compare(LLAMA, Metric.COMPILED_LATENCY, 0.21, Status.REGRESSED),
        compare(UNET, Metric.COMPILED_LATENCY, -0.19, Status.IMPROVED),
        compare(LLAMA, Metric.COLD_COMPILE_TIME, 0.32, Status.REGRESSED),
        compare(UNET, Metric.PEAK_MEMORY, 0.08, Status.REGRESSED),
        compare(BERT, Metric.PEAK_MEMORY, -0.1, Status.IMPROVED),
        compare(LLAMA, Metric.GRAPH_BREAKS, 2, Status.REGRESSED),
        compare(UNET, Metric.RECOMPILES, -1, Status.IMPROVED),
        compare(LLAMA, Metric.DRIFT, 1.5, Status.REGRESSED),
        compare(BERT, Metric.WARM_COMPILE_TIME, 0.04, Status.INCONCLUSIVE),
    )


def make_quiet() -> Verdict:
    return make_verdict(compare(BERT, Metric.COMPILED_LATENCY, 0.004))


def make_many() -> Verdict:
    """Twenty models, each slower than the one before."""
    return make_verdict(
        *(
            compare(make_case(f"model_{index:02}"), Metric.COMPILED_LATENCY, index / 100, Status.REGRESSED)
            for index in range(1, 21)
        )
    )


SITUATIONS: Mapping[str, Callable[[], Verdict]] = {
    "mixed": make_mixed,
    "quiet": make_quiet,
    "many": make_many,
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_golden(name: str) -> None:
    """Each situation reads as its golden file."""
    check_golden(f"upgrade/{name}.txt", render_upgrade(SITUATIONS[name]()) + "\n")


def test_means_are_geometric_and_by_model() -> None:
    """1.25 and 0.8 cancel out in bert; over all four, the fourth root of 1.25 * 0.8 * 1.21 * 0.81."""
    text = render_upgrade(make_mixed())

    # sqrt(1.21 * 0.81) = 1.1 * 0.9 = 0.99, and its square root is 0.99499
    told = "- Mean of compiled latency: -0.50 % (faster); `llama` +21.0 %, `bert` 0.0 %, `unet` -19.0 %."
    assert told in text.splitlines()


def test_what_was_not_compared_is_in_no_mean() -> None:
    """A case that is new, or that failed, has no change to count."""
    new = replace(compare(LLAMA, Metric.COMPILED_LATENCY, 9.0), status=Status.NEW)

    assert render_upgrade(make_verdict(compare(BERT, Metric.COMPILED_LATENCY, 0.1), new)) == (
        "From torch 2.13.0 to 2.14.0: 1 case of 1 model, measured side by side.\n\n"
        "- Mean of compiled latency: +10.0 % (slower); `bert` +10.0 %."
    )


def test_a_stack_that_did_not_change_is_told() -> None:
    """The same release on both sides is no upgrade of torch."""
    verdict = replace(make_quiet(), base_environment=ENVIRONMENT)

    assert render_upgrade(verdict).startswith("torch 2.14.0 in both stacks: 1 case")


@pytest.mark.parametrize("torch", ["", "nightly", "@all 2.14.0", "main-2.14"])
def test_only_a_release_number_is_told_of_a_stack(torch: str) -> None:
    """Whatever stands where a version should be is left out."""
    verdict = replace(make_quiet(), environment=replace(ENVIRONMENT, torch=torch))

    assert find_stacks(verdict) == ("2.13.0", "")
    assert render_upgrade(verdict).startswith("1 case of 1 model, measured")
