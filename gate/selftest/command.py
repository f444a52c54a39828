"""``selftest``: plant known faults, judge them like any change, and count which ones were caught.

Pytest runs the attempts, a test each (``test_faults.py``), in this process, which has the lab. Torch-free.
"""

import os
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gate.cli.lanes import note_config, place_lab
from gate.cli.setup import load_project
from gate.errors import ExitCode
from gate.lab.trials.opening import open_lab
from gate.records.cases import Case
from gate.report.footer import label_lines
from gate.report.progress import show_progress
from gate.selftest.attempts import Attempts
from gate.selftest.catalog import (
    Fault,
    choose_attempted,
    choose_faults,
    is_fitting,
    list_faults,
    schedule_faults,
)
from gate.selftest.scores import Attempt, conclude, render_scores, score_faults
from gate.store.policy import load_policy

# An empty configuration: no project's settings, conftest.py or plugins reach the tests.
_PYTEST = (
    *("-c", os.devnull, f"--rootdir={Path(__file__).parent}", "--noconftest", "--import-mode=importlib"),
    *("-q", "-s", "-rN", "--tb=no", "-o", "console_output_style=classic", "-o", "junit_family=xunit1"),
    *("-p", "no:cacheprovider", "-p", "no:faulthandler", str(Path(__file__).with_name("test_faults.py"))),
)
_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
REPORT_FILE = "selftest.xml"
# One undecided attempt must not eat the time of the others: it stops after this part of it.
ATTEMPTS_IN_TIME = 6
_LEAST_S = 1.0  # of an attempt, for how many there could be


@dataclass(kw_only=True, eq=False)
class FaultPlugin:
    """Gives pytest the faults as parameters, ends in time, and has a line for each attempt."""

    measuring: Attempts
    faults: tuple[Fault, ...]
    cases: tuple[Case, ...]
    repeats: int
    end_s: float  # by the monotonic clock
    attempts: list[Attempt] = field(default_factory=list)
    error: Exception | None = None  # what ended the tests

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        scheduled = list(schedule_faults(self.faults, self.cases, self.repeats))
        names = [f"{fault.name}-{case.id}-{number}" for fault, case, number in scheduled]
        metafunc.parametrize(("fault", "case", "number"), scheduled, ids=names)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Begin no test that cannot end in time; what began is finished."""
        for item in session.items:
            fault, case = (getattr(item, "callspec").params[name] for name in ("fault", "case"))  # noqa: B009
            if time.monotonic() + self.measuring.estimate_s(fault, case) > self.end_s:
                break
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return True

    @pytest.fixture
    def try_fault(self) -> Callable[[Fault, Case, int], Attempt]:
        """Makes an attempt; what stops it is no result of its test, and ends them all."""

        def try_one(fault: Fault, case: Case, number: int) -> Attempt:
            try:
                self.attempts.append(self.measuring.try_fault(fault, case, number))
            except Exception as error:  # noqa: BLE001 - the command raises it
                self.error = error
                pytest.exit("stopped")
            return self.attempts[-1]

        return try_one

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print a line for an attempt, and count it by what came of it."""
        if report.when != "call":
            return None
        attempt = self.attempts[-1]
        line = f"{attempt.describe()}\n"
        return attempt.opinion.result.value, line, line


def run_selftest(options: Namespace) -> ExitCode:
    """Plant one fault after the other and report.

    What must be caught and was not is exit 10; a fault that there was no time for, or that stayed open, 12.
    """
    project = load_project(options)
    config, limit_s = project.config, 60 * options.minutes
    cases = choose_attempted(project.cases, named=bool(options.select))
    listed = list_faults(config.device.partition(":")[0], quick=options.quick)
    faults = tuple(fault for fault in listed if any(is_fitting(fault, case) for case in cases))
    if options.faults:
        faults = choose_faults(faults, options.faults)
    round_s = _LEAST_S * max(1, sum(not fault.is_certain for fault in faults))
    most = 1 if options.quick else int(limit_s / round_s) + 1
    with show_progress(quiet=options.quiet) as observe, open_lab(*place_lab(config), observe) as lab:
        note_config(config, options, observe)
        begun, out = time.monotonic(), config.out / "selftest"
        measuring = Attempts(lab=lab, policy=load_policy(config), out=out, limit_s=limit_s / ATTEMPTS_IN_TIME)
        for case in cases:
            measuring.measure_base(case, faults)
        plugin = FaultPlugin(
            measuring=measuring,
            faults=faults,
            cases=cases,
            repeats=options.repeats or most,
            end_s=begun + limit_s,
        )
        for label, text in label_lines(lab.environment, ("cases", ", ".join(case.id for case in cases))):
            print(f"{label:9} {text}")
        _run_pytest(plugin, config.out / REPORT_FILE)
    scores = score_faults(faults, plugin.attempts)
    tried = [score.fault for score in scores]
    code, line = conclude(scores, [fault for fault in faults if fault not in tried])
    print(f"\n{render_scores(scores)}\n\n{line}\nWrote {config.out / REPORT_FILE}.")
    return code


def _run_pytest(plugin: FaultPlugin, path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _VARIABLES.items():
            patch.setenv(name, value)
        status = pytest.main([*_PYTEST, f"--junit-xml={path.resolve()}"], plugins=[plugin])
    if plugin.error:
        raise plugin.error
    if status is pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        raise RuntimeError(f"pytest ended with status {status}")
