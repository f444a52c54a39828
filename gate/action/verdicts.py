"""The modes that end in a verdict: check, judge, upgrade and anchor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gate.action.base import find_head_sha
from gate.action.child import Ended
from gate.action.commands import (
    make_anchor_arguments,
    make_check_arguments,
    make_compare_arguments,
    make_merge_arguments,
    make_upgrade_arguments,
)
from gate.action.notices import (
    find_confirming_commit,
    tell_approvals,
    tell_changed,
    tell_failure,
    tell_lack,
    tell_rules,
)
from gate.action.results import Places, Results, clear_results, describe_verdict, list_annotations
from gate.action.rules import RuleSource, hold_rules, load_rules_config
from gate.action.step import ActionStep, run_measured
from gate.errors import ExitCode, FileError, UsageError
from gate.files.codec import load_run, load_verdict
from gate.git import find_checkout
from gate.github.job import append_summary, write_outputs
from gate.project.choice import choose_cases
from gate.project.registry import load_cases
from gate.records import Code, Outcome, Verdict
from gate.report.markdown import escape_code
from gate.report.upgrade import render_upgrade

# What a command ends with that leaves a verdict. With any other a file of that name is none.
_WITH_VERDICT = frozenset(ExitCode[outcome.name] for outcome in Outcome)


def start_check(step: ActionStep) -> int:
    """Measure and judge by the base commit's rules, confirm side by side with it, tell the runner."""
    with hold_rules(step) as rules:
        tell_rules(rules)
        tell_approvals(step, rules)
        base = find_confirming_commit(step)
        results = clear_results(rules)
        ended = run_measured(step, make_check_arguments(step.inputs, rules, base))
    tell_changed(step, rules)
    return tell_verdict(step, results, ended, {"baseline-sha": rules.sha})


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
        tell_approvals(step, rules)
        results, config = clear_results(rules), load_rules_config(rules.config)
        if not config.is_found:
            tell_lack(step)
        stored = Path(rules.baselines) if rules.baselines else config.baselines
        stored.mkdir(parents=True, exist_ok=True)  # none stored yet is a verdict, not an error
        merged, out = str(results.run), str(config.out)
        select = step.inputs["select"] or choose_cases(config, load_cases(config)).selection
        ended = run_measured(step, make_merge_arguments(rules, runs, select, out))
        if ended.code == ExitCode.PASS:
            compared = make_compare_arguments(step.inputs, rules, str(stored), merged, out)
            ended = run_measured(step, compared)
    tell_changed(step, rules)
    return tell_verdict(step, results, ended, {"baseline-sha": rules.sha})


def run_upgrade(step: ActionStep) -> int:
    """Hold one stack against another with the code fixed, tell the runner."""
    results = clear_results(RuleSource(config=step.inputs["config"], baselines=""))
    ended = run_measured(step, make_upgrade_arguments(step.inputs))
    return tell_verdict(step, results, ended, {}, lambda verdict: render_upgrade(verdict, escape_code))


def start_anchor(step: ActionStep) -> int:
    """Hold what is checked out against the release anchor, tell the runner."""
    results = clear_results(RuleSource(config=step.inputs["config"], baselines=""))
    return tell_verdict(step, results, run_measured(step, make_anchor_arguments(step.inputs)), {})


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
        "result-path": str(results.verdict),
        "report-path": str(results.report),
        "page-path": str(results.page),
    }
    write_outputs(step.environ, described)
    if any(fact.code is Code.NO_CONFIGURATION for fact in verdict.headline):
        tell_lack(step)
    first = f"{preface(verdict)}\n\n" if preface else ""
    append_summary(step.environ, first + results.report.read_text(encoding="utf-8"))
    run = load_run(results.run) if results.run.exists() else None
    places = Places(code=results.code, top=find_checkout(Path.cwd()) or Path.cwd())
    for annotation in list_annotations(verdict, run, places, ended.code):
        print(annotation)
    return ended.code
