"""Run the whole test suite; arguments go to pytest.

    python tools/run_tests.py -k elementwise
    python tools/run_tests.py --room=decide

In three parts: the unit tests of the pure packages, which must cover every branch of them; all others that
do not mind each other; and one by one those marked ``alone``, which judge times or have a GPU to themselves.
The first two run on up to four cores, the second by one process more. Each part names its slowest tests, and
leaves the time of each in ``.pytest_cache/PART.xml``.

Some thousand processes import the gate: they find its bytecode, whatever PYTHONDONTWRITEBYTECODE says. What
C++ one part has compiled, the next one finds: tests/compile_once.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from rooms import QUICK, list_tests

from gate.programs import count_cores

# A worker that imports torch takes half a gigabyte; more than four gain little, as files are not divided.
MAX_WORKERS = 4
NOTHING_COLLECTED = 5  # pytest's own exit status
# Two seconds are long for a test that compiles nothing; those that compile fill the rest of the list.
SLOWEST = ("--durations=25", "--durations-min=2")


def list_parts(workers: int, arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """List pytest's options for each part; a chosen few tests are held to no floor of coverage."""
    on_cores = ("--no-loadscope-reorder", "-n", str(workers))
    # Many of these wait: for a process to start, for a time-out, for the disk.
    more_than_cores = ("--no-loadscope-reorder", "-n", str(workers + 1))
    floor = () if arguments else ("--cov", "--cov-report=term-missing:skip-covered")
    return {
        "pure": (*on_cores, "--dist=worksteal", *floor),
        # In the order of tests/conftest.py: a file that compiles and is begun last would keep a core idle.
        "shared": (*more_than_cores, "--dist=loadfile"),
        "alone": (),
    }


def expand_room(arguments: Sequence[str]) -> list[str]:
    """Replace ``--room=NAME`` by what a change of that room needs."""
    expanded: list[str] = []
    for argument in arguments:
        option, _, room = argument.partition("=")
        expanded += [*list_tests(room), "-m", QUICK] if option == "--room" else [argument]
    return expanded


def main(arguments: Sequence[str]) -> int:
    """Run all parts; return the first status that is not 0, or 5 when none held a test."""
    arguments = expand_room(arguments)
    parts = list_parts(min(MAX_WORKERS, count_cores()), arguments)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = (sys.executable, "-m", "pytest", *SLOWEST)
    with tempfile.TemporaryDirectory(prefix="compiled-") as compiled:
        ended = [
            subprocess.run(
                (*command, f"--part={part}", f"--junit-xml=.pytest_cache/{part}.xml", *options, *arguments),
                check=False,
                env={**environment, "COMPILE_ONCE": compiled},
            ).returncode
            for part, options in parts.items()
        ]
    failed = [status for status in ended if status not in {0, NOTHING_COLLECTED}]
    return failed[0] if failed else min(ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
