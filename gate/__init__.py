"""compile-gate: a regression gate for ``torch.compile``.

The public, typed, torch-free API:

>>> import gate
>>> verdict = gate.compare(  # doctest: +SKIP
...     baseline=gate.load_baselines("baselines"),
...     candidate=gate.load_run("out/run.json"),
...     policy=gate.load_policy(),
... )
>>> print(gate.render(verdict, "markdown"))  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sys

# Set by the composite action: our own dependencies. They go behind the environment's packages, which
# PYTHONPATH cannot do, so that what is measured is never shadowed.
if (_packages := os.environ.get("COMPILE_GATE_PACKAGES", "")) and _packages not in sys.path:
    sys.path.append(_packages)

from gate.api import (
    compare,
    compute_exit_code,
    load_baselines,
    load_policy,
    load_run,
    load_verdict,
    render,
    save_run,
    save_verdict,
)
from gate.errors import ExitCode, FileError, GateError, MachineError, UsageError
from gate.metrics import SPECS
from gate.records import (
    Baseline,
    Case,
    Change,
    Comparison,
    Environment,
    Estimate,
    Metric,
    Outcome,
    Policy,
    Reason,
    Run,
    Status,
    Threshold,
    Trial,
    Verdict,
)
from gate.version import __version__
from gate.workload import Workload

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
    "save_run",
    "save_verdict",
]
