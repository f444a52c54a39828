"""What two processes measured, joined into a trial; pure."""

from __future__ import annotations

from dataclasses import replace

from gate.metrics import OF_WARM
from gate.records import Code, Conditions, Fact, Trial, list_distinct, name_words
from gate.records.protocol import Stage, WorkerResult


def merge_results(blank: Trial, cold: WorkerResult, warm: WorkerResult, wall_s: float) -> Trial:
    """Join what both processes measured in ``wall_s`` seconds into one trial. Pure.

    Where both report something, the cold process is believed, except for what only a warm one can
    know. Stage times are summed; the overhead is the wall time that no stage but ``start`` explains.
    """
    stages_s = {
        stage: cold.stages_s.get(stage, 0.0) + warm.stages_s.get(stage, 0.0)
        for stage in (*cold.stages_s, *(stage for stage in warm.stages_s if stage not in cold.stages_s))
    }
    explained_s = sum(value for stage, value in stages_s.items() if stage != Stage.START)
    return replace(
        blank,
        samples={**warm.samples, **{one: was for one, was in cold.samples.items() if one not in OF_WARM}},
        undisturbed_s=cold.undisturbed_s,
        identity=cold.identity if cold.identity.digest else warm.identity,
        workload={**warm.workload, **cold.workload},
        graph_breaks=cold.graph_breaks or warm.graph_breaks,
        recompile_reasons=cold.recompile_reasons or warm.recompile_reasons,
        caches=warm.caches,
        worst=warm.worst,
        unknown=list_distinct((*cold.unknown, *warm.unknown)),
        phases_s={**warm.phases_s, **cold.phases_s},
        kernels_s=cold.kernels_s,
        parts_s=cold.parts_s,
        stages_s=stages_s,
        overhead_s=max(0.0, wall_s - explained_s),
        conditions=_merge_conditions(cold.conditions, warm.conditions),
        warnings=_merge_warnings(cold, warm),
        changed_imports=_merge_imports(cold, warm),
    )


def _merge_imports(cold: WorkerResult, warm: WorkerResult) -> tuple[str, ...] | None:
    """What either process imported; where one did not compare, nobody knows."""
    if cold.changed_imports is None or warm.changed_imports is None:
        return None
    return tuple(dict.fromkeys((*cold.changed_imports, *warm.changed_imports)))


def _merge_conditions(cold: Conditions, warm: Conditions) -> Conditions:
    return Conditions(
        canaries_s={**warm.canaries_s, **cold.canaries_s},
        throttled=tuple(dict.fromkeys((*cold.throttled, *warm.throttled))),
        foreign_processes=max(cold.foreign_processes, warm.foreign_processes),
    )


def _merge_warnings(cold: WorkerResult, warm: WorkerResult) -> tuple[Fact, ...]:
    differing = sorted(
        key for key in cold.workload.keys() & warm.workload.keys() if cold.workload[key] != warm.workload[key]
    )
    told = [Fact(code=Code.PROCESSES_DISAGREE, names=name_words(subject=key)) for key in differing]
    return list_distinct((*cold.warnings, *warm.warnings, *told))
