"""``compare``, ``report`` and ``merge``: work on stored runs, measure nothing."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from gate.baseline import load_baselines, make_baselines
from gate.cli.output import code_verdict, print_report, print_verdict
from gate.cli.setup import load_configured, load_policy, note_rules
from gate.codec import load_run, load_verdict, save_run, save_verdict
from gate.decide import decide_verdict
from gate.errors import ExitCode, UsageError
from gate.hostile import is_present
from gate.plan import merge_runs
from gate.records import Baseline
from gate.registry import load_cases, select_cases
from gate.report import render


def run_compare(options: Namespace) -> ExitCode:
    """Judge CANDIDATE against BASELINE (a run, or a directory of baselines)."""
    config = load_configured(options)
    policy = load_policy(config, options.approvals)
    baselines = _load_left(Path(options.baseline))
    verdict = note_rules(decide_verdict(load_run(Path(options.candidate)), baselines, policy), config)
    save_verdict(verdict, Path(options.out))
    code = code_verdict(verdict, options, policy)
    if options.format == "text":
        print_verdict(verdict, code, options)
        return code
    print(render(verdict, options.format), end="")
    return code


def run_report(options: Namespace) -> ExitCode:
    """Render a stored verdict again; exit 0 says that rendering worked, not what the verdict is."""
    verdict = load_verdict(Path(options.verdict))
    if options.format == "text":
        print_report(verdict, options)
    else:
        print(render(verdict, options.format), end="")
    return ExitCode.PASS


def run_merge(options: Namespace) -> ExitCode:
    """Join the runs of shards into one ``run.json``; a shard that did not come back leaves a gap in it."""
    registry = load_cases(load_configured(options)) if options.select else ()
    planned = select_cases(registry, options.select) if options.select else ()
    merged = merge_runs([load_run(Path(path)) for path in options.runs], planned)
    save_run(merged, Path(options.out))
    print(f"Wrote {options.out}: {len(merged.cases)} cases, {len(merged.trials)} trials.")
    return ExitCode.PASS


def _load_left(path: Path) -> tuple[Baseline, ...]:
    if not is_present(path):
        raise UsageError(f"{path}: no such file or directory", "Name a run.json or a directory of baselines.")
    if path.is_dir():
        return load_baselines(path)
    run = load_run(path)
    return make_baselines(run, run.provenance)
