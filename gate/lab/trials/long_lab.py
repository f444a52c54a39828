"""One lab for many comparisons: the device stays held, and what stays of them is kept.

::

    with open_lab(good, settings, observe) as lab:
        long_lab = LongLab(lab=lab)
        for commit in commits:
            with long_lab.open_pairs(good, commit, out, cases) as side_by_side:
                ...
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.lab.trials.opening import Lab, find_unavailable, prime_bench
from gate.lab.trials.pairs import find_side_cache
from gate.lab.trials.side_by_side import SideBySide
from gate.lab.trials.trials import Bench, check_disk
from gate.lab.workers.worker import make_directory
from gate.records import Arm, Case, Environment


@dataclass(frozen=True, kw_only=True, slots=True)
class _Toolchain:
    """What priming an interpreter has left, and told."""

    place: Path
    environment: Environment


@dataclass(kw_only=True)
class LongLab:
    """Holds arms against each other one after the other; the lab's own arm keeps its servers and caches."""

    lab: Lab
    _opened: int = 0  # arms, for the names of their directories
    _toolchains: dict[str, _Toolchain] = field(default_factory=dict)  # by interpreter

    def __post_init__(self) -> None:
        bench = self.lab.bench
        first = _Toolchain(place=bench.scratch, environment=self.lab.environment)
        self._toolchains[bench.arm.python] = first

    @contextmanager
    def open_pairs(self, base: Arm, head: Arm, out: Path, cases: Sequence[Case]) -> Iterator[SideBySide]:
        """Make two arms ready; what was made for one that is not the lab's own is gone at the end.

        Head begins with the caches that the base has of the cases by now: what both compile to is there.

        Raises:
            MachineError: An interpreter cannot compile here, or a disk is full.
        """
        make_directory(out)
        with self._open(base, out) as base_bench, self._open(head, out) as head_bench:
            for case in cases:
                _keep_caches(base_bench, head_bench, case)
            environment = self._toolchains[head.python].environment
            lab = replace(
                self.lab,
                bench=head_bench,
                environment=environment,
                failed=find_unavailable(cases, environment, head_bench),
            )
            yield SideBySide(lab=lab, base=base_bench, environment=self._toolchains[base.python].environment)
        self.lab = replace(self.lab, toolchain_s=0.0)  # told once: the next run has not waited for it

    @contextmanager
    def _open(self, arm: Arm, out: Path) -> Iterator[Bench]:
        own = self.lab.bench
        is_own = arm == own.arm
        self._opened += not is_own
        scratch = own.scratch / ("own" if is_own else f"arm-{self._opened}")
        scratch.mkdir(exist_ok=True)
        bench = replace(own, arm=arm, scratch=scratch, settings=replace(own.settings, out=out))
        check_disk(bench)
        try:
            yield replace(bench, toolchain=self._prime(bench).place)
        finally:
            if not is_own:
                if own.pool is not None:
                    own.pool.drop(arm)
                shutil.rmtree(scratch, ignore_errors=True)

    def _prime(self, bench: Bench) -> _Toolchain:
        """Prime the interpreter of a bench, unless that was done for an arm before."""
        python = bench.arm.python
        if python not in self._toolchains:
            place = self.lab.bench.scratch / f"toolchain-{len(self._toolchains)}"
            (place / "tmp").mkdir(parents=True)
            primed = prime_bench(replace(bench, scratch=place, folder=place.name))
            self._toolchains[python] = _Toolchain(place=place, environment=primed.environment)
        return self._toolchains[python]


def _keep_caches(base: Bench, head: Bench, case: Case) -> None:
    cache = find_side_cache(base, case)
    if cache.is_dir():
        kept = head.find_kept(case)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(cache, kept, symlinks=True, dirs_exist_ok=True)
