"""Run the whole test suite; arguments go to pytest.

    python tools/run_tests.py -k elementwise

First, on all cores, the tests that do not mind each other; then one by one those marked ``alone``, which
judge times or measure for minutes under the device's lock.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from gate.lab.probe import count_cores

# A worker that imports torch takes half a gigabyte; more than four gain little, as files are not divided.
MAX_WORKERS = 4
NOTHING_COLLECTED = 5  # pytest's own exit status


def main(arguments: Sequence[str]) -> int:
    """Run both parts; return the first status that is not 0, or 5 when neither held a test."""
    workers = str(min(MAX_WORKERS, count_cores()))
    # In the order of tests/conftest.py: a file that compiles and is begun last would keep a core idle.
    shared = ("--part=shared", "-n", workers, "--dist=loadfile", "--no-loadscope-reorder")
    parts = (shared, ("--part=alone",))
    command = (sys.executable, "-m", "pytest")
    ended = [subprocess.run((*command, *part, *arguments), check=False).returncode for part in parts]
    failed = [status for status in ended if status not in {0, NOTHING_COLLECTED}]
    return failed[0] if failed else min(ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
