"""Which trial or pair comes next, what it measures, how long it takes and how many rounds it runs; pure.

Rounds follow Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013), section 6: where
repeating at one level costs ``c`` and varies by ``s``, and at the level above ``C`` and ``S``, information a
second is greatest with ``sqrt(C / c) * s / S`` repetitions at the lower one.
"""

import math
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gate.decide.constants import (
    COLD_SHARE,
    GUESSED_SHARE,
    LEAST_SUPER_BLOCKS,
    LIGHT_PAIR_SHARE,
    LIVE_PAIR_SD,
    LOOKS,
    MIN_PAIRS,
    MIN_SUPER_BLOCKS,
    PROCESS_SD,
    SETTLING_PAIRS,
)
from gate.decide.evidence.disturbed import compute_usual_steal, excuse_steal, get_steal
from gate.decide.judge.interval import compute_pooled_error
from gate.decide.stats import compute_winsorized_variance
from gate.decide.suspects import Suspect
from gate.devices import DEFAULT_DEVICE, KINDS, TARGET_KIND, get_kind, is_target, name_target
from gate.metrics import COMPILE_TIMES, INTERLEAVED, OF_COMPILES, OF_WARM, SPECS, Family
from gate.records.cases import Case, Metric
from gate.records.protocol import BLOCKS_PER_ARM, Stage
from gate.records.run import Environment, Extent, Pairing, Run, Trial

# Asks for a trial of the case as a whole.
EVERY_METRIC = frozenset(Metric)
FURTHER = 2  # the index of whatever is not the first: no later one differs from it
EXTENT_SHARES = {Extent.WHOLE: 1.0, Extent.COLD: COLD_SHARE}  # of a whole trial's time
_LOADING = (Stage.IMPORT, Stage.BUILD)  # before a side's first turn


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    compiles: bool  # timed, on empty caches; else untimed, where no caches hold its code yet
    warm: bool  # in a second process, on the caches of the first
    skips_calls: bool = False  # counting those of a compile, in that process: it takes as long as compiling

    @property
    def extent(self) -> Extent:
        return Extent.WHOLE if self.warm else Extent.COLD

    def measures(self, metric: Metric) -> bool:
        if metric in OF_WARM:
            return self.warm and not (self.skips_calls and metric is Metric.COMPILE_CALLS)
        return self.compiles or metric in INTERLEAVED


WHOLE = Content(compiles=True, warm=True)


def plan_content(
    metrics: Collection[Metric], index: int, device: str, *, finds_code: bool = False
) -> Content:
    """What a pair measures for ``metrics``, and no more.

    A pair of latencies or memory times no compile. On a CPU the generated code is the same each time; on a
    GPU its tuning is drawn anew. The first pair for a compile is on empty caches, unless both sides begin
    with caches that hold their code (``finds_code``); later ones only for what a cold compile decides. Calls
    of a compile are nearly exact: they are counted once, and again where they are open.
    """
    if is_target(device):
        return Content(compiles=True, warm=False)
    wanted = frozenset(metrics)
    is_first = index == 1
    cached = {*INTERLEAVED, *OF_WARM} - (OF_COMPILES if is_first and not finds_code else frozenset())
    corroborates = is_first and not wanted.isdisjoint(COMPILE_TIMES)
    warm = not wanted.isdisjoint(OF_WARM) or corroborates
    return Content(
        compiles=get_kind(device).draws_tuning or not wanted <= cached,
        warm=warm,
        skips_calls=warm and not corroborates and Metric.COMPILE_CALLS not in wanted,
    )


def is_base_first(case_id: str, index: int) -> bool:
    """In every other pair, and in the first of half of the cases."""
    return (index + zlib.crc32(case_id.encode())) % 2 == 1


def plan_trial(
    metrics: Collection[Metric], trials: Iterable[Trial], device: str, own_steal: float = 0.0
) -> Content:
    """Only a cold process where all metrics are noisy and of that process, and code and host gave no doubt.

    ``own_steal`` is the share of time that the hypervisor takes of most trials of the run.

    It always compiles: a process that finds its code in the caches times it otherwise than the one that
    compiled it, and stored values are timed by the latter (benchmarks/results.md, section 5).
    """
    alone = [trial for trial in trials if trial.pairing is Pairing.ALONE]
    whole = [trial for trial in alone if trial.extent is Extent.WHOLE]
    excused = excuse_steal(whole, own_steal)
    is_fit = any(not trial.conditions.disturbances for trial in excused)
    is_noisy = all(SPECS[metric].family is Family.NOISY for metric in metrics)
    if is_target(device) or not is_fit or not is_noisy or has_other_code(alone):
        return WHOLE
    return replace(plan_content(metrics, FURTHER, device), compiles=True, skips_calls=False)


