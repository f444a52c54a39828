"""What the runner is told about a result: outputs and annotations; pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gate.errors import ExitCode
from gate.fingerprint import compute_environment_id
from gate.github.job import MAX_ANNOTATIONS, render_annotation
from gate.records import Comparison, Metric, Outcome, Run, Status, Verdict


def describe_verdict(verdict: Verdict) -> dict[str, object]:
    """Describe a verdict as outputs; comparisons that do not decide are not counted."""

    def count(status: Status) -> int:
        return sum(item.status is status for item in verdict.comparisons if item.decides)

    return {
        "verdict": verdict.outcome.value,
        "regressions": count(Status.REGRESSED),
        "improvements": count(Status.IMPROVED),
        "inconclusive": count(Status.INCONCLUSIVE),
        "cases": len(verdict.cases),
        "environment-id": compute_environment_id(verdict.environment),
    }


def describe_run(run: Run) -> dict[str, object]:
    """Describe a run that nobody judged as outputs."""
    return {
        "cases": len(run.cases),
        "environment-id": compute_environment_id(run.environment),
        "head-sha": run.provenance.commit,
    }


def list_annotations(verdict: Verdict, run: Run | None, root: Path, code: int) -> Iterator[str]:
    """List what to show on the run's page: the headline, then regressions, on their line where it is known.

    A verdict that does not fail the step is a warning: GitHub would show an error in a green job.
    """
    level = "error" if code else "notice" if verdict.outcome is Outcome.PASS else "warning"
    yield render_annotation(level, f"{verdict.outcome.value}: {verdict.headline}")
    regressed = [item for item in verdict.comparisons if item.decides and item.status is Status.REGRESSED]
    shown = regressed[: MAX_ANNOTATIONS - 2]
    level = "error" if code == ExitCode.REGRESSION else "warning"
    for item in shown:
        title = f"compile-gate: {item.case_id} {item.metric}"
        yield render_annotation(level, item.sentence, title, _find_place(item, run, root))
    if len(regressed) > len(shown):
        yield render_annotation(
            level, f"{len(regressed) - len(shown)} more regressions are in the job summary."
        )


def _find_place(item: Comparison, run: Run | None, root: Path) -> str:
    """Find the user's line of a graph break, where it lies in the checkout."""
    if item.metric is not Metric.GRAPH_BREAKS or run is None:
        return ""
    breaks = (found for trial in run.trials if trial.case_id == item.case_id for found in trial.graph_breaks)
    for found in breaks:
        file, _, line = found.location.rpartition(":")
        if (
            file
            and line.isdecimal()
            and (path := (root / file)).is_file()
            and path.resolve().is_relative_to(root)
        ):
            return f"{path.resolve().relative_to(root)}:{line}"
    return ""
