"""The arguments of ``compile-gate`` that the inputs ask for; pure."""

from __future__ import annotations

from gate.action.inputs import ActionInputs
from gate.action.rules import RuleSource

_MEASURING = ("select", "device", "trials", "lock-timeout")
_PAIRED = ("select", "device", "lock-timeout")  # `ab` measures pairs, as many as it needs


def make_check_arguments(inputs: ActionInputs, rules: RuleSource, base: str = "") -> tuple[str, ...]:
    """Make the arguments of ``check``; ``base`` is the commit to compare with, if any."""
    return (
        *("check", *_ruling(rules)),
        *_option("--baselines", rules.baselines),
        *(_option("--base", base) or ("--no-base",)),
        *_approvals(rules),
        *_given(inputs, *_MEASURING, "fail-on"),
    )


def make_measure_arguments(inputs: ActionInputs, rules: RuleSource, trials: int = 0) -> tuple[str, ...]:
    """Make the arguments of ``measure``; ``trials`` is how many where the workflow does not say."""
    more = (f"--trials={trials}",) if trials and not inputs["trials"] else ()
    return ("measure", *_ruling(rules), *_given(inputs, *_MEASURING), *more)


def make_upgrade_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``ab`` with one code on two interpreters."""
    names = ("config", "base-python", "head-python", "minutes", *_PAIRED, "fail-on")
    return ("ab", *_given(inputs, *names))


def make_anchor_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``ab`` with the working tree against the release anchor."""
    return ("ab", "--anchor", *_given(inputs, "config", "minutes", *_PAIRED, "fail-on"))


def make_plan_arguments(inputs: ActionInputs, rules: RuleSource) -> tuple[str, ...]:
    """Make the arguments of ``plan``, whose output is a matrix."""
    return ("plan", *_ruling(rules), *_given(inputs, "select", "shards"), "--format=github-matrix")


def make_merge_arguments(rules: RuleSource, runs: tuple[str, ...], select: str, out: str) -> tuple[str, ...]:
    """Make the arguments of ``merge``: the selection that was divided is what must come back."""
    return ("merge", *_ruling(rules), f"--select={select}", f"--out={out}", "--", *runs)


def make_compare_arguments(
    inputs: ActionInputs, rules: RuleSource, baselines: str, run: str, out: str
) -> tuple[str, ...]:
    """Make the arguments of ``compare``, a run against baselines."""
    ruling = (*_ruling(rules), *_approvals(rules))
    return ("compare", *ruling, *_given(inputs, "fail-on"), f"--out={out}", "--", baselines, run)


def make_publish_arguments(inputs: ActionInputs, run_id: str) -> tuple[str, ...]:
    """Make the arguments of ``github publish``; an empty status is one, and means none."""
    return (
        *("github", "publish", f"--run-id={run_id}", f"--status={inputs['status']}"),
        *_given(inputs, "config", "workflow", "artifact-name", "comment", "fail-on"),
        *_identity(inputs),
    )


def make_publish_upgrade_arguments(inputs: ActionInputs, run_id: str) -> tuple[str, ...]:
    """Make the arguments of ``github publish-upgrade``."""
    return (
        *("github", "publish-upgrade", f"--run-id={run_id}"),
        *_given(inputs, "config", "conclusion", "artifact-name", "fail-on"),
        *_option("--issue", inputs["comment"]),
        *_identity(inputs),
    )


def make_authorize_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``github authorize``: all else that it needs is in the event."""
    return ("github", "authorize", *_given(inputs, "command"))


def make_accept_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``github accept-regression``: what the comment says is in the event."""
    given = _given(inputs, "config", "workflow", "artifact-name", "head-sha")
    return ("github", "accept-regression", *given, *_option("--key", inputs["comment-key"]))


def make_propose_arguments(inputs: ActionInputs) -> tuple[str, ...]:
    """Make the arguments of ``github propose``."""
    found = ("config", "baselines", "run-id", "conclusion", "artifact-name")
    return ("github", "propose", *_given(inputs, *found, "head-sha", "head-ref", "pr-number", "reason"))


def _ruling(rules: RuleSource) -> tuple[str, ...]:
    return (
        *_option("--config", rules.config),
        *_option("--directory", rules.directory),
        *_option("--rules-commit", rules.sha),
        *(f"--removed={case_id}" for case_id in rules.removed),
    )


def _approvals(rules: RuleSource) -> tuple[str, ...]:
    files = tuple(f"--approvals={file}" for file in rules.approvals.files)
    return (*files, *_option("--gate", rules.gate)) if files else ()


def _identity(inputs: ActionInputs) -> tuple[str, ...]:
    return (*_option("--key", inputs["comment-key"]), *_option("--author", inputs["comment-author"]))


def _given(inputs: ActionInputs, *names: str) -> tuple[str, ...]:
    """Pass on inputs that are called as the command's options are."""
    return tuple(part for name in names for part in _option(f"--{name}", inputs[name]))


def _option(name: str, value: str) -> tuple[str, ...]:
    """Join name and value in one argument: a value that begins with a dash stays a value."""
    return (f"{name}={value}",) if value else ()
