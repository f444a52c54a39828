"""``first-contact``: check that a device behaves as the measuring side assumes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from gate.cli.setup import load_configured
from gate.device_tests.report import Status, count_statuses, has_status
from gate.device_tests.runner import DeviceSession, run_device_tests, write_bundle
from gate.errors import ExitCode

_TABLE_FILE = "table.txt"
_BUNDLE_FILE = "first-contact.zip"


def run_first_contact(options: Namespace) -> ExitCode:
    """Run the tests, print each result as it comes, and leave a bundle; a failure is the machine's exit."""
    config = load_configured(options)
    out = Path(options.out or "first-contact")
    session = DeviceSession(
        device=config.device,
        out=out / "seen",
        threads=config.threads,
        limit_s=60 * options.minutes,
        names=tuple(name.strip() for name in (options.only or "").split(",") if name.strip()),
    )
    lines: list[str] = []
    for line in run_device_tests(session):
        print(line, flush=True)
        lines.append(line)
    (session.out / _TABLE_FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    left_out = write_bundle(session.out, out / _BUNDLE_FILE)
    print(f"\n{count_statuses(lines)}. All that was seen is in {out / _BUNDLE_FILE}.")
    if left_out:
        print(f"Too large for it, so next to it: {', '.join(left_out)}.")
    if has_status(lines, Status.FAILED):
        return ExitCode.MACHINE
    return ExitCode.INCOMPLETE if has_status(lines, Status.SKIPPED) else ExitCode.PASS
