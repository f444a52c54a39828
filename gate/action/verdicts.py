"""The modes that end in a verdict: check, judge and upgrade."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gate.action.base import find_head_sha
from gate.action.commands import (
    make_check_arguments,
    make_compare_arguments,
    make_merge_arguments,
    make_upgrade_arguments,
)
from gate.action.notices import find_confirming_commit, tell_approvals, tell_changed, tell_rules
from gate.action.results import describe_verdict, list_annotations
from gate.action.rules import hold_rules
from gate.action.step import Step, run_measured
from gate.codec import load_run, load_verdict
from gate.config import Config, load_config
from gate.errors import ExitCode, FileError, UsageError
from gate.github.job import append_summary, render_annotation, write_outputs
from gate.records import Verdict
from gate.report.markdown import escape_code
from gate.report.upgrade import render_upgrade

_FILES = ("verdict.json", "report.md", "run.json")
# What a command may end with that leaves no verdict.
_WITHOUT_VERDICT = frozenset({ExitCode.USAGE, ExitCode.MACHINE, ExitCode.INTERRUPTED, ExitCode.BUG})


def run_check(step: Step) -> int:
    """Measure and judge by the base commit's rules, confirm side by side with it, tell the runner."""
    with hold_rules(step) as rules:
        tell_rules(rules)
        tell_approvals(step, rules)
        base = find_confirming_commit(step)
        paths = clear_results(load_configured(rules.config))
        code = run_measured(step, make_check_arguments(step.inputs, rules, base))
    tell_changed(step, rules)
    return tell_verdict(step, paths, code, {"baseline-sha": rules.sha})


def run_judge(step: Step) -> int:
    """Join the runs of the shards, judge them by the base commit's rules, tell the runner.

    A shard that is missing leaves its cases in the plan, so that the verdict is INCOMPLETE.
    """
    runs = tuple(str(path) for path in sorted(Path(step.inputs.runs).rglob("run.json")))
    if not runs:
        raise UsageError(
            f"input runs: there is no run.json below {step.inputs.runs!r}",
            "No shard left one; see their logs.",
        )
    with hold_rules(step) as rules:
        tell_rules(rules)
        tell_approvals(step, rules)
        config = load_configured(rules.config)
        paths = clear_results(config)
        stored = Path(rules.baselines) if rules.baselines else config.baselines
        stored.mkdir(parents=True, exist_ok=True)  # none stored yet is a verdict, not an error
        merged, out = str(paths["run.json"]), str(config.out)
        select = step.inputs.select or config.select
        code = run_measured(step, make_merge_arguments(rules, runs, select, out))
        if code == ExitCode.PASS:
            compared = make_compare_arguments(step.inputs, rules, str(stored), merged, out)
            code = run_measured(step, compared)
    tell_changed(step, rules)
    return tell_verdict(step, paths, code, {"baseline-sha": rules.sha})


def run_upgrade(step: Step) -> int:
    """Hold one stack against another with the code fixed, tell the runner."""
    paths = clear_results(load_configured(step.inputs.config))
    code = run_measured(step, make_upgrade_arguments(step.inputs))
    return tell_verdict(step, paths, code, {}, lambda verdict: render_upgrade(verdict, escape_code))


def load_configured(config: str) -> Config:
    """Load the configuration of that name; empty means the default."""
    return load_config(Path(config) if config else None)


def clear_results(config: Config) -> Mapping[str, Path]:
    """Name the files that a command will leave, and remove an earlier run's."""
    paths = {name: config.out.absolute() / name for name in _FILES}
    for path in paths.values():
        path.unlink(missing_ok=True)
    return paths


def tell_verdict(
    step: Step,
    paths: Mapping[str, Path],
    code: int,
    outputs: Mapping[str, object],
    preface: Callable[[Verdict], str] | None = None,
) -> int:
    """Tell the runner of the verdict that a command left: outputs, summary, annotations.

    ``preface`` renders what the summary begins with.

    Raises:
        FileError: The command ended as if it had left one.
    """
    if not paths["verdict.json"].exists():
        if code not in _WITHOUT_VERDICT:
            raise FileError(str(paths["verdict.json"]), "", "was not written", "See the log above.")
        print(render_annotation("error", f"compile-gate ended with exit code {code}; see the log."))
        return code
    verdict = load_verdict(paths["verdict.json"])
    head_sha = find_head_sha(step.event) or verdict.provenance.commit
    described = {**describe_verdict(verdict), **outputs} | {"head-sha": head_sha}
    described |= {"result-path": str(paths["verdict.json"]), "report-path": str(paths["report.md"])}
    write_outputs(step.environ, described)
    first = f"{preface(verdict)}\n\n" if preface else ""
    append_summary(step.environ, first + paths["report.md"].read_text(encoding="utf-8"))
    run = load_run(paths["run.json"]) if paths["run.json"].exists() else None
    for annotation in list_annotations(verdict, run, Path.cwd(), code):
        print(annotation)
    return code
