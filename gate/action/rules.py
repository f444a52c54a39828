"""By whose rules: those of the base commit for as long as a command runs; and whether it is in reach."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.action.base import Rules, find_base_sha, prepare_rules
from gate.action.step import Step
from gate.github.job import append_summary, render_annotation

_SHOWN = 5  # files that a warning names
_GIT_LIMIT_S = 120.0


@contextmanager
def hold_rules(step: Step) -> Iterator[Rules]:
    """Put the rules that the input ``baseline-ref`` asks for in place, and take them away afterwards.

    Raises:
        UsageError, FileError: They cannot be had.
    """
    ref = step.inputs.baseline_ref
    sha = {"base": find_base_sha(step.event), "head": ""}.get(ref, ref)
    root = Path(step.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
    place = root / f"compile-gate-base-{secrets.token_hex(4)}"
    rules = prepare_rules(step.inputs.config, step.inputs.baselines, sha, place)
    try:
        yield rules
    finally:
        if rules.temporary is not None:
            rules.temporary.unlink(missing_ok=True)


def tell_changed(step: Step, rules: Rules) -> None:
    """Say that the change touches what it is judged by; it was judged by the base's all the same."""
    if not rules.changed:
        return
    more = f" and {len(rules.changed) - _SHOWN} more" if rules.changed[_SHOWN:] else ""
    names = ", ".join(rules.changed[:_SHOWN]) + more
    if rules.sha:
        text = (
            f"This change touches what it is judged by ({names}); it was judged by commit {rules.sha[:12]}'s."
        )
    else:
        text = f"The base commit has no configuration yet: this change is judged by its own ({names})."
    _warn(step, text)


def find_confirming_commit(step: Step) -> str:
    """Find the commit to confirm suspects against; where it is out of reach that is said, and no error.

    Empty where the input ``confirm`` or the event asks for none.
    """
    sha = find_base_sha(step.event) if step.inputs.confirm == "true" else ""
    if not sha:
        return ""
    if _succeeds("cat-file", "-e", f"{sha}^{{commit}}") and _succeeds("merge-base", "HEAD", sha):
        return sha
    _warn(
        step,
        f"Suspects are not confirmed side by side: this clone does not reach the base commit {sha[:12]}."
        " Give actions/checkout fetch-depth: 0.",
    )
    return ""


def _succeeds(*arguments: str) -> bool:
    done = subprocess.run(["git", *arguments], capture_output=True, check=False, timeout=_GIT_LIMIT_S)
    return done.returncode == 0


def _warn(step: Step, text: str) -> None:
    print(render_annotation("warning", text))
    safe = "".join(char if char.isalnum() or char in " ./_-,();:'" else "?" for char in text)
    append_summary(step.environ, f"> {safe}\n")
