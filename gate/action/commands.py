"""The arguments of ``compile-gate`` that the inputs ask for; pure."""

from __future__ import annotations

from gate.action.inputs import ActionInputs
from gate.action.rules import RuleSource


def make_check_arguments(inputs: ActionInputs, rules: RuleSource, base: str = "") -> tuple[str, ...]:
    """Make the arguments of ``check``; ``base`` is the commit that suspects are confirmed against."""
    return (
        "check",
        *_ruling(rules),
        *_option("--baselines", rules.baselines),
        *_option("--base", base),
        *_approvals(rules),
        *_measuring(inputs),
        *_option("--fail-on", inputs.fail_on),
    )


def make_measure_arguments(inputs: ActionInputs, rules: RuleSource, trials: int = 0) -> tuple[str, ...]:
    """Make the arguments of ``measure``; ``trials`` is how many where the workflow does not say."""
    return (
        "measure",
        *_ruling(rules),
        *_measuring(inputs),
        *(_option("--trials", str(trials)) if trials and not inputs.trials else ()),
    )


def make_upgrade_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``ab`` with one code on two interpreters."""
    return (
        "ab",
        *_option("--config", inputs.config),
        *_option("--base-python", inputs.base_python),
        *_option("--head-python", inputs.head_python),
        *_option("--minutes", inputs.minutes),
        *_measuring(inputs),
        *_option("--fail-on", inputs.fail_on),
    )


def make_anchor_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``ab`` with the working tree against the release anchor."""
    return (
        "ab",
        "--anchor",
        *_option("--config", inputs.config),
        *_option("--minutes", inputs.minutes),
        *_measuring(inputs),
        *_option("--fail-on", inputs.fail_on),
    )


def make_plan_arguments(inputs: ActionInputs, rules: RuleSource) -> tuple[str, ...]:
    """Make the arguments of ``plan``, whose output is a matrix."""
    return (
        "plan",
        *_ruling(rules),
        *_option("--select", inputs.select),
        *_option("--shards", inputs.shards),
        "--format=github-matrix",
    )


def make_merge_arguments(rules: RuleSource, runs: tuple[str, ...], select: str, out: str) -> tuple[str, ...]:
    """Make the arguments of ``merge``: the selection that was divided is what must come back."""
    return ("merge", *_ruling(rules), f"--select={select}", f"--out={out}", "--", *runs)


def make_compare_arguments(
    inputs: ActionInputs, rules: RuleSource, baselines: str, run: str, out: str
) -> tuple[str, ...]:
    """Make the arguments of ``compare``, a run against baselines."""
    fail_on = _option("--fail-on", inputs.fail_on)
    ruling = (*_ruling(rules), *_approvals(rules))
    return ("compare", *ruling, *fail_on, f"--out={out}", "--", baselines, run)


def make_publish_arguments(inputs: ActionInputs, run_id: str) -> tuple[str, ...]:
    """Make the arguments of ``publish``; an empty status is one, and means none."""
    return (
        "publish",
        *_option("--config", inputs.config),
        *_option("--run-id", run_id),
        *_option("--workflow", inputs.workflow),
        *_option("--artifact-name", inputs.artifact_name),
        *_option("--comment", inputs.comment),
        *_option("--key", inputs.comment_key),
        *_option("--author", inputs.comment_author),
        f"--status={inputs.status}",
        *_option("--fail-on", inputs.fail_on),
    )


def make_publish_upgrade_arguments(inputs: ActionInputs, run_id: str) -> tuple[str, ...]:
    """Make the arguments of ``publish-upgrade``."""
    return (
        "publish-upgrade",
        *_option("--config", inputs.config),
        *_option("--run-id", run_id),
        *_option("--conclusion", inputs.conclusion),
        *_option("--artifact-name", inputs.artifact_name),
        *_option("--issue", inputs.comment),
        *_option("--key", inputs.comment_key),
        *_option("--author", inputs.comment_author),
        *_option("--fail-on", inputs.fail_on),
    )


def make_authorize_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``authorize``: all else that it needs is in the event."""
    return ("authorize", *_option("--command", inputs.command))


def make_accept_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``accept-regression``: what the comment says is in the event."""
    return (
        "accept-regression",
        *_option("--config", inputs.config),
        *_option("--workflow", inputs.workflow),
        *_option("--artifact-name", inputs.artifact_name),
        *_option("--head-sha", inputs.head_sha),
    )


def make_propose_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``propose``."""
    return (
        "propose",
        *_option("--config", inputs.config),
        *_option("--baselines", inputs.baselines),
        *_option("--run-id", inputs.run_id),
        *_option("--artifact-name", inputs.artifact_name),
        *_option("--head-sha", inputs.head_sha),
        *_option("--head-ref", inputs.head_ref),
        *_option("--pr-number", inputs.pr_number),
        *_option("--reason", inputs.reason),
    )


def _ruling(rules: RuleSource) -> tuple[str, ...]:
    return (
        *_option("--config", rules.config),
        *_option("--directory", rules.directory),
        *_option("--rules-commit", rules.sha),
    )


def _approvals(rules: RuleSource) -> tuple[str, ...]:
    return tuple(f"--approvals={file}" for file in rules.approvals.files)


def _measuring(inputs: ActionInputs) -> tuple[str, ...]:
    return (
        *_option("--select", inputs.select),
        *_option("--device", inputs.device),
        *_option("--trials", inputs.trials),
        *_option("--lock-timeout", inputs.lock_timeout),
    )


def _option(name: str, value: str) -> tuple[str, ...]:
    """Join name and value in one argument: a value that begins with a dash stays a value."""
    return (f"{name}={value}",) if value else ()
