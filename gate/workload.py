"""What a model's factory returns; importing this does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gate.errors import UsageError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model and one set of inputs, built on the CPU in float32 under the seed that the gate set.

    The gate moves the modules and tensors of ``forward`` and ``loss``, those that they close over too, and
    the floating-point inputs to the case's device and dtype, and makes its own float64 copy for the
    reference.

    ``loss`` maps the forward output to a scalar tensor and makes a training step possible. ``optimizer`` gets
    the parameters and returns a ``torch.optim.Optimizer``; without it a training step ends after the backward
    pass. ``exact`` is the module that the float64 reference is made of, where that is not ``forward``: a
    quantized model is compared with what it was before.

    Raises:
        UsageError: A part is not what it must be.
    """

    forward: Callable[..., Any]  # torch.nn.Module, a method of one, or a function
    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], torch.Tensor] | None = None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = None
    exact: torch.nn.Module | None = None

    def __post_init__(self) -> None:
        _check_callable("forward", self.forward, "a torch.nn.Module or a function")
        if not isinstance(self.inputs, tuple):
            fix = "Write a tuple of the arguments of forward: inputs=(x,) for a single one."
            raise UsageError(f"gate.Workload: inputs is {type(self.inputs).__name__}, not a tuple", fix)
        if not isinstance(self.kwargs, Mapping) or not all(isinstance(name, str) for name in self.kwargs):
            message = f"gate.Workload: kwargs is {type(self.kwargs).__name__}, not a mapping of names"
            raise UsageError(message, "Write the keyword arguments of forward: kwargs={'mask': mask}.")
        if self.loss is not None:
            _check_callable("loss", self.loss, "a function of forward's output that returns a scalar tensor")
        if self.optimizer is not None:
            what = (
                "a function of the parameters that returns an optimizer: lambda p: torch.optim.SGD(p, lr=0.1)"
            )
            _check_callable("optimizer", self.optimizer, what)


def _check_callable(name: str, value: object, what: str) -> None:
    if not callable(value):
        message = f"gate.Workload: {name} is {type(value).__name__}, not callable"
        raise UsageError(message, f"Give {what}.")
