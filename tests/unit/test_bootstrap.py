"""Constraints of `make`'s environment."""

import shutil
from pathlib import Path

import bootstrap
import pytest
from bootstrap import compute_stamp, main, write_constraints


def test_another_torch_brings_its_own_triton(tmp_path: Path) -> None:
    """Torch 2.15 has triton 3.9 instead of the pinned one; all else stays pinned."""
    pinned = write_constraints(tmp_path, "", "")
    named = write_constraints(tmp_path, "", "2.15.0")

    lines = set(pinned.read_text(encoding="utf-8").split("\n"))
    others = {line for line in lines if not line.startswith(("torch==", "triton=="))}
    assert len(lines) - len(others) == 2
    assert set(named.read_text(encoding="utf-8").split("\n")) == {*others, "torch==2.15.0"}


def test_an_environment_is_of_one_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another one would import the first one's package."""
    before = compute_stamp("models", "", "")
    shutil.copytree(bootstrap.ROOT / "tools", tmp_path / "tools")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(bootstrap.ROOT / name, tmp_path)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    assert compute_stamp("models", "", "") != before


def test_a_path_that_compilers_cannot_take_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is installed, and another path is named."""
    environment = tmp_path / "my project" / ".venv"

    assert main(str(environment), "models") == 2
    assert not environment.exists()
    assert "make gate VENV=" in capsys.readouterr().out
