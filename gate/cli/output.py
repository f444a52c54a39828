"""Where runs and verdicts go: the out directory, and the terminal; and what is said beside a verdict.

Those are notes on the configuration and the acceptances under which it was reached.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate.cli.measuring_commands import AB_MINUTES
from gate.decide.conclude.accept import is_lack_accepted, keep_own
from gate.decide.conclude.outcome import FailOn, compute_exit_code, measure_coverage
from gate.errors import ExitCode, UsageError
from gate.files.codec import RUN, VERDICT, write_atomic
from gate.files.disk import list_cut_short
from gate.git import ask_git, find_checkout
from gate.project.config import DEFAULT_FILE, Config
from gate.records import Baseline, Case, Code, Fact, Policy, Run, Verdict, name_words
from gate.records.protocol import Stage
from gate.report import FORMATS, render
from gate.report.footer import render_exit_notice
from gate.report.junit import render_junit
from gate.report.tables import render_study
from gate.report.text import Detail, print_text, render_text
from gate.report.view import Study
from gate.report.words.steps import write_tlparse
from gate.store.policy import name_gate
from gate.units import count_noun

VERDICT_FILE = "verdict.json"
# All that a command which judges leaves beside ``run.json``.
REPORT_FILES = (VERDICT_FILE, *(one.file for one in FORMATS.values() if one.file))


def save_reports(verdict: Verdict, out: Path, code: ExitCode) -> None:
    """Write ``verdict.json`` and the reports that have a file into a directory."""
    VERDICT.save(verdict, out / VERDICT_FILE)
    for one in FORMATS.values():
        if one.file:
            write_atomic(out / one.file, render_verdict(verdict, one.name, code))
    from gate.report.page.pages import render_case_pages  # noqa: PLC0415 - jinja is slow to import

    remove_files(*_list_case_pages(out))
    for name, text in render_case_pages(verdict):
        write_atomic(out / name, text)


# A run is written again after so many times as long as writing it took. With 10,000 trials that is 20 s, no
# more than a trial takes; with 200,000 a kill may lose the last six minutes.
_PAUSE = 50


@dataclass(kw_only=True, slots=True)
class RunSaver:
    """Saves a run as it grows; with its first state go the reports of the run that it replaces.

    A command that ends before it measures, for a mistyped ref, leaves the last verdict as it was.
    """

    path: Path
    read_s: Callable[[], float] = time.monotonic
    _unwritten: Run | None = None
    _was_finished: bool | None = None  # what was written last
    _earliest_s: float = 0.0  # to write again

    def save(self, run: Run) -> None:
        """Save the run as it is now, or soon.

        Raises:
            MachineError, UsageError: See :func:`gate.files.disk.write_atomic`, :func:`remove_files`.
        """
        self._unwritten = run
        if run.finished is not self._was_finished or self.read_s() >= self._earliest_s:
            self.close()

    def close(self) -> None:
        """Write what was not written yet; raises as :meth:`save`."""
        run, begun_s = self._unwritten, self.read_s()
        if run is None:
            return
        if self._was_finished is None:
            remove_files(*list_reports(self.path.parent), *list_cut_short(self.path))
        RUN.save(run, self.path)
        self._unwritten, self._was_finished = None, run.finished
        now_s = self.read_s()
        self._earliest_s = now_s + _PAUSE * (now_s - begun_s)


def list_reports(out: Path) -> list[Path]:
    """List the files that a command which judges leaves beside ``run.json``."""
    return [*(out / name for name in REPORT_FILES), *_list_case_pages(out)]


def _list_case_pages(out: Path) -> list[Path]:
    return sorted((out / "cases").glob("case-*.html"))


def remove_files(*paths: Path) -> None:
    """Remove what an earlier run has left.

    Raises:
        UsageError: One cannot be removed.
    """
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            continue  # nothing lies there; the error comes when it is written
        except OSError as error:
            what = f"{path} cannot be replaced: {error.strerror}"
            raise UsageError(what, "Remove it, or name another directory with --out.") from None


def render_verdict(verdict: Verdict, report_format: str, code: ExitCode | None) -> str:
    """Return the report; as JUnit it is red where the command that judged ends with another code than 0."""
    if report_format != "junit" or code is None:
        return render(verdict, report_format)
    return render_junit(verdict, fails=code is not ExitCode.PASS)


def report_study(study: Study, path: Path) -> None:
    """Print what a study found, and where its file is."""
    print(render_study(study))
    print(f"Wrote {path}.")


def code_verdict(verdict: Verdict, config: Config, policy: Policy | None = None) -> ExitCode:
    """The exit code of a verdict under ``fail_on``, and under the policy's acceptances if it has any."""
    coverage = measure_coverage(verdict.comparisons)
    own = keep_own(policy, verdict.environment) if policy else None
    accepted = own is not None and is_lack_accepted(verdict.comparisons, own)
    fail_on = config.fail_on or FailOn.INCONCLUSIVE
    return compute_exit_code(verdict.outcome, fail_on, coverage, is_lack_accepted=accepted)


