"""The worker's result on disk."""

import inspect
import json
import math
from pathlib import Path

import pytest
import torch

from gate.errors import UsageError
from gate.measure.failures import NotFiniteError, describe_error, make_worker_failure
from gate.measure.logbook import Logbook
from gate.records.cases import Metric
from gate.records.protocol import Stage, WorkerRole
from tests.words import make_warnings


def load(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text())
    return content


def test_file_names_the_stage_being_entered(tmp_path: Path) -> None:
    """After a crash the file names the stage in which it happened."""
    logbook = Logbook(tmp_path / "result.json", WorkerRole.COLD)
    logbook.enter(Stage.COMPILE)
    content = load(tmp_path / "result.json")
    assert content["stage"] == "compile"
    assert list(content["stages_s"]) == ["start"]  # type: ignore[call-overload]


def test_time_after_leaving_is_the_tools_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stage times add up over visits; what comes after ``leave`` counts as start."""
    clock = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr("gate.measure.logbook.time.perf_counter", lambda: next(clock))
    logbook = Logbook(None, WorkerRole.COLD)
    logbook.enter(Stage.CANARY)
    logbook.enter(Stage.ROUNDS)
    logbook.leave()
    logbook.enter(Stage.DONE)
    assert {"start": 1.0 + 4.0, "canary": 2.0, "rounds": 3.0} == dict(logbook.result.stages_s)


def test_failure_keeps_its_stage(tmp_path: Path) -> None:
    """The failure's message is one line, the traceback is kept, the stage stays."""
    logbook = Logbook(tmp_path / "result.json", WorkerRole.WARM)
    logbook.enter(Stage.BUILD)
    logbook.fail(ValueError("no weights\nmore about it"))
    content = load(tmp_path / "result.json")
    failure = content["failure"]
    assert content["stage"] == "build"
    assert isinstance(failure, dict)
    assert (failure["kind"], failure["fact"]["names"]["message"]) == ("error", ["ValueError: no weights"])
    assert failure["traceback"] == "ValueError: no weights\nmore about it\n"


def test_not_finite_has_its_own_kind() -> None:
    """NaN in an output is no exception's kind."""
    logbook = Logbook(None, WorkerRole.WARM)
    logbook.fail(NotFiniteError("NaN in output of the eager call"))
    assert logbook.result.failure is not None
    assert logbook.result.failure.kind == "not_finite"
    assert logbook.result.failure.fact.name("message") == "NaN in output of the eager call"


def test_samples_must_be_finite() -> None:
    """A measurement that is not a number is refused where it is made."""
    with pytest.raises(NotFiniteError, match="drift"):
        Logbook(None, WorkerRole.WARM).add_samples({Metric.DRIFT: (math.nan,)})


def test_warning_is_reported_once() -> None:
    """The same warning from several stages is one warning."""
    logbook = Logbook(None, WorkerRole.COLD)
    logbook.add_warnings(*make_warnings("a", "b"))
    logbook.add_warnings(*make_warnings("a"))
    assert logbook.result.warnings == make_warnings("a", "b")


def view_wrongly(value: torch.Tensor) -> torch.Tensor:
    """Fail in eager too."""
    return value.view(3, 7)


def test_what_fails_as_it_is_traced_is_reported_as_eager_would() -> None:
    """Dynamo's texts, frames and advice stay in the log."""
    with pytest.raises(Exception, match="making fake tensor call") as caught:
        torch.compile(view_wrongly, backend="eager")(torch.zeros(4, 8))
    failure = make_worker_failure(caught.value)
    message = "RuntimeError: shape '[3, 7]' is invalid for input of size 32"
    line = inspect.getsourcelines(view_wrongly)[1] + 2
    assert failure.fact.name("message") == message
    assert failure.traceback.splitlines()[:3] == [
        "Traceback (most recent call last):",
        f'  File "{__file__}", line {line}, in view_wrongly',
        "    return value.view(3, 7)",
    ]
    assert failure.traceback.endswith(f"\n{message}\n")
    assert "fake" not in failure.traceback


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(ValueError("x\ny"), "ValueError: x", id="first line"),
        pytest.param(KeyError(), "KeyError", id="nothing said"),
        pytest.param(UsageError("what", "fix"), "what", id="our own"),
    ],
)
def test_errors_are_described_in_one_line(error: Exception, expected: str) -> None:
    """The type names the error; our own errors are sentences."""
    assert expected == describe_error(error)
