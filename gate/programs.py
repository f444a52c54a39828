"""Asking another program: what it said, or why it could not, never an exception."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramAnswer:
    """What a program said. ``problem`` is why it did not end by itself: it was not run, or took too long."""

    status: int = -1
    out: str = ""
    err: str = ""
    problem: str = ""

    @property
    def output(self) -> str:
        """What it printed, stripped; empty where it failed."""
        return self.out.strip() if self.status == 0 else ""

    def read_record(self) -> dict[str, Any]:
        """The JSON object of the last line that it printed; empty without one."""
        try:
            found = json.loads(self.out.splitlines()[-1])
        except (IndexError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def ask_program(
    command: Sequence[str],
    *,
    limit_s: float,
    given: str = "",
    directory: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> ProgramAnswer:
    """Run a program to its end; ``given`` is its standard input, ``variables`` all of its environment."""
    try:
        done = subprocess.run(
            command,
            input=given,
            cwd=directory,
            env=variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProgramAnswer(problem=f"{type(error).__name__}: {error}")
    return ProgramAnswer(status=done.returncode, out=done.stdout, err=done.stderr)
