"""The slots of pairs: what each measures, how long it takes and how many rounds it runs; pure.

Rounds follow Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013), section 6: where
repeating at one level costs ``c`` and varies by ``s``, and at the level above ``C`` and ``S``, information a
second is greatest with ``sqrt(C / c) * s / S`` repetitions at the lower one.
"""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from gate.check.schedule import EXTENT_SHARES, Pace, Slot, compute_trial_s, plan_content
from gate.decide.constants import LIVE_PAIR_SD
from gate.decide.evidence.pairs import list_alike
from gate.decide.judge.interval import compute_pooled_error
from gate.decide.side_by_side import Suspect
from gate.decide.stats import compute_winsorized_variance
from gate.devices import DEFAULT_DEVICE, KINDS, name_target
from gate.metrics import INTERLEAVED, OF_WARM
from gate.records import BASE_ARM, Case, Extent, Metric, Pairing, Run, Trial
from gate.records.protocol import BLOCKS_PER_ARM, Stage

_LOADING = (Stage.IMPORT, Stage.BUILD, Stage.EAGER, Stage.COMPILE)  # before an arm says that it has loaded
# A pair that finds its code took 15 to 20 s where a whole one took 50 s.
LIGHT_PAIR_SHARE = 0.4
# Before anything was measured, what a case is expected to take is a guess: a small model without a given
# anything took a quarter of it (15 s a pair, where 60 were expected).
GUESSED_SHARE = 0.25


def list_pair_slots(run: Run, needs: Sequence[Suspect]) -> tuple[Slot, ...]:
    """List the pairs that are needed; none of a case that failed or has no counterpart in the base. Pure."""
    begun = count_all_pairs(run)
    cases = {case.id: case for case in run.cases}
    failed = {failure.case_id for failure in run.failures}
    alike = list_alike(run)
    open_needs = [need for need in needs if need.case_id not in failed and need.case_id in alike]
    return tuple(
        Slot(
            case=cases[need.case_id],
            index=begun[need.case_id] + step,
            metrics=need.metrics,
            unchanged_code=need.unchanged_code,
        )
        for need in open_needs
        for step in range(1, need.more + 1)
    )


def count_pairs(run: Run, case_id: str) -> int:
    """Count the pairs of a case."""
    return count_all_pairs(run)[case_id]


def count_all_pairs(run: Run) -> Counter[str]:
    """Count the pairs of each case."""
    return Counter(
        trial.case_id for trial in run.trials if trial.pairing is not Pairing.ALONE and trial.arm == BASE_ARM
    )


def name_device(run: Run) -> str:
    """Name the device that a run was measured on, or its target, as a command would."""
    environment = run.environment
    target = name_target(environment.device_kind, environment.device_traits.get("capability", ""))
    return target or (environment.device_kind if environment.device_kind in KINDS else DEFAULT_DEVICE)


def fit_slot(run: Run, slot: Slot, device: str, left_s: float) -> Slot | None:
    """The pair, or as much of it as ends within ``left_s`` seconds, or ``None``. Pure.

    All, its cold processes, its latencies: cold processes count again, and what is counted twice is certain.
    A run of which nothing was measured tries one pair where GUESSED_SHARE of what is expected would fit: a
    guess is no reason to end with nothing. That pair may end after the limit. Latencies alone are no first
    measurement of a case: nothing would say that its counters, memory and drift are missing.
    """
    wanted = frozenset(slot.metrics)
    cold, latencies = wanted.difference(OF_WARM), wanted.intersection(INTERLEAVED)
    pace = Pace(run.cases, run.trials)
    is_known = bool(pace.list_own(slot.case))
    parts = (cold, latencies) if is_known else ()
    lighter = tuple(replace(slot, metrics=part) for part in parts if part)
    share = 1.0 if run.trials else GUESSED_SHARE
    return next(
        (one for one in (slot, *lighter) if share * predict_pair_s(pace, one, device) <= left_s), None
    )


def predict_pair_s(pace: Pace, slot: Slot, device: str) -> float:
    """Predict the wall time of a pair in seconds: as the case's last of its kind, or two trials. Pure."""
    own = pace.list_own(slot.case)
    paired = [trial for trial in own if trial.pairing is not Pairing.ALONE]
    content = plan_content(slot.metrics, slot.index, device)
    is_light = not content.compiles
    if not paired:
        whole_s = 2 * pace.predict_s(slot.case)
        untimed_s = 0.0 if slot.unchanged_code or slot.index > 1 else compute_untimed_s(slot.case, own)
        return LIGHT_PAIR_SHARE * whole_s + untimed_s if is_light else whole_s
    alike = [trial for trial in paired if _is_light(trial) == is_light]
    if not alike:
        return compute_pair_s(slot.case, paired) * (LIGHT_PAIR_SHARE if is_light else 1 / LIGHT_PAIR_SHARE)
    seconds = compute_pair_s(slot.case, alike)
    if content.extent is Extent.COLD and not is_light and alike[-1].extent is Extent.WHOLE:
        seconds *= EXTENT_SHARES[Extent.COLD]
    if is_light and not slot.unchanged_code and {trial.index for trial in alike} == {1}:
        seconds -= compute_untimed_s(slot.case, own)
    return max(seconds, 0.0)


