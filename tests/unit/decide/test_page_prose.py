"""Statuses and reasons in the prose of docs/decision.md are those of a case like it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.judge.counted import CountRules, judge_counted
from gate.decide.side_by_side import confirm_screening, decide_side_by_side
from gate.decide.suspects import list_suspects
from gate.decide.verdict import screen_run
from gate.records.cases import AbsoluteLimit, Metric
from gate.records.verdict import Reason, Status
from tests import decision_page
from tests.decision_page import Ruling, read_ruling
from tests.hosts import CPU_HOST
from tests.make import POLICY, PairedCase, Situation, decide, find_row, make_stored, pair_up, state

from .one_case import BREAKS, COLD, EAGER, LATENCY, SPEEDUP, fail, scale
from .one_case import CASE as PAIRED
from .test_page_situations import ask

CALLS, MEMORY = Metric.COMPILE_CALLS, Metric.PEAK_MEMORY


def judge_metric(metric: Metric, *situations: Situation, **policy: Any) -> Ruling:
    return state(find_row(decide(*situations, **policy), metric))


def judge_together(metric: Metric, paired_case: PairedCase, pythons: tuple[str, ...] = ()) -> Ruling:
    """The metric's state by pairs alone, as in ``ab``."""
    run = pair_up(paired_case)
    assert run.base is not None
    verdict = decide_side_by_side(replace(run, base=replace(run.base, pythons=pythons)), POLICY)
    return state(find_row(verdict, metric))


def judge_unpaired() -> Ruling:
    """A latency that looks 30 % slower than stored, without a pair."""
    situation = Situation(case_id=PAIRED, before={LATENCY: (0.010,) * 5}, after={LATENCY: (0.013,)})
    run = pair_up(PairedCase(pairs=0, alone={LATENCY: (0.013,)}))
    screened = screen_run(run, make_stored(situation), POLICY)
    screening = confirm_screening(screened, run, POLICY, list_suspects(screened))
    return state(find_row(screening, LATENCY))


def judge_flickering(before: Sequence[float], after: Sequence[float]) -> Status:
    flickering = frozenset({BREAKS})
    return judge_counted(ask(BREAKS, before, after), CountRules(alpha=0.01, flickering=flickering)).status


def judge_limit(value: float, *, trials: int = 1) -> Ruling:
    """A cold compile with a limit of 60 s."""
    limit = AbsoluteLimit(case="*", metric=COLD, value=60.0)
    return judge_metric(COLD, Situation(after={COLD: (value,) * trials}), limits=(limit,))


def upgrade(factor: float) -> Ruling:
    """A latency under another compiler, times the mean of nine stored values."""
    stored = {LATENCY: scale(0.01)}
    after, host = {LATENCY: (0.01 * factor,)}, replace(CPU_HOST, compiler="another")
    return judge_metric(LATENCY, Situation(before=stored, after=after, host=host))


