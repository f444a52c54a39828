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


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedFigure:
    """One call of a model, eager and compiled. ``sizes`` are those of the registry that mean the same."""

    model: str
    sizes: tuple[str, ...]
    task: Task
    mode: Mode
    batch: int
    eager_s: float
    compiled_s: float
    source: Source

    @property
    def speedup(self) -> float:
        """Eager over compiled latency."""
        return self.eager_s / self.compiled_s


# The data behind https://huggingface.co/docs/transformers/perf_torch_compile, which says: torch 2.0.1, mode
# ``default``, the mean of 300 inferences of one image. It does not state the floating-point type.
_TRANSFORMERS_A100 = Source(
    address="https://huggingface.co/datasets/stevhliu/compile-benchmarks/blob/main/a100-benchmarks.csv",
    hardware="NVIDIA A100",
    torch="2.0.1",
)


def _classify(model: str, size: str, batch: int, eager_ms: float, compiled_ms: float) -> PublishedFigure:
    """An image classifier of those data, whose times are in milliseconds."""
    return PublishedFigure(
        model=model,
        sizes=(size,),
        task=Task.INFERENCE,
        mode=Mode.DEFAULT,
        batch=batch,
        eager_s=eager_ms / 1000,
        compiled_s=compiled_ms / 1000,
        source=_TRANSFORMERS_A100,
    )


PUBLISHED = (
    _classify("resnet50_batches", "batch1", 1, 6.531, 4.124),
    _classify("resnet50_batches", "batch16", 16, 7.018, 5.024),
    # The registry's own batch is 64: the nearest that was published.
    _classify("vit", "full", 16, 40.944, 40.01),
    _classify("convnext", "full", 16, 82.258, 75.561),
)
