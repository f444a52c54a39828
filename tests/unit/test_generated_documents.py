"""Generated documents are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_readme_tables_match_the_code() -> None:
    """The README's metrics, commands and exit codes are those of the code."""
    command = [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
