"""What the doctor says: one finding a subject, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckLevel(StrEnum):
    """How bad a finding is; one ``fail`` makes the machine unfit."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing looked at, what was found, and what fixes it (empty when it is well)."""

    name: str
    level: CheckLevel
    finding: str
    fix: str = ""


def pass_check(name: str, finding: str) -> Check:
    """Make the check of a subject that is well."""
    return Check(name=name, level=CheckLevel.OK, finding=finding)


def warn_check(name: str, finding: str, fix: str) -> Check:
    """Make the check of a subject that makes verdicts worse, and of what fixes it."""
    return Check(name=name, level=CheckLevel.WARN, finding=finding, fix=fix)


def fail_check(name: str, finding: str, fix: str) -> Check:
    """Make the check of a subject that makes the machine unfit, and of what fixes it."""
    return Check(name=name, level=CheckLevel.FAIL, finding=finding, fix=fix)


def grade_check(name: str, finding: str, fix: str, *, fails: bool = False, warns: bool = False) -> Check:
    """Make the check of a subject by how bad it is; where it is well there is nothing to fix."""
    if fails:
        return fail_check(name, finding, fix)
    return warn_check(name, finding, fix) if warns else pass_check(name, finding)
