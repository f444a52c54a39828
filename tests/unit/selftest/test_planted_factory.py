"""A planted fault leaves the workload as it is, but for a seam around its forward."""

import copy
import sys
import time
import types
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from gate.records.studies import FaultKind
from gate.selftest import planted
from gate.selftest.planted import Planted, plant
from gate.workload import Workload

MODULE = "planted_shop"


class Two(nn.Module):
    """Two outputs, one of them of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer(value), value.argmax(1)


def build_module(*, batch: int) -> Workload:
    return Workload(forward=Two(), inputs=(torch.randn(batch, 4),), loss=lambda output: output[0].sum())


def build_function(*, batch: int) -> Workload:
    return Workload(forward=torch.sin, inputs=(torch.randn(batch),))


@pytest.fixture(autouse=True)
def _shop() -> Iterator[None]:
    """Make the factories importable."""
    shop = types.ModuleType(MODULE)
    shop.__dict__.update(module=build_module, function=build_function, nothing=lambda: None)
    sys.modules[MODULE] = shop
    yield
    del sys.modules[MODULE]


def plant_module(fault: str, amount: float = 0.0) -> Workload:
    """Plant a fault into the module."""
    return plant(factory=f"{MODULE}:module", arguments={"batch": 2}, fault=fault, amount=amount)


HARMLESS_IN_EAGER = sorted(set(FaultKind) - {FaultKind.CRASH, FaultKind.HANG, FaultKind.VANISHED})


@pytest.mark.parametrize("fault", HARMLESS_IN_EAGER)
def test_eager_computes_the_same(fault: str) -> None:
    """Outside of a compile no fault changes a result, neither floating-point nor integer."""
    workload = plant_module(fault, 1e-4)
    assert isinstance(workload.forward, Planted)
    expected = workload.forward.inner(*workload.inputs)
    for got, wanted in zip(workload.forward(*workload.inputs), expected, strict=True):
        assert torch.equal(got, wanted)


def test_module_keeps_its_parameters_and_its_twin() -> None:
    """The same parameters, no buffer to be saved, and a copy in float64 whose ticket is no float."""
    workload = plant_module("slowdown", 1e-4)
    assert isinstance(workload.forward, Planted)
    assert ["inner.layer.weight", "inner.layer.bias"] == list(workload.forward.state_dict())
    twin = copy.deepcopy(workload.forward).double()
    assert {"ticket": torch.int64} == {name: value.dtype for name, value in twin.named_buffers()}
    assert {torch.float64} == {value.dtype for value in twin.parameters()}
    assert torch.equal(twin(workload.inputs[0].double())[1], workload.forward(*workload.inputs)[1])


def test_the_rest_of_the_workload_stays() -> None:
    """Inputs and loss are the original factory's."""
    torch.manual_seed(1)
    original = build_module(batch=2)
    torch.manual_seed(1)
    workload = plant_module("nothing")
    assert torch.equal(original.inputs[0], workload.inputs[0])
    assert workload.loss is not None


def test_function_stays_a_function() -> None:
    """So that gradients are still taken of its inputs."""
    workload = plant(factory=f"{MODULE}:function", arguments={"batch": 8}, fault="slowdown", amount=1e-4)
    assert not isinstance(workload.forward, nn.Module)
    assert torch.equal(torch.sin(workload.inputs[0]), workload.forward(*workload.inputs))


def test_slower_eager() -> None:
    """20 ms are planted into each eager call of the function, and a compiled slowdown costs eager nothing.

    By the clock of this thread, which other programs do not stop.
    """

    def time_call(fault: str, read_s: Callable[[], float]) -> float:
        workload = plant(factory=f"{MODULE}:function", arguments={"batch": 8}, fault=fault, amount=0.020)
        workload.forward(*workload.inputs)
        begun = read_s()
        workload.forward(*workload.inputs)
        return read_s() - begun

    assert time_call("eager_faster", time.perf_counter) >= 0.0199
    assert time_call("slowdown", time.thread_time) < 0.020


def test_burning_takes_its_overhead_into_account() -> None:
    """A burn of 2 ms ends after 2 ms at the earliest, less what calling an operator costs."""
    ticket = planted.make_ticket()
    overhead_s = planted.measure_overhead_s()
    begun = time.perf_counter()
    planted.burn(ticket, 0.002)
    assert time.perf_counter() - begun >= 0.002 - overhead_s
    assert 0 < overhead_s < 0.001


def test_coarsening() -> None:
    """1 + 2^-8 is no bfloat16: float32 loses it; bfloat16's 1 + 2^-7 is lost in eight bits; ints stay."""
    assert torch.equal(torch.tensor([1.0]), planted.coarsen(torch.tensor([1.0 + 2**-9])))
    half = torch.tensor([1.0 + 2**-7], dtype=torch.bfloat16)
    assert torch.equal(torch.tensor([1.0], dtype=torch.bfloat16), planted.coarsen(half))


def test_coarsening_passes_the_gradient_on() -> None:
    """Its gradient is the identity's."""
    value = torch.tensor([1.3], requires_grad=True)
    torch.autograd.backward(planted.coarsen(value).sum())
    assert value.grad is not None
    assert value.grad.item() == 1.0


def test_reserved_memory_is_released() -> None:
    """What is reserved is alive until it is released."""
    ticket = planted.make_ticket()
    torch.ops.gate_faults.reserve(ticket, 1024)
    assert [1024] == [held.numel() for held in planted._held]
    torch.ops.gate_faults.release(ticket, [torch.ones(1)])
    assert [] == planted._held


def test_unknown_fault() -> None:
    """It is an error, not a harmless case."""
    with pytest.raises(ValueError, match="sabotage"):
        plant_module("sabotage")


def test_factory_that_returns_something_else() -> None:
    """The error names it, as without a fault."""
    with pytest.raises(TypeError, match="planted_shop:nothing returned NoneType"):
        plant(factory=f"{MODULE}:nothing", arguments={}, fault="nothing")
