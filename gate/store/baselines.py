"""The store of baselines: ``baselines/<environment_id>/<case_id>.json``.

A refresh that moves something the wrong way is saved only with a reason.
"""

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median

from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.gather import list_short, make_case_environment
from gate.decide.judge.compare import get_threshold
from gate.devices import TARGET_KIND
from gate.errors import FileError, IncompleteError, UsageError
from gate.files.codec import BASELINE, encode, write_atomic
from gate.files.disk import is_present, load_bytes
from gate.fingerprint import compute_environment_id
from gate.metrics import SPECS, Family, Role, Source
from gate.records.cases import Metric, Policy, group_cases
from gate.records.codes import Code
from gate.records.run import PARTLY_FORKED, Baseline, Extent, Run, Setback
from gate.sizes import MIB
from gate.units import join_some

# Nothing of a target is timed: a second trial shows which counts vary.
MIN_TARGET_TRIALS = 2

MAX_BASELINE_BYTES = 8 * MIB  # 5 trials of a case with 10,000 kernels are 1 MB
Key = tuple[str, str]  # environment and case
_CASE_PATH = re.compile(r"[a-z0-9_]+/[A-Za-z0-9_][A-Za-z0-9_.-]*")


class ProposalKind(StrEnum):
    NEW = "new"
    REDEFINED = "redefined"  # the case's definition changed: the old values mean something else
    CHANGED = "changed"


