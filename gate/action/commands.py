"""The arguments of ``compile-gate``, by one rule: an input of a mode is the option of its name; pure."""

from __future__ import annotations

from collections.abc import Mapping

from gate.action.inputs import INPUTS, ActionInputs, ActionMode
from gate.action.rules import RuleSource

_COMMANDS: Mapping[ActionMode, tuple[str, ...]] = {
    ActionMode.CHECK: ("check",),
    ActionMode.PLAN: ("plan", "--format=github-matrix"),
    ActionMode.MEASURE: ("measure",),
    ActionMode.JUDGE: ("compare",),
    ActionMode.UPGRADE: ("ab",),  # one code on two interpreters
    ActionMode.ANCHOR: ("ab", "--anchor"),
    ActionMode.REFRESH: ("measure",),
    ActionMode.PUBLISH: ("github", "publish"),
    ActionMode.PUBLISH_UPGRADE: ("github", "publish", "--issue"),
    ActionMode.AUTHORIZE: ("github", "authorize"),
    ActionMode.ACCEPT: ("github", "accept-regression"),
    ActionMode.PROPOSE: ("github", "propose"),
}


def make_arguments(inputs: ActionInputs, rules: RuleSource | None = None, *more: str) -> tuple[str, ...]:
    """Make the arguments of a mode's command; ``rules`` hold in the place of the input ``config``.

    ``more`` are arguments that no input says.
    """
    given = (
        f"--{item.name}={inputs[item.name]}"
        for item in INPUTS
        if inputs.mode in item.modes and inputs[item.name]
        if not (rules and item.name == "config")
    )
    return (*_COMMANDS[inputs.mode], *(_rule_by(rules) if rules else ()), *more, *given)


def make_check_arguments(inputs: ActionInputs, rules: RuleSource, base: str = "") -> tuple[str, ...]:
    """Make the arguments of ``check``; ``base`` is the commit to compare with, if any."""
    against = f"--base={base}" if base else "--no-base"
    return make_arguments(inputs, rules, *_give("baselines", rules.baselines), against, *_accept(rules))


def make_merge_arguments(rules: RuleSource, runs: tuple[str, ...], select: str, out: str) -> tuple[str, ...]:
    """Make the arguments of ``merge``: the selection that was divided is what must come back."""
    return ("merge", *_rule_by(rules), f"--select={select}", f"--out={out}", "--", *runs)


def make_compare_arguments(
    inputs: ActionInputs, rules: RuleSource, paths: tuple[str, str], out: str, *more: str
) -> tuple[str, ...]:
    """Make the arguments of ``compare``; ``paths`` are of baselines and of a run."""
    return (*make_arguments(inputs, rules, *_accept(rules), f"--out={out}", *more), "--", *paths)


def _rule_by(rules: RuleSource) -> tuple[str, ...]:
    return (
        *_give("config", rules.config),
        *_give("directory", rules.directory),
        *_give("rules-commit", rules.sha),
        *(f"--removed={case_id}" for case_id in rules.removed),
    )


def _accept(rules: RuleSource) -> tuple[str, ...]:
    files = tuple(f"--accepted={file}" for file in rules.accepted.files)
    return (*files, *_give("gate", rules.gate)) if files else ()


def _give(name: str, value: str) -> tuple[str, ...]:
    """Join name and value in one argument: a value that begins with a dash stays a value."""
    return (f"--{name}={value}",) if value else ()
