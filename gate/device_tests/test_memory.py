"""Memory: that peaks count what is held, that of CUDA graphs too, and that a full card is recognized."""

from typing import Any

import pytest
import torch

from gate.device_tests.plugin import DeviceReport
from gate.device_tests.test_clocks import make_graphed
from gate.lab.trials.pairs import is_crowded
from gate.measure.device.device import Device
from gate.measure.numerics.reference import is_out_of_memory
from gate.measure.rounds import call_until_quiet
from gate.sizes import GIB, MIB

_HELD = 64 * MIB
_QUIET_CALLS = 5


@pytest.mark.cpu(judged=True)
def test_a_peak_counts_what_is_held(device: Device, report: DeviceReport) -> None:
    """A call that holds 64 MiB grows memory by that: exactly on a GPU, within 2 MiB in a process."""

    def run() -> object:
        return torch.ones(_HELD, dtype=torch.uint8, device=device.name)

    run()
    grown = device.measure_growth(run)
    tolerated = 0 if device.kind.is_gpu else 2
    report.check_range(grown / MIB, 64 - tolerated, 64 + tolerated, "MiB")


@pytest.mark.timeout(300)
def test_a_graph_keeps_its_intermediates_in_a_private_pool(device: Device, report: DeviceReport) -> None:
    """What stays in use grows by the 64 MiB and more that a CUDA graph needs while it is replayed."""
    step = make_graphed(device)
    before = device.read_resident(0)
    call_until_quiet(step, device, _QUIET_CALLS)
    grown = device.read_resident(0) - before
    segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call] # torch's
    kept = [{name: value for name, value in segment.items() if name != "blocks"} for segment in segments]
    report.keep("segments.json", kept)
    report.keep("memory-stats.json", torch.cuda.memory_stats())
    pools = sorted({tuple(segment["segment_pool_id"]) for segment in segments})
    report.check_range(grown / MIB, 64, 2048, "MiB", "grown")
    report.check((0, 0) in pools and len(pools) > 1, pools, part="pools")
    report.note(f"{device.measure_growth(step) / MIB:.1f} MiB", "replay allocates")


@pytest.mark.timeout(180)
def test_a_full_card_is_recognized(device: Device, report: DeviceReport) -> None:
    """Torch's own error, and what libraries say with no memory left, are recognized as such."""
    held: list[torch.Tensor] = []
    errors = {"torch": _ask_for_all(device, held)}
    for name, run in _LIBRARIES.items():
        try:
            run(device)
            errors[name] = None
        except RuntimeError as error:
            errors[name] = error
    held.clear()
    device.free_memory()
    report.keep("full-card.json", {name: str(error) for name, error in errors.items()})
    for name, shortage in errors.items():
        if shortage is None:
            report.note("had enough", name)
        else:
            first = f"{type(shortage).__name__}: {str(shortage).splitlines()[0][:100]}"
            report.check(is_out_of_memory(shortage) and is_crowded(str(shortage)), first, part=name)


def _ask_for_all(device: Device, held: list[torch.Tensor]) -> RuntimeError | None:
    size = GIB
    while size >= MIB:
        try:
            held.append(torch.empty(size, dtype=torch.uint8, device=device.name))
        except RuntimeError as error:
            last, size = error, size // 2
    return last


def _convolve(device: Device) -> object:
    image = torch.ones(1, 1, 64, 64, device=device.name, dtype=torch.float64)
    return torch.nn.functional.conv2d(image, image[:, :, :5, :5])


def _multiply(device: Device) -> object:
    matrix = torch.ones(64, 64, device=device.name, dtype=torch.float64)
    return matrix @ matrix


def _solve(device: Device) -> object:
    return torch.linalg.inv(torch.eye(64, device=device.name))


_LIBRARIES = {"cuBLAS": _multiply, "cuDNN": _convolve, "cuSOLVER": _solve}
