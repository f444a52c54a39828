"""The output of nvidia-smi, parsed."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gate.errors import MachineError
from gate.lab.host import gpu as gpu_module
from gate.lab.host.gpu import (
    FIELDS,
    GpuState,
    find_gpu,
    load_gpus,
    name_lock,
    parse_gpus,
    parse_instances,
    read_memory_share,
    refuse_stack,
    show_alone,
)

# As `--format=csv,noheader,nounits` prints FIELDS.
TABLE = """\
0, GPU-aaaa, H200, 580.65, 345, 1980, 31, Enabled, Disabled, Default, \
0, 143771, 00000000:17:00.0, 0x0000000000000001, 9.0
1, GPU-bbbb, H200, 580.65, 1200, 1980, 88, Disabled, Enabled, Default, \
900, 143771, 00000000:2A:00.0, 0x0000000000000060, 9.0
2, GPU-cccc, GTX 1650, 580.65.06, [N/A], [N/A], 40, Enabled, [N/A], Exclusive_Process, \
12, 4096, 00000000:C1:00.0, [N/A], 7.5
"""
LISTED = """\
GPU 0: NVIDIA H200 (UUID: GPU-aaaa)
GPU 1: NVIDIA H200 (UUID: GPU-bbbb)
  MIG 3g.71gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 1g.18gb     Device  1: (UUID: MIG-GPU-bbbb/7/0)
GPU 2: NVIDIA GeForce GTX 1650 (UUID: GPU-cccc)
"""
NVIDIA_SMI = """\
#!/bin/sh
case "$*" in
  *--query-gpu=*) cat "$0.table" ;;
  -L) cat "$0.listed" ;;
esac
"""
PROCESSES = "GPU-bbbb, 101\nGPU-bbbb, 102\n"


def test_parses_every_gpu() -> None:
    """Numbers, throttle reasons and processes of each GPU are read; unknown ones are 0 or false."""
    first, second, third = parse_gpus(TABLE, PROCESSES)
    assert first == GpuState(
        index=0,
        uuid="GPU-aaaa",
        name="H200",
        driver="580.65",
        clock_mhz=345.0,
        max_clock_mhz=1980.0,
        temperature_c=31.0,
        persistent=True,
        memory_total_mib=143771.0,
        capability="9.0",
        bus="00000000:17:00.0",
    )
    assert (second.processes, second.mig, second.persistent) == (2, True, False)
    assert second.throttled == ("software thermal slowdown", "hardware thermal slowdown")
    assert (third.clock_mhz, third.throttled, third.mig) == (0.0, (), False)
    assert [gpu.exclusive for gpu in (first, second, third)] == [False, False, True]
    assert [gpu.blind for gpu in (first, second, third)] == [(), (), ("throttling",)]


@pytest.mark.parametrize(
    "nothing", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]"]
)
def test_words_for_nothing_are_no_values(nothing: str) -> None:
    """Drivers, and cards that share the host's memory, write texts for unknown values."""
    untold = {*FIELDS} - {"index", "uuid", "name", "driver_version", "pci.bus_id"}
    values = {
        "index": "0",
        "uuid": "GPU-dd",
        "name": "GB10",
        "driver_version": "580.95",
        "pci.bus_id": "0000000F:01:00.0",
    }
    row = ", ".join(nothing if field in untold else values[field] for field in FIELDS)
    (gpu,) = parse_gpus(row, "")
    blind = GpuState(
        index=0,
        uuid="GPU-dd",
        name="GB10",
        driver="580.95",
        bus="0000000F:01:00.0",
        blind=("throttling",),
    )
    assert gpu == blind
    assert find_gpu((gpu,), "cuda", {}) is gpu


@pytest.mark.parametrize("table", ["", "No devices were found\n", "Failed to initialize NVML\n", "a, b\n"])
def test_without_gpus(table: str) -> None:
    """Messages instead of a table are no GPUs."""
    assert parse_gpus(table, "") == ()


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        ("cuda", None, 0),
        ("cuda:2", None, 2),
        ("cuda:3", None, None),
        ("cuda", "1", 1),
        ("cuda:1", "2,0", 0),
        ("cuda", "GPU-cc", 2),
        ("cuda", "", None),
        ("cuda:1", "2", None),
    ],
)
def test_finds_the_gpu_of_a_device(device: str, visible: str | None, expected: int | None) -> None:
    """CUDA_VISIBLE_DEVICES maps a device, by number or by UUID."""
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    gpu = find_gpu(parse_gpus(TABLE, ""), device, environ)
    assert expected == (gpu.index if gpu else None)


