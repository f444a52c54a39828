"""What a command leaves, and what the runner is told about it: outputs and annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gate.action.rules import RuleSource, load_rules_config
from gate.decide.explain.compiled import find_new_breaks
from gate.errors import ExitCode, UsageError
from gate.fingerprint import compute_environment_id
from gate.github.job import MAX_ANNOTATIONS, render_annotation
from gate.publish.telling import describe_outputs
from gate.records import Cause, Comparison, GraphBreak, Metric, Outcome, Run, Status, Verdict
from gate.report import FORMATS
from gate.report.content import count_statuses
from gate.report.words.comparisons import describe_comparison
from gate.report.words.headline import write_headline
from gate.units import count_noun


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """The files that a command leaves, and the directory that measured code is imported from."""

    verdict: Path
    report: Path
    page: Path
    run: Path
    code: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """What a line of measured code is told relative to, and the top of the checkout, as GitHub tells it."""

    code: Path
    top: Path


def clear_results(rules: RuleSource) -> Results:
    """Name the files that a command will leave, and remove an earlier run's.

    Raises:
        UsageError: Something else lies there, which a change can bring.
    """
    config = load_rules_config(rules.config)
    out = config.out.absolute()
    files = {
        "verdict": out / "verdict.json",
        "report": out / "report.md",
        "page": out / "report.html",
        "run": out / "run.json",
    }
    reports = (out / one.file for one in FORMATS.values() if one.file)
    for path in (*files.values(), *reports):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            what = f"{path} cannot be replaced: {error.strerror}"
            raise UsageError(
                what, "Remove it: results are written there, and none may be taken for new."
            ) from None
    return Results(**files, code=Path(rules.directory or config.directory).absolute())


def describe_verdict(verdict: Verdict) -> dict[str, object]:
    """Describe a verdict as outputs; comparisons that do not decide are not counted."""
    counts = dict(count_statuses(verdict))
    return describe_outputs(verdict.outcome, counts, len(verdict.cases), verdict.environment)


def describe_run(run: Run) -> dict[str, object]:
    """Describe a run that nobody judged as outputs."""
    return {
        "cases": len(run.cases),
        "environment-id": compute_environment_id(run.environment),
        "head-sha": run.provenance.commit,
    }


def list_annotations(verdict: Verdict, run: Run | None, places: Places, code: int) -> Iterator[str]:
    """List what to show on the run's page: the headline, then regressions, on their line where it is known.

    A verdict that does not fail the step is a warning: GitHub would show an error in a green job.
    """
    level = "error" if code else "notice" if verdict.outcome is Outcome.PASS else "warning"
    yield render_annotation(level, f"{verdict.outcome.value}: {write_headline(verdict)}")
    regressed = [item for item in verdict.comparisons if item.decides and item.status is Status.REGRESSED]
    shown = regressed[: MAX_ANNOTATIONS - 2]
    level = "error" if code == ExitCode.REGRESSION else "warning"
    for item in shown:
        title = f"compile-gate: {item.case_id} {item.metric}"
        told = [one for one in verdict.causes if one.case_id == item.case_id]
        place = _find_place(_list_breaks(item, run, told), places)
        yield render_annotation(level, describe_comparison(item), title, place)
    if len(regressed) > len(shown):
        more = count_noun(len(regressed) - len(shown), "more regression")
        yield render_annotation(level, f"The job summary has {more}.")


def _list_breaks(item: Comparison, run: Run | None, told: Sequence[Cause]) -> list[GraphBreak]:
    """List the graph breaks that are new: a run has those of the base as well."""
    if item.metric is not Metric.GRAPH_BREAKS or run is None:
        return []
    trials = (trial for trial in run.trials if trial.case_id == item.case_id)
    return find_new_breaks((found for trial in trials for found in trial.graph_breaks), told)


def _find_place(breaks: Sequence[GraphBreak], places: Places) -> str:
    """Find the user's line of a graph break, from the top of the checkout that it lies in."""
    for found in breaks:
        file, _, line = found.location.rpartition(":")
        path = (places.code / file).resolve()
        if file and line.isdecimal() and path.is_file() and path.is_relative_to(places.top.resolve()):
            return f"{path.relative_to(places.top.resolve()).as_posix()}:{line}"
    return ""
