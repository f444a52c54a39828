"""No module uses what a later patch of the oldest supported Python added.

ruff and mypy find later syntax and functions of 3.11, but know no patches.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gate

PACKAGE = Path(gate.__file__).parent
# Came to 3.11 with 3.11.4 and 3.11.8: arguments by the functions that take them, and names.
ARGUMENTS = {
    "filter": {"extract", "extractall", "unpack_archive"},
    "strict": {"getaddresses", "parseaddr"},
}
NAMES = {"data_filter", "tar_filter", "fully_trusted_filter", "extraction_filter", "FilterError"}


def list_later(source: str) -> list[int]:
    """Lines that 3.11.0 could not run."""
    return list(_find_later(ast.parse(source)))


def _find_later(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if any(called in ARGUMENTS.get(keyword.arg or "", ()) for keyword in node.keywords):
                yield node.lineno
        elif getattr(node, "attr", getattr(node, "id", "")) in NAMES:
            yield getattr(node, "lineno", 0)


def test_the_oldest_patch_runs_every_module() -> None:
    """Debian and Ubuntu keep early patches of 3.11 for years."""
    later = {path: list_later(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert len(later) > 100
    assert {path: lines for path, lines in later.items() if lines} == {}


@pytest.mark.parametrize(
    "source", ["archive.extractall(place, filter='data')", "tarfile.data_filter", "parseaddr(x, strict=True)"]
)
def test_what_is_later_is_found(source: str) -> None:
    assert list_later(source) == [1]
