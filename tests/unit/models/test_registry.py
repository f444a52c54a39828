"""The cases of the reference registry, without importing a model."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

import gate
from gate.kinds import WORKLOAD_FAMILIES, name_family
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.project.selection import select_cases
from gate.records.cases import Case, DType, Kind, Mode, Task

FAMILIES = {"resnet50", "vit", "bert", "llama", "unet", "lstm", "stencil", "elementwise"}
# The rows of the field besides the families: each runs on a CPU in a small case, and has one at full size.
FIELD = {
    *("convnext", "t5", "whisper", "decode", "vae", "dit", "gru", "blocks"),
    *("tokens", "nbody", "flow", "functions", "custom_op"),
    *("resnet50_batches", "flex", "moe", "scaled", "optimizer", "deep"),
}
# What a processor cannot run at all.
GPU_ONLY = {"user_kernel"}
REGISTRY = Path(gate.__file__).parent / "models" / "registry.yml"
# What a pull request's check may take on two cores, less the priming of the toolchain and room for a suspect.
SMOKE_LIMIT_S = 270.0
QUICK_LIMIT_S = 95.0  # of the two minutes of `make gate`, less the priming


@pytest.fixture(name="registry", scope="module")
def load_registry() -> tuple[Case, ...]:
    """Return all cases of the reference registry; loading refuses duplicate ids."""
    return load_cases(load_config(None))


@pytest.fixture(name="cases")
def list_families(registry: tuple[Case, ...]) -> tuple[Case, ...]:
    """Return the cases of the eight families."""
    return tuple(case for case in registry if case.model in FAMILIES)


def test_registry_holds_the_promised_models(registry: tuple[Case, ...]) -> None:
    """Each of the eight families and each row of the field is there, and nothing else."""
    assert {case.model for case in registry} == FAMILIES | FIELD | GPU_ONLY


def test_each_row_of_the_field_runs_on_a_cpu_and_at_full_size(registry: tuple[Case, ...]) -> None:
    """A row has small cases under `field` and full ones under `nightly`, and leaves `smoke` as it is."""
    rows = [case for case in registry if case.model in FIELD]
    for tag in ("field", "full"):
        assert {case.model for case in rows if tag in case.tags} == FIELD
    assert all(("field" in case.tags) != ("nightly" in case.tags) for case in rows)
    assert not any({"smoke", "cpu", "pr"} & set(case.tags) for case in rows)


def test_each_case_stands_in_a_row_of_the_summary(registry: tuple[Case, ...]) -> None:
    """A report averages by family: no reference case is under its own model."""
    assert [case.id for case in registry if name_family(case) not in WORKLOAD_FAMILIES] == []


def test_the_field_has_every_kind_backend_and_mode(registry: tuple[Case, ...]) -> None:
    """The registry measures each somewhere."""
    assert {case.kind for case in registry} == set(Kind)
    assert {case.mode for case in registry} == set(Mode)
    assert {case.backend for case in registry} == {"inductor", "eager", "aot_eager"}


def test_every_model_has_both_sizes() -> None:
    """Every model can run on a CPU in CI and at the size that the field quotes."""
    models = yaml.safe_load(REGISTRY.read_text())["models"]
    sizes = {model["name"]: set(model["sizes"]) for model in models if model["name"] in FAMILIES}
    assert sizes == {name: {"smoke", "full"} for name in FAMILIES}


def test_every_model_trains_and_infers_at_both_sizes(cases: tuple[Case, ...]) -> None:
    """Inference and training exist for each model and size."""
    expected = {(name, size, task) for name in FAMILIES for size in ("smoke", "full") for task in Task}
    assert {(case.model, case.size, case.task) for case in cases} == expected


def test_smoke_selection_has_each_family_once(cases: tuple[Case, ...]) -> None:
    """A pull request measures every family, each with one case of smoke size."""
    smoke = select_cases(cases, "tag:smoke")
    assert Counter(case.model for case in smoke) == dict.fromkeys(FAMILIES, 1)
    assert {case.size for case in smoke} == {"smoke"}


def test_smoke_selection_covers_both_tasks_and_dtypes(cases: tuple[Case, ...]) -> None:
    """The selection that most people run has training and bfloat16 in it."""
    smoke = select_cases(cases, "tag:smoke")
    assert {case.task for case in smoke} == set(Task)
    assert {case.dtype for case in smoke} == {DType.FLOAT32, DType.BFLOAT16}


def test_smoke_selection_fits_its_time(cases: tuple[Case, ...]) -> None:
    """One trial of each smoke case is expected within the time that a pull request has."""
    assert sum(case.expected_s for case in select_cases(cases, "tag:smoke")) <= SMOKE_LIMIT_S


def test_the_first_look_is_part_of_smoke_and_takes_two_minutes(cases: tuple[Case, ...]) -> None:
    """`make gate` is a user's first command; its cases have recorded baselines."""
    quick, smoke = select_cases(cases, "tag:quick"), select_cases(cases, "tag:smoke")
    assert {case.id for case in quick} < {case.id for case in smoke}
    assert {case.dtype for case in quick} == {DType.FLOAT32, DType.BFLOAT16}
    assert sum(case.expected_s for case in quick) <= QUICK_LIMIT_S


def test_cpu_selection_is_all_smoke_sizes(cases: tuple[Case, ...]) -> None:
    """`tag:cpu` is wider than `tag:smoke` and still runs on a CPU."""
    selected = {case.id for case in select_cases(cases, "tag:cpu")}
    assert selected == {case.id for case in cases if case.size == "smoke"}


def test_pull_request_selection_is_full_size_and_default_mode(cases: tuple[Case, ...]) -> None:
    """A GPU runner compares the quoted sizes of every family on a pull request."""
    selected = select_cases(cases, "tag:pr")
    assert {case.model for case in selected} == FAMILIES
    assert {(case.size, case.mode) for case in selected} == {("full", Mode.DEFAULT)}
    assert {case.task for case in selected} == set(Task)


def test_nightly_selection_is_all_full_sizes_in_every_mode(cases: tuple[Case, ...]) -> None:
    """The nightly run holds the pull request's cases and every mode of every family.

    But one: without CUDA graphs, the kernels are those of max-autotune.
    """
    selected = select_cases(cases, "tag:nightly")
    assert {case.id for case in selected} == {case.id for case in cases if case.size == "full"}
    assert {(case.model, case.mode) for case in selected} == {
        (name, mode) for name in FAMILIES for mode in set(Mode) - {Mode.MAX_AUTOTUNE_NO_CUDAGRAPHS}
    }


def test_package_imports_no_torch() -> None:
    """Whoever lists the models pays for no framework."""
    code = "import sys, gate.models; print('torch' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"
