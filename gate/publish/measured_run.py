"""Whether a run may become baselines: read, of the authorised commit, of its registry's cases, complete.

The run is whatever measured code left behind. Every refusal is a sentence of ours: it may name cases of
the registry, and repeats nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gate.decide.evidence.baselines import make_baselines
from gate.decide.evidence.disturbed import note_disturbed, note_kept_disturbed
from gate.errors import FileError, UsageError
from gate.files.codec import RUN, NewerFileError
from gate.files.consistency import check_baseline
from gate.publish.submitted_verdict import RefusedError, read_member
from gate.records import Baseline, Case, Fact, Provenance, Run
from gate.records.protocol import Stage
from gate.store.baselines import MAX_BASELINE_BYTES, encode_baseline, get_min_trials, list_unfit
from gate.units import join_some

MAX_CASES = 1000  # of one refresh: each is a file, and what is stored is read one by one
_NAMED = 6  # cases named in a refusal; the rest is counted
_AGAIN = "Measure again, with the same compile-gate as this job's and nothing else in the artifact."
# This job runs the default branch's gate, and has its reference models.
_MERGE_FIRST = (
    "Where the branch brings another version of the gate or of its reference models, merge it first and"
    " refresh the default branch; else measure again."
)
_STAGES = frozenset(stage.value for stage in Stage)

RUN_MEMBER = "run.json"
# A trial is about 3 kB: this is 10,000 of them, which is more than a refresh of 1,000 cases takes.
MAX_RUN_BYTES = 32 * 1024 * 1024
_FIX = "Measure again, and upload nothing but run.json under that name."


def parse_run(archive: bytes) -> Run:
    """Parse the ``run.json`` of a zip archive that measured code may have written, extracting nothing.

    Raises:
        UsageError: It is not there once, or is no run; what is wrong with that is not told, since it would be
            its own words.
    """
    try:
        return RUN.decode(read_member(archive, RUN_MEMBER, MAX_RUN_BYTES), RUN_MEMBER)
    except RefusedError as error:
        raise UsageError(error.refusal.value, _FIX) from None
    except NewerFileError:
        what = f"{RUN_MEMBER} was written by a newer compile-gate than this job's"
        raise UsageError(what, "Use one version in all jobs that refresh.") from None
    except FileError:
        raise UsageError(f"{RUN_MEMBER} is no run that this compile-gate reads", _FIX) from None


def check_measured_run(run: Run, head_sha: str, cases: Sequence[Case]) -> None:
    """Check a run against the authorised commit and the cases that this commit's registry makes.

    Raises:
        UsageError: It does not fit.
    """
    if run.provenance.commit != head_sha or run.provenance.dirty:
        raise UsageError(
            "the run did not measure the commit that was authorised, or measured it with changes",
            "Check out the output head-sha of authorize-command in the job that measures.",
        )
    planned = {case.id: case.definition for case in run.cases}
    named = {trial.case_id for trial in run.trials} | {failure.case_id for failure in run.failures}
    if len(planned) != len(run.cases) or not 0 < len(planned) <= MAX_CASES or not named <= planned.keys():
        problem = f"the run's cases contradict its trials, or are none or more than {MAX_CASES}"
        raise UsageError(problem, _AGAIN)
    known = {case.id: case.definition for case in cases}
    unknown = len(planned.keys() - known.keys())
    if unknown:
        many = f"{unknown} of the run's {len(planned)} cases {'is' if unknown == 1 else 'are'}"
        raise UsageError(f"{many} none that the registry of {head_sha[:12]} makes", _MERGE_FIRST)
    other = [case_id for case_id in known if planned.get(case_id, known[case_id]) != known[case_id]]
    if other:
        problem = f"the run defines cases differently than the registry of {head_sha[:12]}"
        raise UsageError(f"{problem}: {join_some(other, _NAMED)}", _MERGE_FIRST)
    _check_complete(run)


def _check_complete(run: Run) -> None:
    if not run.finished:
        raise UsageError("the run was stopped before its end", _AGAIN)
    if unfit := list_unfit(run, lambda stage: stage if stage in _STAGES else "an unknown stage"):
        raise UsageError(
            f"not fit to be recorded: {join_some([*unfit.values()], _NAMED)}",
            "Fix them or measure more trials; to record the others, leave these out with select=!CASE.",
        )


def record_run(run: Run, provenance: Provenance) -> tuple[Baseline, ...]:
    """Make the baselines of a run that was checked.

    Raises:
        UsageError: Numbers of it are such as no measurement gives.
    """
    refused = UsageError("the run holds numbers that no measurement gives", _AGAIN)
    try:
        baselines = make_baselines(run, provenance)
        for baseline in baselines:
            check_baseline(baseline, "")  # what was written could not be read again
    except (ArithmeticError, ValueError, FileError):
        raise refused from None
    if not all(map(math.isfinite, _list_numbers(baselines))):
        raise refused
    if any(len(encode_baseline(baseline)) > MAX_BASELINE_BYTES for baseline in baselines):
        raise UsageError("a case of the run would make a larger file than a baseline may be", _AGAIN)
    return baselines


def note_machine(run: Run) -> tuple[Fact, ...]:
    """Notes on what disturbed the machine that measured; without names, which are the run's own words."""
    kept = note_kept_disturbed(run, get_min_trials(run.environment.device_kind))
    return tuple(replace(note, names={}) for note in (*note_disturbed(run), *kept))


def _list_numbers(baselines: Iterable[Baseline]) -> Iterator[float]:
    for baseline in baselines:
        for values in (*baseline.trials.values(), *baseline.canaries_s.values()):
            yield from values
        yield from baseline.phases_s.values()
        yield from baseline.kernels_s.values()
        yield from baseline.parts_s.values()
