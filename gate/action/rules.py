"""By whose rules a step judges: those of the base commit, unless the workflow asks for others."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gate.action.base_commit import (
    AcceptedFiles,
    BaseCommit,
    check_commit,
    collect_accepted,
    find_base,
    find_head_sha,
    read_top,
)
from gate.action.inputs import ActionStep
from gate.errors import UsageError
from gate.git import find_checkout
from gate.lab.arms.base_checkout import open_base_tree
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.publish.submitted import WORKFLOWS
from gate.store.policy import name_gate
from gate.store.rules import AskedRules, BaseRules, list_changed, load_rules


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSource:
    """``rules`` are of the base commit, or of the working directory where there is none."""

    rules: BaseRules
    origin: str = ""  # of that commit, a clause for a reader; empty where the workflow names it
    workflows: tuple[str, ...] = field(default=())  # files below ``WORKFLOWS`` that the change touches
    accepted: AcceptedFiles = field(default_factory=AcceptedFiles)  # of what is judged
    gate: str = ""  # which judges, as acceptances name it

    @property
    def arguments(self) -> tuple[str, ...]:
        tree = self.rules.tree
        return (f"--rules={tree.sha}", f"--base-tree={tree.tree}") if tree else ()


@contextmanager
def open_rule_source(step: ActionStep) -> Iterator[RuleSource]:
    """The base stays checked out meanwhile.

    Raises:
        UsageError, FileError: The rules of the input ``baseline-ref`` cannot be loaded.
        MachineError: git cannot check the base out, or does not answer.
    """
    _check_agreed(step)
    ref = step.inputs["baseline-ref"]
    base = None if ref == "head" else BaseCommit(sha=ref, origin="")
    if ref == "base":
        base = find_base(step.event, Path.cwd())
    root = step.environ.get("RUNNER_TEMP") or None
    with ExitStack() as opened:
        accepted = opened.enter_context(
            tempfile.TemporaryDirectory(prefix="compile-gate-accepted-", dir=root)
        )
        rules, workflows = _load_rules(step, base, opened)
        yield RuleSource(
            rules=rules,
            origin=base.origin if base else "",
            workflows=workflows,
            accepted=collect_accepted(step.event, step.environ, Path(accepted)),
            gate=_name_gate(rules, step),
        )


def _load_rules(
    step: ActionStep, base: BaseCommit | None, opened: ExitStack
) -> tuple[BaseRules, tuple[str, ...]]:
    inputs = step.inputs
    if base is None:
        config = load_config(inputs["config"])
        return BaseRules(config=config, cases=load_cases(config), source=Path(config.source)), ()
    check_commit(read_top(Path.cwd()), base.sha)
    tree = opened.enter_context(open_base_tree(Path.cwd(), base.sha))
    asked = AskedRules(config=inputs["config"], baselines=inputs["baselines"], select=inputs["select"])
    return load_rules(tree, asked), list_changed(tree, (WORKFLOWS,))


def _check_agreed(step: ActionStep) -> None:
    """All jobs and the publisher must judge a change alike: by the base's gate.yml."""
    for name in ("fail-on", "select") if find_head_sha(step.event) else ():
        if step.inputs[name]:
            what = f"input {name}: of a pull request or a merge group the base's gate.yml says that"
            raise UsageError(what, f"Set `{name.replace('-', '_')}:` there, and remove it from the workflow.")


def _name_gate(rules: BaseRules, step: ActionStep) -> str:
    top = find_checkout(rules.source.parent)
    return name_gate(rules.source, top, step.inputs["comment-key"]) if top else ""
