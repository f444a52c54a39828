"""A cold process's calls, without any compile."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gate.devices import CPU, CUDA, DeviceKind
from gate.measure import graph, trial
from gate.measure.context import open_case
from gate.measure.device.cpu import CpuDevice
from gate.measure.graph import GraphReport
from gate.measure.logbook import Logbook
from gate.measure.rounds import Rounds
from gate.measure.trial import measure_warm
from gate.records.cases import Case, Kind, Metric
from gate.records.facts import FIRST_CALL
from gate.records.protocol import Offer, RoundPlan, Sampling, WorkerRole
from gate.workload import Workload
from tests.words import describe_measuring

from .contexts import make_context


class PlayedDevice(CpuDevice):
    """The processor, as a device of another kind."""

    def __init__(self, kind: DeviceKind) -> None:
        super().__init__()
        self.kind = kind


@pytest.mark.parametrize(("kind", "later"), [(CUDA, {"cudagraph_capture": 1.25}), (CPU, {})])
def test_what_later_calls_capture_is_reported(
    monkeypatch: pytest.MonkeyPatch, kind: DeviceKind, later: dict[str, float]
) -> None:
    """A graphed case captures in its second call; the first call's figures stay."""
    first = {"dynamo": 3.0, FIRST_CALL: 5.0}
    logbook = Logbook(None, WorkerRole.COLD)
    logbook.record(phases_s=first)
    context = make_context(logbook, device=PlayedDevice(kind), sampling=Sampling())
    report = GraphReport(counts={}, phases_s={"dynamo": 3.5, "cudagraph_capture": 1.25})
    monkeypatch.setattr(graph, "observe_graphs", lambda _: report)
    trial._record_later_phases(context)
    assert logbook.result.phases_s == {**first, **later}


class PlayedTurns:
    """The lab's side: it gives a turn at once, and two super-blocks."""

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def arrive(self) -> None:
        """Note the arrival."""
        self.events.append("arrive")

    def agree(self, offer: Offer) -> RoundPlan:
        """As offered."""
        return RoundPlan(super_blocks=2, sizes=offer.sizes)

    def wait(self, _: float = 0.0) -> bool:
        """Go on."""
        return True

    def take_waited_s(self) -> float:
        """Nobody waits."""
        return 0.0


@pytest.mark.parametrize(("keys", "calls"), [({"key"}, 0), (set(), 3)])
def test_an_arm_calls_in_its_turn_unless_both_compile_at_once(
    monkeypatch: pytest.MonkeyPatch, keys: set[str], calls: int
) -> None:
    """Without code in the caches two eager calls and the untimed compile come before the turn."""
    events: list[str] = []

    def forward(value: torch.Tensor) -> torch.Tensor:
        events.append("call")
        return value + 1

    monkeypatch.setattr(trial, "list_graph_keys", lambda _: keys)
    monkeypatch.setattr(trial, "run_canaries", lambda _: {})
    context = make_context(
        Logbook(None, WorkerRole.ROUNDS),
        Case(id="m/c", model="m", backend="eager"),
        sampling=Sampling(super_blocks=2, warmup_s=0.0),
        turns=PlayedTurns(events),
    )
    trial.measure_again(context, Workload(forward=forward, inputs=(torch.ones(4),)), play_rounds)
    torch.compiler.reset()
    assert (events.index("arrive"), events.count("arrive")) == (calls, 1)


def play_rounds(target: Callable[[], float | None], lead_in: Callable[[], None], rounds: int) -> list[float]:
    """Run the blocks, of a millisecond each."""
    for _ in range(rounds):
        lead_in()
        target()
    return [0.001] * rounds


@pytest.mark.parametrize("is_there", [False, True])
def test_a_process_that_finds_no_artifacts_saves_them_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """After an interruption a second pair finds empty caches."""
    loaded: list[bytes] = []
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: (b"saved", None))
    monkeypatch.setattr(torch.compiler, "load_cache_artifacts", loaded.append)
    monkeypatch.setattr(trial, "run_canaries", lambda _: {})
    if is_there:
        (tmp_path / "artifacts.bin").write_bytes(b"of the first pair")
    logbook = Logbook(None, WorkerRole.ROUNDS)
    context = make_context(
        logbook,
        Case(id="m/c", model="m", kind=Kind.CACHE, backend="eager"),
        sampling=Sampling(super_blocks=2, warmup_s=0.0, drift_seeds=1),
        skips_calls=True,
    )
    workload = Workload(forward=torch.nn.Linear(8, 8), inputs=(torch.randn(4, 8),))
    trial.measure_again(context, workload, play_rounds)
    assert Metric.PACKAGE_BYTES not in logbook.result.samples
    torch.compiler.reset()
    measure_warm(context, workload)
    assert loaded == [b"of the first pair" if is_there else b"saved"]
    assert len(logbook.result.samples[Metric.WARM_COMPILE_TIME]) == 1


def test_blocks_that_a_recompile_spoilt_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the timed blocks compiled: their times are not those of a call."""
    rounds = Rounds(times={}, calls={}, recompiled=2)
    monkeypatch.setattr(trial, "run_rounds", lambda *_: rounds)
    logbook = Logbook(None, WorkerRole.COLD)
    context = make_context(
        logbook, Case(id="m/c", model="m", backend="eager"), sampling=Sampling(super_blocks=2, warmup_s=0.0)
    )
    workload = Workload(forward=torch.nn.Linear(8, 8), inputs=(torch.randn(4, 8),))
    with open_case(context, workload) as prepared:
        assert trial.measure_rounds(context, prepared, play_rounds) is rounds
    warning = "recompiled during 2 of the timed blocks; they are left out"
    assert [describe_measuring(fact) for fact in logbook.result.warnings][-1] == warning
