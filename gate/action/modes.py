"""What each mode does: start its command, then report the result to the runner.

:mod:`gate.action.launch` becomes ``python -m gate.action.modes``. An input of a mode is the option of its
name.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gate.action.base_commit import find_head_sha
from gate.action.inputs import INPUTS, ActionMode, ActionStep, parse_inputs
from gate.action.launch import read_given
from gate.action.rules import RuleSource, open_rule_source
from gate.action.step import (
    RUN_FILE,
    VERDICT_FILE,
    Ended,
    add_summary,
    clear_results,
    find_confirming_commit,
    list_annotations,
    report_change,
    report_failure,
    report_rules,
    run_command,
    set_outputs,
    stop_commands,
    warn,
)
from gate.errors import ExitCode, FileError, GateError, UsageError
from gate.files.codec import RUN, SHOWN, VERDICT
from gate.fingerprint import compute_environment_id
from gate.git import GIT_SETTINGS, trust_checkout
from gate.github.job import find_value, load_payload, render_annotation
from gate.project.config import Config, load_config
from gate.project.selection import choose_cases
from gate.publish.results import describe_outputs, render_upgrade
from gate.publish.shown import SHOWN_FILE, make_shown
from gate.records.verdict import Outcome
from gate.report.content import count_statuses
from gate.store.anchor import ANCHOR_FILE, RECORD_ANCHOR, load_anchor

# What a command ends with that leaves a verdict. With any other a file of that name is none.
_WITH_VERDICT = frozenset(ExitCode[outcome.name] for outcome in Outcome)
SHARDS = "shards"  # where the shards' artifacts lie, relative to the working directory


def make_arguments(
    inputs: Mapping[str, str], source: RuleSource | None = None, *more: str
) -> tuple[str, ...]:
    """``more`` are arguments that no input has."""
    given = (
        f"--{item.name}={inputs[item.name]}"
        for item in INPUTS
        if inputs["mode"] in item.modes and inputs[item.name]
    )
    return (*_MODES[inputs["mode"]][1], *(source.arguments if source else ()), *more, *given)


def make_check_arguments(inputs: Mapping[str, str], source: RuleSource, base: str = "") -> tuple[str, ...]:
    """``base`` is the commit to compare with, if any."""
    against = f"--base={base}" if base else "--no-base"
    stored = (f"--baselines={inputs['baselines']}",) if inputs["baselines"] else ()
    return make_arguments(inputs, source, *stored, against, *_list_accept_options(source))


def make_merge_arguments(
    inputs: Mapping[str, str], source: RuleSource, runs: tuple[str, ...], select: str
) -> tuple[str, ...]:
    config = (f"--config={inputs['config']}",) if inputs["config"] else ()
    out = f"--out={source.rules.config.out}"
    return ("merge", *source.arguments, *config, f"--select={select}", out, "--", *runs)


def make_compare_arguments(
    inputs: Mapping[str, str], source: RuleSource, paths: tuple[str, str], *more: str
) -> tuple[str, ...]:
    """``paths`` are of baselines and of a run."""
    out = f"--out={source.rules.config.out}"
    return (*make_arguments(inputs, source, *_list_accept_options(source), out, *more), "--", *paths)


def _list_accept_options(source: RuleSource) -> tuple[str, ...]:
    files = tuple(f"--accepted={file}" for file in source.accepted.files)
    return (*files, f"--gate={source.gate}") if files and source.gate else files


def _begin(step: ActionStep, config: Config) -> None:
    clear_results(config.out)
    set_outputs(step.environ, {"out-path": str(config.out.absolute())})


def start_measure(step: ActionStep) -> int:
    with open_rule_source(step) as source:
        report_rules(step, source)
        set_outputs(step.environ, {"baseline-sha": source.rules.sha})
        arguments = make_check_arguments(step.inputs, source, find_confirming_commit(step))
        return _measure(step, source.rules.config, (*arguments, "--fail-on=never"))


def start_refresh(step: ActionStep) -> int:
    config = load_config(step.inputs["config"])
    return _measure(step, config, make_arguments(step.inputs, None, f"--trials={config.refresh_trials}"))


def _measure(step: ActionStep, config: Config, arguments: tuple[str, ...]) -> int:
    _begin(step, config)
    path = config.out.absolute() / RUN_FILE
    ended = run_command(step, arguments)
    if path.exists():
        run = RUN.load(path)
        outputs = {
            "cases": len(run.cases),
            "environment-id": compute_environment_id(run.environment),
            "head-sha": run.provenance.commit,
            "result-path": str(path),
        }
        set_outputs(step.environ, outputs)
    return report_failure(ended)


def start_check(step: ActionStep) -> int:
    with open_rule_source(step) as source:
        report_rules(step, source)
        base = find_confirming_commit(step)
        _begin(step, source.rules.config)
        arguments = make_check_arguments(step.inputs, source, base)
        ended = run_command(step, (*arguments, *_list_fail_options(step, source.rules.config)))
    return _report_judged(step, source, ended)


def start_judge(step: ActionStep) -> int:
    """The cases of a missing shard stay in the plan, so the verdict is INCOMPLETE."""
    runs = tuple(str(path) for path in sorted(Path(SHARDS).rglob(RUN_FILE)))
    if not runs:
        raise UsageError(
            f"there is no {RUN_FILE} below {SHARDS!r}",
            "Download the shards' artifacts to there; where there are none, see the logs of the shards.",
        )
    with open_rule_source(step) as source:
        report_rules(step, source)
        config = source.rules.config
        _begin(step, config)
        stored = config.baselines
        if step.inputs["baselines"] and not config.commit:
            stored = Path(step.inputs["baselines"])
        stored.mkdir(parents=True, exist_ok=True)  # none stored yet is a verdict, not an error
        select = step.inputs["select"] or choose_cases(config, source.rules.cases).selection
        ended = run_command(step, make_merge_arguments(step.inputs, source, runs, select))
        if ended.code == ExitCode.PASS:
            paths = (str(stored), str(config.out.absolute() / RUN_FILE))
            compared = make_compare_arguments(step.inputs, source, paths, *_list_fail_options(step, config))
            ended = run_command(step, compared)
    return _report_judged(step, source, ended)


def _list_fail_options(step: ActionStep, config: Config) -> tuple[str, ...]:
    """The action's own default."""
    return () if step.inputs["fail-on"] or config.fail_on else ("--fail-on=regression",)


