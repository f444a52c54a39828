"""The worker's call of pytest."""

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gate.files import codec
from gate.records.cases import Case
from gate.records.protocol import Stage, WorkerRequest, WorkerResult, WorkerRole
from gate.records.run import CaseFailure, FailureKind
from gate.report.words.facts import describe_failure
from gate.worker.worker import make_arguments, run_request


def make_request(tmp_path: Path, case: Case, role: WorkerRole = WorkerRole.COLD) -> WorkerRequest:
    """A request whose result and benchmark files lie in ``tmp_path``."""
    return WorkerRequest(
        role=role,
        case=case,
        device="cpu",
        threads=1,
        directory=str(tmp_path),
        result=str(tmp_path / "result.json"),
        benchmark_json=str(tmp_path / "benchmark.json"),
    )


FACTORY = Case(id="m/c", model="m", factory="a:b")
TEST = Case(id="m/test", model="m", node="tests/test_m.py::test_m", pytest_args=("--runslow",))


def test_registry_model_is_shielded(tmp_path: Path) -> None:
    """No settings, conftest or plugin of the project reach a registry model's trial."""
    arguments = make_arguments(make_request(tmp_path, FACTORY), FACTORY)
    assert "--noconftest" in arguments
    assert "--import-mode=importlib" in arguments  # else pytest changes sys.path
    assert Path(arguments[arguments.index("-c") + 1]).is_file()
    assert arguments[-1].endswith("test_models.py")


def test_users_test_keeps_its_project(tmp_path: Path) -> None:
    """A user's test runs with its project's settings, and with the options that its entry names."""
    arguments = make_arguments(make_request(tmp_path, TEST), TEST)
    assert {"-c", "--rootdir", "--noconftest"}.isdisjoint(arguments)
    assert arguments[-2:] == ["--runslow", TEST.node]


def test_benchmark_file_is_asked_for_when_wanted(tmp_path: Path) -> None:
    """A role without a path for it writes none."""
    request = make_request(tmp_path, FACTORY)
    assert f"--benchmark-json={request.benchmark_json}" in make_arguments(request, FACTORY)
    bare = WorkerRequest(role=WorkerRole.WARM, case=FACTORY, device="cpu", threads=1, directory="", result="")
    assert not any("--benchmark-json" in argument for argument in make_arguments(bare, FACTORY))


def test_benchmarks_are_stored_outside_the_project(tmp_path: Path) -> None:
    """pytest-benchmark makes the directory of its store in any case: it must not be in the project."""
    for case in (FACTORY, TEST):
        arguments = make_arguments(make_request(tmp_path, case), case)
        assert f"--benchmark-storage=file://{tempfile.gettempdir()}" in arguments


def test_factories_are_imported_and_their_errors_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failing factory has its own error and the user's line; a module that exits ends nothing else."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "sound_bench.py").write_text(
        "import torch\nfrom gate import Workload\n"
        "def build(width=1 << 50, exact=False):\n"  # more than any memory: it is built without
        "    inputs = (torch.zeros(width),)\n"
        "    return Workload(forward=float if exact and inputs[0].sum().item() else abs, inputs=inputs)\n"
    )
    (tmp_path / "broken_bench.py").write_text("1 / 0\n")
    (tmp_path / "exiting_bench.py").write_text("raise SystemExit(0)\n")
    factories = ("sound_bench:build", "broken_bench:build", "exiting_bench:build", "sound_bench:b")
    result = tmp_path / "result.json"
    request = WorkerRequest(
        role=WorkerRole.IMPORT,
        case=None,
        device="cpu",
        threads=1,
        directory=str(tmp_path),
        result=str(result),
        factories=factories,
        builds=tuple(
            Case(id=name, model="sound", factory="sound_bench:build", arguments=arguments)
            for name, arguments in {
                "sound/bare": {},
                "sound/wrong": {"depth": 3},
                "sound/values": {"width": 3, "exact": True},
            }.items()
        ),
    )
    path = tmp_path / "request.json"
    path.write_text(json.dumps(codec.encode(request)))
    run_request(str(path), time.perf_counter())
    left = codec.decode(WorkerResult, codec.parse_json(result.read_bytes(), "r"), "r")
    assert (left.stage, left.failure) == (Stage.DONE, None)
    messages = {factory: failure.fact.name("message") for factory, failure in left.unimportable.items()}
    assert messages == {
        "broken_bench:build": "ZeroDivisionError: division by zero",
        "exiting_bench:build": "SystemExit: 0",
        "sound_bench:b": "the factory 'sound_bench:b' does not exist: sound_bench has no function 'b'",
        "sound/wrong": "TypeError: build() got an unexpected keyword argument 'depth'",
        "sound/values": "RuntimeError: Tensor.item() cannot be called on meta tensors",
    }
    assert 'broken_bench.py", line 1' in left.unimportable["broken_bench:build"].traceback
    path.write_text(json.dumps(codec.encode(replace(request, factories=(), builds=request.builds[1:]))))
    run_request(str(path), time.perf_counter())  # in earnest: what needs values has them
    left = codec.decode(WorkerResult, codec.parse_json(result.read_bytes(), "r"), "r")
    assert set(left.unimportable) == {"sound/wrong"}


def test_what_another_plugin_raises_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the session, before the trial's own result was complete."""

    def refuse(*_: object, **__: object) -> int:
        raise RuntimeError("no report for you")

    monkeypatch.setattr(pytest, "main", refuse)
    case = Case(id="m/test", model="m", node="tests/test_m.py::test_m")
    request = make_request(tmp_path, case)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(codec.encode(request)))
    run_request(str(path), time.perf_counter())
    left = codec.decode(WorkerResult, codec.parse_json(Path(request.result).read_bytes(), "r"), "r")
    failure = (
        CaseFailure(
            case_id=case.id, trial=1, kind=FailureKind.ERROR, stage=left.stage, fact=left.failure.fact
        )
        if left.failure
        else None
    )
    assert failure is not None
    message = "pytest ended with RuntimeError: no report for you before the result was complete; see the log"
    assert message in describe_failure(failure)
