"""The commands that measure cases again, for a reader to copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

from gate.devices import DEFAULT_DEVICE, KINDS
from gate.records import Comparison, PairBase, Verdict
from gate.records.targets import name_target
from gate.report.words.terms import COMMIT_CHARS

# So many cases, or else models, are spelled out: a command that nobody can read is not copied.
_MAX_CASES = 3
_MAX_MODELS = 10


def write_setting(verdict: Verdict) -> str:
    """Write the options by which a command measures what the verdict did: gate.yml, and a target or device.

    The device is named although gate.yml may name it as well: what measures another one answers nothing.
    """
    environment = verdict.environment
    target = name_target(environment.device_kind, environment.device_traits.get("capability", ""))
    options = [write_config(verdict)]
    if target:
        options.append(f"--target {target}")
    elif environment.device_kind in KINDS.keys() - {DEFAULT_DEVICE}:  # a file may say anything
        options.append(f"--device {environment.device_kind}")
    return " ".join(filter(None, options))


def write_config(verdict: Verdict) -> str:
    """Write the option that names gate.yml where it is not the default."""
    return f"--config {shlex.quote(verdict.config)}" if verdict.config else ""


def write_command(name: str, setting: str) -> str:
    """Write a command that reads gate.yml; an empty ``setting`` is the default and needs no option."""
    return f"compile-gate {name}" + (f" {setting}" if setting else "")


def write_selected(name: str, case_ids: Iterable[str], setting: str = "", options: str = "") -> str:
    """Write a command about these cases: a few by their ids, more by their models, of many the first."""
    names = list(dict.fromkeys(case_ids))
    if len(names) > _MAX_CASES:
        names = list(dict.fromkeys(name.partition("/")[0] for name in names))[:_MAX_MODELS]
    return f"{write_command(name, setting)} {options}--select {shlex.quote(','.join(names))}"


def write_ab(case_ids: Iterable[str], base: PairBase | None, setting: str = "") -> str:
    """Write the command that runs these cases side by side with ``base``, or with where the branch began."""
    return write_selected("ab", case_ids, setting, _name_base(base) if base else "")


def write_again(case_ids: Iterable[str], comparisons: Iterable[Comparison], verdict: Verdict) -> str:
    """Write the command that measures and judges cases again as ``comparisons`` of them were."""
    # Side by side as they were; where nothing is stored, that is all there was.
    is_paired = any(one.pairs for one in comparisons) or not verdict.baseline_environments
    setting = write_setting(verdict)
    if is_paired and verdict.base:
        return write_ab(case_ids, verdict.base, setting)
    return write_selected("check", case_ids, setting)


def write_tlparse(trace: str, folder: str = "") -> str:
    """Write the command that reads one of torch's traces, which lies below ``folder``."""
    path = str(PurePosixPath(folder) / trace)
    return f"tlparse {shlex.quote(path)} -o {shlex.quote(path.removesuffix('.log'))}"


def _name_base(base: PairBase) -> str:
    """What stands for the base on the command line; capitals are for the reader to fill in."""
    if base.other_stack:
        return "--base-python OLD --head-python NEW "
    named = (base.commit[:COMMIT_CHARS] or "BASE", base.head_commit[:COMMIT_CHARS])
    return "".join(f"{commit} " for commit in named if commit)