def _report_judged(step: ActionStep, source: RuleSource, ended: Ended) -> int:
    """The change that adds the rules need not compare anything."""
    report_change(step, source)
    if source.rules.is_first and ended.code == ExitCode.NOTHING_COMPARED:
        ended = replace(ended, code=int(ExitCode.PASS))
        if not (source.rules.config.out.absolute() / VERDICT_FILE).exists():  # refused early
            for text in ended.complaints:
                warn(step, text)
            return ended.code
    return _report_verdict(step, source.rules.config, ended, {"baseline-sha": source.rules.sha})


def start_pairs(step: ActionStep) -> int:
    config = load_config(step.inputs["config"])
    _begin(step, config)
    arguments = make_arguments(step.inputs, None, *_list_fail_options(step, config))
    return _report_verdict(step, config, run_command(step, arguments), {})


def start_anchor(step: ActionStep) -> int:
    """Without an anchor nothing is measured, and a notice shows how to record one."""
    given = step.inputs["baselines"]
    directory = Path(given) if given else load_config(step.inputs["config"]).baselines
    if load_anchor(directory):
        return start_pairs(step)
    what = f"{directory / ANCHOR_FILE} does not exist, so nothing was measured. Record one: {RECORD_ANCHOR}"
    print(render_annotation("notice", what))
    return ExitCode.PASS


def _report_verdict(step: ActionStep, config: Config, ended: Ended, outputs: Mapping[str, object]) -> int:
    """Report as outputs, summary and annotations.

    Raises:
        FileError: The command ended as if it had left a verdict, and has not.
    """
    if ended.code not in _WITH_VERDICT:
        return report_failure(ended)
    out = config.out.absolute()
    path, report = out / VERDICT_FILE, out / "report.md"
    if not path.exists():
        raise FileError(str(path), "", "was not written", "See the log above.")
    verdict = VERDICT.load(path)
    shown, submitted = make_shown(verdict), out / SHOWN_FILE
    SHOWN.save(shown, submitted)
    paths = {"result-path": submitted, "report-path": report, "page-path": out / "report.html"}
    head_sha = find_head_sha(step.event) or verdict.provenance.commit
    result = describe_outputs(
        verdict.outcome, dict(count_statuses(verdict)), len(verdict.cases), verdict.environment
    )
    set_outputs(step.environ, {**result, **outputs, "head-sha": head_sha, **paths})
    is_upgrade = step.inputs["mode"] == ActionMode.UPGRADE
    first = f"{render_upgrade(verdict, shown)}\n\n" if is_upgrade else ""
    add_summary(step.environ, first + report.read_text(encoding="utf-8"))
    for annotation in list_annotations(verdict, config.directory.absolute(), ended.code):
        print(annotation)
    return ended.code


