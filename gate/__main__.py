"""The entry of the command, also as ``python -m gate``: stops in one line while modules are imported."""

from __future__ import annotations

import signal
import sys

from gate.errors import ExitCode


def main() -> int:
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from gate.cli import main as run  # noqa: PLC0415 - takes a good part of a second

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("compile-gate: stopped.\n")
        return int(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
