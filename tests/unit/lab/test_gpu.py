"""What nvidia-smi says, parsed."""

from __future__ import annotations

import pytest

from gate.lab.gpu import GpuState, find_gpu, parse_gpus

TABLE = """\
0, GPU-aaaa, NVIDIA H200, 580.65.06, 345, 1980, 0x0000000000000001, 31, Enabled, Disabled, 0, 143771
1, GPU-bbbb, NVIDIA H200, 580.65.06, 1200, 1980, 0x0000000000000060, 88, Disabled, Enabled, 900, 143771
2, GPU-cccc, NVIDIA GeForce GTX 1650, 580.65.06, [N/A], [N/A], [N/A], 40, Enabled, [N/A], 12, 4096
"""
PROCESSES = "GPU-bbbb, 101\nGPU-bbbb, 102\n"


def test_parses_every_gpu() -> None:
    """Numbers, throttle reasons and processes of each GPU are read; what is not told is 0 or false."""
    first, second, third = parse_gpus(TABLE, PROCESSES)
    assert first == GpuState(
        index=0,
        uuid="GPU-aaaa",
        name="NVIDIA H200",
        driver="580.65.06",
        clock_mhz=345.0,
        max_clock_mhz=1980.0,
        temperature_c=31.0,
        persistent=True,
        memory_total_mib=143771.0,
    )
    assert (second.processes, second.mig, second.persistent) == (2, True, False)
    assert second.throttled == ("software thermal slowdown", "hardware thermal slowdown")
    assert (third.clock_mhz, third.throttled, third.mig) == (0.0, (), False)


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
    """A device means what CUDA_VISIBLE_DEVICES makes of it, by number or by UUID."""
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    found = find_gpu(parse_gpus(TABLE, ""), device, environ)
    assert expected == (found.index if found else None)
