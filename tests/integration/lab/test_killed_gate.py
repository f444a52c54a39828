"""A gate that is killed: its worker dies with it, and the next start removes its files."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from gate.lab.host.scratch import is_abandoned, remove_leftovers

GATE = """
import sys, tempfile
from pathlib import Path
from gate.lab.host import device_lock
from gate.lab.arms.arms import make_working_tree_arm
from gate.lab.trials.opening import open_lab
from gate.lab.trials.bench import LabSettings
place = Path(sys.argv[1])
tempfile.tempdir = str(place / "temporary")
device_lock.make_lock_directory = lambda: place
with open_lab(make_working_tree_arm(place), LabSettings(out=place / "out")):
    pass
"""
LIMIT_S = 60.0  # starting Python twice takes a second, and importing torch some more
BRANCH_AND_WORKER = 2


def wait_for_server(gate: psutil.Process) -> psutil.Process:
    """Wait until the gate has the server that forks its workers, and return it."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        for child in gate.children():
            with suppress(psutil.Error):  # of git or a compiler that was asked something
                if "gate.worker.server" in child.cmdline():
                    return child
        time.sleep(0.01)
    pytest.fail("no server was started")


def wait_for_worker(server: psutil.Process) -> list[psutil.Process]:
    """Wait until a branch of the server has a worker; return all that descend from it."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if len(family := server.children(recursive=True)) >= BRANCH_AND_WORKER:
            return family
        time.sleep(0.01)
    pytest.fail("no worker was forked")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
@pytest.mark.parametrize("at_work", [False, True], ids=["starting", "at_work"])
def test_killed_gate_leaves_no_worker(tmp_path: Path, at_work: bool) -> None:
    """After a SIGKILL servers and workers end, just starting or at work, and scratch is removed."""
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen([sys.executable, "-c", GATE, str(tmp_path)]) as gate:
        server = wait_for_server(psutil.Process(gate.pid))
        family = [server, *(wait_for_worker(server) if at_work else [])]
        (scratch,) = (tmp_path / "temporary").iterdir()
        assert not is_abandoned(scratch)
        gate.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs(family, LIMIT_S)
        assert alive == []
    assert scratch.exists()
    remove_leftovers(scratch.parent)
    assert not scratch.exists()
