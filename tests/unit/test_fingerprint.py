import re
from dataclasses import fields, replace
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.files.codec import BASELINE
from gate.fingerprint import (
    compute_environment_id,
    compute_machine_id,
    describe_acting,
    describe_difference,
    has_same_codegen,
    has_same_host,
    has_same_stack,
)
from gate.measure.device.cpu import CpuDevice
from gate.measure.environment import capture_environment
from gate.records.protocol import WorkerRequest, WorkerRole
from gate.records.run import Environment
from tests.hosts import CPU_HOST

ROOT = Path(__file__).resolve().parents[2]
CPU = replace(
    CPU_HOST,
    device_model="AMD EPYC 7763 64-Core Processor",
    cpu="AMD EPYC 7763 64-Core Processor",
    libraries={"transformers": "5.23.0", "torchvision": "0.28.0+cpu"},
    settings={"float32_matmul_precision": "highest"},
)
GPU = replace(
    CPU,
    device_kind="cuda",
    device_model="NVIDIA H200",
    device_uuid="GPU-1",
    driver="580.1",
    clocks="700 W",
    torch="2.13.0+cu130",
    triton="3.7.0",
    cuda="13.0",
)
TRAITS = {"capability": "9.0", "multiprocessors": "132", "memory": "140 GiB", "ecc": "on"}


def compare_all(a: Environment, b: Environment) -> tuple[bool, bool, bool]:
    """Whether host, codegen and stack are the same."""
    return has_same_host(a, b), has_same_codegen(a, b), has_same_stack(a, b)


def test_the_id_is_readable() -> None:
    """It is kind, model, torch release and a hash."""
    assert re.fullmatch(r"cpu-amd-epyc-7763-torch2\.13\.0-[0-9a-f]{8}", compute_environment_id(CPU))
    assert re.fullmatch(r"cuda-h200-torch2\.13\.0-[0-9a-f]{8}", compute_environment_id(GPU))


def test_the_id_is_the_same_in_every_release() -> None:
    """Another id would orphan stored baselines."""
    assert compute_environment_id(CPU) == "cpu-amd-epyc-7763-torch2.13.0-15f9fe02"
    assert compute_environment_id(GPU) == "cuda-h200-torch2.13.0-cef9ab50"


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("AMD EPYC", "amd-epyc"),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", "intel-xeon"),
        ("Apple M3 Pro", "apple-m3-pro"),
        ("../../etc", "etc"),
        ("", "amd-epyc-7763"),
        ("x" * 300, "x" * 40),
    ],
)
def test_the_id_keeps_what_distinguishes_models(model: str, slug: str) -> None:
    """Marketing words are left out, and other characters than letters and digits are dashes."""
    env = replace(CPU, device_model=model)
    assert compute_environment_id(env).startswith(f"cpu-{slug}-torch2.13.0-")


