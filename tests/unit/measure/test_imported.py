"""Which imported files differ between two checkouts, in a real interpreter."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOOK = """
import json, sys
from gate.worker.imported import list_changed_imports
from gate.records.cases import Case
from gate.records.protocol import Checkouts, WorkerRequest, WorkerRole
head, base, factory, *changed = sys.argv[1:]
sys.path[:0] = [one.removeprefix("+") for one in changed if one.startswith("+")]
sys.path.append(head)
import models.small
case = Case(id="a/x", model="a", factory=factory, definition="d")
checkouts = Checkouts(head=head, base=base, changed=tuple(changed)) if base else None
request = WorkerRequest(role=WorkerRole.COLD, case=case, device="cpu", threads=1, result="",
                        directory=head, checkouts=checkouts)
print(json.dumps(list_changed_imports(request)))
"""
FILES = {
    "models/__init__.py": "",
    "models/small.py": "import layers\n",
    "layers.py": "W = 1\n",
    "other.py": "",
}


def look(
    head: Path, base: Path | str, *changed: str, factory: str = "models.small:build"
) -> list[str] | None:
    """The changed imports of a process that imports ``models.small``; a + begins a directory of imports."""
    done = subprocess.run(
        (sys.executable, "-c", LOOK, str(head), str(base), factory, *changed),
        capture_output=True,
        text=True,
        check=True,
    )
    modules: list[str] | None = json.loads(done.stdout)
    return modules


@pytest.fixture
def checkouts(tmp_path: Path) -> tuple[Path, Path]:
    """Head and base, with the same files."""
    for side in ("head", "base"):
        for name, text in FILES.items():
            path = tmp_path / side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return tmp_path / "head", tmp_path / "base"


def test_nothing_differs_between_equal_checkouts(checkouts: tuple[Path, Path]) -> None:
    """Also if a file that nobody imports differs."""
    head, base = checkouts
    assert look(head, base) == []
    (head / "other.py").write_text("X = 2\n")
    assert look(head, base) == []


def test_imported_files_that_differ_are_named(checkouts: tuple[Path, Path]) -> None:
    """One that another module imports, and one that the base lacks."""
    head, base = checkouts
    (head / "layers.py").write_text("import new\nW = 1\n")
    (head / "new.py").write_text("")
    assert look(head, base) == ["layers.py", "new.py"]


def test_a_checkout_behind_a_link_is_the_same_checkout(checkouts: tuple[Path, Path]) -> None:
    """Modules may be named by either path."""
    head, base = checkouts
    (head / "layers.py").write_text("W = 2\n")
    link = head.parent / "link"
    link.symlink_to(head)
    assert look(link, base) == ["layers.py"]


def test_a_module_that_is_a_link_is_the_file_behind_it(checkouts: tuple[Path, Path]) -> None:
    """The link is the same in head and base; its target is not."""
    head, base = checkouts
    for side, text in ((head, "W = 2\n"), (base, "W = 1\n")):
        (side / "real.py").write_text(text)
        (side / "layers.py").unlink()
        (side / "layers.py").symlink_to("real.py")
    assert look(head, base) == ["real.py"]


def test_without_a_base_or_for_a_users_own_test_nothing_is_known(checkouts: tuple[Path, Path]) -> None:
    """There is nothing to compare with, and pytest may have dropped a conftest file."""
    head, base = checkouts
    assert look(head, "") is None
    assert look(head, base, factory="") is None


def test_a_changed_file_of_which_an_installed_copy_runs_is_named(checkouts: tuple[Path, Path]) -> None:
    """The imported copy is neither head's nor the base's file."""
    head, base = checkouts
    site = head.parent / "lib" / "site-packages"
    for name in ("models/__init__.py", "models/small.py"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text("")
    changed = ("src/models/small.py", "parts/layers.py", "models/big.py")
    assert look(head, base, *changed, f"+{site}") == ["src/models/small.py"]
    (site / "models" / "small.py").write_text("import layers")
    (site / "layers.py").write_text("")
    assert look(head, base, *changed, f"+{site}") == ["parts/layers.py", "src/models/small.py"]


LIST = """
import json, sys
from gate.worker.imported import list_imported_packages
from gate.records.protocol import WorkerRequest, WorkerRole
sys.path[:0] = sys.argv[1:]
import einops_core, mine, pytest
request = WorkerRequest(role=WorkerRole.COLD, case=None, device="cpu", threads=1, result="",
                        directory=sys.argv[1])
print(json.dumps(list_imported_packages(request)))
"""


def install(site: Path, name: str, version: str, module: str) -> None:
    """Install a module as pip does, from a distribution with another name."""
    (site / f"{module}.py").write_text("")
    about = site / f"{module}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "top_level.txt").write_text(f"{module}\n")


def test_imported_packages_are_named_with_their_versions(tmp_path: Path) -> None:
    """By the distribution's normalized name, without the runner and the project's copy."""
    site, project = tmp_path / "site", tmp_path / "project"
    site.mkdir()
    project.mkdir()
    (project / "mine.py").write_text("")
    install(site, "Einops_Core", "0.8.1", "einops_core")
    install(site, "mine", "0.1.dev3", "mine")
    install(site, "unused", "1.0", "unused")
    (site / "broken-1.dist-info").mkdir()  # as an interrupted pip leaves one
    done = subprocess.run(
        (sys.executable, "-c", LIST, str(project), str(site)), capture_output=True, text=True, check=True
    )
    versions = json.loads(done.stdout)
    assert versions["einops-core"] == "0.8.1"
    assert versions.keys().isdisjoint({"mine", "unused", "pytest", "pluggy", "torch"})
