"""What each mode does: start the command, then tell the runner what came of it."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gate.action.base import find_head_sha
from gate.action.commands import (
    make_arguments,
    make_check_arguments,
    make_compare_arguments,
    make_merge_arguments,
)
from gate.action.inputs import ActionMode, parse_inputs
from gate.action.results import (
    Places,
    Results,
    choose_result,
    clear_results,
    describe_run,
    describe_verdict,
    find_confirming_commit,
    list_annotations,
    tell_accepted,
    tell_changed,
    tell_failure,
    tell_rules,
)
from gate.action.rules import RuleSource, hold_rules, load_rules_config
from gate.action.step import ActionStep, Ended, read_command, run_command, run_measured, stop_commands
from gate.errors import ExitCode, FileError, GateError, UsageError
from gate.files.codec import load_run, load_verdict
from gate.git import GIT_SETTINGS, find_checkout, trust_checkout
from gate.github.context import load_payload
from gate.github.errors import find_value
from gate.github.job import append_summary, render_annotation, write_outputs
from gate.project.registry import load_cases
from gate.project.selection import choose_cases
from gate.records import Outcome, Verdict
from gate.report.markdown import escape_code
from gate.report.upgrade import render_upgrade


def start_plan(step: ActionStep) -> int:
    """Divide the selection over machines by the base commit's registry: the output is a matrix."""
    with hold_rules(step) as rules:
        tell_rules(rules)
        ended, printed = read_command(step, make_arguments(step.inputs, rules))
    if ended.code == ExitCode.PASS:
        write_outputs(step.environ, {"matrix": printed.strip(), "baseline-sha": rules.sha})
    return tell_failure(ended)


def start_measure(step: ActionStep) -> int:
    """Measure a shard by the base commit's registry, and judge nothing."""
    with hold_rules(step) as rules:
        tell_rules(rules)
        write_outputs(step.environ, {"baseline-sha": rules.sha})
        return _measure(step, rules)


def start_refresh(step: ActionStep) -> int:
    """Measure the checked-out commit as often as a baseline wants."""
    trials = load_rules_config(step.inputs["config"]).refresh_trials
    return _measure(step, RuleSource(config=step.inputs["config"], baselines=""), trials)


def _measure(step: ActionStep, rules: RuleSource, trials: int = 0) -> int:
    path = clear_results(rules).run
    usual = (f"--trials={trials}",) if trials and not step.inputs["trials"] else ()
    ended = run_measured(step, make_arguments(step.inputs, rules, *usual))
    if path.exists():
        write_outputs(step.environ, describe_run(load_run(path)) | {"result-path": str(path)})
    return tell_failure(ended)


# What a command ends with that leaves a verdict. With any other a file of that name is none.
_WITH_VERDICT = frozenset(ExitCode[outcome.name] for outcome in Outcome)


def start_check(step: ActionStep) -> int:
    """Measure and judge by the base commit's rules, confirm side by side with it, tell the runner."""
    with hold_rules(step) as rules:
        tell_rules(rules)
        tell_accepted(step, rules)
        base = find_confirming_commit(step)
        results = clear_results(rules)
        arguments = make_check_arguments(step.inputs, rules, base)
        ended = run_measured(step, (*arguments, *_fail_by(step, rules.config)))
    return _tell_judged(step, rules, results, ended)


def run_judge(step: ActionStep) -> int:
    """Join the runs of the shards, judge them by the base commit's rules, tell the runner.

    A shard that is missing leaves its cases in the plan, so that the verdict is INCOMPLETE.
    """
    runs = tuple(str(path) for path in sorted(Path(step.inputs["runs"]).rglob("run.json")))
    if not runs:
        raise UsageError(
            f"input runs: there is no run.json below {step.inputs['runs']!r}",
            "No shard left one; see their logs.",
        )
    with hold_rules(step) as rules:
        tell_rules(rules)
        tell_accepted(step, rules)
        results, config = clear_results(rules), load_rules_config(rules.config)
        stored = Path(rules.baselines) if rules.baselines else config.baselines
        stored.mkdir(parents=True, exist_ok=True)  # none stored yet is a verdict, not an error
        merged, out = str(results.run), str(config.out)
        select = step.inputs["select"] or choose_cases(config, load_cases(config)).selection
        ended = run_measured(step, make_merge_arguments(rules, runs, select, out))
        if ended.code == ExitCode.PASS:
            fail_on = _fail_by(step, rules.config)
            compared = make_compare_arguments(step.inputs, rules, (str(stored), merged), out, *fail_on)
            ended = run_measured(step, compared)
    return _tell_judged(step, rules, results, ended)


def _fail_by(step: ActionStep, config: str) -> tuple[str, ...]:
    """The action's own default, where neither the workflow nor gate.yml says what fails."""
    is_said = step.inputs["fail-on"] or load_rules_config(config).fail_on
    return () if is_said else ("--fail-on=regression",)


def _tell_judged(step: ActionStep, rules: RuleSource, results: Results, ended: Ended) -> int:
    """Tell the runner of a verdict, and by whose rules; the change that adds them need not compare."""
    tell_changed(step, rules)
    if rules.is_first and ended.code == ExitCode.NOTHING_COMPARED:
        ended = replace(ended, code=int(ExitCode.PASS))
    return tell_verdict(step, results, ended, {"baseline-sha": rules.sha})


