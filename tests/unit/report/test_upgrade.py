"""The paragraph on an upgrade: means worked out by hand, and golden files."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.conclude.outcome import decide_outcome
from gate.metrics import SPECS, Role
from gate.publish.results import name_upgrade, render_upgrade
from gate.publish.shown import list_upgraded, make_shown
from gate.records.cases import Case, Metric, Threshold
from gate.records.run import Environment
from gate.records.shown import StackPart
from gate.records.verdict import Comparison, Estimate, PairBase, Status, Verdict
from tests import make
from tests.golden_files import check_golden
from tests.hosts import CUDA_HOST
from tests.make import make_change, make_row

ENVIRONMENT = replace(CUDA_HOST, device_uuid="", clocks="", torch="2.14.0+cu130")


def compare(case: Case, metric: Metric, change: float, status: Status = Status.UNCHANGED) -> Comparison:
    """A comparison by five pairs of this change."""
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
    named = dict.fromkeys(row.case_id for row in comparisons)
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
    """Two cases of one model that cancel out, one slower, broken and drifted, one faster."""
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


def render(verdict: Verdict) -> str:
    return render_upgrade(verdict, make_shown(verdict))


@pytest.mark.parametrize("name", SITUATIONS)
def test_golden(name: str) -> None:
    """Each situation has its golden file."""
    check_golden(f"upgrade/{name}.txt", render(SITUATIONS[name]()) + "\n")


def test_means_are_geometric_and_by_model() -> None:
    """1.25 and 0.8 cancel out in bert; all four: the fourth root of 1.25 * 0.8 * 1.21 * 0.81."""
    text = render(make_mixed())

    # sqrt(1.21 * 0.81) = 1.1 * 0.9 = 0.99, and its square root is 0.99499
    line = "- Mean of compiled latency: -0.50 % (faster); `llama` +21.0 %, `bert` 0.0 %, `unet` -19.0 %."
    assert line in text.splitlines()


def test_what_was_not_compared_is_in_no_mean() -> None:
    """New and failed cases have no change."""
    new = replace(compare(LLAMA, Metric.COMPILED_LATENCY, 9.0), status=Status.NEW)

    means = render(make_verdict(compare(BERT, Metric.COMPILED_LATENCY, 0.1), new)).splitlines()[2]
    assert means == "- Mean of compiled latency: +10.0 % (slower); `bert` +10.0 %."


def test_what_is_too_small_to_count_is_in_no_mean() -> None:
    """39 % of 3 MiB are below the absolute part; 2 % of a GiB are above it, and 3 % are no more than both."""
    limit = Threshold(relative=0.03, absolute=6 * 2**20)
    small = replace(compare(LLAMA, Metric.PEAK_MEMORY, 0.39), threshold=limit)
    large = replace(compare(BERT, Metric.PEAK_MEMORY, 0.02), threshold=limit)

    at_bound = replace(compare(UNET, Metric.PEAK_MEMORY, 0.03), threshold=limit)

    means = render(make_verdict(small, large)).splitlines()[2]
    assert means == "- Mean of peak memory: +2.0 % (larger); `bert` +2.0 %."
    means = render(make_verdict(small, at_bound)).splitlines()[2]
    assert means == "- Mean of peak memory: +3.0 % (larger); `unet` +3.0 %."


def list_versions(base: Environment, head: Environment) -> tuple[str, ...]:
    """The versions shown, and the number of packages that are only counted."""
    parts, more = list_upgraded(replace(make_quiet(), base_environment=base, environment=head))
    return (*(f"{part.name} {part.base} {part.head}" for part in parts), str(more))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("torch 2.14.0+cu130 2.14.0+cu130", "0")),
        ({"torch": "2.15.0rc1+cpu"}, ("torch 2.14.0+cu130 2.15.0rc1+cpu", "0")),
        ({"torch": "2.16.0.dev20261127"}, ("torch 2.14.0+cu130 2.16.0.dev20261127", "0")),
        ({"python": "3.13"}, ("torch 2.14.0+cu130 2.14.0+cu130", "python 3.11 3.13", "0")),
        (
            {"libraries": {"transformers": "5.23.0"}, "packages": {"numpy": "2.4.1", "stranger": "1.0"}},
            ("torch 2.14.0+cu130 2.14.0+cu130", "numpy 2.3.0 2.4.1", "transformers 4.57.6 5.23.0", "1"),
        ),
        ({"torch": "@all 2.15.0"}, ("1",)),
        ({"torch": "nightly"}, ("1",)),
        ({"settings": {"float32_matmul_precision": "high"}}, ("torch 2.14.0+cu130 2.14.0+cu130", "0")),
    ],
)
def test_what_was_upgraded_is_named_in_full(changes: Mapping[str, Any], expected: tuple[str, ...]) -> None:
    """Candidates, nightlies and builds have their full names; other text is counted."""
    base = replace(
        ENVIRONMENT,
        python="3.11",
        libraries={"transformers": "4.57.6"},
        packages={"numpy": "2.3.0", "stranger": "0.9"},
    )
    assert list_versions(base, replace(base, **changes)) == expected


def test_a_reader_sees_what_works_what_differs_and_how_to_make_both() -> None:
    """One case fails, one is unknown, and one side is a CPU build."""
    failed = replace(compare(LLAMA, Metric.COMPILED_LATENCY, 0.0), status=Status.FAILED, change=None)
    missing = replace(compare(UNET, Metric.COMPILED_LATENCY, 0.0), status=Status.MISSING, change=None)
    drifts = compare(BERT_BF16, Metric.DRIFT, 9.0, Status.REGRESSED)
    verdict = make_verdict(compare(BERT, Metric.COMPILED_LATENCY, 0.0), failed, missing, drifts)
    base = replace(ENVIRONMENT, torch="2.13.0+cpu", python="3.11")
    verdict = replace(verdict, base_environment=base, environment=replace(ENVIRONMENT, python="3.12"))
    shown = make_shown(verdict)

    assert name_upgrade(shown, 1) == "torch 2.13.0+cpu -> 2.14.0+cu130, 1 other package changed"
    assert render_upgrade(verdict, shown) == (
        "torch 2.13.0+cpu -> 2.14.0+cu130, python 3.11 -> 3.12. Cases that compile and agree on the new"
        " stack: 1 of 4, measured side by side with the old one; of 1 nothing is known.\n\n"
        "- One side is a CPU build and the other is not: starts and compiles differ for that alone.\n\n"
        "<details><summary>Both stacks</summary>\n\n"
        "- old: `pip install --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu`\n"
        "- new: `pip install --extra-index-url https://download.pytorch.org/whl/cu130 torch==2.14.0+cu130`"
        "\n\n</details>"
    )


@pytest.mark.parametrize(
    ("name", "base", "head", "is_warned"),
    [
        ("torch", "2.13.0+cpu", "2.14.0", True),
        ("torch", "2.13.0", "2.14.0+cpu", True),
        ("torch", "2.13.0+cpu", "2.14.0+cpu", False),
        ("triton", "3.5.0+cpu", "3.6.0", False),
    ],
)
def test_only_a_build_of_torch_for_cpus_is_warned_of(
    name: str, base: str, head: str, is_warned: bool
) -> None:
    """It starts otherwise than one for GPUs; what another package is built for does not matter."""
    verdict = make_quiet()
    shown = replace(make_shown(verdict), stack=(StackPart(name=name, base=base, head=head),))

    assert ("One side is a CPU build" in render_upgrade(verdict, shown)) is is_warned
