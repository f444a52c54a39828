"""Each test of a device runs in a process of its own, whatever the others do."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gate.device_tests import runner
from gate.device_tests.plugin import DeviceReport
from gate.device_tests.runner import DeviceSession, count_results, run_device_tests
from gate.errors import MachineError, UsageError

MADE_UP = '''
import os, time
import pytest

@pytest.mark.cpu(judged=True)
def test_holds(report):
    "One is one."
    report.check_range(1, 1, 1, part="first")
    report.check(True, "so", part="second")

@pytest.mark.cpu
def test_raises(report):
    "The test is written well."
    report.note("so far")
    raise ValueError("it went wrong\\nin detail")

@pytest.mark.cpu
def test_torch_raises():
    """It fits.

    Not part of the sentence.
    """
    import torch
    torch.ones(2).view(3)

@pytest.mark.cpu
def test_ends():
    "The process lives on."
    os._exit(7)

@pytest.mark.cpu
@pytest.mark.timeout(1)
def test_hangs():
    "It comes to an end."
    time.sleep(60)

def test_needs_a_gpu():
    "There is a card."

@pytest.mark.cpu(judged=True)
def test_opens(device, report):
    "The device is another one."
    report.check(device.kind.name != "cpu", device.kind.name)

@pytest.mark.cpu
def test_has_its_range_on_a_gpu(report):
    "It takes a millisecond."
    report.check_range(2.5, 0, 1, "ms")
'''


def make(out: Path, *names: str, limit_s: float = 600.0) -> DeviceSession:
    """Return a session with the made-up tests."""
    tests = out / "tests"
    tests.mkdir()
    (tests / "test_made_up.py").write_text(MADE_UP)
    return DeviceSession(device="cpu", out=out, threads=1, limit_s=limit_s, names=names, tests=tests)


def test_one_that_fails_ends_no_other(tmp_path: Path) -> None:
    """A test that raises, ends its process or hangs has failed."""
    lines = list(run_device_tests(make(tmp_path)))
    assert lines == [
        "PASSED   holds, first: 1 (expected 1 to 1)",
        "PASSED   holds, second: so",
        "INFO     raises: so far",
        "FAILED   raises: ValueError: it went wrong; assumed: The test is written well.",
        "FAILED   torch_raises: RuntimeError: shape '[3]' is invalid for input of size 2; assumed: It fits.",
        f"FAILED   ends: the process ended with status 7; see {tmp_path / 'ends.log'}",
        f"FAILED   hangs: no answer in time; see {tmp_path / 'hangs.log'}",
        "FAILED   opens: cpu; assumed: The device is another one.",
        "INFO     has_its_range_on_a_gpu: 2.5 ms (expected 0 to 1 on a GPU)",
    ]
    assert count_results(lines) == "2 PASSED, 5 FAILED, 2 INFO, 0 SKIPPED"
    assert "1 failed" in (tmp_path / "opens.log").read_text()


def test_what_there_was_no_time_for_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupted test and the following ones are listed."""
    session = make(tmp_path, "hangs", "opens")
    path = session.tests / "test_made_up.py"
    path.write_text(path.read_text().replace("timeout(1)", "timeout(600)").replace("sleep(60)", "sleep(600)"))
    # Collecting leaves a second of its time to the first test, and that one leaves none.
    clock = iter((0.0, session.limit_s - 1.0, session.limit_s))
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert list(run_device_tests(session)) == [
        "SKIPPED  hangs: no time was left for an answer",
        "SKIPPED  opens: no time was left",
    ]


def test_no_time_to_collect_is_skipped(tmp_path: Path) -> None:
    """No result must not look like no failure: the line names the log."""
    lines = list(run_device_tests(make(tmp_path, limit_s=0.1)))
    log = tmp_path / "collection.log"
    assert lines == [f"SKIPPED  all: no test ran within 0.1 s; see {log}, or raise --minutes"]
    assert log.exists()


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    """No result must not look like no failure; a test for GPUs is unknown on a CPU."""
    session = replace(make(tmp_path, "holds", "needs_a_gpu"), out=tmp_path / "seen")
    with pytest.raises(UsageError, match="no test 'needs_a_gpu' for cpu"):
        list(run_device_tests(session))
    assert not session.out.exists()


def test_a_device_that_is_not_there_is_the_machines_fault(tmp_path: Path) -> None:
    """The plugin names the device."""
    session = DeviceSession(device="cuda:63", out=tmp_path, threads=1, limit_s=60.0)
    with pytest.raises(MachineError, match="status 4: ERROR: no such device: cuda:63"):
        list(run_device_tests(session))


@pytest.mark.parametrize(("value", "status"), [(2.0, "PASSED"), (2.01, "FAILED"), (float("nan"), "FAILED")])
def test_a_range_holds_both_its_ends(tmp_path: Path, value: float, status: str) -> None:
    """What is no number is in no range."""
    report = DeviceReport(path=tmp_path / "clocks.txt", name="clocks", assumed="It is 1 to 2.")
    report.check_range(value, 1, 2)
    assert report.path.read_text().startswith(f"{status:<8} clocks: {value:g} (expected 1 to 2)")
