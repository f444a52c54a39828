"""A worker does not outlive the gate that started it, however that ends; and how it ends by itself."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import NoReturn

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
_ORPHANED = 1  # exit status; nobody is left to read it


def die_with_parent(parent: int) -> None:
    """See to it that this process is killed when process ``parent``, which started it, ends.

    Linux only: elsewhere a worker whose gate is killed runs to its end. The kernel watches the thread
    that started this process, so workers must be started by a thread that lives as long as they do.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(_ORPHANED)


def end_process(status: int) -> NoReturn:
    """End at once: taking torch's libraries down takes more than a second, and all is on disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