def compute_untimed_s(case: Case, trials: Sequence[Trial]) -> float:
    """How much longer a pair takes whose arms compile untimed than one that finds its code.

    Both at once; one after the other where kernels are tuned by timing them.
    """
    cold_s, warm_s = (_average(trials, one) for one in (Metric.COLD_COMPILE_TIME, Metric.WARM_COMPILE_TIME))
    return (1 + case.is_tuned) * max(cold_s - warm_s, 0.0)


def _average(trials: Sequence[Trial], metric: Metric) -> float:
    values = [value for trial in trials for value in trial.samples.get(metric, ())]
    return fmean(values) if values else 0.0


def _is_light(trial: Trial) -> bool:
    return Metric.COLD_COMPILE_TIME not in trial.samples


def compute_pair_s(case: Case, trials: Sequence[Trial]) -> float:
    """Wall time in seconds of the last pair among ``trials``, without what a further one is spared.

    Waiting for each other counts once, a case's servers are there already, nothing is traced again, and arms
    load at the same time where they tune no kernels.
    """
    last = [trial for trial in trials if trial.index == max(trial.index for trial in trials)]
    spared_s = sum(_sum_stages(trial, (Stage.TURN, Stage.SERVER, Stage.TRACE)) for trial in last)
    if all(map(_is_light, last)) and not case.is_tuned:
        spared_s += min(_sum_stages(trial, _LOADING) for trial in last)
    return sum(map(compute_trial_s, last)) - spared_s


def _sum_stages(trial: Trial, stages: Sequence[Stage]) -> float:
    return sum(trial.stages_s.get(stage, 0.0) for stage in stages)


# Two processes of one program differ by as much, whatever their rounds: live pairs of a program with itself
# varied by 0.6 to 3.1 %, typically 1.2 %.
PROCESS_SD = 0.012
# Fewer super-blocks do not show how much one differs from the next.
MIN_SUPER_BLOCKS = 5
# Where blocks are disturbed there are more of them, up to this multiple of what is wanted. On two cores, one
# of them taken half of the time and a sixth of both by the hypervisor, all noise of 20 pairs was their
# blocks' (3.0 % between pairs, 2.9 % expected from within): twice as many show what two pairs do, and are
# cheaper. Beyond 10 s of blocks too little time is left for other cases.
MOST_ROUNDS = 4
_LEAST_OF_ERROR = 3  # fewer know too little of their own noise


def has_enough_rounds(
    base_s: Sequence[float], head_s: Sequence[float], *, wanted: int, opened_s: float, rounds_s: float
) -> bool:
    """Whether a further pair shows more a second than further super-blocks of this one.

    Super-blocks count in which both arms have a block of eager's, and one of compiled's, that was not
    disturbed all the time.

    Args:
        base_s: Seconds of one arm's blocks, in the order in which they ran: whole super-blocks. 0.0 is a
            block without an undisturbed call.
        head_s: The other arm's; both ran equal numbers of calls.
        wanted: So many super-blocks are enough where they make the pair as precise as one is assumed to be.
        opened_s: Seconds from the start of the pair to its first block: what another pair costs.
        rounds_s: Seconds of all blocks so far.
    """
    changes = _list_changes(base_s, head_s)
    done = min(map(len, changes))
    if done < max(_LEAST_OF_ERROR, min(wanted, MIN_SUPER_BLOCKS)):
        return False
    error = max(map(compute_error, changes))
    if done >= wanted and error <= LIVE_PAIR_SD:
        return True
    cost = opened_s / (rounds_s / done)
    return done >= math.sqrt(cost * done) * error / PROCESS_SD


def compute_error(changes: Sequence[float]) -> float:
    """Standard error of the Hodges-Lehmann estimate of at least two values.

    Strays count as the nearest of the others, since they move the estimate as little.
    """
    return compute_pooled_error(compute_winsorized_variance(changes), len(changes))


def _list_changes(base_s: Sequence[float], head_s: Sequence[float]) -> tuple[list[float], list[float]]:
    """The changes of eager and of compiled in super-blocks: ``E C C E`` and ``C E E C`` by turns."""
    sides: tuple[list[float], list[float]] = ([], [])
    for index in range(len(base_s) // BLOCKS_PER_ARM):
        start = index * BLOCKS_PER_ARM
        for side, blocks in enumerate(((0, 3), (1, 2))):
            pairs = [(base_s[start + block], head_s[start + block]) for block in blocks]
            known = [math.log(head / base) for base, head in pairs if base > 0 and head > 0]
            if known:
                sides[(side + index) % 2].append(statistics.fmean(known))
    return sides