FAR = Situation(
    before={LATENCY: (0.01,) * 5},
    after={LATENCY: (0.01,) * 3},
    canaries_before={"loop": (1.0,) * 5},
    canaries_after={"loop": (1.3,) * 3},
)
WANDERING = PairedCase(pairs=3, spread=(0.3, -0.3, 0.0))
EAGER_FASTER = Situation(
    before={EAGER: (0.02,) * 5, LATENCY: (0.01,) * 5},
    after={EAGER: (0.01,) * 3, LATENCY: (0.01,) * 3, SPEEDUP: (1.0,) * 3},
)
OPEN_CALLS = Situation(
    before={LATENCY: (0.01,) * 2, EAGER: (0.02,) * 2, SPEEDUP: (2.0,) * 2},
    after={LATENCY: (0.01,), EAGER: (0.02,), SPEEDUP: (2.0,)},
)
MORE_CALLS = Situation(
    before={COLD: (10.0,) * 5, CALLS: (1e6,) * 5}, after={COLD: (10.0,) * 3, CALLS: (1.1e6,) * 3}
)
# Words of the page before and behind a status or a reason, and what comes of such a case.
PROSE: Mapping[str, Callable[[], Ruling | Status | Reason]] = {
    r"stored trials: (INCONCLUSIVE `few_trials`)": lambda: judge_metric(
        LATENCY, Situation(before={LATENCY: (0.01,) * 2}, after={LATENCY: (0.01,)})
    ),
    r"its times are (NOT_COMPARABLE `other_environment`)": lambda: judge_metric(LATENCY, FAR),
    r"a latency or compile time is (INCONCLUSIVE) if d > e": lambda: upgrade(2.0)[0],
    r"The reason is (`other_environment`) where low": lambda: upgrade(2.0)[1],
    r"low > e, else (`unsettled`), which": lambda: upgrade(1.07)[1],
    r"Everything else stays (NOT_COMPARABLE)\.": lambda: upgrade(1.0)[0],
    r"If latency is (INCONCLUSIVE), so is": lambda: judge_metric(SPEEDUP, OPEN_CALLS)[0],
    r"Otherwise it is (UNCHANGED `leader_stands`)": lambda: judge_metric(SPEEDUP, EAGER_FASTER),
    r"\*\*No pair came back\*\*: (INCONCLUSIVE `unpaired`)": judge_unpaired,
    r"What the base lacks is (NEW `no_baseline`);": lambda: judge_together(
        BREAKS, PairedCase(pairs=0, alone={BREAKS: (0.0,)}, base_definition="")
    ),
    r"what it could not measure is (NOT_COMPARABLE `unpaired`)": lambda: judge_together(
        BREAKS, PairedCase(pairs=0, alone={BREAKS: (0.0,)}, failures=(fail("base"),))
    ),
    r"\n- (REGRESSED) if all R values": lambda: judge_flickering((0.0,) * 4, (1.0,) * 4),
    r"\n- (REGRESSED), too, if the medians": lambda: judge_flickering((0.0, 1.0) + (0.0,) * 10, (1.0,) * 12),
    r"\n- (UNCHANGED) if no value of head": lambda: judge_flickering((1.0, 0.0), (0.0, 0.0)),
    r"is still open is (UNCHANGED `below_threshold`) from": lambda: judge_together(COLD, WANDERING),
    r"so an open compile stays (INCONCLUSIVE)\.": lambda: judge_together(COLD, WANDERING, pythons=("a", "b"))[
        0
    ],
    r"They are (REGRESSED) only where one": lambda: judge_metric(
        CALLS,
        Situation(
            before={COLD: (10.0,) * 5, CALLS: (1e6,) * 5}, after={COLD: (20.0,) * 3, CALLS: (2e6,) * 3}
        ),
    )[0],
    r"Where one is open they are (INCONCLUSIVE),": lambda: judge_metric(
        CALLS,
        Situation(
            before={COLD: (10.0,) * 2, CALLS: (1e6,) * 5}, after={COLD: (10.0,) * 3, CALLS: (2e6,) * 3}
        ),
    )[0],
    r"else (UNCHANGED `leader_stands`)\. One that": lambda: judge_metric(CALLS, MORE_CALLS),
    r"\*\*Drift without a baseline\*\* is (REGRESSED `limit_exceeded`)": lambda: judge_metric(
        Metric.DRIFT, Situation(after={Metric.DRIFT: (1.2,)})
    ),
    r"with `peak_memory`, otherwise it is (`leader_stands`)": lambda: judge_metric(
        Metric.MEMORY_RATIO,
        Situation(
            before={MEMORY: (4e8,) * 3, Metric.MEMORY_RATIO: (0.8,) * 3},
            after={MEMORY: (4e8,), Metric.MEMORY_RATIO: (1.0,)},
        ),
    )[1],
    r"low > 0 is (REGRESSED `limit_exceeded`),": lambda: judge_limit(300.0),
    r"high <= 0 is (UNCHANGED `below_threshold`),": lambda: judge_limit(30.0),
    r"else (INCONCLUSIVE `unsettled`), which takes more trials, up to `max_trials`, with": lambda: (
        judge_limit(62.0)
    ),
}


@pytest.mark.parametrize("pattern", PROSE)
def test_the_prose_says_what_is_done(pattern: str) -> None:
    """Each status, reason or both in the prose is the code's."""
    (words,) = re.findall(pattern, decision_page.TEXT)
    actual = PROSE[pattern]()
    if isinstance(actual, Status):
        assert Status[words] is actual
    elif isinstance(actual, Reason):
        assert Reason(words.strip("`")) is actual
    else:
        assert read_ruling(words) == actual