class SetbackError(UsageError):
    def __init__(self, setbacks: Sequence[Setback]) -> None:
        super().__init__("the refresh would hide a regression", "Find out why, or record it with --reason.")
        self.setbacks = tuple(setbacks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """``path`` is relative to the directory of the baselines; ``old`` lies there now."""

    path: Path
    baseline: Baseline
    old: Baseline | None = None
    setbacks: tuple[Setback, ...] = ()

    @property
    def kind(self) -> ProposalKind:
        if self.old is None:
            return ProposalKind.NEW
        is_same = self.old.definition == self.baseline.definition
        return ProposalKind.CHANGED if is_same else ProposalKind.REDEFINED

    @property
    def text(self) -> str:
        return encode_baseline(self.baseline)


def load_baselines(directory: Path) -> tuple[Baseline, ...]:
    """Load the baselines of all environments; a missing directory holds none.

    Raises:
        FileError: A file or directory cannot be used, or two files hold the same case of one environment.
    """
    return tuple(load_placed(directory).values())


def load_placed(directory: Path) -> Mapping[Path, Baseline]:
    """By file, relative to ``directory``: it may lie anywhere below. Raises as :func:`load_baselines`."""
    if not is_present(directory):
        return {}
    loaded: dict[Key, Path] = {}
    placed = {}
    for path in sorted(_list_files(directory)):
        data = load_bytes(path, MAX_BASELINE_BYTES)
        baseline = BASELINE.decode(data, str(path))
        key = make_key(baseline)
        if key in loaded:
            problem = f"holds the case {baseline.case_id!r} of the same environment as {loaded[key]}"
            raise FileError(str(path), "", problem, "Remove one of the two.")
        loaded[key] = path
        placed[path.relative_to(directory)] = baseline
    return placed


def make_key(baseline: Baseline) -> Key:
    return compute_environment_id(baseline.environment), baseline.case_id


def _list_files(directory: Path) -> Iterator[Path]:
    """A link to a directory is refused: it may lead round in a circle.

    Raises:
        FileError: A directory cannot be listed, or is a link.
    """

    def refuse(error: OSError) -> None:
        raise FileError(
            str(error.filename or directory),
            "",
            f"cannot be listed: {error.strerror}",
            "Name a directory of baselines that this user may read.",
        )

    for parent, directories, names in os.walk(directory, onerror=refuse):
        for name in (*directories, *names):
            path = Path(parent) / name
            if path.suffix == ".json":
                yield path
            elif path.is_symlink() and not os.path.isfile(path):  # noqa: PTH113 - false too of what may not be seen
                fix = "Put the directory itself there: baselines are not read through links."
                raise FileError(str(path), "", "is a link that leads to no file", fix)


def check_whole(run: Run, source: str) -> None:
    """Check that a run that others are compared with ended and has its trials; failed cases are known.

    Raises:
        FileError: It is not whole.
    """
    if not run.finished:
        problem = "is false: the run was stopped before its end, so it is no baseline"
        raise FileError(source, "finished", problem, "Finish it with --resume, or name a run that ended.")
    short = [f"{case.case.id} ({len(case.trials)} of {case.planned} trials)" for case in list_short(run)]
    if short:
        problem = f"lacks trials that were planned: {join_some(short)}"
        raise FileError(source, "trials", problem, "Measure these cases again, or name another run.")


def get_min_trials(device_kind: str) -> int:
    return MIN_TARGET_TRIALS if device_kind == TARGET_KIND else MIN_BASELINE_TRIALS


def check_refresh(run: Run) -> None:
    """Check that a run is fit to be recorded.

    Raises:
        IncompleteError: The run was stopped, or planned cases failed, have too few trials or compiled
            nothing.
    """
    if not run.finished:
        raise IncompleteError("the run was stopped before its end", "Finish it with --resume.")
    if unfit := list_unfit(run):
        select = ",".join(filter(None, (run.selection, *(f"!{case_id}" for case_id in unfit))))
        fix = f"Fix them or measure more trials; to leave them out: --select {shlex.quote(select)}."
        raise IncompleteError(f"not fit to be recorded: {', '.join(unfit.values())}", fix)


def list_unfit(run: Run, name_stage: Callable[[str], str] = str) -> dict[str, str]:
    """List the cases that are not fit to be recorded, each with why; ``name_stage`` may hide a stage."""
    failed = {failure.case_id: name_stage(failure.stage) for failure in run.failures}
    counts = Counter(trial.case_id for trial in run.trials if trial.extent is Extent.WHOLE)
    eager = {trial.case_id for trial in run.trials if 0.0 in trial.samples.get(Metric.UNIQUE_GRAPHS, ())}
    needed = max(get_min_trials(run.environment.device_kind), run.trials_planned)
    few = [case.id for case in run.cases if counts[case.id] < needed]
    return {
        **{case_id: f"{case_id} (not all workers were forked)" for case_id in _list_late(run)},
        **{case_id: f"{case_id} (nothing was compiled)" for case_id in eager},
        **{case_id: f"{case_id} ({counts[case_id]} of {needed} trials)" for case_id in few},
        **{case_id: f"{case_id} (failed in {stage})" for case_id, stage in failed.items()},
    }


def _list_late(run: Run) -> list[str]:
    """Cases with a worker that was started afresh, since its server was silent."""
    late = {
        case_id
        for case_id, trials in group_cases(run.trials).items()
        if make_case_environment(run, trials).workers == PARTLY_FORKED
        or any(fact.code is Code.SERVER_SILENT for trial in trials for fact in trial.warnings)
    }
    return sorted(late)


def propose_baselines(
    new: Iterable[Baseline], old: Mapping[Path, Baseline], policy: Policy
) -> tuple[Proposal, ...]:
    """Propose a file for each new baseline, in place of the old one of its environment and case.

    Raises:
        UsageError: A case id is no file name.
    """
    stored = {make_key(baseline): (path, baseline) for path, baseline in old.items()}
    proposals = []
    for baseline in new:
        path, before = stored.get(make_key(baseline), (make_place(baseline), None))
        is_same = before is not None and before.definition == baseline.definition
        setbacks = tuple(_list_setbacks(baseline, before, policy)) if before and is_same else ()
        proposals.append(Proposal(path=path, baseline=baseline, old=before, setbacks=setbacks))
    return tuple(proposals)


def make_place(baseline: Baseline) -> Path:
    """Make the path of a new baseline, relative to the directory.

    Raises:
        UsageError: The case id is no file name.
    """
    environment_id, case_id = make_key(baseline)
    if not _CASE_PATH.fullmatch(case_id):
        raise UsageError(f"the case id {case_id!r} is no file name", "Rename the case: model/rest.")
    return Path(environment_id, f"{case_id}.json")


def _list_setbacks(new: Baseline, old: Baseline, policy: Policy) -> Iterator[Setback]:
    """Where eager got better a ratio gets worse, which is no setback: its leader decides, if there is one."""
    setbacks = {setback.metric: setback for setback in _list_worse(new, old, policy)}
    for metric, setback in setbacks.items():
        leader = SPECS[metric].follows
        is_led = leader in old.trials and leader in new.trials and setback.new is not None
        if leader is None or leader in setbacks or not is_led:
            yield setback


def _list_worse(new: Baseline, old: Baseline, policy: Policy) -> Iterator[Setback]:
    for metric in Metric:
        spec = SPECS[metric]
        # A speedup is computed from compiled latency, which is there for itself; of others less is better.
        decides = spec.role is Role.DECIDES and spec.source is not Source.DERIVED
        is_other = spec.family is Family.LOG2 and new.drift_definition != old.drift_definition
        if not decides or metric not in old.trials or is_other:
            continue
        before = median(old.trials[metric])
        if metric not in new.trials:
            yield Setback(case_id=new.case_id, metric=metric, old=before, new=None)
            continue
        after = median(new.trials[metric])
        threshold = get_threshold(policy, new.case_id, metric)
        if after - before > max(threshold.relative * before, threshold.absolute):
            yield Setback(case_id=new.case_id, metric=metric, old=before, new=after)


def save_baselines(directory: Path, proposals: Sequence[Proposal]) -> tuple[Path, ...]:
    """Write each file atomically.

    Raises:
        SetbackError: Something moves the wrong way, without a reason; nothing was written.
        MachineError: The disk is full or read-only; the files before it were written.
    """
    unexplained = [proposal for proposal in proposals if not proposal.baseline.provenance.reason.strip()]
    if setbacks := [setback for proposal in unexplained for setback in proposal.setbacks]:
        raise SetbackError(setbacks)
    written = [directory / proposal.path for proposal in proposals]
    for path, proposal in zip(written, proposals, strict=True):
        write_atomic(path, proposal.text)
    return tuple(written)


def encode_baseline(baseline: Baseline) -> str:
    return _render_block({"schema": BASELINE.schema, **encode(baseline)}, "") + "\n"


def _render_block(value: object, indent: str) -> str:
    """Mappings take a line a key and lists of mappings a line an item; all else is on one line."""
    if isinstance(value, dict) and value:
        inner = indent + " "
        lines = (f"{inner}{json.dumps(key)}: {_render_block(value[key], inner)}" for key in sorted(value))
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        inner = indent + " "
        lines = (inner + json.dumps(item, sort_keys=True, allow_nan=False) for item in value)
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    if isinstance(value, list):
        # 4.0 reads back the same as 4, and shorter is easier to review.
        shorter = [int(item) if isinstance(item, float) and item.is_integer() else item for item in value]
        return json.dumps(shorter, allow_nan=False)
    return json.dumps(value, allow_nan=False)
