"""Where runs and verdicts go: the out directory, the terminal, and a line in the history."""

import sys
import time
import webbrowser
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gate.decide.conclude.accept import keep_own
from gate.decide.conclude.coverage import is_lack_accepted, measure_coverage
from gate.decide.conclude.exit_codes import FailOn, compute_exit_code
from gate.decide.constants import SESSION_DAYS
from gate.decide.evidence.disturbed import set_aside_disturbed
from gate.decide.evidence.values import collect_values
from gate.decide.stats import estimate_metric
from gate.errors import ExitCode, FileError, GateError, UsageError
from gate.files.codec import RUN, VERDICT, write_atomic
from gate.files.disk import is_present, list_cut_short
from gate.fingerprint import compute_environment_id, compute_machine_id
from gate.metrics import Role, select_metrics
from gate.project.config import Config
from gate.records.cases import Metric, Policy, group_cases
from gate.records.events import CaseFailed, Event, Observer, PairFinished, TrialFinished, ignore_event
from gate.records.protocol import Stage
from gate.records.run import Pairing, Run
from gate.records.verdict import Estimate, Verdict
from gate.report import FORMATS, render
from gate.report.footer import render_exit_notice
from gate.report.junit import render_junit
from gate.report.text import Detail, print_text, render_text
from gate.report.words.steps import write_tlparse
from gate.store.history import Figures, HistoryHead, HistoryKind, append_line, make_history_line, read_days
from gate.units import format_noun

VERDICT_FILE = "verdict.json"
# All that a command which judges leaves next to ``run.json``.
REPORT_FILES = (VERDICT_FILE, *(row.file for row in FORMATS.values() if row.file))
# A run is written again after so many times as long as writing it took. With 10,000 trials that is 20 s, no
# more than a trial takes; with 200,000 a kill may lose the last six minutes.
_PAUSE = 50
_KEPT = select_metrics(lambda spec: spec.role is not Role.EXPLAINS)


def save_reports(verdict: Verdict, out: Path, code: ExitCode) -> None:
    VERDICT.save(verdict, out / VERDICT_FILE)
    for name, row in FORMATS.items():
        if row.file and name != "html":
            text = render_verdict(verdict, name, code)
            write_atomic(out / row.file, text)
    from gate.report.pages import render_pages  # noqa: PLC0415 - jinja is slow to import

    remove_files(*_list_case_pages(out))
    for name, text in render_pages(verdict):
        write_atomic(out / name, text)


@dataclass(kw_only=True, slots=True)
class RunSaver:
    """Its first state replaces the reports of the run before."""

    path: Path
    observe: Observer = ignore_event
    read_s: Callable[[], float] = time.monotonic
    _unwritten: Callable[[], Run] | None = None
    _unreported: list[Event] = field(default_factory=list)
    _was_finished: bool | None = None  # what was written last
    _earliest_s: float = 0.0  # to write again

    def save(self, run: Run) -> None:
        """Now, or soon.

        Raises:
            MachineError, UsageError: See :func:`gate.files.disk.write_atomic`, :func:`remove_files`.
        """
        self.keep(lambda: run, finished=run.finished)

    def keep(self, make_run: Callable[[], Run], *, finished: bool = False) -> None:
        """As :meth:`save`, of a run that is made when it is written."""
        self._unwritten = make_run
        if finished is not self._was_finished or self.read_s() >= self._earliest_s:
            self.close()

    def report(self, event: Event) -> None:
        """An event of a slot waits until the slot is written: a kill loses none."""
        if self._unwritten is not None and isinstance(event, TrialFinished | PairFinished | CaseFailed):
            self._unreported.append(event)
        else:
            self.observe(event)

    def close(self) -> None:
        """Raises as :meth:`save`."""
        begun_s = self.read_s()
        if self._unwritten is None:
            return
        run = self._unwritten()
        if self._was_finished is None:
            remove_files(*list_reports(self.path.parent), *list_cut_short(self.path))
        RUN.save(run, self.path)
        self._unwritten, self._was_finished = None, run.finished
        for event in self._unreported:
            self.observe(event)
        self._unreported.clear()
        now_s = self.read_s()
        self._earliest_s = now_s + _PAUSE * (now_s - begun_s)


def list_reports(out: Path) -> list[Path]:
    return [*(out / name for name in REPORT_FILES), *_list_case_pages(out)]


def _list_case_pages(out: Path) -> list[Path]:
    return sorted((out / "cases").glob("case-*.html"))


def remove_files(*paths: Path) -> None:
    """Files that an earlier run has left.

    Raises:
        UsageError: One cannot be removed.
    """
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            if not is_present(path):
                continue  # the error comes when it is written
            what = f"{path} cannot be replaced: {error.strerror}"
            raise UsageError(what, "Remove it, or name another directory with --out.") from None


def render_verdict(verdict: Verdict, report_format: str, code: ExitCode | None) -> str:
    """JUnit is red where the command that judged ends with another code than 0."""
    if report_format != "junit" or code is None:
        return render(verdict, report_format)
    return render_junit(verdict, fails=code is not ExitCode.PASS)