@given(text=st.text(max_size=50))
def test_the_id_is_always_one_safe_directory_name(text: str) -> None:
    """Any device name gives a safe directory name."""
    env = replace(CPU, device_kind=text, device_model=text, torch=text)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*[0-9a-f]{8}", compute_environment_id(env))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        # field, other value, (same host, same codegen, same stack)
        # Of a GPU that does not tell its capability, only the same model is known to be like it.
        ("device_model", "NVIDIA B200", (False, False, False)),
        ("device_uuid", "GPU-2", (True, True, True)),
        ("driver", "590.2", (False, True, True)),
        ("clocks", "500 W", (False, True, True)),
        ("cpu", "Intel Xeon", (False, True, True)),
        ("cores", 4, (False, True, True)),
        ("threads", 4, (False, False, True)),
        ("isa", "avx512", (False, False, True)),
        ("compiler", "g++ 13.1.0", (False, True, True)),
        ("allocator", "held", (False, True, True)),
        ("workers", "forked", (False, True, True)),
        ("torch", "2.13.0", (False, True, True)),
        ("torch", "2.14.1+cu130", (False, False, False)),
        ("triton", "3.8.0", (False, False, False)),
        ("cuda", "13.2", (False, False, False)),
        ("python", "3.12", (False, False, False)),
        ("python", "3.11.9", (True, True, True)),
        ("libraries", {"transformers": "5.24.0", "torchvision": "0.28.0+cpu"}, (False, False, False)),
        ("libraries", {"transformers": "5.23.0", "torchvision": "0.28.0"}, (False, True, True)),
        ("settings", {}, (False, False, False)),
        ("device_kind", "cpu", (False, False, False)),
    ],
)
def test_each_field_separates_what_it_must(name: str, value: object, expected: tuple[bool, ...]) -> None:
    """Each field rules out the comparisons of the table."""
    other = replace(GPU, **{name: value})  # type: ignore[arg-type] # the table holds each field's type
    assert expected == compare_all(GPU, other)
    same_id = compute_environment_id(GPU) == compute_environment_id(other)
    assert same_id == expected[0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # traits, (same host, same codegen, same stack)
        ({"device_traits": {**TRAITS, "ecc": "off"}}, (False, True, True)),
        ({"device_traits": {**TRAITS, "multiprocessors": "114"}}, (False, False, True)),
        ({"device_traits": {**TRAITS, "memory": "80 GiB"}}, (False, False, True)),
        ({"device_model": "NVIDIA H100"}, (False, False, True)),
        (
            {"device_model": "Tesla T4", "device_traits": {**TRAITS, "capability": "7.5"}},
            (False, False, False),
        ),
        ({"device_traits": {}}, (False, False, False)),
    ],
)
def test_each_trait_of_a_gpu_separates_what_it_must(
    changes: dict[str, object], expected: tuple[bool, ...]
) -> None:
    """ECC affects time only, multiprocessors kernels, the capability the stack."""
    gpu = replace(GPU, device_traits=TRAITS)
    assert compare_all(gpu, replace(gpu, **changes)) == expected  # type: ignore[arg-type] # as above


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"torch": "2.14.1+cu130", "driver": "590.2", "compiler": "g++ 13.1.0", "settings": {}}, True),
        ({"device_uuid": "GPU-2", "allocator": "held", "libraries": {}, "python": "3.12"}, True),
        ({"device_model": "NVIDIA B200"}, False),
        ({"clocks": "500 W"}, False),
        ({"cpu": "Intel Xeon"}, False),
        ({"cores": 4}, False),
        ({"threads": 4}, False),
        ({"isa": "avx512"}, False),
        ({"device_traits": {**TRAITS, "ecc": "off"}}, False),
    ],
)
def test_a_machine_is_its_hardware(changes: dict[str, object], *, is_same: bool) -> None:
    """Upgrades of stack and driver keep the machine."""
    gpu = replace(GPU, device_traits=TRAITS)
    other = replace(gpu, **changes)  # type: ignore[arg-type] # as above
    assert (compute_machine_id(other) == compute_machine_id(gpu)) is is_same


def test_the_id_of_a_machine_is_readable() -> None:
    """It is the processor and a hash; a target's has no compiling host."""
    assert re.fullmatch(r"amd-epyc-7763-[0-9a-f]{8}", compute_machine_id(GPU))
    target = replace(CPU, device_kind="target", device_traits=TRAITS)
    assert re.fullmatch(r"[0-9a-f]{8}", compute_machine_id(target))
    assert compute_machine_id(replace(target, cpu="Intel Xeon")) == compute_machine_id(target)


def test_a_cpu_run_does_not_mind_which_gpu_software_is_installed() -> None:
    """Triton, CUDA and driver do not separate CPU runs."""
    other = replace(CPU, triton="3.7.0", cuda="13.0", driver="580.1")
    assert compare_all(CPU, other) == (True, True, True)


def test_the_same_host_has_the_same_code_and_stack() -> None:
    """The same host implies the same codegen, which implies the same stack."""
    for field in fields(Environment):
        for env in (CPU, GPU):
            old = getattr(env, field.name)
            other = {**old, "new": "1"} if isinstance(old, dict) else old + type(old)("1")
            changed = replace(env, **{field.name: other})  # type: ignore[arg-type] # of the field's own type
            host, codegen, stack = compare_all(env, changed)
            assert host <= codegen <= stack


