"""Results joined, pure: two processes' into a trial, and a stopped run's into the run that continues it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from gate import fingerprint
from gate.errors import UsageError
from gate.metrics import OF_WARM
from gate.records import (
    BaseArm,
    Case,
    Code,
    Conditions,
    Extent,
    Fact,
    Run,
    Trial,
    list_distinct,
    name_words,
)
from gate.records.protocol import Stage, WorkerResult
from gate.units import join_some


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
        limits_s=cold.limits_s,
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
        clock_mhz=cold.clock_mhz or warm.clock_mhz,
        temperature_c=max(cold.temperature_c, warm.temperature_c),
    )


def _merge_warnings(cold: WorkerResult, warm: WorkerResult) -> tuple[Fact, ...]:
    differing = sorted(
        key for key in cold.workload.keys() & warm.workload.keys() if cold.workload[key] != warm.workload[key]
    )
    told = [Fact(code=Code.PROCESSES_DISAGREE, names=name_words(subject=key)) for key in differing]
    return list_distinct((*cold.warnings, *warm.warnings, *told))


_FIX = "Run without --resume, or restore what was there when the run began."
_NAMED = 3  # differences named in an error of one line


def carry_over(fresh: Run, previous: Run) -> Run:
    """Take the trials of ``previous`` into ``fresh``, the same run about to be started again.

    What failed is tried again, and so is what was measured before it: the failures are kept to be told, since
    the same code failed. Not taken are trials that measured a part of their case where whole ones are asked
    for: by the plan, or beside a base.

    Raises:
        UsageError: It is not the same run; the first differences are named.
    """
    refuse_other_run(fresh, previous)
    return replace(
        fresh,
        provenance=replace(fresh.provenance, created=previous.provenance.created),
        trials=tuple(
            one
            for one in _list_sound(previous)
            if one.extent is Extent.WHOLE or (fresh.base is None and one.index > fresh.trials_planned)
        ),
        retried=(*previous.retried, *previous.failures),
        sources=previous.sources,
        places={**previous.places, **fresh.places},
        toolchain_s=previous.toolchain_s + fresh.toolchain_s,
        wall_s=previous.wall_s + fresh.wall_s,
    )


def refuse_other_run(fresh: Run, previous: Run) -> None:
    """Refuse to continue another run; raises as :func:`carry_over`."""
    if differences := list_differences(fresh, previous):
        told = join_some(differences, _NAMED, "; ")
        raise UsageError(f"the saved run cannot be continued: {told}", _FIX)


def _list_sound(run: Run) -> tuple[Trial, ...]:
    failed = {(failure.arm, failure.case_id, failure.trial) for failure in run.failures}
    return tuple(trial for trial in run.trials if (trial.arm, trial.case_id, trial.index) not in failed)


def list_differences(fresh: Run, previous: Run) -> list[str]:
    """List what makes two runs measurements of different things; empty where they can be one run."""
    commits = (previous.provenance.commit, fresh.provenance.commit)
    return [
        *_list_kind_differences(fresh, previous),
        *_list_case_differences(fresh.cases, previous.cases),
        *fingerprint.describe_difference(previous.environment, fresh.environment),
        *([f"commit {commits[0][:10]} -> {commits[1][:10]}"] if commits[0] != commits[1] else []),
        *_list_edits(fresh, previous),
        *_list_sampling_differences(fresh.sampling, previous.sampling),
        *_list_base_differences(fresh.base, previous.base),
    ]


def _list_kind_differences(fresh: Run, previous: Run) -> list[str]:
    """A run of pairs alone has no trials to judge by what is stored, and no other adds pairs to all cases."""
    kinds = ["trials (`check`)" if one.trials_planned else "pairs (`ab`)" for one in (previous, fresh)]
    return [" -> ".join(kinds)] if kinds[0] != kinds[1] else []


def _list_edits(fresh: Run, previous: Run) -> list[str]:
    """What was edited since the run began is of another commit's kind, though git knows no commit of it."""
    is_known = bool(fresh.changes and previous.changes)
    return ["what is not committed has changed"] if is_known and fresh.changes != previous.changes else []


def _list_sampling_differences(fresh: Mapping[str, float], previous: Mapping[str, float]) -> list[str]:
    if not previous:  # written before a run kept them: nothing is known
        return []
    return [
        f"sampling.{key} {previous.get(key, math.nan):g} -> {value:g}"
        for key, value in fresh.items()
        if previous.get(key) != value
    ]


def _list_base_differences(fresh: BaseArm | None, previous: BaseArm | None) -> list[str]:
    if fresh is None or previous is None:  # one of them has not come to its pairs
        return []
    commits = (previous.provenance.commit, fresh.provenance.commit)
    changed = fingerprint.describe_difference(previous.environment, fresh.environment)
    return [
        *(f"base: {difference}" for difference in changed),
        *([f"base commit {commits[0][:10]} -> {commits[1][:10]}"] if commits[0] != commits[1] else []),
        *_list_base_edits(fresh, previous),
    ]


def _list_base_edits(fresh: BaseArm, previous: BaseArm) -> list[str]:
    """Another directory, or another state of it, where no commit tells all of the base."""
    if fresh.changes != previous.changes and fresh.changes and previous.changes:
        return ["what the base has in no commit has changed"]
    is_told = bool(fresh.provenance.commit) and not fresh.provenance.dirty
    return [] if is_told or fresh.label == previous.label else [f"base {previous.label} -> {fresh.label}"]


def _list_case_differences(fresh: tuple[Case, ...], previous: tuple[Case, ...]) -> list[str]:
    now = {case.id: case.program for case in fresh}
    then = {case.id: case.program for case in previous}
    return sorted(
        [
            *(f"{case_id} was not part of it" for case_id in now.keys() - then.keys()),
            *(f"{case_id} is no longer selected" for case_id in then.keys() - now.keys()),
            *(
                f"{case_id} has another definition"
                for case_id in now.keys() & then.keys()
                if now[case_id] != then[case_id]
            ),
        ]
    )
