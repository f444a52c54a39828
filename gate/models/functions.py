"""Single functions that most models are made of: into how many kernels each is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.nn import functional

from gate.workload import Workload

EPSILON = 1e-5
CLASSES = 4096  # of scatter and gather: rows that are drawn from


def build_function(*, function: str, rows: int, columns: int) -> Workload:
    """Build one function of ``rows`` x ``columns`` numbers by its name in ``FUNCTIONS``.

    A training step computes the gradient of the mean square of its output in the inputs.
    """
    chosen = FUNCTIONS[function]
    return Workload(
        forward=chosen,
        inputs=(torch.randn(rows, columns), torch.randint(min(columns, CLASSES), (rows,))),
        loss=lambda output: output.square().mean(),
    )


def _reduce(value: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    del index
    return torch.stack((value.sum(-1), value.amax(-1), value.square().mean(-1)))


def _softmax(value: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    del index
    return functional.softmax(value, dim=-1)


def _normalize(value: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    del index
    return functional.layer_norm(value, value.shape[-1:], eps=EPSILON)


def _cross_entropy(value: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(value, index, reduction="none")


def _scatter_gather(value: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Sum the rows of each index, and give each row the sum of its own."""
    sums = torch.zeros_like(value).index_add(0, index % value.shape[0], value)
    return sums[index % value.shape[0]]


FUNCTIONS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "reduce": _reduce,
    "softmax": _softmax,
    "layer_norm": _normalize,
    "cross_entropy": _cross_entropy,
    "scatter_gather": _scatter_gather,
}
