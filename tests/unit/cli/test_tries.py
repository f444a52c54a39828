"""``models --try``, with actors for workers."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gate.lab.host.device_lock import lock_device
from gate.lab.host.locks import VARIABLE
from gate.records.events import ignore_event

RunGate = Callable[..., "CompletedProcess[str]"]
MODEL = "  - {{name: {name}, factory: 'actor:{factory}', cases: [{{}}]}}\n"


def write_models(project: Path, **factories: str) -> None:
    """Write a gate.yml with a model for each factory; the default selection is all of them."""
    models = "".join(MODEL.format(name=name, factory=factory) for name, factory in factories.items())
    text = f"version: 1\nreference_models: false\nselect: '*'\nmodels:\n{models}"
    (project / "gate.yml").write_text(text)


def test_cases_that_can_be_called_are_exit_0(project: Path, run_gate: RunGate) -> None:
    """One line a case, and no run, verdict or baseline is written."""
    write_models(project, one="build", two="build")
    done = run_gate("models", "--try")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "ok      one/inference-float32-smoke-default",
        "ok      two/inference-float32-smoke-default",
        "2 cases can be built, called and traced. Nothing was measured.",
    ]
    assert not list(project.glob("out/*.json"))


def test_nobody_is_waited_for(project: Path, run_gate: RunGate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run holds the device, which does not matter since nothing is timed."""
    write_models(project, one="build")
    monkeypatch.setenv(VARIABLE, str(project))
    with lock_device("cpu", 0.0, ignore_event):
        done = run_gate("models", "--try", environment={VARIABLE: str(project)})
    assert (done.returncode, done.stderr) == (0, "")


def test_one_that_cannot_is_exit_12_after_all_were_tried(project: Path, run_gate: RunGate) -> None:
    """INCOMPLETE, as their check would be."""
    write_models(project, one="it_is_gone", two="build")
    done = run_gate("models", "--try")
    assert done.returncode == 12
    first, *_, tally = done.stdout.splitlines()
    assert first.startswith("FAILED  one/inference-float32-smoke-default: error in stage import: UsageError")
    assert tally == "1 of 2 cases cannot be measured: `check` would be INCOMPLETE."


def test_json_lists_every_case(project: Path, run_gate: RunGate) -> None:
    """A program reads one list, whatever the exit code."""
    write_models(project, one="it_is_gone", two="build")
    done = run_gate("models", "--try", "--select", "*", "--format", "json")
    assert done.returncode == 12
    first, second = json.loads(done.stdout)
    assert (first["ok"], first["failure"]["stage"]) == (False, "import")
    assert second == {"case": "two/inference-float32-smoke-default", "ok": True, "failure": None}


def test_check_names_a_broken_factory_while_it_primes(project: Path, run_gate: RunGate) -> None:
    """The case is INCOMPLETE, which is printed before the warm-up is over; the other case is measured."""
    write_models(project, one="it_is_gone", two="build")
    done = run_gate("check")
    assert done.returncode == 12, done.stderr
    lines = done.stderr.splitlines()
    failed = next(number for number, line in enumerate(lines) if line.startswith("one/"))
    assert "FAILED: error in stage import: UsageError: the factory does not exist" in lines[failed]
    assert failed < next(number for number, line in enumerate(lines) if line.startswith("compiler warmed up"))
    assert any("two/inference-float32-smoke-default trial 1: compiled" in line for line in lines)
