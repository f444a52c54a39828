"""Asking git: one call, one answer, no surprises from the caller's environment."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

GIT_LIMIT_S = 10.0  # `git status` of a large tree on a slow disk; longer means that git hangs


@dataclass(frozen=True, kw_only=True, slots=True)
class GitAnswer:
    """What git said. ``status`` is -1 where git could not be run, or did not end."""

    status: int
    said: str = ""
    complaint: str = ""  # the last line on standard error

    @property
    def is_good(self) -> bool:
        """Whether git did what was asked."""
        return self.status == 0


def ask_git(directory: Path, *arguments: str, limit_s: float = GIT_LIMIT_S) -> GitAnswer:
    """Run git in ``directory`` for at most ``limit_s`` seconds."""
    # A hook that calls us sets GIT_DIR and the like, which would point git at another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), "--no-optional-locks", *arguments],
            env={**environment, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",  # a path that is no text must still name its file
            timeout=limit_s,
            check=False,
        )
    except OSError as error:
        return GitAnswer(status=-1, complaint=f"git cannot be run: {error.strerror}")
    except subprocess.TimeoutExpired:
        return GitAnswer(status=-1, complaint=f"git {arguments[0]} took longer than {limit_s:g} s")
    lines = done.stderr.strip().splitlines()
    return GitAnswer(
        status=done.returncode, said=done.stdout.strip(), complaint=lines[-1].strip() if lines else ""
    )
