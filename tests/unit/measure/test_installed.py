"""What is installed for this interpreter."""

from pathlib import Path

import pytest

from gate.measure.packages import list_owners, list_packages


def install(site: Path, name: str) -> None:
    """Write pip's files of a package of one module."""
    info = site / f"{name}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n", encoding="utf-8")
    (info / "RECORD").write_text(f"{name}.py,,\n", encoding="utf-8")


def test_what_is_installed_is_read_once_for_a_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process does not see later installations, unless its search path changes."""
    install(tmp_path / "first", "early")
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert (list_owners()["early"], list_packages()["early"]) == (["early"], "1.5")
    install(tmp_path / "first", "late")
    assert "late" not in {*list_owners(), *list_packages()}
    install(tmp_path / "second", "other")
    monkeypatch.syspath_prepend(tmp_path / "second")
    assert {"early", "late", "other"} <= {*list_owners()} & {*list_packages()}
