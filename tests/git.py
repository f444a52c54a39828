"""Git, for tests that need a real repository."""

import os
import subprocess
from pathlib import Path

_IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def run_git(directory: Path, *arguments: str, check: bool = True) -> str:
    """Run git as Ada, without the machine's settings; return what it printed."""
    command = ("git", "-C", str(directory), *_IDENTITY, *arguments)
    environment = {**os.environ, **_ALONE}
    return subprocess.run(
        command, check=check, capture_output=True, text=True, env=environment
    ).stdout.strip()
