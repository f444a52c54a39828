"""What a command leaves, and what the runner and a reader of the log are told about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gate.action.base import find_base
from gate.action.rules import RuleSource, load_rules_config
from gate.action.step import ActionStep, Ended
from gate.errors import ExitCode, UsageError
from gate.git import find_checkout
from gate.github.job import MAX_ANNOTATIONS, append_summary, render_annotation
from gate.records import Cause, Code, Comparison, GraphBreak, Metric, Outcome, Run, Status, Verdict
from gate.report import FORMATS
from gate.report.words.comparisons import describe_comparison
from gate.report.words.headline import write_opening
from gate.units import count_noun, join_some


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """The files that a command leaves, and the directory that measured code is imported from."""

    verdict: Path
    report: Path
    page: Path
    run: Path
    code: Path


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


def list_annotations(verdict: Verdict, run: Run | None, measured: Path, code: int) -> Iterator[str]:
    """List what to show on the run's page: the headline, then regressions, on their line where it is known.

    ``measured`` is where measured code was imported from, ``code`` the step's exit code. A verdict that does
    not fail the step is a warning: GitHub would show an error in a green job.
    """
    level = "error" if code else "notice" if verdict.outcome is Outcome.PASS else "warning"
    yield render_annotation(level, f"{verdict.outcome.value}: {write_opening(verdict)}")
    regressed = [item for item in verdict.comparisons if item.decides and item.status is Status.REGRESSED]
    shown = regressed[: MAX_ANNOTATIONS - 2]
    level = "error" if code == ExitCode.REGRESSION else "warning"
    for item in shown:
        title = f"compile-gate: {item.case_id} {item.metric}"
        causes = [one for one in verdict.causes if one.case_id == item.case_id]
        place = _find_place(_list_breaks(item, run, causes), measured)
        yield render_annotation(level, describe_comparison(item), title, place)
    if len(regressed) > len(shown):
        more = count_noun(len(regressed) - len(shown), "more regression")
        yield render_annotation(level, f"The job summary has {more}.")


def _list_breaks(item: Comparison, run: Run | None, causes: Sequence[Cause]) -> list[GraphBreak]:
    """List the graph breaks that its causes call new: a run has those of the base as well."""
    if item.metric is not Metric.GRAPH_BREAKS or run is None:
        return []
    places = {one.fact.name("location") for one in causes if one.fact.code is Code.GRAPH_BREAK}
    trials = (trial for trial in run.trials if trial.case_id == item.case_id)
    return [found for trial in trials for found in trial.graph_breaks if found.location in places]


def _find_place(breaks: Sequence[GraphBreak], measured: Path) -> str:
    """Find the user's line of a graph break, from the top of the checkout, as GitHub names its files."""
    top = (find_checkout(measured) or measured).resolve()
    for found in breaks:
        file, _, line = found.location.rpartition(":")
        path = (measured / file).resolve()
        if file and line.isdecimal() and path.is_file() and path.is_relative_to(top):
            return f"{path.relative_to(top).as_posix()}:{line}"
    return ""


_SHOWN = 5  # files that a warning names


def report_rules(step: ActionStep, rules: RuleSource) -> None:
    """Say in the log whose rules hold, and what was accepted; warn of what of that does not count."""
    if rules.mended:
        print(f"Judged by the change's own rules: it mends those of the base. {rules.mended}", flush=True)
    if rules.sha:
        found = f": {rules.origin}" if rules.origin else ""
        print(f"Configuration and baselines are those of commit {rules.sha}{found}.", flush=True)
    for note in rules.accepted.notes:
        print(note, flush=True)
    for warning in rules.accepted.warnings:
        warn(step, warning)


def report_change(step: ActionStep, rules: RuleSource) -> None:
    """Say that the change touches what it is judged by; it was judged by the base's all the same."""
    touched = join_some(rules.changed, _SHOWN)
    if rules.mended:
        text = f"This change is judged by its own rules, since it mends those of the base. {rules.mended}"
        warn(step, text)
    elif rules.changed and rules.sha:
        at_new_places = f", with what it moves measured there ({join_some(rules.moved, _SHOWN)})"
        moved = at_new_places if rules.moved else ""
        judged = f"it was judged by commit {rules.sha[:12]}'s{moved}"
        warn(step, f"This change touches what it is judged by ({touched}); {judged}.")
    elif rules.is_first:
        text = f"The base commit has no configuration yet: this change is judged by its own ({touched})."
        warn(step, text, "notice")
    if rules.removed:
        what = f"{count_noun(len(rules.removed), 'case')} ({join_some(rules.removed, _SHOWN)})"
        text = (
            f"This change removes or redefines {what}: once merged, nothing measures them as the base does."
        )
        warn(step, text)
    if rules.workflows:
        what = f"This change touches {join_some(rules.workflows, _SHOWN)}"
        text = "GitHub ran this check as the change has it. Review that before you trust the result."
        warn(step, f"{what}: {text}")


def report_failure(ended: Ended) -> int:
    """Say on the run's page why a command failed, in its own words, and return its exit code."""
    if ended.code == ExitCode.PASS:
        return ended.code
    other = f"compile-gate ended with exit code {ended.code}; see the log."
    if ended.code == ExitCode.INCOMPLETE:
        other = "Not every case could be measured; the log names those that failed."
    for text in ended.complaints or (other,):
        print(render_annotation("error", text), flush=True)
    return ended.code


def find_confirming_commit(step: ActionStep) -> str:
    """Find the commit to confirm suspects against; where it is out of reach that is said, and no error.

    Empty where the input ``confirm`` or the event asks for none.
    """
    if step.inputs["confirm"] != "true":
        return ""
    try:
        base = find_base(step.event, Path.cwd())
    except UsageError as error:
        warn(step, f"What looks worse is not measured again side by side: {error.what}. {error.fix}")
        return ""
    return base.sha if base else ""


def warn(step: ActionStep, text: str, level: str = "warning") -> None:
    """Warn on the run's page and in the summary."""
    print(render_annotation(level, text), flush=True)
    safe = "".join(char if char.isalnum() or char in " ./_-,();:'" else "?" for char in text)
    append_summary(step.environ, f"> {safe}\n")
