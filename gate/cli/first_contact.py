"""``first-contact``: ask a device whether what the measuring side assumes of it is so."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from gate.cli.setup import load_configured
from gate.contact.conductor import Contact, collect_texts, make_contact, write_bundle
from gate.contact.findings import AssumptionResult, AssumptionStatus, count_outcomes, render_results
from gate.errors import ExitCode

_TABLE_FILE = "table.txt"
_BUNDLE_FILE = "first-contact.zip"


def run_first_contact(options: Namespace) -> ExitCode:
    """Ask, print each answer as it comes, and leave a bundle; a refuted assumption is the machine's exit."""
    config = load_configured(options)
    out = Path(options.out or "first-contact")
    contact = Contact(
        device=config.device,
        out=out / "seen",
        threads=config.threads,
        limit_s=60 * options.minutes,
        names=tuple(name.strip() for name in (options.only or "").split(",") if name.strip()),
    )
    found = make_contact(contact, _print_finding)
    (contact.out / _TABLE_FILE).write_text(render_results(found), encoding="utf-8")
    if not contact.names:
        collect_texts(contact.out, sys.executable)
    left_out = write_bundle(contact.out, out / _BUNDLE_FILE)
    print(f"\n{count_outcomes(found)}. All that was seen is in {out / _BUNDLE_FILE}.")
    if left_out:
        print(f"Too large for it, so next to it: {', '.join(left_out)}.")
    outcomes = {one.outcome for one in found}
    if AssumptionStatus.REFUTED in outcomes:
        return ExitCode.MACHINE
    return ExitCode.INCOMPLETE if AssumptionStatus.UNASKED in outcomes else ExitCode.PASS


def _print_finding(finding: AssumptionResult) -> None:
    print(render_results((finding,)), end="", flush=True)
