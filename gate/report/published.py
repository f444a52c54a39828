"""Figures that others have published, to be read beside a run's own: data, with source and hardware.

An entry needs a public address at which its numbers stand. They are other people's: another machine, another
torch, another harness. None of them decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from gate.records import Mode, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where figures stand, and what they were measured on as far as that is said there."""

    address: str
    hardware: str
    torch: str


# The data behind https://huggingface.co/docs/transformers/perf_torch_compile, which says: torch 2.0.1, mode
# ``default``, the mean of 300 inferences of one image. It does not state the floating-point type.
_TRANSFORMERS_A100 = Source(
    address="https://huggingface.co/datasets/stevhliu/compile-benchmarks/blob/main/a100-benchmarks.csv",
    hardware="NVIDIA A100",
    torch="2.0.1",
)


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One call of a model, eager and compiled. ``size`` is that of the registry that means the same."""

    model: str
    size: str
    batch: int
    eager_ms: float
    compiled_ms: float
    task: Task = Task.INFERENCE
    mode: Mode = Mode.DEFAULT
    source: Source = _TRANSFORMERS_A100

    @property
    def speedup(self) -> float:
        """Eager over compiled latency."""
        return self.eager_ms / self.compiled_ms


PUBLISHED = (
    PublishedFigure("resnet50_batches", "batch1", 1, 6.531, 4.124),
    PublishedFigure("resnet50_batches", "batch16", 16, 7.018, 5.024),
    # The registry's own batch is 64: the nearest that was published.
    PublishedFigure("vit", "full", 16, 40.944, 40.01),
    PublishedFigure("convnext", "full", 16, 82.258, 75.561),
)
