"""``models --try``: build, call and trace each selected case once, before anything is measured."""

from __future__ import annotations

import json
from argparse import Namespace

from gate.cli.place import place_lab
from gate.cli.setup import load_project
from gate.errors import ExitCode
from gate.files.codec import encode
from gate.lab.trials.opening import open_bench, try_in_worker
from gate.records import CaseFailure
from gate.report.tables import render_attempt, render_tally


def run_tries(options: Namespace) -> ExitCode:
    """Try the selected cases, each in a fresh process; INCOMPLETE where one cannot be tried to its end.

    Nothing is timed, so this takes no lock of the device.
    """
    request = load_project(options)
    as_json = options.format == "json"
    found: dict[str, CaseFailure | None] = {}
    with open_bench(*place_lab(request.config)) as bench:
        for case in request.cases:
            found[case.id] = try_in_worker(bench, case)
            if not as_json:
                print(render_attempt(case.id, found[case.id]), end="", flush=True)
    failed = [failure for failure in found.values() if failure is not None]
    if as_json:
        rows = [
            {"case": case_id, "ok": failure is None, "failure": encode(failure) if failure else None}
            for case_id, failure in found.items()
        ]
        print(json.dumps(rows, indent=2))
    else:
        print(render_tally(len(found), len(failed)))
    return ExitCode.INCOMPLETE if failed else ExitCode.PASS