def has_other_code(trials: Iterable[Trial]) -> bool:
    return len({trial.identity.digest for trial in trials}) > 1


def want_whole(case_ids: Iterable[str]) -> Mapping[str, Collection[Metric]]:
    return dict.fromkeys(case_ids, EVERY_METRIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    case: Case
    index: int
    metrics: Collection[Metric] = EVERY_METRIC
    unchanged_code: bool = False  # of a pair: as in :class:`gate.decide.suspects.Suspect`, and this
    slower: bool = False


def compute_trial_s(trial: Trial) -> float:
    """Its stages and what no stage accounts for; the stage ``start`` is part of the overhead."""
    return trial.overhead_s + sum(value for stage, value in trial.stages_s.items() if stage != Stage.START)


class Pace:
    """The times of each case's trials, taken and expected; how many there are, and were repeated."""

    def __init__(
        self, cases: Iterable[Case], trials: Iterable[Trial] = (), *, usual_share: float = LIGHT_PAIR_SHARE
    ) -> None:
        self._cases = {case.id: case for case in cases}
        self._took: dict[str, list[Trial]] = {}
        self._whole_s = self._whole_expected_s = 0.0
        self.repeated = self.trials = 0
        self._stolen: list[float] = []
        self._light_s = self._light_whole_s = 0.0
        self._usual_share = usual_share
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        self.trials += 1
        self.repeated += trial.conditions.repeated
        if share := get_steal(trial):
            self._stolen.append(share)
        self._took.setdefault(trial.case_id, []).append(trial)
        if trial.index > 1 and _is_light(trial) and trial.samples.keys().isdisjoint(OF_WARM):
            self._learn_light(trial)
        if trial.case_id in self._cases and trial.extent is Extent.WHOLE:
            self._whole_s += compute_trial_s(trial)
            self._whole_expected_s += self._cases[trial.case_id].expected_s

    def _learn_light(self, trial: Trial) -> None:
        took, case = self._took[trial.case_id], self._cases.get(trial.case_id)
        pair = [other for other in took if other.pairing is trial.pairing and other.index == trial.index]
        whole_s = [compute_trial_s(other) for other in took if _is_whole(other)]
        if case is not None and whole_s and len(pair) > 1:
            self._light_s += compute_pair_s(case, pair)
            self._light_whole_s += 2 * fmean(whole_s)

    @property
    def light_share(self) -> float:
        """The time of this run's further pairs of latencies over that of whole ones, two trials each."""
        return self._light_s / self._light_whole_s if self._light_whole_s > 0 else self._usual_share

    @property
    def own_steal(self) -> float:
        """As of :func:`gate.decide.evidence.disturbed.compute_own_steal`."""
        return compute_usual_steal(self._stolen, self.trials)

    def list_own(self, case: Case) -> Sequence[Trial]:
        return self._took.get(case.id, ())

    @property
    def scale(self) -> float:
        """The time of the whole trials over what was expected of them."""
        return self._whole_s / self._whole_expected_s if self._whole_expected_s > 0 else 1.0

    def predict_s(self, case: Case, extent: Extent = Extent.WHOLE) -> float:
        """The mean of the case's own trials of this extent, else a share of its whole ones.

        Without any, its expected time, scaled.
        """
        for kind, share in ((extent, 1.0), (Extent.WHOLE, EXTENT_SHARES[extent])):
            # Further trials find the case's server there.
            if seconds := [
                compute_trial_s(trial) - trial.stages_s.get(Stage.SERVER, 0.0)
                for trial in self.list_own(case)
                if trial.extent is kind
            ]:
                return share * fmean(seconds)
        return EXTENT_SHARES[extent] * case.expected_s * self.scale


def name_device(environment: Environment) -> str:
    target = name_target(environment.device_kind, environment.device_traits.get("capability", ""))
    return target or (environment.device_kind if environment.device_kind in KINDS else DEFAULT_DEVICE)


def make_pair_slots(case: Case, need: Suspect, begun: int) -> tuple[Slot, ...]:
    slot = Slot(
        case=case, index=0, metrics=need.metrics, unchanged_code=need.unchanged_code, slower=need.slower
    )
    return tuple(replace(slot, index=begun + step) for step in range(1, need.more + 1))


def make_need(suspect: Suspect, pairs: int, device_kind: str) -> Suspect:
    """Two pairs settle anything exact, and all that is known of a target is exact."""
    look = next((look for look in LOOKS if look > pairs), pairs)
    if device_kind == TARGET_KIND:
        look = min(look, max(MIN_PAIRS, pairs))
    return replace(suspect, more=look - pairs)


def rank_suspect(suspect: Suspect, pairs: int, seconds: float, *, untouched: bool) -> tuple[float, ...]:
    """The smallest is next; ``seconds`` is how long its settling takes.

    Counts come first, in one pair of each case and then in a second: a crash shows there, too. Then begun
    cases, up to SETTLING_PAIRS. Then what looks worst by stored values, then those with the fewest pairs. An
    ``untouched`` case, which imports nothing that changed, waits unless it looks worse than stored. A
    convicted one comes last: its pairs change no outcome.
    """
    turn = pairs if pairs >= SETTLING_PAIRS else -min(pairs, 1)
    if awaits_count(suspect, pairs):
        turn = pairs - MIN_PAIRS - 1
    return (
        suspect.convicted,
        untouched and suspect.screened.doubt <= 0,
        turn,
        -max(suspect.screened.doubt, 0.0),
        seconds,
    )


def awaits_count(suspect: Suspect, pairs: int) -> bool:
    return pairs < MIN_PAIRS and any(SPECS[metric].family is not Family.NOISY for metric in suspect.metrics)


def list_needs(run: Run, unsettled: Sequence[Suspect], stopped: Collection[str]) -> list[Suspect]:
    """All but the most pressing one are for later.

    A metric that the last pairs of a case had no time for stays open after the last look.
    """
    pairs = run.pair_counts
    untouched = {trial.case_id for trial in run.trials if trial.changed_imports is not None}
    untouched -= {trial.case_id for trial in run.trials if trial.changed_imports}
    wanted = {suspect.case_id: suspect for suspect in unsettled if suspect.case_id not in stopped}
    kind = run.environment.device_kind
    needs = {case_id: make_need(suspect, pairs[case_id], kind) for case_id, suspect in wanted.items()}
    pace, device = Pace(run.cases, run.trials), name_device(run.environment)
    cases = {case.id: case for case in run.cases}

    def rank(name: str) -> tuple[float, ...]:
        """By the pairs that take a case to its next look, or settle most."""
        most = replace(needs[name], more=max(needs[name].more, SETTLING_PAIRS - pairs[name]))
        slots = make_pair_slots(cases[name], most, pairs[name])
        took_s = sum(predict_pair_s(pace, slot, device) for slot in slots)
        return rank_suspect(wanted[name], pairs[name], took_s, untouched=name in untouched)

    ordered = sorted(wanted, key=rank)
    left = [needs[case_id] for case_id in ordered if needs[case_id].more]
    return [replace(need, later=number > 0) for number, need in enumerate(left)]


def fit_slot(pace: Pace, slot: Slot, device: str, left_s: float) -> Slot | None:
    """The pair, or as much of it as ends within ``left_s`` seconds, or ``None``.

    All, its cold processes, its latencies: what is counted twice is sure. Where calls look slower, more than
    latencies leaves time for those of SETTLING_PAIRS. A run without measurements tries one pair where
    GUESSED_SHARE of what is expected would fit. Latencies are never the first measurement of a case.
    """
    wanted = frozenset(slot.metrics)
    was_measured = bool(pace.list_own(slot.case))
    parts = (wanted.difference(OF_WARM), wanted.intersection(INTERLEAVED)) if was_measured else ()
    candidates = [slot, *(replace(slot, metrics=part) for part in parts if part)]
    further = max(SETTLING_PAIRS - slot.index, 0) if slot.slower else 0
    last_s = predict_pair_s(pace, candidates[-1], device)
    share = 1.0 if pace.trials else GUESSED_SHARE
    for candidate in candidates[:-1]:
        if share * (predict_pair_s(pace, candidate, device) + further * last_s) <= left_s:
            return candidate
    return candidates[-1] if share * last_s <= left_s else None


def predict_pair_s(pace: Pace, slot: Slot, device: str) -> float:
    """As the case's last of its kind, or two trials."""
    trials = pace.list_own(slot.case)
    paired = [trial for trial in trials if trial.pairing is not Pairing.ALONE]
    content = plan_content(slot.metrics, slot.index, device, finds_code=slot.unchanged_code)
    is_light = not content.compiles
    if not paired:
        whole_s = 2 * pace.predict_s(slot.case)
        untimed_s = 0.0 if slot.unchanged_code or slot.index > 1 else compute_untimed_s(slot.case, trials)
        return pace.light_share * whole_s + untimed_s if is_light else whole_s
    alike = [trial for trial in paired if _is_light(trial) == is_light]
    if not alike:
        return compute_pair_s(slot.case, paired) * (LIGHT_PAIR_SHARE if is_light else 1 / LIGHT_PAIR_SHARE)
    seconds = compute_pair_s(slot.case, alike)
    if content.extent is Extent.COLD and not is_light and alike[-1].extent is Extent.WHOLE:
        seconds *= EXTENT_SHARES[Extent.COLD]
    if is_light and not slot.unchanged_code and {trial.index for trial in alike} == {1}:
        seconds -= compute_untimed_s(slot.case, trials)
    return max(seconds, 0.0)


def compute_untimed_s(case: Case, trials: Sequence[Trial]) -> float:
    """By how much longer a pair takes whose sides compile untimed than one that finds its code."""
    cold_s, warm_s = (
        _average(trials, metric) for metric in (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME)
    )
    return (1 + case.is_tuned) * max(cold_s - warm_s, 0.0)


def _average(trials: Sequence[Trial], metric: Metric) -> float:
    values = [value for trial in trials for value in trial.samples.get(metric, ())]
    return fmean(values) if values else 0.0


def _is_whole(trial: Trial) -> bool:
    return trial.pairing is Pairing.ALONE and trial.extent is Extent.WHOLE


def _is_light(trial: Trial) -> bool:
    return Metric.COLD_COMPILE_TIME not in trial.samples and not trial.samples.keys().isdisjoint(INTERLEAVED)


def compute_pair_s(case: Case, trials: Sequence[Trial]) -> float:
    """Of the last pair among ``trials``, without what a further one is spared.

    Waiting for each other counts once, a case's servers exist already, and nothing is traced again. In live
    pairs on a CPU both sides count calls at once; where they tune no kernels they load at once, and compile
    what nobody times, unless a second process takes its turn.
    """
    index = max(trial.index for trial in trials)
    last = [trial for trial in trials if trial.index == index]
    spared_s = sum(_sum_stages(trial, (Stage.TURN, Stage.SERVER, Stage.TRACE)) for trial in last)
    on_gpu = any(SPECS[metric].is_gpu_only for trial in last for metric in trial.samples)
    either, *_ = last
    if not on_gpu and all(trial.pairing is Pairing.LIVE for trial in last):
        is_of_calls = _is_light(either) and either.samples.keys().isdisjoint(OF_WARM)
        untimed = (Stage.EAGER, Stage.COMPILE) if is_of_calls and index == 1 else ()
        at_once = (Stage.CALLS, *(() if case.is_tuned else (*_LOADING, *untimed)))
        spared_s += min(_sum_stages(trial, at_once) for trial in last)
    return sum(map(compute_trial_s, last)) - spared_s


def _sum_stages(trial: Trial, stages: Sequence[Stage]) -> float:
    return sum(trial.stages_s.get(stage, 0.0) for stage in stages)


def has_enough_rounds(
    base_s: Sequence[float], head_s: Sequence[float], *, wanted: int, opened_s: float, rounds_s: float
) -> bool:
    """Whether a further pair shows more a second than further super-blocks of this one.

    ``base_s`` and ``head_s`` are seconds of blocks in the order in which they ran, whole super-blocks, of
    equal numbers of calls; 0.0 is a block without an undisturbed call. ``wanted`` super-blocks are enough if
    they make the pair as precise as assumed. ``opened_s`` is the time before the first block, the cost of
    another pair, and ``rounds_s`` that of all blocks so far.
    """
    changes = _list_changes(base_s, head_s)
    done = min(map(len, changes))
    if done < max(LEAST_SUPER_BLOCKS, min(wanted, MIN_SUPER_BLOCKS)):
        return False
    error = max(map(compute_error, changes))
    if done >= wanted and error <= LIVE_PAIR_SD:
        return True
    cost = opened_s / (rounds_s / done)
    return done >= math.sqrt(cost * done) * error / PROCESS_SD


def compute_error(changes: Sequence[float]) -> float:
    """Of the Hodges-Lehmann estimate of at least two values; strays count as their neighbours."""
    return compute_pooled_error(compute_winsorized_variance(changes), len(changes))


def _list_changes(base_s: Sequence[float], head_s: Sequence[float]) -> tuple[list[float], list[float]]:
    """Eager's and compiled's, in super-blocks: ``E C C E`` and ``C E E C`` by turns."""
    sides: tuple[list[float], list[float]] = ([], [])
    for index in range(len(base_s) // BLOCKS_PER_ARM):
        start = index * BLOCKS_PER_ARM
        for side, blocks in enumerate(((0, 3), (1, 2))):
            pairs = [(base_s[start + block], head_s[start + block]) for block in blocks]
            changes = [math.log(head / base) for base, head in pairs if base > 0 and head > 0]
            if changes:
                sides[(side + index) % 2].append(fmean(changes))
    return sides
