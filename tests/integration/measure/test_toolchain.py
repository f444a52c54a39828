"""What the primer leaves of the toolchain: workers build none of it again, and believe what it found out."""

from __future__ import annotations

from typing import Any

import pytest

from gate.records import Case, Metric
from gate.records.protocol import WorkerRole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def find_headers(workshop: Any) -> dict[str, int]:
    """Find the precompiled headers of a run, with their times of change."""
    return {path.name: path.stat().st_mtime_ns for path in workshop.temporary.rglob("*.gch")}


def test_what_workers_believe_changes_no_code(workshop: Any) -> None:
    """Told that all instruction sets passed or probing them itself, a worker generates the same kernels.

    It finds the primer's precompiled header.
    """
    case = Case(id="layers/b", model="layers", factory="made_up:build")
    told, probed, headers = workshop.cache / "inductor" / "all.isas", [], find_headers(workshop)
    for is_told in (True, False):
        workshop.seed_cache()
        assert told.is_file()
        if not is_told:
            told.unlink()
        cold = workshop.run(WorkerRole.COLD, case)
        probed.append((cold.identity, cold.samples[Metric.GENERATED_KERNELS]))
    assert probed[0] == probed[1]
    assert find_headers(workshop) == headers != {}
