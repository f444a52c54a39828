"""Texts stored in ``tests/golden``.

To rewrite what a wanted change changes: ``GATE_WRITE_GOLDEN=1 pytest -n0`` with the test, then read the
diff.
"""

import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, actual: str) -> None:
    """Check that a text equals its golden file, named below ``tests/golden``."""
    path = GOLDEN / name
    if os.environ.get("GATE_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8", newline="\n")
        pytest.skip(f"rewrote {name}: read the diff")
    assert path.read_text(encoding="utf-8") == actual
