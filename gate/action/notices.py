"""What a reader of the log and of the summary is told besides the verdict: the base commit, what it rules."""

from __future__ import annotations

from pathlib import Path

from gate.action.base import find_base
from gate.action.child import Ended
from gate.action.rules import RuleSource
from gate.action.step import ActionStep
from gate.errors import ExitCode, UsageError
from gate.github.job import append_summary, render_annotation
from gate.project.config_file import DEFAULT_FILE
from gate.units import count_noun, join_some

_SHOWN = 5  # files that a warning names


def tell_rules(rules: RuleSource) -> None:
    """Say in the log which commit's rules hold, and how that commit was found."""
    if rules.mended:
        print(f"Judged by the change's own rules: it mends those of the base. {rules.mended}", flush=True)
    if rules.sha:
        found = f": {rules.origin}" if rules.origin else ""
        print(f"Configuration and baselines are those of commit {rules.sha}{found}.", flush=True)


def tell_approvals(step: ActionStep, rules: RuleSource) -> None:
    """Say what was approved for the commit that is judged, and what of it does not count."""
    for note in rules.approvals.notes:
        print(note, flush=True)
    for warning in rules.approvals.warnings:
        warn(step, warning)


def tell_changed(step: ActionStep, rules: RuleSource) -> None:
    """Say that the change touches what it is judged by; it was judged by the base's all the same."""
    touched = join_some(rules.changed, _SHOWN)
    if rules.mended:
        warn(
            step, f"This change is judged by its own rules, since it mends those of the base. {rules.mended}"
        )
    elif rules.changed and rules.sha:
        moved = (
            f", with what it moves measured there ({join_some(rules.moved, _SHOWN)})" if rules.moved else ""
        )
        warn(
            step,
            f"This change touches what it is judged by ({touched});"
            f" it was judged by commit {rules.sha[:12]}'s{moved}.",
        )
    elif rules.changed:
        warn(
            step,
            f"The base commit has no configuration yet: this change is judged by its own ({touched}).",
        )
    if rules.removed:
        warn(
            step,
            f"This change removes or redefines {count_noun(len(rules.removed), 'case')}"
            f" ({join_some(rules.removed, _SHOWN)}): once merged, nothing measures them as the base does.",
        )
    if rules.workflows:
        warn(
            step,
            f"This change touches {join_some(rules.workflows, _SHOWN)}: GitHub ran this check as the change"
            " has it. Review that before you trust the result.",
        )


def tell_lack(step: ActionStep) -> None:
    """Say that no configuration was found: a green check would seem to be about the repository's own code."""
    warn(
        step,
        f"No {DEFAULT_FILE} was found in the working directory or above it: this check is about"
        " compile-gate's own reference models, not about code of this repository. Name the directory of your"
        f" {DEFAULT_FILE} in the input working-directory.",
    )


def tell_failure(ended: Ended) -> int:
    """Say on the run's page why a command failed, in its own words, and return its exit code."""
    if ended.code == ExitCode.PASS:
        return ended.code
    other = f"compile-gate ended with exit code {ended.code}; see the log."
    if ended.code == ExitCode.INCOMPLETE:
        other = "Not every case could be measured; the log names those that failed."
    for text in ended.complaints or (other,):
        print(render_annotation("error", text), flush=True)
    return ended.code


def find_confirming_commit(step: ActionStep) -> str:
    """Find the commit to confirm suspects against; where it is out of reach that is said, and no error.

    Empty where the input ``confirm`` or the event asks for none.
    """
    if step.inputs["confirm"] != "true":
        return ""
    try:
        base = find_base(step.event, Path.cwd())
    except UsageError as error:
        warn(step, f"What looks worse is not measured again side by side: {error.what}. {error.fix}")
        return ""
    return base.sha if base else ""


def warn(step: ActionStep, text: str) -> None:
    """Warn on the run's page and in the summary."""
    print(render_annotation("warning", text), flush=True)
    safe = "".join(char if char.isalnum() or char in " ./_-,();:'" else "?" for char in text)
    append_summary(step.environ, f"> {safe}\n")