def start_publish(step: ActionStep) -> int:
    """A job of an upgrade may publish its own run.

    Raises:
        UsageError: There is no run to publish.
    """
    is_upgrade = step.inputs["mode"] == ActionMode.PUBLISH_UPGRADE
    run_id = step.environ.get("GITHUB_RUN_ID") if is_upgrade else find_value(step.event, "workflow_run.id")
    if not step.inputs["run-id"] and not run_id:
        fix = "Start this workflow by workflow_run, or set `run-id:`."
        raise UsageError("input run-id: this event has no run to publish", fix)
    more = () if step.inputs["run-id"] else (f"--run-id={run_id}",)
    return start_command(step, *more)


def start_command(step: ActionStep, *more: str) -> int:
    return report_failure(run_command(step, make_arguments(step.inputs, None, *more)))


def run_action(environ: Mapping[str, str]) -> int:
    try:
        inputs = parse_inputs(environ)
        _enter(inputs["working-directory"])
        start, _ = _MODES[inputs["mode"]]
        with _trust_workspace(environ) as trusting:
            code = start(ActionStep(inputs=inputs, environ=trusting, event=load_payload(environ)))
    except GateError as error:
        code = int(error.exit_code)
        for mistake in (error, *error.others):
            print(render_annotation("error", f"{mistake.what}. {mistake.fix}"))
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the one place where a bug of the action becomes exit code 1
        code = int(ExitCode.BUG)
        _report_bug(error)
    set_outputs(environ, {"exit-code": code})
    return code


@contextmanager
def _trust_workspace(environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """In a container it belongs to another user."""
    before = os.environ.get(GIT_SETTINGS)
    root = environ.get("RUNNER_TEMP") or None
    with tempfile.TemporaryDirectory(prefix="compile-gate-", dir=root) as directory:
        trusting = trust_checkout(environ, Path.cwd(), Path(directory) / "gitconfig")
        os.environ |= {name: value for name, value in trusting.items() if name == GIT_SETTINGS}
        try:
            yield trusting
        finally:
            os.environ.pop(GIT_SETTINGS, None)
            os.environ |= {GIT_SETTINGS: before} if before else {}


def _report_bug(error: Exception) -> None:
    """The traceback may quote a file of the change, so it is guarded."""
    with stop_commands():
        traceback.print_exception(error, file=sys.stdout)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    fix = "This is a bug in compile-gate: please report it with the traceback in the log."
    print(render_annotation("error", f"{what}. {fix}"))


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        what = f"input working-directory: {directory!r} cannot be entered: {error.strerror}"
        raise UsageError(what, "Check the path, and that actions/checkout runs before this step.") from None


# What starts a mode, and the command that is given its inputs.
_MODES: Mapping[str, tuple[Callable[[ActionStep], int], tuple[str, ...]]] = {
    ActionMode.CHECK: (start_check, ("check",)),
    ActionMode.MEASURE: (start_measure, ("check",)),
    ActionMode.JUDGE: (start_judge, ("compare",)),
    ActionMode.UPGRADE: (start_pairs, ("ab",)),  # one code on two interpreters
    ActionMode.ANCHOR: (start_anchor, ("ab", "--anchor")),
    ActionMode.REFRESH: (start_refresh, ("measure",)),
    ActionMode.PLAN: (start_command, ("plan",)),
    ActionMode.PUBLISH: (start_publish, ("github", "publish")),
    ActionMode.PUBLISH_UPGRADE: (start_publish, ("github", "publish", "--issue")),
    ActionMode.AUTHORIZE: (start_command, ("github", "authorize")),
    ActionMode.ACCEPT: (start_command, ("github", "accept-regression")),
    ActionMode.PROPOSE: (start_command, ("github", "propose")),
}

if __name__ == "__main__":
    sys.exit(run_action({**os.environ, **read_given(sys.argv[1])}))
