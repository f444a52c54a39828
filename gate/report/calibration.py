"""What a calibration found, as text: noise, unstable cases, thresholds and the gate's own errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gate.calibration import Calibration, Instability, MetricNoise, Rate, Replay, ThresholdCost
from gate.metrics import SPECS, Family
from gate.report.clean import clean_line
from gate.report.footer import describe_hardware, describe_software
from gate.report.tables import render_table
from gate.units import render_duration, render_number, render_percent, render_threshold, render_value

UNKNOWN = "-"
_WORDS = frozenset({"case", "metric", "threshold", "planted"})
_NOISE_HEADER = (
    *("case", "metric", "typical", "within", "between", "notices", "threshold"),
    *("pairs", "pair", "pair bias"),
)


def render_calibration(calibration: Calibration) -> str:
    """Return the report of ``calibration``; a table that is wider than the terminal is left so."""
    parts = (
        _render_head(calibration),
        _render_noise(calibration),
        _render_unstable(calibration.unstable),
        _render_costs(calibration.costs),
        _render_replays(calibration),
        "\n".join(f"note  {clean_line(note)}" for note in calibration.notes),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_head(calibration: Calibration) -> str:
    effort = calibration.effort
    spent = f"{effort.trials} to {effort.max_trials}" if effort.max_trials > effort.trials else effort.trials
    measured = (
        f"{_count(len(calibration.case_ids), 'case')}, {_count(calibration.trials, 'trial')},"
        f" {_count(calibration.pairs, 'pair')} in {render_duration(calibration.wall_s)}"
    )
    pairs_s = effort.pair_budget_s if calibration.pairs else None
    beside = "" if pairs_s is None else f", and pairs for {render_duration(pairs_s)}"
    lines = (
        ("hardware", describe_hardware(calibration.environment)),
        ("software", describe_software(calibration.environment)),
        ("measured", measured),
        ("a check", f"takes {spent} trials a case, against {effort.baseline_trials} that are stored{beside}"),
    )
    return "\n".join(f"{label:9} {clean_line(text)}" for label, text in lines)


def _render_noise(calibration: Calibration) -> str:
    rows = [_make_noise_row(one) for one in calibration.noise if _is_noisy(one)]
    if not rows:
        return ""
    quiet = sum(not _is_noisy(one) for one in calibration.noise)
    table = render_table(_NOISE_HEADER, rows, right=set(_NOISE_HEADER) - _WORDS)
    meaning = (
        "Standard deviations: within, of a trial's blocks; between, of trials; pair, of pairs with itself.\n"
        "Notices: the smallest change that the first trials would notice in 95 of 100 cases."
    )
    return f"Noise\n{table}\n{meaning}\nCounters, memory and drift: {quiet} more figures in calibration.json."


def _is_noisy(noise: MetricNoise) -> bool:
    return SPECS[noise.metric].family is Family.NOISY


def _make_noise_row(noise: MetricNoise) -> tuple[str, ...]:
    pair = noise.side_by_side
    return (
        noise.case_id,
        noise.metric.value,
        render_value(noise.metric, noise.centre),
        _render_deviation(noise.within),
        _render_deviation(noise.between),
        UNKNOWN if noise.detectable is None else render_percent(noise.detectable),
        render_threshold(noise.metric, noise.threshold),
        str(pair.pairs) if pair else UNKNOWN,
        _render_deviation(pair.noise) if pair else UNKNOWN,
        render_percent(pair.bias) if pair else UNKNOWN,
    )


def _render_deviation(noise: float) -> str:
    return render_percent(noise, signed=False) if noise else UNKNOWN


def _render_unstable(unstable: Sequence[Instability]) -> str:
    if not unstable:
        return "Unstable cases: none"
    lines = [f"Unstable cases: {len({one.case_id for one in unstable})}"]
    lines += [
        f"  {clean_line(one.case_id)} {one.metric} ({one.flaw.replace('_', ' ')}): {clean_line(one.sentence)}"
        for one in unstable
    ]
    first = unstable[0]
    where = f'case: "{clean_line(first.case_id)}", metric: {first.metric}'
    entry = f"quarantine: [{{{where}, owner: ..., reason: ..., expires: ...}}]"
    return "\n".join([*lines, "Fix them, or keep them from deciding, in gate.yml:", f"  {entry}"])


def _render_costs(costs: Sequence[ThresholdCost]) -> str:
    if not costs:
        return ""
    metrics = dict.fromkeys(cost.metric for cost in costs)
    sizes = sorted({cost.relative for cost in costs})
    header = ("metric", *(f"{100 * size:.3g} %" for size in sizes))
    by_key = {(cost.metric, cost.relative): cost for cost in costs}
    rows = [
        (metric.value, *(_render_cost(by_key.get((metric, size))) for size in sizes)) for metric in metrics
    ]
    meaning = (
        "How often the first trials take an unchanged case for slower; in brackets, in how many cases"
        " a change of that size would go unnoticed. * in force."
    )
    return f"Thresholds and their cost\n{render_table(header, rows, right=header[1:])}\n{meaning}"


def _render_cost(cost: ThresholdCost | None) -> str:
    if cost is None:
        return UNKNOWN
    missed = f" ({cost.below_floor})" if cost.below_floor else ""
    return f"{_render_share(cost.suspected)}{missed}{' *' if cost.in_force else ''}"


def _render_replays(calibration: Calibration) -> str:
    if not calibration.replays:
        return ""
    header = ("planted", "requests", "REGRESSED", "INCONCLUSIVE", "trials", "pairs")
    rows = [_make_replay_row(replay) for replay in calibration.replays]
    return "\n".join(["The gate itself, replayed on these trials", *_list_meanings(header, rows)])


def _list_meanings(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield render_table(header, rows, right=header[1:])
    yield "Nothing planted: share of pull requests with that verdict, so REGRESSED is a false alarm."
    yield "Planted: what the slowed case's compiled latency was found to be. Intervals are 95 %."


def _make_replay_row(replay: Replay) -> tuple[str, ...]:
    planted = render_percent(replay.planted) if replay.planted else "nothing"
    return (
        planted,
        f"{replay.regressed.of:,}",
        _render_rate(replay.regressed),
        _render_rate(replay.inconclusive),
        render_number(replay.trials),
        render_number(replay.pairs) if replay.pairs else UNKNOWN,
    )


def _render_rate(rate: Rate) -> str:
    low, high = (f"{100 * bound:.1f}" for bound in (rate.low, rate.high))
    return f"{_render_share(rate.hits / rate.of)} ({low} to {high} %)"


def _render_share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
