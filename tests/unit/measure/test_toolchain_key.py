"""The key of the kept toolchain: the same for the same machine, another when anything below changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch._inductor.config

from gate.measure.toolchain import cache as toolchain_key
from gate.measure.toolchain.cache import collect_ingredients, compute_key

GCC = shutil.which("g++") or ""
pytestmark = pytest.mark.skipif(not GCC, reason="no gcc here")


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler of the test's own, in use: it is gcc under another name."""
    path = tmp_path / "g++"
    path.write_text(f'#!/bin/sh\nexec {GCC} "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    return path


def change_compiler_time(path: Path, _: pytest.MonkeyPatch) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def change_compiler(path: Path, _: pytest.MonkeyPatch) -> None:
    times = path.stat()
    path.write_text(path.read_text() + "\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def change_compiler_proper(path: Path, _: pytest.MonkeyPatch) -> None:
    other = path.with_name("cc1plus")
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -print-prog-name=cc1plus ] && exec echo {other}\nexec {GCC} "$@"\n'.ljust(200)
    )


def change_headers(_: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("CPLUS_INCLUDE_PATH", "/opt/include")


def change_torch(_: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch.version, "git_version", "0" * 40)


def change_processor(_: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(toolchain_key, "read_cpu_flags", lambda: "sse2")


def change_python(_: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("sys.prefix", "/opt/python")


def test_the_same_twice(compiler: Path) -> None:
    """Nothing that changes from process to process is in the key."""
    assert compiler.exists()
    assert compute_key(collect_ingredients()) == compute_key(collect_ingredients())


@pytest.mark.parametrize(
    "change",
    [
        change_compiler_time,
        change_compiler,
        change_compiler_proper,
        change_headers,
        change_torch,
        change_processor,
        change_python,
    ],
)
def test_every_ingredient_counts(
    compiler: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    """Another compiler, processor, torch, python or setting is another entry."""
    before = compute_key(collect_ingredients())
    change(compiler, monkeypatch)
    assert compute_key(collect_ingredients()) != before


def test_inductors_settings_count(compiler: Path) -> None:
    """Another width of vectors to generate code for is another entry: a setting that every torch has."""
    assert compiler.exists()
    before = compute_key(collect_ingredients())
    with torch._inductor.config.patch({"cpp.simdlen": 128}):  # monkeypatch would delete the setting
        assert compute_key(collect_ingredients()) != before


def test_without_gcc_nothing_is_shared(compiler: Path) -> None:
    """Another compiler's precompiled headers cannot be moved, so it has no key at all."""
    compiler.write_text("#!/bin/sh\necho clang version 17.0.1\n")
    assert collect_ingredients() == {}


def test_without_a_compiler_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is not there has no key; priming itself says what is missing."""
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert collect_ingredients() == {}
