"""A forked process has the pages mapped that its parent had, and its own copies of what can be written."""

import platform
import subprocess
import sys

import pytest

KERNEL = (
    tuple(map(int, platform.release().split("-")[0].split(".")[:2])) if sys.platform == "linux" else (0, 0)
)
pytestmark = pytest.mark.skipif(KERNEL < (5, 14), reason="Linux maps pages for the asking from 5.14 on")

# Faults of a child that writes to what it has inherited, with and without its pages mapped before.
SCRIPT = """
import mmap, os, resource, sys
from gate.worker.server import list_present, map_pages
size = 4000 * mmap.PAGESIZE
inherited = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
inherited.madvise(mmap.MADV_NOHUGEPAGE)  # one fault of such a page would stand for 512
inherited.write(os.urandom(size))
ranges = list_present() if sys.argv[1] == "mapped" else ()
if os.fork() == 0:
    map_pages(ranges)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for offset in range(0, size, mmap.PAGESIZE):
        inherited[offset] = 1
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, flush=True)
    os._exit(0)
os.wait()
"""


def count_faults(how: str) -> int:
    """Count the page faults of a child that writes to 4,000 inherited pages."""
    command = [sys.executable, "-c", SCRIPT, how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_inherited_pages_fault_once_only_where_they_are_not_mapped() -> None:
    """Of 4,000 pages written to, nearly each faults after a plain fork, and few once they are mapped."""
    assert count_faults("plain") > 3000
    assert count_faults("mapped") < 400