@pytest.mark.parametrize(
    ("visible", "name", "memory_gib"),
    [
        ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "3g.71gb", 71),
        ("MIG-GPU-bbbb/7/0", "1g.18gb", 18),
        ("1", "", 140),
    ],
)
def test_instances_of_a_gpu_are_found(visible: str, name: str, memory_gib: int) -> None:
    """A MIG name in CUDA_VISIBLE_DEVICES is an instance, with a part of the memory; a number is a board."""
    uuid = visible if name else "GPU-bbbb"
    gpus = parse_gpus(TABLE, "")
    gpu = find_gpu((*gpus, *parse_instances(LISTED, gpus)), "cuda", {"CUDA_VISIBLE_DEVICES": visible})
    assert gpu is not None
    assert (gpu.uuid, gpu.mig, gpu.driver) == (uuid, True, "580.65")
    assert gpu.name.endswith(name)
    assert int(gpu.memory_total_mib / 1024) == memory_gib
    assert "/" not in name_lock("cuda", gpu)
    # A worker that is shown a board in parts may see any of them.
    shown = ("cuda:1", {}) if uuid.startswith("GPU-") else ("cuda", {"CUDA_VISIBLE_DEVICES": uuid})
    assert show_alone(gpu, "cuda:1") == shown


def test_an_nvidia_smi_is_asked_for_gpus_and_their_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boards come first, in the program's order; without the program there are none."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert load_gpus() == ()
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI, encoding="ascii")
    program.chmod(0o755)
    (tmp_path / "nvidia-smi.table").write_text(TABLE, encoding="ascii")
    (tmp_path / "nvidia-smi.listed").write_text(LISTED, encoding="ascii")
    gpus = load_gpus()
    assert [gpu.uuid for gpu in gpus[:3]] == ["GPU-aaaa", "GPU-bbbb", "GPU-cccc"]
    assert len(gpus) == 5


GPU = GpuState(index=0, uuid="GPU-aaaa", name="H200", memory_total_mib=143771.0)


@pytest.mark.parametrize(
    ("printed", "gpu", "share"),
    [
        ("14377\n", GPU, 0.1),
        ("[N/A]\n", GPU, 0.0),
        ("14377\n", None, 0.0),
        ("14377\n", replace(GPU, uuid="MIG-c6d4"), 0.0),  # nvidia-smi reports the board's
        ("14377\n", replace(GPU, memory_total_mib=0.0), 0.0),  # it shares the host's
    ],
)
def test_memory_in_use_is_a_share_of_the_cards(
    printed: str, gpu: GpuState | None, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """14,377 of 143,771 MiB are a tenth; unknown memory is no stranger's."""
    program = tmp_path / "nvidia-smi"
    asked = "--query-gpu=memory.used --format=csv,noheader,nounits --id=GPU-aaaa"
    program.write_text(f'#!/bin/sh\n[ "$*" = "{asked}" ] && printf "%s" "{printed}"\n', encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert read_memory_share(gpu) == pytest.approx(share, abs=1e-5)


def test_a_target_is_refused_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the warm-up, with the package to install."""
    monkeypatch.setattr(gpu_module, "find_spec", lambda name: None if name == "triton" else SimpleNamespace())
    refuse_stack("cpu")
    with pytest.raises(MachineError, match="triton") as refused:
        refuse_stack("cuda:sm_90")
    assert "pip install 'triton" in refused.value.fix


@pytest.mark.parametrize(
    ("device", "built", "refused"),
    [
        ("cuda", ("None", "None"), True),
        ("cuda:1", ("'13.0'", "None"), False),
        ("cuda", ("None", "'6.4'"), False),
        ("cpu", ("None", "None"), False),
        ("cuda:sm_90", ("None", "None"), False),  # a target is compiled for by a CPU build
    ],
)
def test_a_gpu_is_refused_for_a_torch_that_was_built_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, built: tuple[str, str], refused: bool
) -> None:
    """Before torch is imported, whatever the driver reports."""
    text = f"__version__ = '2.13.0+cpu'\ncuda: Optional[str] = {built[0]}\nhip: Optional[str] = {built[1]}\n"
    (tmp_path / "version.py").write_text(text, encoding="utf-8")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(gpu_module, "find_spec", lambda _: spec)
    if not refused:
        refuse_stack(device)
        return
    with pytest.raises(MachineError, match=r"cuda cannot be used: the torch of .* is a CPU build"):
        refuse_stack(device)
