"""Edits of the code under test during its measurement: a real checkout, real imports."""

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gate.errors import UsageError
from gate.lab.arms.checkouts import read_working_tree
from gate.records.cases import Case
from gate.records.protocol import Checkouts, WorkerRequest, WorkerRole
from gate.worker import imported
from gate.worker.imported import check_edits, has_moved_on, list_changed_imports
from tests.git import run_git

Import = Callable[[str], None]
_LATER_NS = 10**9  # a second after the newest file


@pytest.fixture(autouse=True)
def looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was imported before."""
    monkeypatch.setattr(imported, "_LOOKED_AT", {})


@pytest.fixture
def request_of(repository: Path) -> WorkerRequest:
    """A request that measures the repository, made before anything is edited."""
    (repository / ".gitignore").write_text("made.py\n", encoding="utf-8")
    return WorkerRequest(
        role=WorkerRole.COLD,
        case=None,
        device="cpu",
        threads=1,
        directory=str(repository),
        result="",
        tree=read_working_tree(repository),
    )


@pytest.fixture
def import_module(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Import a module of the repository."""
    monkeypatch.syspath_prepend(str(repository))
    names: list[str] = []

    def run(name: str) -> None:
        names.append(name)
        importlib.import_module(name)

    yield run
    for name in names:
        sys.modules.pop(name, None)


def write_later(request: WorkerRequest, name: str) -> None:
    """Write a file of the checkout, as a user who goes on working does."""
    assert request.tree is not None
    path = Path(request.tree.top, name)
    path.write_text("SIDE = 'edited'\n", encoding="utf-8")
    os.utime(path, ns=(request.tree.newest_ns + _LATER_NS,) * 2)


def test_nothing_was_edited(request_of: WorkerRequest, import_module: Import) -> None:
    """The code is that of the run's begin."""
    import_module("shop")
    check_edits(request_of)


@pytest.mark.parametrize("name", ["shop", "new"])
def test_a_file_that_was_edited_before_it_was_imported(
    request_of: WorkerRequest, import_module: Import, name: str
) -> None:
    """It is named, whether git has it or would add it."""
    write_later(request_of, f"{name}.py")
    import_module(name)
    with pytest.raises(UsageError, match=rf"^{name}\.py was changed while it was measured") as raised:
        check_edits(request_of)
    assert "compile-gate ab BASE HEAD" in raised.value.fix


def test_a_file_that_git_ignores_is_none_of_the_code(
    request_of: WorkerRequest, import_module: Import
) -> None:
    """A build, or an import, may write such a file anew."""
    write_later(request_of, "made.py")
    import_module("made")
    check_edits(request_of)


@pytest.mark.parametrize("kept", ["temporary", "result"])
def test_what_a_compiler_generates_in_the_checkout_is_not_its_code(
    request_of: WorkerRequest,
    import_module: Import,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept: str,
) -> None:
    """Where the run keeps its files there, which git may not ignore: by TMPDIR, or those of the arm."""
    directory = repository / "run"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    write_later(request_of, "run/generated.py")
    import_module("generated")
    if kept == "temporary":
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
    check_edits(replace(request_of, result=str(directory / "cold.json") if kept == "result" else ""))


def test_an_environment_in_the_checkout_costs_no_git(
    request_of: WorkerRequest, import_module: Import, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thousands of modules are older than the sources: git is not asked."""
    (repository / ".venv").mkdir()
    monkeypatch.setattr(sys, "prefix", str(repository / ".venv"))
    monkeypatch.syspath_prepend(str(repository / ".venv"))
    monkeypatch.setattr(imported, "ask_git", None)
    write_later(request_of, ".venv/library.py")
    import_module("library")
    check_edits(request_of)


def test_a_file_that_nothing_imports_may_be_edited(request_of: WorkerRequest, import_module: Import) -> None:
    """A user may go on working during a check."""
    import_module("shop")
    write_later(request_of, "new.py")
    check_edits(request_of)


def test_what_a_server_has_imported_stays_what_it_was(
    request_of: WorkerRequest, import_module: Import
) -> None:
    """Its workers are copies of it: a later edit has no effect on them."""
    import_module("shop")
    check_edits(request_of)
    assert not has_moved_on()
    write_later(request_of, "shop.py")
    check_edits(request_of)


def test_a_file_that_moves_on_after_a_server_imported_it(
    request_of: WorkerRequest, import_module: Import, repository: Path
) -> None:
    """The file no longer shows what runs, so no case counts as the base's program."""
    import_module("shop")
    check_edits(request_of)
    run_git(repository, "checkout", "--quiet", "main", "--", "shop.py")
    request = replace(
        request_of,
        case=Case(id="shop/a", model="shop", factory="shop:build"),
        checkouts=Checkouts(head=str(repository), base=str(repository)),
    )
    assert list_changed_imports(request) is None


def test_outside_of_git_nobody_knows(tmp_path: Path) -> None:
    """There is no tree to compare with."""
    assert read_working_tree(tmp_path) is None
