"""Which trial comes next, what it and a pair measure, and how long trials will take; pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gate.devices import find_kind, is_target
from gate.metrics import COMPILE_TIMES, INTERLEAVED, OF_WARM, SPECS, Family
from gate.records import Case, Extent, Metric, Pairing, Trial
from gate.records.protocol import Stage

# What is asked of a trial that is to measure its case as a whole.
EVERY_METRIC = frozenset(Metric)
_FURTHER = 2  # the index of whatever is not the first: no later one differs from it


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What a pair measures beyond latencies, in each arm, or a trial on its own."""

    compiles: bool  # timed, on empty caches; else untimed, where no caches hold its code yet
    warm: bool  # in a second process, on the caches of the first
    skips_calls: bool = False  # counting those of a compile, in that process: it takes as long as compiling

    @property
    def extent(self) -> Extent:
        """What a trial of this content is called."""
        return Extent.WHOLE if self.warm else Extent.COLD

    def measures(self, metric: Metric) -> bool:
        """Whether a metric is among it."""
        if metric in OF_WARM:
            return self.warm and not (self.skips_calls and metric is Metric.COMPILE_CALLS)
        return self.compiles or metric in INTERLEAVED


WHOLE = Content(compiles=True, warm=True)


def plan_content(metrics: Collection[Metric], index: int, device: str) -> Content:
    """Plan what a pair measures for ``metrics``, and no more than that. Pure.

    A pair of latencies times no compile: on a CPU the code that is generated is the same each time, so a
    process that finds none in its caches compiles untimed, both arms at once, and later ones find it there.
    On a GPU its tuning is drawn anew. The first pair for anything else is on empty caches; later ones only
    for what a compile decides. Calls of a compile are nearly exact: they are counted again where they are
    what is open.
    """
    if is_target(device):
        return Content(compiles=True, warm=False)
    wanted = frozenset(metrics)
    is_first = index == 1
    cached = set(INTERLEAVED) if is_first else {*INTERLEAVED, *OF_WARM}
    corroborates = is_first and not wanted.isdisjoint(COMPILE_TIMES)
    warm = not wanted.isdisjoint(OF_WARM) or corroborates
    return Content(
        compiles=find_kind(device).draws_tuning or not wanted <= cached,
        warm=warm,
        skips_calls=warm and not is_first and Metric.COMPILE_CALLS not in wanted,
    )


def plan_trial(metrics: Collection[Metric], own: Iterable[Trial], device: str) -> Content:
    """Plan what one more trial of a case measures for ``metrics``, after its ``own``. Pure.

    Its cold process alone where all of these are noisy and of that process: a counter, memory or drift is
    to be seen again beside all else. A whole trial on a fit host has to be there, since one that was
    disturbed is to be replaced, and trials that show different code are no reason to look at less of it.

    It compiles always. A process that finds its code in the caches times it otherwise than the one that
    compiled it, and what is stored was timed by such: benchmarks/results.md, section 5.
    """
    alone = [trial for trial in own if trial.pairing is Pairing.ALONE]
    whole = [trial for trial in alone if trial.extent is Extent.WHOLE]
    is_fit = any(not trial.conditions.disturbances for trial in whole)
    is_noisy = all(SPECS[metric].family is Family.NOISY for metric in metrics)
    if is_target(device) or not is_fit or not is_noisy or has_other_code(alone):
        return WHOLE
    return replace(plan_content(metrics, _FURTHER, device), compiles=True, skips_calls=False)


def has_other_code(trials: Iterable[Trial]) -> bool:
    """Whether trials of one case show different code, or only some of them show any. Tuning may differ."""
    return len({trial.identity.digest for trial in trials}) > 1


def want_whole(case_ids: Iterable[str]) -> Mapping[str, Collection[Metric]]:
    """Ask for whole trials of these cases."""
    return dict.fromkeys(case_ids, EVERY_METRIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One trial or pair to be run, for these metrics; ``index`` counts from 1."""

    case: Case
    index: int
    metrics: Collection[Metric] = EVERY_METRIC
    unchanged_code: bool = False  # of a pair: as in :class:`gate.decide.side_by_side.Suspect`


def make_trial_schedule(
    cases: Sequence[Case],
    trials: int,
    taken: Iterable[Trial] = (),
    wanted: Mapping[str, Collection[Metric]] | None = None,
) -> tuple[Slot, ...]:
    """Order ``trials`` trials of every case round-robin, leaving out those that are ``taken``.

    They are for the ``wanted`` metrics of their case, or all there are.

    Those of pairs stand for none: both arms of one ran side by side.

    Trial 1 of every case comes before trial 2 of any: a machine that drifts during a run then spreads
    over all cases alike, and a run that is stopped early has something to say about each.
    """
    finished = {(trial.case_id, trial.index) for trial in taken if trial.pairing is Pairing.ALONE}
    return tuple(
        Slot(case=case, index=index, metrics=(wanted or {}).get(case.id, EVERY_METRIC))
        for index in range(1, trials + 1)
        for case in cases
        if (case.id, index) not in finished
    )


def compute_trial_s(trial: Trial) -> float:
    """Wall time of a trial in seconds: its stages and what no stage accounts for.

    The stage ``start`` is part of the overhead already.
    """
    return trial.overhead_s + sum(value for stage, value in trial.stages_s.items() if stage != Stage.START)


# Of a whole trial's time, before a case had one of the kind. On two shared cores a small BERT's cold process
# took 17 s where a whole trial had taken 41; an elementwise chain's 9 of 18.
EXTENT_SHARES = {Extent.WHOLE: 1.0, Extent.COLD: 0.5}


class Pace:
    """How long the trials of each case took, beside what is expected of it."""

    def __init__(self, cases: Iterable[Case], trials: Iterable[Trial] = ()) -> None:
        self._expected_s = {case.id: case.expected_s for case in cases}
        self._took: dict[str, list[Trial]] = {}
        self._whole_s = self._whole_expected_s = 0.0
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Take another trial into account."""
        self._took.setdefault(trial.case_id, []).append(trial)
        if trial.case_id in self._expected_s and trial.extent is Extent.WHOLE:
            self._whole_s += compute_trial_s(trial)
            self._whole_expected_s += self._expected_s[trial.case_id]

    def list_own(self, case: Case) -> Sequence[Trial]:
        """The trials of a case, in their order."""
        return self._took.get(case.id, ())

    @property
    def scale(self) -> float:
        """How the whole trials compare with what was expected of them."""
        return self._whole_s / self._whole_expected_s if self._whole_expected_s > 0 else 1.0

    def predict_s(self, case: Case, extent: Extent = Extent.WHOLE) -> float:
        """Predict the wall time of another trial of ``case`` in seconds.

        The mean of its own trials of this extent where there are any, else a share of its whole ones; without
        those its expected time scaled by how the other trials of this run compare with theirs.
        """
        own_s = self.find_own_s(case, extent)
        return EXTENT_SHARES[extent] * case.expected_s * self.scale if own_s is None else own_s

    def find_own_s(self, case: Case, extent: Extent) -> float | None:
        """What the case's own trials show of another one; ``None`` where it had none."""
        for kind, share in ((extent, 1.0), (Extent.WHOLE, EXTENT_SHARES[extent])):
            # Further trials find the case's server there.
            if seconds := [
                compute_trial_s(trial) - trial.stages_s.get(Stage.SERVER, 0.0)
                for trial in self.list_own(case)
                if trial.extent is kind
            ]:
                return share * fmean(seconds)
        return None