def report_verdict(
    verdict: Verdict, config: Config, options: Namespace, out: Path | None, policy: Policy | None = None
) -> ExitCode:
    """Write the reports into ``out``, print the one that was asked for, and return the exit code.

    What the code means is printed where that is not plain. Where a program reads the report, it is on
    standard error.
    """
    code = code_verdict(verdict, config, policy)
    if out:
        save_reports(verdict, out, code)
    print_report(verdict, options, code)
    accepted = code is not code_verdict(verdict, config)
    if notice := render_exit_notice(verdict.outcome, code, is_lack_accepted=accepted):
        print(notice, file=sys.stdout if options.format == "text" else sys.stderr)
    return code


def print_report(verdict: Verdict, options: Namespace, code: ExitCode | None = None) -> None:
    """Print the report as ``--format`` asks; ``--quiet`` leaves the text's verdict and what to do next.

    ``code`` is that of the command that judged, where this is it.
    """
    if options.format != "text":
        print(render_verdict(verdict, options.format, code), end="")
    elif options.quiet:
        print(render_text(verdict, detail=Detail.VERDICT), end="")
    else:
        print_text(verdict, verbose=options.verbose)


def print_traces(run: Run, out: Path) -> None:
    """Tell where torch's traces lie, how they are read, and what they took, where any was asked for."""
    traced = [trial for trial in run.trials if Stage.TRACE in trial.stages_s]
    found = [trial.trace for trial in traced if trial.trace]
    if traced:
        took_s = sum(trial.stages_s[Stage.TRACE] for trial in traced)
        print(f"traced {len(found)} of {len(traced)} trials, {took_s:.0f} s in all", file=sys.stderr)
    if found:
        print(f"  {write_tlparse(found[-1], str(out))}", file=sys.stderr)


_REPEATED = ("config", "baselines", "out", "minutes")  # options, for commands to run next


def note_origin(verdict: Verdict, config: Config, options: Namespace) -> Verdict:
    """Say by which commit's rules it was reached; else commands to run next repeat options of this one."""
    if not config.commit:
        return replace(verdict, options=_list_repeated(vars(options)))
    rules = Fact(code=Code.RULES_OF, names=name_words(commit=config.commit))
    return replace(verdict, notes=(*verdict.notes, rules))


def _list_repeated(given: Mapping[str, Any]) -> dict[str, str]:
    """List the options that commands to run next repeat, with their values: what is not the default."""
    named = {f"--{name}": given[name] for name in _REPEATED if given.get(name)}
    if named.get("--minutes") == AB_MINUTES:
        del named["--minutes"]
    if Path(named.get("--config", "")) == Path(DEFAULT_FILE):
        del named["--config"]
    written = {name: value if isinstance(value, str) else f"{value:g}" for name, value in named.items()}
    return written | ({"--reference-models": ""} if given.get("reference_models") else {})


def note_rules(verdict: Verdict, config: Config, base: str) -> Verdict:
    """Say first which files that it was judged by are others than those of ``base``, a commit.

    A change that loosens a threshold, leaves a case out or records baselines is judged by its own files.
    """
    if not base or config.commit:
        return verdict
    command = ("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z", base, "--")
    rules = (Path(config.source), *config.registry, config.baselines)
    # git refuses what lies outside of the repository: that is no part of a change.
    listed = {rule: ask_git(config.directory, *command, str(rule.absolute())).output for rule in rules}
    counts = {rule: files.count(b"\0") for rule, files in listed.items()}
    named = tuple(f"{rule} ({count_noun(count, 'file')})" for rule, count in counts.items() if count)
    notes = [Fact(code=Code.TOUCHES_RULES, names={"rules": named})] if named else []
    return replace(verdict, notes=(*notes, *verdict.notes))


def note_idle(
    verdict: Verdict, policy: Policy, registry: Iterable[Case], baselines: Iterable[Baseline] = ()
) -> Verdict:
    """Name the acceptances and baselines that count for nothing: their authors think that they do."""
    ids = [case.id for case in registry]
    notes = [
        Fact(code=Code.UNUSED_ACCEPTANCE, metrics=(one.metric,), names=name_words(pattern=one.case))
        for one in policy.acceptances
        if one.metric and not any(policy.fits(one.case, name) for name in ids)
    ]
    if gone := tuple(sorted({one.case_id for one in baselines} - set(ids))):
        notes.append(Fact(code=Code.BASELINES_IDLE, numbers={"cases": len(gone)}, cases=gone))
    return replace(verdict, notes=(*verdict.notes, *notes))


def find_gate(options: Namespace, config: Config) -> str:
    """Find which gate judges, as acceptances name it; empty where the configuration is in no repository."""
    source = Path(config.source)
    top = find_checkout(source.parent)
    return options.gate or (name_gate(source, top) if top else "")
