"""The arguments of ``compile-gate`` that the inputs ask for; pure."""

from __future__ import annotations

from gate.action.base import Rules
from gate.action.inputs import ActionInputs


def make_check_arguments(inputs: ActionInputs, rules: Rules) -> tuple[str, ...]:
    """Make the arguments of ``check``."""
    return (
        "check",
        *_option("--config", rules.config),
        *_option("--baselines", rules.baselines),
        *_measuring(inputs),
        *_option("--fail-on", inputs.fail_on),
    )


def make_measure_arguments(inputs: ActionInputs, trials: int) -> tuple[str, ...]:
    """Make the arguments of ``measure``, which is what a refresh runs on the machine under test."""
    return (
        "measure",
        *_option("--config", inputs.config),
        *_measuring(inputs),
        *(() if inputs.trials else _option("--trials", str(trials))),
    )


def make_publish_arguments(inputs: ActionInputs, run_id: str) -> tuple[str, ...]:
    """Make the arguments of ``publish``; an empty status is one, and means none."""
    return (
        "publish",
        *_option("--config", inputs.config),
        *_option("--run-id", run_id),
        *_option("--artifact-name", inputs.artifact_name),
        *_option("--comment", inputs.comment),
        *_option("--comment-key", inputs.comment_key),
        *_option("--comment-author", inputs.comment_author),
        f"--status={inputs.status}",
        *_option("--fail-on", inputs.fail_on),
    )


def make_authorize_arguments() -> tuple[str, ...]:
    """Make the arguments of ``authorize``: all that it needs is in the event."""
    return ("authorize",)


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
