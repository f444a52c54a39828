"""compile-gate: a regression gate for ``torch.compile``.

The public, typed, torch-free API. Names and calls import their machinery when they are first used:

>>> import gate
>>> verdict = gate.compare(  # doctest: +SKIP
...     baseline=gate.load_baselines("baselines"),
...     candidate=gate.load_run("out/run.json"),
...     policy=gate.load_policy(),
... )
>>> print(gate.render(verdict, "markdown"))  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

# Set by the composite action: our own dependencies. They go behind the environment's packages, which
# PYTHONPATH cannot do, so that what is measured is never shadowed.
if (_packages := os.environ.get("COMPILE_GATE_PACKAGES", "")) and _packages not in sys.path:
    sys.path.append(_packages)

from gate.errors import ExitCode, FileError, GateError, MachineError, UsageError
from gate.version import __version__

if TYPE_CHECKING:
    from gate.metrics import SPECS
    from gate.records.cases import Case, Metric, Policy, Threshold
    from gate.records.run import Baseline, Environment, Run, Trial
    from gate.records.verdict import Change, Comparison, Estimate, Outcome, Reason, Status, Verdict
    from gate.workload import Workload
else:

    def __getattr__(name: str) -> object:
        """Import at the first use: Ctrl-C is answered from the first moments on."""
        for module in ("workload", "metrics", "records.cases", "records.run", "records.verdict"):
            if name in __all__ and hasattr(imported := importlib.import_module(f"gate.{module}"), name):
                return getattr(imported, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "SPECS",
    "Baseline",
    "Case",
    "Change",
    "Comparison",
    "Environment",
    "Estimate",
    "ExitCode",
    "FileError",
    "GateError",
    "MachineError",
    "Metric",
    "Outcome",
    "Policy",
    "Reason",
    "Run",
    "Status",
    "Threshold",
    "Trial",
    "UsageError",
    "Verdict",
    "Workload",
    "__version__",
    "compare",
    "compute_exit_code",
    "load_baselines",
    "load_policy",
    "load_run",
    "load_verdict",
    "render",
]


def load_run(path: str | Path) -> Run:
    """Read a ``run.json``.

    Raises:
        FileError: The file is missing, damaged, hostile or from a newer compile-gate.
    """
    from gate.files import codec  # noqa: PLC0415 - keeps `import gate` and `--help` instant

    return codec.RUN.load(Path(path))


def load_verdict(path: str | Path) -> Verdict:
    """Read a ``verdict.json``; raises as :func:`load_run`."""
    from gate.files import codec  # noqa: PLC0415 - see load_run

    return codec.VERDICT.load(Path(path))


def load_baselines(directory: str | Path) -> tuple[Baseline, ...]:
    """Read every baseline below a directory; raises as :func:`load_run`."""
    from gate.files.disk import is_present  # noqa: PLC0415 - see load_run
    from gate.store import baselines as baseline  # noqa: PLC0415 - see load_run

    if not is_present(Path(directory)):
        raise FileError(str(directory), "", "does not exist", "Name a directory of baselines.")
    return baseline.load_baselines(Path(directory))


def load_policy(config: str | Path | None = None) -> Policy:
    """Read what the command judges by: thresholds, overrides, quarantine and acceptances, as of today.

    ``config`` is a ``gate.yml``; by default the one that the command would use in the current directory.
    Acceptances are those of ``accepted.yml`` beside its baselines.

    Raises:
        FileError: A file cannot be used.
    """
    from gate.project.config import load_config  # noqa: PLC0415 - see load_run
    from gate.store import policy  # noqa: PLC0415 - see load_run

    return policy.load_policy(load_config(config))


def compare(*, baseline: Run | tuple[Baseline, ...], candidate: Run, policy: Policy) -> Verdict:
    """Judge a run against baselines, or against another run, as ``compile-gate compare`` does.

    Raises:
        FileError: The baseline is a run that was stopped, or that lacks trials that it planned.
    """
    from gate.decide.evidence.baseline import make_baselines  # noqa: PLC0415 - see load_run
    from gate.decide.verdict import decide_verdict  # noqa: PLC0415 - see load_run
    from gate.store.baselines import check_whole  # noqa: PLC0415 - see load_run

    if isinstance(baseline, tuple):
        return decide_verdict(candidate, baseline, policy)
    check_whole(baseline, "baseline")
    return decide_verdict(candidate, make_baselines(baseline, baseline.provenance), policy)


def compute_exit_code(verdict: Verdict, fail_on: str = "inconclusive") -> ExitCode:
    """Compute what the command would exit with; ``fail_on`` is its option of that name.

    Raises:
        UsageError: There is no such choice.
    """
    from gate.decide.conclude import coverage, exit_codes  # noqa: PLC0415 - see load_run

    if fail_on not in tuple(exit_codes.FailOn):
        choices = ", ".join(exit_codes.FailOn)
        raise UsageError(f"fail_on: {fail_on!r} is no choice", f"Choose one of {choices}.")
    judged = coverage.measure_coverage(verdict.comparisons)
    return exit_codes.compute_exit_code(verdict.outcome, exit_codes.FailOn(fail_on), judged)


def render(verdict: Verdict, report_format: str = "text") -> str:
    """Render a verdict as ``text``, ``markdown``, ``html``, ``json`` or ``junit``.

    Raises:
        UsageError: There is no such format.
    """
    from gate import report  # noqa: PLC0415 - see load_run

    return report.render(verdict, report_format)
