"""The modes that end in a run, or in what is to be run: plan, measure and refresh."""

from __future__ import annotations

from gate.action.commands import make_measure_arguments, make_plan_arguments
from gate.action.notices import tell_failure, tell_rules
from gate.action.results import clear_results, describe_run
from gate.action.rules import RuleSource, hold_rules, load_rules_config
from gate.action.step import ActionStep, read_command, run_measured
from gate.errors import ExitCode
from gate.files.codec import load_run
from gate.github.job import write_outputs


def start_plan(step: ActionStep) -> int:
    """Divide the selection over machines by the base commit's registry: the output is a matrix."""
    with hold_rules(step) as rules:
        tell_rules(rules)
        ended, printed = read_command(step, make_plan_arguments(step.inputs, rules))
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
    ended = run_measured(step, make_measure_arguments(step.inputs, rules, trials))
    if path.exists():
        write_outputs(step.environ, describe_run(load_run(path)) | {"result-path": str(path)})
    return tell_failure(ended)
