"""Workers do not outlive the gate: real processes, a real SIGKILL."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

CHILD = """
import os, sys, time
from gate.programs import die_with_parent
die_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(600)
"""
PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
time.sleep(600)
"""
LIMIT_S = 60.0  # the kernel needs milliseconds, and a busy machine seconds to start Python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")


def test_dies_with_its_parent() -> None:
    """A SIGKILL of the parent ends the child, which nobody else ends."""
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.send_signal(signal.SIGKILL)
        child.wait(LIMIT_S)
    assert not child.is_running()


def test_parent_that_is_gone_already() -> None:
    """A child that comes to ask after its parent has ended does not start to work."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(os.getpid() + 1)], check=False, capture_output=True, timeout=LIMIT_S
    )
    assert (done.returncode, done.stdout) == (1, b"")
