"""The float64 reference of what has no float64, or cannot be copied."""

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from gate.measure.device.cpu import CpuDevice
from gate.measure.logbook import Logbook
from gate.measure.numerics.drift import MISMATCH
from gate.measure.numerics.exact import in_float64, multiply_groups
from gate.measure.seed_drift import CompiledSubject, measure_drift
from gate.measure.workload.build import build_workload, make_subject
from gate.records.cases import Case, DType, Metric
from gate.records.codes import Code
from gate.records.protocol import Sampling, WorkerResult, WorkerRole
from gate.workload import Workload

from .contexts import make_context


class Experts(torch.nn.Module):
    """Three experts, each with its rows, as layers of a mixture of them are computed."""

    ends: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 16, 8))
        self.register_buffer("ends", torch.tensor([16, 16, 48], dtype=torch.int32), persistent=False)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.grouped_mm(value, self.weight, offs=self.ends)


class Locked(torch.nn.Linear):
    """A layer with a lock, which nothing can copy."""

    def __init__(self) -> None:
        super().__init__(16, 8)
        self.lock = threading.Lock()


class Single(torch.nn.Linear):
    """A layer whose kernel has every type but float64."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        if value.dtype == torch.float64:
            raise TypeError("no float64 here")
        return super().forward(value)


FACTORIES: dict[str, Callable[[], torch.nn.Module]] = {
    "experts": Experts,
    "locked": Locked,
    "single": lambda: Single(16, 8),
}


def measure(monkeypatch: pytest.MonkeyPatch, name: str, factor: float, dtype: DType) -> WorkerResult:
    """Measure the drift of a model that is multiplied when it is compiled."""
    module = ModuleType("made_up_float64")
    module.build = lambda: Workload(forward=FACTORIES[name](), inputs=(torch.randn(48, 16),))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_up_float64", module)
    case = Case(id="m/c", model="m", factory="made_up_float64:build", dtype=dtype)
    logbook = Logbook(None, WorkerRole.WARM)
    context = make_context(logbook, case, sampling=Sampling(drift_seeds=2))
    with torch.no_grad():
        subject = make_subject(build_workload(case), case, CpuDevice())

        def compiled(*inputs: Any) -> Any:
            return subject.workload.forward(*inputs) * factor

        measure_drift(context, CompiledSubject(subject=subject, compiled=compiled))
    return logbook.result


@pytest.mark.parametrize("name", ["experts", "locked"])
def test_there_is_a_reference(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A hundredth is seen as a drift, under both seeds, and what is right as none; nothing is noted."""
    for factor, drifts in ((1.0, False), (1.01, True)):
        result = measure(monkeypatch, name, factor, DType.FLOAT32)
        (drift,) = result.samples[Metric.DRIFT]
        assert (drift > 10) is drifts
        assert drift != MISMATCH
        assert not result.warnings


def test_16_bits_are_compared_with_float32_where_there_is_no_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager's rounding error is a third of a percent: ten percent are 2^4 of it; a note gives the reason."""
    for factor, drifts in ((1.0, False), (1.1, True)):
        result = measure(monkeypatch, "single", factor, DType.BFLOAT16)
        (drift,) = result.samples[Metric.DRIFT]
        assert (4 < drift < MISMATCH) is drifts
        assert [Code.FLOAT32_REFERENCE] == [fact.code for fact in result.warnings]
        assert Metric.DRIFT_FLOAT32 not in result.samples


@pytest.mark.parametrize(
    ("left", "right"),
    [((12, 4), (3, 4, 5)), ((3, 6, 4), (4, 12)), ((6, 12), (12, 5)), ((3, 6, 4), (3, 4, 5))],
)
def test_groups_are_multiplied_as_torch_does(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """In every arrangement of the groups; the second of them is empty, and the last rows are in none."""
    x, y = torch.randn(left), torch.randn(right)
    ends = None if len(left) == len(right) == 3 else torch.tensor([4, 4, 11], dtype=torch.int32)
    expected = torch.stack([a @ b for a, b in zip(x, y, strict=True)]) if ends is None else None
    if ends is not None and len(left) == len(right) == 2:
        expected = torch.stack([x[:, a:b] @ y[a:b] for a, b in ((0, 4), (4, 4), (4, 11))])
    elif ends is not None and len(left) == 2:
        expected = torch.cat([x[:4] @ y[0], x[4:11] @ y[2], torch.zeros(1, 5)])
    elif ends is not None:
        expected = torch.cat([x[0] @ y[:, :4], x[2] @ y[:, 4:11], torch.zeros(6, 1)], dim=1)
    with in_float64():
        product = torch._grouped_mm(x, y, offs=ends)
    torch.testing.assert_close(product, expected)
    torch.testing.assert_close(multiply_groups(x, y, offs=ends), expected)
