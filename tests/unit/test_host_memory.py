"""Available memory."""

from pathlib import Path

import psutil
import pytest

from gate import programs
from gate.programs import read_free_bytes

MIB = 2**20


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with 512 MiB available, whose control group is the directory's."""
    sizes = {"MemTotal": 9999999, "MemFree": 262144, "MemAvailable": 524288}
    others = dict.fromkeys(("Buffers", "Cached", "Shmem", "Active", "Inactive"), 0)  # psutil warns without
    meminfo = "".join(f"{name}: {kib} kB\n" for name, kib in {**sizes, **others}.items())
    (tmp_path / "meminfo").write_text(meminfo, encoding="ascii")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    monkeypatch.setattr(programs, "_CGROUPS", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [
        ("", "", 512),
        ("max", f"{24 * MIB}", 512),
        (f"{64 * MIB}", f"{24 * MIB}", 40),
        (f"{900 * MIB}", f"{24 * MIB}", 512),
    ],
)
def test_a_containers_limit_bounds_free_memory(host: Path, limit: str, used: str, free: int) -> None:
    """24 of 64 MiB allowed are used; a limit above the machine's memory bounds nothing."""
    (host / "memory.max").write_text(f"{limit}\n", encoding="ascii")
    (host / "memory.current").write_text(f"{used}\n", encoding="ascii")
    assert read_free_bytes() == free * MIB


def test_files_that_a_container_read_are_free_memory(host: Path) -> None:
    """63 of 64 MiB allowed are used, 30 of them inactive files."""
    (host / "memory.max").write_text(f"{64 * MIB}\n", encoding="ascii")
    (host / "memory.current").write_text(f"{63 * MIB}\n", encoding="ascii")
    statistics = f"anon {20 * MIB}\nactive_file {9 * MIB}\ninactive_file {30 * MIB}\n"
    (host / "memory.stat").write_text(statistics, encoding="ascii")
    assert read_free_bytes() == 31 * MIB


def test_a_container_at_its_limit_has_next_to_nothing(host: Path) -> None:
    """65 of 64 MiB allowed are used; 0 bytes would mean unknown."""
    (host / "memory.max").write_text(f"{64 * MIB}\n", encoding="ascii")
    (host / "memory.current").write_text(f"{65 * MIB}\n", encoding="ascii")
    assert read_free_bytes() == 1
