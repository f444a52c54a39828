"""The calls that ``import gate`` offers; each imports its machinery when it is first used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gate.records import Baseline, Policy, Run, Verdict


def load_run(path: str | Path) -> Run:
    """Read a ``run.json``.

    Raises:
        FileError: The file is missing, damaged, hostile or from a newer compile-gate.
    """
    from gate import codec  # noqa: PLC0415 - keeps `import gate` and `--help` instant

    return codec.load_run(Path(path))


def load_verdict(path: str | Path) -> Verdict:
    """Read a ``verdict.json``; raises as :func:`load_run`."""
    from gate import codec  # noqa: PLC0415 - see load_run

    return codec.load_verdict(Path(path))


def load_baselines(directory: str | Path) -> tuple[Baseline, ...]:
    """Read every baseline below a directory; raises as :func:`load_run`."""
    from gate import baseline  # noqa: PLC0415 - see load_run

    return baseline.load_baselines(Path(directory))


def compare(candidate: Run, baseline: Run | tuple[Baseline, ...], policy: Policy | None = None) -> Verdict:
    """Judge a run against baselines, or against another run.

    ``policy`` defaults to the thresholds of :data:`gate.metrics.SPECS` and no acceptances.
    """
    from gate.baseline import make_baselines  # noqa: PLC0415 - see load_run
    from gate.decide import decide_verdict  # noqa: PLC0415 - see load_run
    from gate.metrics import SPECS  # noqa: PLC0415 - see load_run
    from gate.records import Policy as PolicyRecord  # noqa: PLC0415 - see load_run
    from gate.records import Run as RunRecord  # noqa: PLC0415 - see load_run

    stored = make_baselines(baseline, baseline.provenance) if isinstance(baseline, RunRecord) else baseline
    rules = policy or PolicyRecord(thresholds={metric: spec.threshold for metric, spec in SPECS.items()})
    return decide_verdict(candidate, stored, rules)


def render(verdict: Verdict, report_format: str = "text") -> str:
    """Render a verdict as ``text``, ``markdown``, ``json`` or ``junit``.

    Raises:
        UsageError: There is no such format.
    """
    from gate import report  # noqa: PLC0415 - see load_run

    return report.render(verdict, report_format)
