"""Memory: that peaks count what is held, that of CUDA graphs too, and that a full card is recognized."""

from __future__ import annotations

from typing import Any

import torch

from gate.contact.assumptions import CPU, CUDA, Place, assume
from gate.contact.findings import AssumptionResult, claim, expect_range, tell
from gate.lab.trials.pairs import is_crowded
from gate.measure.numerics.reference import is_out_of_memory
from gate.measure.timing.rounds import settle_step

_MIB = 2**20
_HELD = 64 * _MIB
_EDGE = 4096  # a square float32 matrix of 64 MiB
_QUIET_CALLS = 5


def make_graphed(place: Place) -> Any:  # noqa: ANN401 - a compiled function
    """Make a graphed call with two intermediates of 64 MiB that no fusion removes."""
    value = torch.randn(_EDGE, _EDGE, device=place.device.name)
    compiled = torch.compile(lambda one: ((one @ one) @ (one @ one)).sum(), mode="reduce-overhead")

    def step() -> object:
        place.device.mark_step()
        with torch.no_grad():
            return compiled(value)

    return step


@assume(judged=(CPU, CUDA))
def a_peak_counts_what_is_held(place: Place) -> AssumptionResult:
    """A call that holds 64 MiB grows memory by that: exactly on a GPU, within 2 MiB in a process."""

    def run() -> object:
        return torch.ones(_HELD, dtype=torch.uint8, device=place.device.name)

    run()
    grown = place.device.measure_growth(run)
    return (
        expect_range(grown / _MIB, 64, 64, "MiB")
        if place.is_gpu
        else expect_range(grown / _MIB, 62, 66, "MiB")
    )


@assume(CUDA)
def libraries_take_workspaces(place: Place) -> AssumptionResult:
    """What cuBLAS keeps for itself is in both sides' memory; it was 8 MiB, and 32 MiB from Hopper on."""
    left = torch.randn(1024, 1024, device=place.device.name)
    before = torch.cuda.memory_allocated()
    product = left @ left
    kept = torch.cuda.memory_allocated() - before - product.numel() * product.element_size()
    return tell(f"{kept / _MIB:.2f} MiB")


@assume(CUDA, limit_s=300)
def a_graph_keeps_its_intermediates_in_a_private_pool(place: Place) -> dict[str, AssumptionResult]:
    """What stays in use grows by the 64 MiB and more that a CUDA graph needs while it is replayed."""
    step = make_graphed(place)
    before = place.device.read_resident(0)
    settle_step(step, place.device, _QUIET_CALLS)
    grown = place.device.read_resident(0) - before
    segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call] # torch's
    kept = [{name: value for name, value in one.items() if name != "blocks"} for one in segments]
    place.keep("segments.json", kept)
    place.keep("memory-stats.json", torch.cuda.memory_stats())
    pools = sorted({tuple(one["segment_pool_id"]) for one in segments})
    return {
        "grown": expect_range(grown / _MIB, 64, 2048, "MiB"),
        "pools": claim((0, 0) in pools and len(pools) > 1, pools),
        "replay allocates": tell(f"{place.device.measure_growth(step) / _MIB:.1f} MiB"),
    }


@assume(CUDA, limit_s=180)
def a_full_card_is_recognized(place: Place) -> dict[str, AssumptionResult]:
    """Torch's own error, and what libraries say with no memory left, are recognized as such."""
    held: list[torch.Tensor] = []
    said = {"torch": _ask_for_all(place, held)}
    for name, run in _LIBRARIES.items():
        try:
            run(place)
            said[name] = None
        except RuntimeError as error:
            said[name] = error
    held.clear()
    place.device.free_memory()
    place.keep("full-card.json", {name: str(error) for name, error in said.items()})
    return {name: _judge_shortage(error) for name, error in said.items()}


def _judge_shortage(error: RuntimeError | None) -> AssumptionResult:
    if error is None:
        return tell("had enough")
    first = str(error).splitlines()[0][:100]
    return claim(is_out_of_memory(error) and is_crowded(str(error)), f"{type(error).__name__}: {first}")


def _ask_for_all(place: Place, held: list[torch.Tensor]) -> RuntimeError | None:
    size = 2**30
    while size >= _MIB:
        try:
            held.append(torch.empty(size, dtype=torch.uint8, device=place.device.name))
        except RuntimeError as error:
            last, size = error, size // 2
    return last


def _convolve(place: Place) -> object:
    image = torch.ones(1, 1, 64, 64, device=place.device.name, dtype=torch.float64)
    return torch.nn.functional.conv2d(image, image[:, :, :5, :5])


def _multiply(place: Place) -> object:
    one = torch.ones(64, 64, device=place.device.name, dtype=torch.float64)
    return one @ one


def _solve(place: Place) -> object:
    return torch.linalg.inv(torch.eye(64, device=place.device.name))


_LIBRARIES = {"cuBLAS": _multiply, "cuDNN": _convolve, "cuSOLVER": _solve}
