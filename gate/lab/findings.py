"""What the doctor says: one finding a subject, and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is; one ``fail`` makes the machine unfit."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing looked at, what was found, and what fixes it (empty when it is well)."""

    name: str
    level: Level
    finding: str
    fix: str = ""
