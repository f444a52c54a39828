"""What exit codes mean, whatever the command."""

from __future__ import annotations

from collections.abc import Mapping

from gate.errors import ExitCode

# What each exit code means, whatever the command.
EXIT_CODES: Mapping[ExitCode, tuple[str, str]] = {
    ExitCode.PASS: ("PASS", "measured and compared, nothing regressed"),
    ExitCode.BUG: ("-", "a bug in compile-gate"),
    ExitCode.USAGE: ("-", "usage or configuration"),
    ExitCode.NOTHING_COMPARED: (
        "NOTHING_COMPARED",
        "measured, not judged: no baseline applies, or all is quarantined",
    ),
    ExitCode.MACHINE: ("-", "the machine: no device, no compiler, held lock, full disk"),
    ExitCode.REGRESSION: ("REGRESSION", "at least one regression"),
    ExitCode.INCONCLUSIVE: (
        "INCONCLUSIVE",
        "could not tell: something looks worse, or is too noisy",
    ),
    ExitCode.INCOMPLETE: ("INCOMPLETE", "a planned case crashed, hung or is missing, or the run was stopped"),
    ExitCode.INTERRUPTED: ("-", "stopped by Ctrl-C or SIGTERM; what was measured is kept"),
}


# Any command can end with these.
COMMON_CODES = (ExitCode.BUG, ExitCode.USAGE, ExitCode.INTERRUPTED)
