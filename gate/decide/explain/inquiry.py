"""What a finder of causes is asked, and the weight of each cause."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.decide.constants import SHARED_SHARE
from gate.decide.evidence.gather import Evidence
from gate.decide.judge.machine import Machine
from gate.metrics import SPECS, Scope, explained_by
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Environment
from gate.records.verdict import Cause, CauseKind, Comparison, Reason, Status

# The weight of a cause, and its kind. Weights only order causes: what brings others about stands above what
# it brings about. A new graph break splits kernels, which changes code.
CAUSES: Mapping[Code, tuple[float, CauseKind]] = {
    Code.OUTPUT_LOST: (0.99, CauseKind.OUTPUT),  # another answer
    Code.OUTPUT_RESHAPED: (0.99, CauseKind.OUTPUT),
    Code.OUTPUT_DIFFERS: (0.99, CauseKind.OUTPUT),
    Code.OUTPUT_FAR: (0.99, CauseKind.OUTPUT),
    Code.LAYOUT_DIFFERS: (0.985, CauseKind.LAYOUT),
    Code.LEFT_BY_ONE: (0.985, CauseKind.LAYOUT),
    Code.FIRST_BAD: (0.982, CauseKind.WORKLOAD),  # measured, commit by commit
    Code.DEFINITION_CHANGED: (0.98, CauseKind.WORKLOAD),  # another program: nothing else can be compared
    Code.OPTIONS_CHANGED: (0.978, CauseKind.STACK),
    Code.DEFAULT_CHANGED: (0.977, CauseKind.STACK),  # measured: with it set back the change is gone
    Code.LEFT_TO_EAGER: (0.975, CauseKind.GRAPH_BREAK),
    Code.GRAPH_BREAK: (0.97, CauseKind.GRAPH_BREAK),
    Code.MEMORY_KEPT: (0.968, CauseKind.KEPT),
    Code.GRAPH_DIFFERS: (0.965, CauseKind.CACHE),
    Code.CACHE_MISSED: (0.96, CauseKind.CACHE),
    Code.RECOMPILED: (0.95, CauseKind.RECOMPILE),
    Code.EAGER_ALONE: (0.94, CauseKind.EAGER),
    Code.GRAPH_BREAK_GONE: (0.93, CauseKind.GRAPH_BREAK),
    Code.WORKLOAD_CHANGED: (0.92, CauseKind.WORKLOAD),
    Code.RECOMPILED_NO_MORE: (0.91, CauseKind.RECOMPILE),
    Code.STACK_CHANGED: (0.90, CauseKind.STACK),
    Code.PRECISION_CHANGED: (0.88, CauseKind.CHANGED_CODE),
    Code.MACHINE_CHANGED: (0.86, CauseKind.MACHINE),  # times the share of the change that it accounts for
    Code.CALLS_ADDED: (0.84, CauseKind.FUSION),
    Code.KERNELS_SPLIT: (0.82, CauseKind.FUSION),
    Code.CODE_TUNED: (0.80, CauseKind.TUNING),
    Code.OPERATIONS_CHANGED: (0.78, CauseKind.CHANGED_CODE),
    Code.GUARDS_CHANGED: (0.77, CauseKind.GUARDS),  # times the share of the change that they are
    Code.KERNELS_ADDED: (0.66, CauseKind.FUSION),
    Code.EAGER_TOO: (0.64, CauseKind.EAGER),
    Code.KERNELS_JOINED: (0.62, CauseKind.FUSION),
    Code.FUNCTIONS_CALLED: (0.615, CauseKind.COMPILE_PHASE),  # times the share of what was added
    Code.CHANGED_PHASES: (0.61, CauseKind.COMPILE_PHASE),  # times the phase's share
    Code.CODE_CHANGED: (0.60, CauseKind.CHANGED_CODE),
    Code.IMPORTS_CHANGED: (0.55, CauseKind.WORKLOAD),
    Code.CODE_SAME: (0.50, CauseKind.UNCHANGED_CODE),
    Code.UNEXPLAINED: (0.30, CauseKind.UNEXPLAINED),
    Code.KERNELS_MOVED: (0.25, CauseKind.KERNELS),
    Code.KERNELS_STEADY: (0.10, CauseKind.KERNELS),
}
# Of a workload that changed in nothing but its result: other causes of that stand above.
RESULT_ALONE = 0.58
# Share of a cause that cannot explain what got worst: a cache that is lost makes no call slower.
_BESIDE_THE_POINT = 0.4
# A recompile shows in its own counters, and makes whatever is timed slower.
_OF_ANYTHING = frozenset({CauseKind.RECOMPILE})
# A first cause has at least this weight; where none has, the change is unexplained.
LEAST_WEIGHT = 0.30
# So many of a kind are named, the rest are counted.
MAX_NAMED = 3
# Longer texts are Dynamo's own, many lines of hints; the first words name the fault.
_MAX_TEXT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Inquiry:
    evidence: Evidence
    comparisons: Sequence[Comparison]
    moved: frozenset[Metric]  # that decide
    machine: Machine
    environment: Environment  # of head

    @property
    def worst(self) -> Metric | None:
        """A ratio only follows."""
        worse = [row for row in self.comparisons if row.decides and row.status is Status.REGRESSED]
        leading = [row for row in worse if row.metric is not Metric.WARM_SPEEDUP] or worse
        return max(leading, key=lambda row: row.severity).metric if leading else None

    @property
    def is_of_pairs(self) -> bool:
        """The machine has no influence on what moved then."""
        return any(row.pairs for row in self.comparisons) and not self.list_moved_from_stored()

    def list_moved_from_stored(self) -> list[Metric]:
        """Compared with values of another session."""
        alone = [row.metric for row in self.comparisons if row.decides and not row.pairs]
        return [metric for metric in alone if metric in self.moved and SPECS[metric].scope is Scope.HOST]

    def weigh(self, fact: Fact, share: float = 1.0, weight: float | None = None) -> Cause:
        """``share``: of the change that it accounts for, 1 at most; ``weight`` replaces that of CAUSES."""
        usual, kind = CAUSES[fact.code]
        explained = frozenset() if kind in _OF_ANYTHING else explained_by(kind)
        fitting = _BESIDE_THE_POINT if self.worst and explained and self.worst not in explained else 1.0
        whole = usual if weight is None else weight
        return Cause(case_id=self.evidence.case.id, fact=fact, weight=round(whole * share * fitting, 4))

    def weigh_some(self, facts: Iterable[Fact], share: float = 1.0) -> list[Cause]:
        causes = [self.weigh(fact, share) for fact in facts]
        rest = len(causes) - MAX_NAMED
        more = [replace(causes[0], fact=Fact(code=Code.MORE, numbers={"more": rest}))] if rest > 0 else []
        return causes[:MAX_NAMED] + more

    def mark_pairs(self) -> dict[str, float]:
        return {"in_pairs": 1.0} if self.is_of_pairs else {}

    def shows(self, kind: CauseKind) -> bool:
        fitting = self.moved & explained_by(kind)
        return any(row.metric in fitting and abs(row.severity) >= 1 for row in self.comparisons)

    def find_worst(self, kind: CauseKind) -> Comparison | None:
        """Surely or not; ``None`` where a metric that such a cause does not explain got worst."""
        fitting = self.moved & explained_by(kind)
        rows = [row for row in self.comparisons if row.metric in fitting and row.severity > 0]
        if self.worst and self.worst not in fitting:
            return None
        return max(rows, key=lambda row: (row.metric is self.worst, row.severity), default=None)

    def find_row(self, metric: Metric) -> Comparison | None:
        return next((row for row in self.comparisons if row.metric is metric), None)

    def find_change(self, metric: Metric) -> float | None:
        changes = (row.change for row in self.comparisons if row.metric is metric)
        return next((change.centre for change in changes if change), None)

    def list_warnings(self, code: Code) -> list[Fact]:
        return [fact for trial in self.evidence.trials for fact in trial.warnings if fact.code is code]


def insert_cause(causes: Sequence[Cause], added: Cause) -> tuple[Cause, ...]:
    """Before the lighter ones of its case."""
    lighter = (
        number
        for number, cause in enumerate(causes)
        if cause.case_id == added.case_id and cause.weight < added.weight
    )
    index = next(lighter, len(causes))
    return (*causes[:index], added, *causes[index:])


def rank_moves(
    before: Mapping[str, float], after: Mapping[str, float], least_share: float
) -> dict[str, float]:
    """Most first; without moves below ``least_share`` of all before."""
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}
    least = least_share * sum(before.values())
    moved = {name: change for name, change in changes.items() if abs(change) > least}
    return dict(sorted(moved.items(), key=lambda item: abs(item[1]), reverse=True))


def shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 3]}..."


def is_eagers_alone(row: Comparison) -> bool:
    if row.metric is not Metric.WARM_SPEEDUP or row.reason is not Reason.LEADER_STANDS:
        return False
    changes = [fact.numbers["change"] for fact in row.remarks if fact.code is Code.EAGER_CHANGED]
    fall = row.change.centre if row.change else 0.0
    limit = row.threshold.relative if row.threshold else 0.0
    return fall > limit and any(-math.log1p(eager) >= SHARED_SHARE * math.log1p(fall) for eager in changes)
