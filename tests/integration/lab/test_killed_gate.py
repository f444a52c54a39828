"""A gate that is killed: its worker dies with it, and the next start removes what it left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gate.lab.scratch import is_abandoned, remove_leftovers

GATE = """
import sys, tempfile
from pathlib import Path
from gate.lab import lock
from gate.lab.arms import make_working_tree_arm
from gate.lab.runner import open_lab
from gate.lab.trials import LabSettings
place = Path(sys.argv[1])
tempfile.tempdir = str(place / "temporary")
lock.make_lock_directory = lambda: place
with open_lab(make_working_tree_arm(place), LabSettings(out=place / "out")):
    pass
"""
LIMIT_S = 30.0  # starting Python twice takes a second


def wait_for_worker(gate: psutil.Process) -> psutil.Process:
    """Wait until the gate has a worker, and return it."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        workers = [child for child in gate.children() if "gate.measure.worker" in " ".join(child.cmdline())]
        if workers:
            return workers[0]
        time.sleep(0.01)
    pytest.fail("no worker was started")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
@pytest.mark.parametrize("head_start_s", [0.0, 2.0])
def test_killed_gate_leaves_no_worker(tmp_path: Path, head_start_s: float) -> None:
    """After a SIGKILL the worker ends, whether it was just starting or at work, and scratch is removed."""
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen([sys.executable, "-c", GATE, str(tmp_path)]) as gate:
        worker = wait_for_worker(psutil.Process(gate.pid))
        time.sleep(head_start_s)
        assert worker.is_running()
        (scratch,) = (tmp_path / "temporary").iterdir()
        assert not is_abandoned(scratch)
        gate.send_signal(signal.SIGKILL)
        worker.wait(LIMIT_S)
    assert scratch.exists()
    remove_leftovers(scratch.parent)
    assert not scratch.exists()