def code_verdict(verdict: Verdict, config: Config, policy: Policy | None = None) -> ExitCode:
    coverage = measure_coverage(verdict.comparisons)
    here = keep_own(policy, compute_environment_id(verdict.environment)) if policy else None
    accepted = here is not None and is_lack_accepted(verdict.comparisons, here)
    fail_on = config.fail_on or FailOn.INCONCLUSIVE
    return compute_exit_code(verdict.outcome, fail_on, coverage, is_lack_accepted=accepted)


def report_verdict(
    verdict: Verdict, config: Config, options: Namespace, out: Path | None, policy: Policy | None = None
) -> ExitCode:
    """What the code means is printed where it is not plain; on stderr if a program reads the report."""
    code = code_verdict(verdict, config, policy)
    accepted = code is not code_verdict(verdict, config)
    notice = render_exit_notice(verdict.outcome, code, is_lack_accepted=accepted)
    if out:
        save_reports(verdict, out, code)
    print_report(verdict, options, code)
    if notice:
        print(notice, file=sys.stdout if options.format == "text" else sys.stderr)
    if out:
        show_page(out, options)
    return code


def show_page(out: Path, options: Namespace) -> None:
    page = out / FORMATS["html"].file
    if options.format == "text":
        print(f"page  {page}")
    if options.open and not webbrowser.open(page.absolute().as_uri()):
        print(f"warning: there is no browser to open {page} in", file=sys.stderr)


def print_report(verdict: Verdict, options: Namespace, code: ExitCode | None = None) -> None:
    """``code`` is that of a command that judged."""
    if options.format != "text":
        print(render_verdict(verdict, options.format, code), end="")
    elif options.quiet:
        print(render_text(verdict, detail=Detail.VERDICT), end="")
    else:
        print_text(verdict, verbose=options.verbose)


def print_traces(run: Run, out: Path) -> None:
    traced = [trial for trial in run.trials if Stage.TRACE in trial.stages_s]
    traces = [trial.trace for trial in traced if trial.trace]
    if traced:
        took_s = sum(trial.stages_s[Stage.TRACE] for trial in traced)
        print(f"traced {len(traces)} of {len(traced)} trials, {took_s:.0f} s in all", file=sys.stderr)
    if traces:
        print(f"  {write_tlparse(traces[-1], str(out))}", file=sys.stderr)


def append_run(config: Config, run: Run, kind: HistoryKind) -> None:
    """Without disturbed trials. A failure is a warning: the verdict stands."""
    if not config.history:
        return
    trials = set_aside_disturbed(run).trials
    alone = group_cases(trial for trial in trials if trial.pairing is Pairing.ALONE)
    cases = {}
    for case in run.cases:
        values = collect_values(alone.get(case.id, ()))
        figures = {
            metric: _list_figures(estimate_metric(metric, measured))
            for metric, measured in values.items()
            if metric in _KEPT
        }
        if figures:
            cases[case.id] = figures
    _append(config.history, _make_head(kind, run), cases)


def read_other_days(config: Config, run: Run) -> dict[str, dict[Metric, tuple[float, ...]]]:
    """{} if the history cannot be read."""
    head = _make_head(HistoryKind.CHECK, run)
    since = datetime.fromisoformat(head.created) - timedelta(days=SESSION_DAYS)
    try:
        return read_days(config.history, head, since=since.date().isoformat()) if config.history else {}
    except FileError:
        return {}


def record_creep(config: Config, verdict: Verdict) -> None:
    """As fractions; + is worse."""
    if not config.history:
        return
    cases: dict[str, dict[Metric, Figures]] = {}
    for row in verdict.comparisons:
        if row.change is not None and row.metric in _KEPT:
            change = (row.change.centre, row.change.low, row.change.high)
            cases.setdefault(row.case_id, {})[row.metric] = change
    _append(config.history, _make_head(HistoryKind.ANCHOR, verdict), cases)


def _append(path: Path, head: HistoryHead, cases: dict[str, dict[Metric, Figures]]) -> None:
    try:
        append_line(path, make_history_line(head, cases))
    except GateError as error:
        print(f"warning: {error.what}: this run is not in the history. {error.fix}", file=sys.stderr)


def _make_head(kind: HistoryKind, record: Run | Verdict) -> HistoryHead:
    environment, provenance = record.environment, record.provenance
    model = environment.device_model or environment.cpu
    return HistoryHead(
        id="",
        kind=kind,
        created=provenance.created or datetime.now(UTC).isoformat(timespec="seconds"),
        machine=f"{environment.device_kind}: {model}, {format_noun(environment.threads, 'thread')}",
        host=compute_machine_id(environment),
        commit=provenance.commit,
        run_url=provenance.run_url,
        torch=environment.torch,
        driver=environment.driver,
        anchor=record.base.commit if isinstance(record, Verdict) and record.base else "",
    )


def _list_figures(estimate: Estimate) -> Figures:
    if estimate.low is None or estimate.high is None:
        return (estimate.centre,)
    return (estimate.centre, estimate.low, estimate.high)
