"""What a model's factory returns; importing this does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model and one set of inputs, built on the CPU in float32 under the seed that the gate set.

    The gate moves ``forward`` (when it is a module) and the floating-point inputs to the case's
    device and dtype, and makes its own float64 copy for the reference: a factory does neither.

    ``loss`` maps the forward output to a scalar tensor and makes a training step possible.
    ``optimizer`` gets the parameters and returns a ``torch.optim.Optimizer``; without it a training
    step ends after the backward pass.
    """

    forward: Callable[..., Any]  # torch.nn.Module or function
    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], torch.Tensor] | None = None
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = None
