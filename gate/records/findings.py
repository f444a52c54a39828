"""What the doctor says: one finding a subject, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gate.records.facts import Fact


class CheckLevel(StrEnum):
    """How bad a finding is; one ``fail`` makes the machine unfit."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing looked at, how bad it is, and what was found."""

    name: str
    level: CheckLevel
    told: Fact


def pass_check(name: str, told: Fact) -> Check:
    """Make the check of a subject that is well."""
    return Check(name=name, level=CheckLevel.OK, told=told)


def warn_check(name: str, told: Fact) -> Check:
    """Make the check of a subject that makes verdicts worse."""
    return Check(name=name, level=CheckLevel.WARN, told=told)


def fail_check(name: str, told: Fact) -> Check:
    """Make the check of a subject that makes the machine unfit."""
    return Check(name=name, level=CheckLevel.FAIL, told=told)


def grade_check(name: str, told: Fact, *, fails: bool = False, warns: bool = False) -> Check:
    """Make the check of a subject by how bad it is."""
    if fails:
        return fail_check(name, told)
    return warn_check(name, told) if warns else pass_check(name, told)