def start_pairs(step: ActionStep) -> int:
    """Compare two stacks with the code fixed, or what is checked out with the release anchor."""
    results = clear_results(RuleSource(config=step.inputs["config"], baselines=""))
    arguments = make_arguments(step.inputs, None, *_fail_by(step, step.inputs["config"]))
    ended = run_measured(step, arguments)
    is_upgrade = step.inputs.mode is ActionMode.UPGRADE
    preface = (lambda verdict: render_upgrade(verdict, escape_code)) if is_upgrade else None
    return tell_verdict(step, results, ended, {}, preface)


def tell_verdict(
    step: ActionStep,
    results: Results,
    ended: Ended,
    outputs: Mapping[str, object],
    preface: Callable[[Verdict], str] | None = None,
) -> int:
    """Tell the runner of the verdict that a command left: outputs, summary, annotations.

    ``preface`` renders what the summary begins with.

    Raises:
        FileError: The command ended as if it had left one.
    """
    if ended.code not in _WITH_VERDICT:
        return tell_failure(ended)
    if not results.verdict.exists():
        raise FileError(str(results.verdict), "", "was not written", "See the log above.")
    verdict = load_verdict(results.verdict)
    head_sha = find_head_sha(step.event) or verdict.provenance.commit
    described = {**describe_verdict(verdict), **outputs} | {"head-sha": head_sha}
    described |= {
        "result-path": str(choose_result(results.verdict, verdict)),
        "report-path": str(results.report),
        "page-path": str(results.page),
    }
    write_outputs(step.environ, described)
    first = f"{preface(verdict)}\n\n" if preface else ""
    append_summary(step.environ, first + results.report.read_text(encoding="utf-8"))
    run = load_run(results.run) if results.run.exists() else None
    places = Places(code=results.code, top=find_checkout(Path.cwd()) or Path.cwd())
    for annotation in list_annotations(verdict, run, places, ended.code):
        print(annotation)
    return ended.code


def run_action(environ: Mapping[str, str]) -> int:
    """Do what the inputs ask for and return the exit code; trouble is an annotation of two sentences."""
    try:
        code = _run_mode(environ)
    except GateError as error:
        code = int(error.exit_code)
        for one in (error, *error.others):
            print(render_annotation("error", f"{one.what}. {one.fix}"), flush=True)
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the one place where a bug of the action becomes exit code 1
        code = int(ExitCode.BUG)
        _tell_bug(error)
    write_outputs(environ, {"exit-code": code})
    return code


def _run_mode(environ: Mapping[str, str]) -> int:
    inputs = parse_inputs(environ)
    _enter(inputs["working-directory"])
    with _trust_workspace(environ) as trusting:
        return _MODES[inputs.mode](ActionStep(inputs=inputs, environ=trusting, event=load_payload(environ)))


@contextmanager
def _trust_workspace(environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Let git trust the checkout for as long as the step runs: in a container it is another user's."""
    before = os.environ.get(GIT_SETTINGS)
    with tempfile.TemporaryDirectory(prefix="compile-gate-", dir=environ.get("RUNNER_TEMP") or None) as place:
        trusting = trust_checkout(environ, Path.cwd(), Path(place) / "gitconfig")
        os.environ |= {name: value for name, value in trusting.items() if name == GIT_SETTINGS}
        try:
            yield trusting
        finally:
            os.environ.pop(GIT_SETTINGS, None)
            os.environ |= {GIT_SETTINGS: before} if before else {}


def _tell_bug(error: Exception) -> None:
    """Show the traceback, in which a file of the change may be quoted, and say what it was in one line."""
    with stop_commands():
        traceback.print_exception(error, file=sys.stdout)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    fix = "This is a bug in compile-gate: please report it with the traceback in the log."
    print(render_annotation("error", f"{what}. {fix}"), flush=True)


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        what = f"input working-directory: {directory!r} cannot be entered: {error.strerror}"
        raise UsageError(what, "Check the path, and that actions/checkout runs before this step.") from None


def _publish(step: ActionStep) -> int:
    found = step.inputs["run-id"] or str(find_value(step.event, "workflow_run.id") or "")
    if not found:
        fix = "Start this workflow by workflow_run, or set `run-id:`."
        raise UsageError("input run-id: this event has no run to publish", fix)
    return _publish_run(step, found)


def _publish_upgrade(step: ActionStep) -> int:
    found = step.inputs["run-id"] or step.environ.get("GITHUB_RUN_ID", "")
    if not found:
        raise UsageError("input run-id: there is no run to publish", "Run this in a job, or set `run-id:`.")
    return _publish_run(step, found)


def _publish_run(step: ActionStep, run_id: str) -> int:
    values = {**step.inputs.values, "run-id": run_id}
    return _pass_on(replace(step, inputs=replace(step.inputs, values=values)))


def _pass_on(step: ActionStep) -> int:
    """Run one command, and tell why it failed."""
    return tell_failure(run_command(step, make_arguments(step.inputs)))


_MODES: Mapping[ActionMode, Callable[[ActionStep], int]] = {
    ActionMode.CHECK: start_check,
    ActionMode.PLAN: start_plan,
    ActionMode.MEASURE: start_measure,
    ActionMode.JUDGE: run_judge,
    ActionMode.UPGRADE: start_pairs,
    ActionMode.ANCHOR: start_pairs,
    ActionMode.REFRESH: start_refresh,
    ActionMode.PUBLISH: _publish,
    ActionMode.PUBLISH_UPGRADE: _publish_upgrade,
    ActionMode.AUTHORIZE: _pass_on,
    ActionMode.ACCEPT: _pass_on,
    ActionMode.PROPOSE: _pass_on,
}
