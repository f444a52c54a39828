"""Two rows in pytest-benchmark's table and JSON, from the one schedule that it timed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from pytest_benchmark.stats import Metadata, Stats

from gate.measure.timing.rounds import Rounds
from gate.records import Case
from gate.records.protocol import Side


class BlockTimer:
    """Lets pytest-benchmark's ``pedantic`` time blocks, and turns its row of blocks into two of calls."""

    def __init__(
        self,
        benchmark: Any,  # noqa: ANN401 - untyped there
        rows: list[Metadata],
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """Take ``wait`` to be called before each block, outside the timed part: in a pair, for the turn.

        It gets the seconds of the block before, undisturbed as far as its target knows them, and says
        whether there is another one to run.
        """
        self._benchmark = benchmark
        self._rows = rows
        self._wait = wait

    def __call__(
        self, target: Callable[[], float | None], lead_in: Callable[[], None], rounds: int
    ) -> list[float]:
        """Time ``rounds`` blocks at most, each led in by what is not timed; seconds of those that ran.

        Raises:
            RuntimeError: pytest-benchmark is switched off, so nothing was timed.
        """
        ran = 0
        undisturbed_s: float | None = None
        is_over = False

        def prepare() -> None:
            nonlocal is_over
            if self._wait and not is_over:
                last_s = self._list_durations()[-1] if ran else 0.0
                is_over = not self._wait(last_s if undisturbed_s is None else undisturbed_s)
            if not is_over:
                lead_in()

        def run() -> None:
            # ``pedantic`` cannot be ended early: what it still times once the rounds are over is nothing.
            nonlocal ran, undisturbed_s
            if not is_over:
                undisturbed_s = target()
                ran += 1

        self._benchmark.pedantic(run, setup=prepare, rounds=rounds, iterations=1)
        if self._benchmark.stats is None:
            raise RuntimeError(
                "pytest-benchmark is disabled (--benchmark-disable, or xdist): nothing was timed"
            )
        return self._list_durations()[:ran]

    def _list_durations(self) -> list[float]:
        return self._benchmark.stats.stats.data  # type: ignore[no-any-return] # untyped there

    def skip(self) -> None:
        """Use the fixture without keeping a row: a process that times no rounds has none to show."""
        self._benchmark.pedantic(lambda: None, rounds=1)
        if self._benchmark.stats is not None:
            self._rows.remove(self._benchmark.stats)

    def split_row(self, case_id: str, rounds: Rounds, extra: Mapping[str, object]) -> None:
        """Replace the row of blocks by two rows of calls in seconds, in a group that the case names."""
        blocks = self._benchmark.stats
        self._rows.remove(blocks)
        times = {Side.EAGER: rounds.times.eager_s, Side.COMPILED: rounds.times.compiled_s}
        for side, times_s in times.items():
            row = copy.copy(blocks)
            row.name, row.group, row.stats = str(side), case_id, Stats()  # type: ignore[no-untyped-call] # untyped there
            row.params = {name: _name_case(value) for name, value in (blocks.params or {}).items()} or None
            row.fullname = f"{blocks.fullname}[{side}]"
            row.extra_info = {
                **extra,
                "case_id": case_id,
                "arm": str(side),
                "calls_per_block": rounds.calls[side],
                "order": rounds.order,
                **({"device_s": rounds.device_s[side]} if side in rounds.device_s else {}),
            }
            for time_s in times_s:
                row.stats.update(time_s)
            self._rows.append(row)


def _name_case(value: object) -> object:
    """A parameter as the JSON file can hold it: of a case its id, which pytest-benchmark could not write."""
    return value.id if isinstance(value, Case) else value
