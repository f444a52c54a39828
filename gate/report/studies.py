"""What a calibration found, and what a test of the gate by itself; pure."""

from gate.metrics import SPECS, Family
from gate.records.codes import Code
from gate.records.run import Environment
from gate.records.studies import Calibration, Instability, Rate
from gate.report.clean import ABSENT, clean_line
from gate.report.content import Section
from gate.report.footer import label_lines
from gate.report.tables import render_table
from gate.report.words.facts import describe_failed_trial, write_note
from gate.report.words.templates import SENTENCES, fill
from gate.units import (
    format_duration,
    format_noun,
    format_number,
    format_percent,
    format_threshold,
    format_value,
)

_NOISE_HEADER = (
    "case", "metric", "typical", "within", "between", "notices", "threshold", "pairs", "pair", "pair bias",
)  # fmt: skip
_TEMPLATES = SENTENCES["unstable"]


def render_calibration(calibration: Calibration) -> str:
    headline, *lines = _list_unstable(calibration)
    measured, check = _describe_measured(calibration), _describe_check(calibration)
    return _join_parts(
        f"CALIBRATION  {headline}",
        _label(calibration.environment, ("measured", measured), ("a check", check)),
        "\n".join(lines),
        *map(_render_section, (_make_noise(calibration), _make_replays(calibration))),
        "\n".join(f"note  {clean_line(write_note(note))}" for note in calibration.notes),
    )


def _label(environment: Environment, *more: tuple[str, str]) -> str:
    return "\n".join(f"{label:9} {text}" for label, text in label_lines(environment, *more))


def _render_section(section: Section) -> str:
    table = render_table(section.header, section.rows, right=section.numbers)
    parts = (section.title, table, section.meaning) if section.rows else ()
    return "\n".join(filter(None, parts))


def _join_parts(*parts: str) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


def _describe_measured(calibration: Calibration) -> str:
    counts = (
        (len(calibration.case_ids), "case"),
        (calibration.trials, "trial"),
        (calibration.pairs, "pair"),
    )
    counted = ", ".join(format_noun(number, noun) for number, noun in counts)
    return f"{counted} in {format_duration(calibration.wall_s)}"


def _describe_check(calibration: Calibration) -> str:
    effort = calibration.effort
    spent = f"{effort.trials} to {effort.max_trials}" if effort.max_trials > effort.trials else effort.trials
    pairs_s = effort.pair_budget_s if calibration.pairs else None
    of_pairs = "" if pairs_s is None else f", and pairs for {format_duration(pairs_s)}"
    return f"takes {spent} trials a case, against {effort.baseline_trials} that are stored{of_pairs}"


def _make_noise(calibration: Calibration) -> Section:
    shown = [noise for noise in calibration.noise if SPECS[noise.metric].family is Family.NOISY]
    meaning = (
        "Standard deviations: within, of a trial's blocks; between, of trials; pair, of pairs with itself.\n"
        "Notices: the smallest change that the first trials would notice in 95 of 100 cases."
    )
    more = format_noun(len(calibration.noise) - len(shown), "more figure")
    return Section(
        title="Noise",
        header=_NOISE_HEADER,
        rows=tuple(
            (
                noise.case_id,
                noise.metric.value,
                format_value(noise.metric, noise.centre),
                _render_deviation(noise.within),
                _render_deviation(noise.between),
                ABSENT if noise.detectable is None else format_percent(noise.detectable),
                format_threshold(noise.metric, noise.threshold),
                str(pair.pairs) if pair else ABSENT,
                _render_deviation(pair.noise) if pair else ABSENT,
                format_percent(pair.bias) if pair else ABSENT,
            )
            for noise, pair in ((noise, noise.side_by_side) for noise in shown)
        ),
        words=2,
        meaning=f"{meaning}\nCounters, memory and drift: {more} in calibration.json.",
    )


def _render_deviation(noise: float) -> str:
    return format_percent(noise, signed=False) if noise else ABSENT


def _list_unstable(calibration: Calibration) -> list[str]:
    unstable, disturbed = calibration.unstable, calibration.disturbed
    sentence = f"Too few undisturbed trials to call the times of these unstable: {', '.join(disturbed)}"
    unknown = [clean_line(sentence)] if disturbed else []
    if not unstable:
        return unknown or ["Unstable cases: none"]
    lines = [*unknown, f"Unstable cases: {len({instability.case_id for instability in unstable})}"]
    for instability in unstable:
        flaw, described = instability.flaw.replace("_", " "), describe_instability(instability)
        lines.append(f"  {clean_line(f'{instability.case_id} {instability.metric} ({flaw}): {described}')}")
    where = f'case: "{clean_line(unstable[0].case_id)}", metric: {unstable[0].metric}'
    entry = f"quarantine: [{{{where}, owner: ..., reason: ..., expires: ...}}]"
    return [*lines, "Fix them, or quarantine them in gate.yml:", f"  {entry}"]


def describe_instability(instability: Instability) -> str:
    if instability.fact.code is Code.FAILURE:
        return describe_failed_trial(instability.fact)
    numbers = instability.fact.numbers
    values = {
        name: format_value(instability.metric, numbers[name]) for name in ("low", "high") if name in numbers
    }
    return fill(_TEMPLATES[instability.fact.code], instability.fact, **values)


def _make_replays(calibration: Calibration) -> Section:
    return Section(
        title="The gate itself, replayed on these trials",
        header=("planted", "requests", "REGRESSED", "INCONCLUSIVE", "trials", "pairs"),
        rows=tuple(
            (
                format_percent(replay.planted) if replay.planted else "nothing",
                f"{replay.regressed.of:,}",
                _render_rate(replay.regressed),
                _render_rate(replay.inconclusive),
                format_number(replay.trials),
                format_number(replay.pairs) if replay.pairs else ABSENT,
            )
            for replay in calibration.replays
        ),
        meaning=(
            "Nothing planted: share of pull requests with that verdict, so REGRESSED is a false alarm.\n"
            "Planted: what the slowed case's compiled latency was found to be. Intervals are 95 %."
        ),
    )


def _render_rate(rate: Rate) -> str:
    return f"{100 * rate.share:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f} %)"
