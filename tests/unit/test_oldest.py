"""The oldest supported releases are the same everywhere."""

import re
import tomllib
from pathlib import Path

import pytest

from gate.action import start
from gate.installation import OLDEST_PACKAGES, OLDEST_PYTHON, OLDEST_TORCH, is_older

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_oldest_releases_are_those_of_pyproject() -> None:
    """pyproject.toml and the package have the same."""
    assert dict(requirement.split(">=") for requirement in PROJECT["dependencies"]) == OLDEST_PACKAGES
    assert PROJECT["requires-python"] == f">={OLDEST_PYTHON}"
    assert f"torch>={OLDEST_TORCH}" in PROJECT["optional-dependencies"]["models"]


def test_scripts_without_the_package_require_the_same() -> None:
    """Neither action nor bootstrap can import the package."""
    asked = f"MINIMUM_PYTHON = ({OLDEST_PYTHON.replace('.', ', ')})\n"
    for file in (Path(start.__file__), ROOT / "tools/bootstrap.py"):
        source = file.read_text(encoding="utf-8")
        assert asked in source
        assert f"needs Python {OLDEST_PYTHON} or later" in source


@pytest.mark.parametrize(
    ("release", "oldest", "expected"),
    [
        ("2.30.9", "2.31", True),
        ("2.31.0", "2.31", False),
        ("2.9.0+cpu", "2.11", True),
        ("9.0.0rc1", "9.0.0", False),
        ("6.0.post1", "6.0", False),
        ("x", "1", True),
    ],
)
def test_releases_are_compared_by_their_numbers(release: str, oldest: str, *, expected: bool) -> None:
    """Suffixes do not count."""
    assert is_older(release, oldest) is expected


def test_nothing_asks_a_package_index_for_this_project() -> None:
    """Anyone could register its name, so it is installed from a clone or a commit."""
    places = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.yml"),
        *(ROOT / "gate").rglob("*.py"),
    ]
    asked = re.compile(r"(?:install\b[^\n]*?[ '\"=])compile-gate(?:\[[a-z,]+\])?(?: @ (?P<url>\S+))?")
    lines = {
        (path.relative_to(ROOT).as_posix(), match["url"] or "")
        for path in (ROOT / "README.md", *places)
        for match in asked.finditer(path.read_text(encoding="utf-8"))
    }
    # Once a release is there, whether it can be had is looked at; the placeholder is a commit's.
    assert lines == {
        ("docs/dev/release.md", ""),
        ("examples/workflows/target.yml", 'git+$GITHUB_SERVER_URL/$COMPILE_GATE"'),
    }


def test_what_a_message_asks_for_is_what_the_extra_needs() -> None:
    """The fix names the missing package itself."""
    extras = PROJECT["optional-dependencies"]
    for extra, file in (("trend", "report/trend.py"), ("target", "devices.py")):
        (needed,) = (line.partition(";")[0] for line in extras[extra])
        assert f"pip install '{needed}'" in (ROOT / "gate" / file).read_text(encoding="utf-8")
