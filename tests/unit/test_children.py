"""Children of a process, of its threads, and theirs."""

import os
import subprocess
import sys
import threading

import pytest

from gate import programs
from gate.programs import list_children, list_descendants

SLEEP = "import time; time.sleep(600)"
PARENT = f"""
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", {SLEEP!r}]).pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "searched"])
def test_children_and_theirs_are_found(monkeypatch: pytest.MonkeyPatch, is_listed: bool) -> None:
    """Of a thread's child and grandchild the first is a child, and both descend."""
    if not is_listed:  # a kernel that keeps no lists
        monkeypatch.setattr(programs, "_TASKS", "no such directory")
    before = set(list_children(os.getpid()))
    started: list[subprocess.Popen[str]] = []
    command = (sys.executable, "-c", PARENT)
    thread = threading.Thread(
        target=lambda: started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    )
    thread.start()
    thread.join()
    with started[0] as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert set(list_children(os.getpid())) - before == {child.pid}
        assert {child.pid, grandchild} <= set(list_descendants(os.getpid()))
        os.kill(grandchild, 9)
        child.kill()
    assert list_children(child.pid) == []
