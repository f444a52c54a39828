"""What a compile did, beside the clock: what repeats exactly says whether it did more work than before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gate.decide.constants import MORE_PROCESSOR, MORE_WORK
from gate.decide.evidence.proxies import (
    compute_calls_change,
    compute_processor_change,
    has_other_counts,
    has_other_size,
)
from gate.decide.evidence.stored import Evidence, is_one_baseline
from gate.decide.evidence.values import Question
from gate.metrics import COMPILE_TIMES
from gate.records import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What a compile did against its baseline; changes are logarithms, + is more, ``None`` is unknown."""

    calls: float | None = None  # Python calls
    processor: float | None = None  # CPU time of a cold compile, its compilers' included
    counts: bool = False  # a counter of the graph or of caches differs
    size: bool = False  # how much code was generated differs

    @property
    def has_more_calls(self) -> bool:
        """Whether it is known to have made more Python calls."""
        return self.calls is not None and self.calls > math.log1p(MORE_WORK)

    def is_other(self, metric: Metric) -> bool:
        """Whether it did other work that can be counted, or was not counted.

        How much code there is matters where the CPU time of its compiler is unknown, and little to a
        compile on a warm cache, which loads it.
        """
        has_other_size = self.size and metric is Metric.COLD_COMPILE_TIME and self.processor is None
        return self.calls is None or self.counts or has_other_size or self.has_more_calls

    def mirror(self) -> Work:
        """The same with more and less exchanged."""
        calls, processor = (None if one is None else -one for one in (self.calls, self.processor))
        return replace(self, calls=calls, processor=processor)

    def explains(self, metric: Metric) -> bool:
        """Whether a longer compile left a trace beside the clock, or there is nothing to know it by.

        A cold one whose CPU time is known must have taken more of it, or made more Python calls: a guard
        more is a trace, and no reason for seconds.
        """
        if metric is Metric.COLD_COMPILE_TIME and self.processor is not None:
            return self.has_more_calls or self.processor > math.log1p(MORE_PROCESSOR)
        return self.is_other(metric)

    def is_same(self, metric: Metric) -> bool:
        """Whether a compile is known to have done its baseline's work: what repeats exactly did not move."""
        return not self.is_other(metric) and not self.explains(metric)


def compare_work(evidence: Evidence, questions: Mapping[Metric, Question]) -> Work:
    """Compare what the compiles of a case did with its baseline's, or the base's."""
    # Another baseline's calls, of a newer release or another host, say nothing of what this one's time is of.
    has_calls = is_one_baseline((Metric.COMPILE_CALLS, *COMPILE_TIMES), evidence.stored)
    return Work(
        calls=compute_calls_change(questions) if has_calls else None,
        processor=compute_processor_change(evidence),
        counts=has_other_counts(questions),
        size=has_other_size(evidence),
    )