def test_differences_are_described_for_a_person() -> None:
    """Old and new values, or none."""
    other = replace(CPU, torch="2.14.1+cpu", isa="avx512", triton="3.8.0", libraries={"timm": "1.0.0"})
    assert describe_difference(CPU, other) == (
        "instruction set avx2 -> avx512",
        "torch 2.13.0+cpu -> 2.14.1+cpu",
        "triton none -> 3.8.0",
        "library timm none -> 1.0.0",
        "library torchvision 0.28.0+cpu -> none",
        "library transformers 5.23.0 -> none",
    )
    assert describe_difference(CPU, CPU) == ()


def test_packages_are_described_and_not_in_the_id() -> None:
    """Packages are named if both sides have them, and are not in the id."""
    old, new = (replace(CPU, packages={"peft": version}) for version in ("0.1", "0.2"))
    assert compute_environment_id(old) == compute_environment_id(new) == compute_environment_id(CPU)
    assert describe_difference(old, new) == ("package peft 0.1 -> 0.2",)
    assert describe_difference(CPU, new) == describe_difference(old, CPU) == ()


@pytest.mark.parametrize(("env", "count"), [(CPU, 0), (GPU, 3)], ids=["cpu", "gpu"])
def test_what_a_device_does_not_use_cannot_have_acted(env: Environment, count: int) -> None:
    """Triton, CUDA and driver affect GPUs only, a card's number nothing, torch everything."""
    other = replace(env, triton="9", cuda="9", driver="9", device_uuid="9")
    assert len(describe_acting(env, other)) == count
    assert len(describe_difference(env, other)) == 4
    assert describe_acting(env, replace(other, torch="9"))[0].startswith("driver" if count else "torch")


def test_stored_baselines_still_apply() -> None:
    """Ids stay, and fields of GPUs do not change those of CPUs."""
    stored = list((ROOT / "baselines").glob("*/*/*.json"))
    assert stored
    for path in stored:
        baseline = BASELINE.decode(path.read_bytes(), str(path))
        assert compute_environment_id(baseline.environment) == path.parts[-3]
        assert bool(baseline.environment.device_traits) is path.parts[-3].startswith("cuda-")


def test_a_cpu_has_no_traits_and_no_cuda_libraries() -> None:
    """A CPU's environment is as before there were traits."""
    request = WorkerRequest(
        role=WorkerRole.PRIME, case=None, device="cpu", threads=2, directory="", result=""
    )
    captured = capture_environment(CpuDevice(), request)
    assert captured.device_traits == {}
    assert captured.libraries.keys() <= {"diffusers", "timm", "torchvision", "transformers"}
    assert captured.settings.keys() == {"deterministic", "float32_matmul_precision", "system"}
    assert captured.settings["float32_matmul_precision"] == "highest"
    assert captured.packages["numpy"] == metadata.version("numpy")
    assert captured.packages.keys().isdisjoint({"torch", "transformers"})


TARGET = replace(
    CPU,
    device_kind="target",
    device_model="cuda:sm_90",
    triton="3.8.0",
    isa="",
    device_traits={"capability": "9.0", "multiprocessors": "132", "memory": "80 GiB"},
)


def test_a_target_is_the_same_wherever_it_is_compiled_for() -> None:
    """Cores, processor, threads and compiler of the machine do not count for a target."""
    elsewhere = replace(TARGET, cpu="Intel Xeon", cores=64, threads=8, compiler="g++ 14", clocks="x")
    assert compare_all(TARGET, elsewhere) == (True, True, True)
    assert compute_environment_id(TARGET) == compute_environment_id(elsewhere)
    assert compute_environment_id(TARGET).startswith("target-cuda-sm-90-torch2.13.0-")


@pytest.mark.parametrize(
    "other",
    [
        replace(TARGET, triton="3.9.0"),
        replace(TARGET, device_traits={**TARGET.device_traits, "capability": "8.0"}),
        replace(TARGET, device_kind="cuda", device_model="NVIDIA H100"),
        replace(CPU, device_kind="cpu"),
    ],
)
def test_a_target_is_compared_with_nothing_else(other: Environment) -> None:
    """Not with another triton, target, device or processor."""
    assert compare_all(TARGET, other) == (False, False, False)
