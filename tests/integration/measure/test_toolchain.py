"""The toolchain kept between runs: a later primer takes it, workers find it, and what is bad is done anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate.records import Case, Metric
from gate.records.protocol import WorkerRole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OpenWorkshop = Callable[[str], Any]


@pytest.fixture(scope="module")
def first(
    open_workshop: OpenWorkshop, toolchain_place: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Return a primed workshop whose kept toolchain no other test changes: it holds the one entry in use."""
    kept = tmp_path_factory.mktemp("toolchain") / "kept"
    kept.mkdir(mode=0o700)
    for entry in (toolchain_place / "toolchain").glob("[!.]*"):
        with suppress(OSError):  # another process may just store it anew: half of it is found damaged
            shutil.copytree(entry, kept / entry.name)
    made = replace(open_workshop("first"), kept=kept)
    primed = made.run(WorkerRole.PRIME)
    assert primed.failure is None, primed.failure
    *others, _used = sorted(kept.iterdir(), key=lambda entry: entry.stat().st_mtime_ns)
    for other in others:  # of another interpreter or compiler that some test measured with
        shutil.rmtree(other)
    return made


@pytest.fixture
def kept(first: Any, tmp_path: Path) -> Path:
    """What the first primer kept, for one test to spoil."""
    shutil.copytree(first.kept, tmp_path / "kept")
    (tmp_path / "kept").chmod(0o700)
    return tmp_path / "kept"


def read_isa(kept: Path) -> str:
    """Read which instructions whoever primed first had found."""
    (manifest,) = kept.rglob("manifest.json")
    return str(json.loads(manifest.read_text())["notes"]["isas"].split(", ")[0])


def find_headers(workshop: Any) -> dict[str, int]:
    """Find the precompiled headers of a run, with their times of change."""
    return {path.name: path.stat().st_mtime_ns for path in workshop.temporary.rglob("*.gch")}


def test_a_later_run_takes_it_and_its_workers_use_it(
    first: Any,
    open_workshop: OpenWorkshop,
) -> None:
    """Elsewhere on this machine nothing is built again: not by the primer, not by a case's first compile."""
    later = replace(open_workshop("later"), kept=first.kept)
    primed = later.run(WorkerRole.PRIME)
    assert primed.environment.isa == read_isa(later.kept)
    assert find_headers(later) == find_headers(first) != {}
    assert len(list(later.kept.iterdir())) == 1
    later.seed_cache()
    cold = later.run(WorkerRole.COLD, Case(id="layers/a", model="layers", factory="made_up:build"))
    assert cold.failure is None
    assert find_headers(later) == find_headers(first)


def test_what_workers_believe_changes_no_code(
    first: Any,
) -> None:
    """Told that all instruction sets passed or probing them itself, a worker generates the same kernels."""
    case = Case(id="layers/b", model="layers", factory="made_up:build")
    told, probed = first.cache / "inductor" / "all.isas", []
    for is_told in (True, False):
        first.seed_cache()
        assert told.is_file()
        if not is_told:
            told.unlink()
        cold = first.run(WorkerRole.COLD, case)
        probed.append((cold.identity, cold.samples[Metric.GENERATED_KERNELS]))
    assert probed[0] == probed[1]


def test_an_entry_of_no_use_is_left_by_a_fresh_primer(open_workshop: OpenWorkshop, kept: Path) -> None:
    """Where the processor's instructions are not those that were noted, a new process finds them out."""
    misled = replace(open_workshop("misled"), kept=kept)
    isa = read_isa(kept)
    (manifest,) = kept.rglob("manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "notes": {"isas": "amx"}}))
    primed = misled.run(WorkerRole.PRIME)
    assert primed.failure is None
    assert primed.environment.isa == isa
    assert list(kept.iterdir()) == []
    assert json.loads((misled.directory / "prime.request.json").read_text())["toolchain_cache"] == ""
