"""The tests that a change of a room needs; a room is a package or module of ``gate/``."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUICK = "not slow and not alone"  # compile nothing large, judge no times
# Where the tests of a room are, if not in tests/unit/ROOM or tests/unit/test_ROOM.py alone.
_TESTS = {
    "action": ("tests/github",),
    "bisect": ("tests/unit/bisect", "tests/unit/cli/test_bisect.py"),
    "decide": ("tests/unit/decide", "tests/unit/check", "tests/unit/test_decision_document.py"),
    "files": ("tests/unit/files", "tests/unit/store", "tests/unit/test_file_schemas.py"),
    "github": ("tests/github",),
    "project": ("tests/unit/project", "tests/unit/test_generated_documents.py"),
    "publish": ("tests/github",),
    "schemas": ("tests/unit/test_file_schemas.py",),
    "records": (
        "tests/unit/test_file_schemas.py",
        *(f"tests/unit/{package}" for package in ("records", "files", "store", "decide", "check", "report")),
    ),
    "report": ("tests/unit/report", "tests/recorded"),
    "store": ("tests/unit/store", "tests/github/test_action_rules.py", "tests/github/test_action_change.py"),
    "worker": (
        *("tests/unit/worker", "tests/unit/lab"),
        *("tests/unit/measure/test_worker.py", "tests/unit/measure/test_edits.py"),
    ),
}


def list_tests(room: str) -> tuple[str, ...]:
    """List the folders and files of a room's tests: ``decide``, or ``worker/server``."""
    package = room.partition("/")[0]
    folder = f"tests/unit/{package}"
    tests = folder if (ROOT / folder).is_dir() else f"tests/unit/test_{package}.py"
    return _TESTS.get(package, (tests,))
