"""A release without one of the private names loses the metrics of that name, with a warning."""

from pathlib import Path

import pytest
import torch

from gate.devices import CPU
from gate.measure import graph
from gate.measure.compile_options import keep_options, read_options, read_set_options
from gate.measure.device.cpu import CpuDevice
from gate.measure.private import PRIVATE_NAMES, TRITON_DRIVER, PrivateName
from gate.measure.toolchain import list_isas, load_toolchain


@pytest.mark.parametrize(
    "name",
    [private for private in PRIVATE_NAMES if private is not TRITON_DRIVER],
    ids=lambda private: private.name,
)
def test_this_release_has_them_all(name: PrivateName) -> None:
    """Triton's too, where it is installed."""
    assert name.find() is not None


@pytest.mark.parametrize("gone", PRIVATE_NAMES, ids=lambda private: f"{private.module}.{private.name}")
def test_one_name_less_leaves_its_own_metrics_unknown(
    gone: PrivateName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other metric is lost."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    find = PrivateName.find
    monkeypatch.setattr(PrivateName, "find", lambda name: None if name == gone else find(name))
    device = CpuDevice()
    assert device.kind is CPU
    torch.compiler.reset()
    load_toolchain(device)
    keep_options()
    graph.start_observation()
    compiled = torch.compile(_break_once, backend="eager")
    compiled(torch.ones(2))
    compiled(torch.ones(2, 2, 2))
    report = graph.observe_graphs("")
    assert {metric for fact in report.unknown for metric in fact.metrics} == gone.metrics
    assert gone.metrics.isdisjoint(report.counts)
    assert (graph.count_compiles() > 0, graph.awaits_capture(0)) == (True, False)
    assert read_set_options() == {}
    assert read_options()
    assert isinstance(list_isas(), tuple)
    assert graph.get_cache_directory() == tmp_path


def _break_once(tensor: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return tensor + 1
