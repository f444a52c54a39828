"""Pages of a history: planted steps, upgrades, the suite, the anchor, and hostile text."""

import json
import math
import random
import re
from collections.abc import Iterable

import pytest

from gate.records.cases import Metric
from gate.report.trend import TrendSeries, find_steps, list_upgrades, make_tracks, mark_steps
from gate.report.trend_pages import Link, render_badge, render_pages
from gate.store.history import Figures, HistoryHead, HistoryKind, HistoryLine

LATENCY = Metric.COMPILED_LATENCY
HOSTILE = "<script>alert(1)</script>"


def make_line(number: int, cases: dict[str, dict[Metric, Figures]], **head: object) -> HistoryLine:
    """A day's run."""
    fields = {
        "id": f"{number:016x}",
        "kind": HistoryKind.CHECK,
        "created": f"2026-{1 + number // 28:02}-{1 + number % 28:02}T03:00:00+00:00",
        "machine": "cpu: a",
        "commit": f"{number:040x}",
        "torch": "2.13.0",
        **head,
    }
    return HistoryLine(head=HistoryHead(**fields), cases=cases)  # type: ignore[arg-type] # as they are named


def make_year(size: float, at: int, *, seed: int = 1, sd: float = 0.03, nights: int = 300) -> list[float]:
    """365 values with 3 % of noise and a step of this size at one night."""
    rng = random.Random(seed)  # noqa: S311 - noise
    return [0.010 * math.exp(rng.gauss(0, sd)) * (1 + size * (night >= at)) for night in range(nights)]


def make_lines(values: Iterable[float]) -> list[HistoryLine]:
    """A run each night of one case."""
    return [
        make_line(night, {"a/x": {LATENCY: (value, value * 0.99, value * 1.01)}})
        for night, value in enumerate(values)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_step_of_5_percent_among_noise_of_3_is_found(seed: int) -> None:
    """One step is found within a week of its night, with its size."""
    (step,) = find_steps(LATENCY, make_year(0.05, 150, seed=seed))
    assert abs(step.position - 150) <= 7
    assert step.worse == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("seed", range(5))
def test_a_year_without_change_has_no_step(seed: int) -> None:
    """Even if one night is three times as slow."""
    values = make_year(0.0, 0, seed=seed)
    assert find_steps(LATENCY, values) == ()
    values[100] *= 3
    assert find_steps(LATENCY, values) == ()


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        (Metric.GRAPH_BREAKS, [0.0] * 10 + [1.0] * 10, [(10, 1.0)]),
        (Metric.GRAPH_BREAKS, [2.0, 2.0, 3.0], [(2, 1.0)]),  # in the newest run alone: it is exact
        (Metric.GRAPH_BREAKS, [0.0, 1.0, 1.0, 3.0], [(1, 1.0), (3, 2.0)]),
        (Metric.GRAPH_BREAKS, [0.0, 0.0, 1.0, 0.0, 0.0], []),  # one run that went otherwise
        (Metric.GRAPH_BREAKS, [0.0, 1.0, 1.0, 0.0, 0.0], [(1, 1.0), (3, -1.0)]),
        (Metric.WARM_SPEEDUP, [2.0, 2.02] * 10 + [1.0, 1.01] * 10, [(20, 0.5)]),  # higher is better
        (LATENCY, [0.010] * 10, []),
        (LATENCY, [0.010, 0.020, 0.020], []),  # too few to tell
        (LATENCY, [0.010, 0.0101] * 10 + [0.0102, 0.0103] * 10, []),  # 2 %: below half of the threshold
    ],
)
def test_a_step_has_a_place_and_a_sign(
    metric: Metric, values: list[float], expected: list[tuple[int, float]]
) -> None:
    """Worse is positive, in the metric's unit; counters have no noise."""
    steps = [(step.position, round(step.worse, 2)) for step in find_steps(metric, values)]
    assert steps == expected


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        # Ten nights of a wrong result tell nothing of a step of 0.8 that comes later.
        (
            Metric.DRIFT,
            [0.12] * 40 + [8.12] * 10 + [0.12] * 40 + [0.92] * 30,
            [(40, 8.0), (50, -8.0), (90, 0.8)],
        ),
        # Nor does one: it is none itself, and only in the mean before, (80 x 0.12 + 8.12) / 81 = 0.219.
        (Metric.DRIFT, [0.12] * 40 + [8.12] + [0.12] * 40 + [0.92] * 30, [(81, 0.7)]),
        # A ratio that fell by half, and rose by 7 %.
        (Metric.MEMORY_RATIO, [2.0] * 20 + [1.0] * 20 + [1.07] * 20, [(20, -0.5), (40, 0.07)]),
        # What is smaller than half the threshold stays untold beside a large step, as alone.
        (Metric.MEMORY_RATIO, [2.0] * 20 + [1.0] * 20 + [1.01] * 20, [(20, -0.5)]),
    ],
)
def test_a_series_that_repeats_exactly_shows_small_and_large_steps(
    metric: Metric, values: list[float], expected: list[tuple[int, float]]
) -> None:
    """If most neighbours are equal there is no noise, and the largest step is no scale."""
    steps = [(step.position, round(step.worse, 2)) for step in find_steps(metric, values)]
    assert steps == expected


@pytest.mark.parametrize(
    ("size", "runs", "expected"), [(1.2, 1, []), (1.2, 2, []), (1.2, 3, []), (1.2, 4, [30])]
)
@pytest.mark.parametrize("seed", range(10))
def test_a_step_is_shown_once_four_runs_have_it(
    size: float, runs: int, expected: list[int], seed: int
) -> None:
    """Before, it would be placed among runs that are as all others; the last night alone is no step."""
    draw = random.Random(seed)  # noqa: S311 - noise
    levels = [1.0] * 30 + [size] * runs
    values = [level * math.exp(draw.gauss(0, 0.01)) for level in levels]

    steps = find_steps(Metric.COMPILED_LATENCY, values)

    assert [step.position for step in steps] == expected


def test_machines_are_kept_apart_and_the_newest_comes_first() -> None:
    """Lines may be in any order."""
    lines = [make_line(3, {}, machine="cpu: old"), make_line(9, {}), make_line(1, {})]
    tracks = make_tracks(lines)
    assert [track.machine for track in tracks] == ["cpu: a", "cpu: old"]
    assert [head.id[-1] for head in tracks[0].heads] == ["1", "9"]


def test_hosts_with_the_same_device_are_kept_apart() -> None:
    """Another processor is another machine; older lines have none."""
    lines = [
        make_line(number, {}, machine="cuda: NVIDIA H200, 2 threads", host=host)
        for number, host in enumerate(["", "amd-epyc-9654-1a2b3c4d", "intel-xeon-5e6f7a8b"])
    ]
    assert [track.machine for track in make_tracks(lines)] == [
        "cuda: NVIDIA H200, 2 threads on intel-xeon-5e6f7a8b",
        "cuda: NVIDIA H200, 2 threads on amd-epyc-9654-1a2b3c4d",
        "cuda: NVIDIA H200, 2 threads",
    ]


def test_the_suite_is_the_geometric_mean_since_the_start() -> None:
    """One case twice and one half as slow leave the mean; a missing case does not count."""
    lines = [
        make_line(night, {"a": {LATENCY: (1.0 if night < 5 else 2.0,)}, "b": {LATENCY: (4.0,)}})
        for night in range(6)
    ]
    lines += [
        make_line(7, {"a": {LATENCY: (2.0,)}, "b": {LATENCY: (2.0,)}}),
        make_line(8, {"b": {LATENCY: (4.0,)}}),
    ]
    (track,) = make_tracks(lines)
    mean = track.average_cases(LATENCY)
    assert list(mean.centres) == pytest.approx([1.0] * 5 + [math.sqrt(2), 1.0, 1.0])
    assert list(mean.runs) == list(range(8))


def test_creep_against_the_anchor_is_a_series_of_its_own() -> None:
    """Changes are averaged without logarithms and drawn separately."""
    lines = make_lines([0.010, 0.011])
    lines.append(
        make_line(
            5, {"a/x": {LATENCY: (0.04, 0.03, 0.05)}, "b/x": {LATENCY: (0.02,)}}, kind=HistoryKind.ANCHOR
        )
    )
    lines.append(make_line(6, {"a/x": {LATENCY: (0.06,)}}, kind=HistoryKind.ANCHOR))
    (track,) = make_tracks(lines)
    assert len(track.values["a/x", LATENCY].runs) == 2
    assert list(track.average_creep(LATENCY).centres) == pytest.approx([0.03, 0.06])
    pages = dict(render_pages(track, "index", "", ()))
    assert "compiled latency against the release anchor" in pages["index.html"]


def test_creep_is_that_since_the_newest_anchor() -> None:
    """The anchor moved after +6 %: the line begins anew, and does not fall to +1 %."""
    lines = [
        make_line(night, {"a/x": {LATENCY: (change,)}}, kind=HistoryKind.ANCHOR, anchor=anchor * 40)
        for night, (change, anchor) in enumerate([(0.05, "a"), (0.06, "a"), (0.01, "b"), (0.02, "b")])
    ]
    (track,) = make_tracks(lines)
    assert list(track.creep["a/x", LATENCY].centres) == [0.01, 0.02]


def test_creep_is_drawn_where_the_values_stand_still_or_are_unknown() -> None:
    """Three graph breaks each night are two more than at the anchor, also if only pairs have them."""
    breaks: dict[Metric, Figures] = {Metric.GRAPH_BREAKS: (3.0,)}
    lines = [make_line(night, {"a/x": breaks}) for night in range(3)]
    creep: dict[str, dict[Metric, Figures]] = {
        "a/x": {Metric.GRAPH_BREAKS: (2.0,), Metric.RECOMPILES: (0.0,)},
        "b/x": {LATENCY: (0.04,)},
    }
    (track,) = make_tracks([*lines, make_line(5, creep, kind=HistoryKind.ANCHOR)])
    pages = dict(render_pages(track, "index", "", ()))
    (first, second) = (text for name, text in sorted(pages.items()) if name != "index.html")
    assert "graph breaks against the release anchor" in first
    assert "recompiles against the release anchor" not in first
    assert "compiled latency against the release anchor" in second


def test_upgrades_of_torch_and_driver_are_marked() -> None:
    """The mark is at the first run of the new version."""
    heads = [make_line(night, {}, torch=torch).head for night, torch in enumerate(("2.12", "2.12", "2.13"))]
    assert list_upgrades(heads) == {2: "torch 2.12 to 2.13"}


def test_a_step_names_its_commits_its_run_and_its_upgrade() -> None:
    """Both the first page and the case's have them, with links."""
    lines = [
        make_line(
            night,
            {"a/x": {LATENCY: (value,)}},
            torch="2.12.0" if night < 40 else "2.13.0",
            run_url="https://ci.example/runs/40" if night == 40 else "",
        )
        for night, value in enumerate(make_year(0.3, 40, sd=0.001, nights=80))
    ]
    (track,) = make_tracks(lines)
    pages = dict(render_pages(track, "index", "acme/models", [Link(text="other", address="machine-2.html")]))
    assert set(pages) == {"index.html", "index-1-a-x.html"}
    for page in pages.values():
        assert f"https://github.com/acme/models/compare/{39:040x}...{40:040x}" in page
        assert 'href="https://ci.example/runs/40"' in page
        assert "torch 2.12.0 to 2.13.0" in page
        assert "+30" in page
    assert 'href="machine-2.html"' in pages["index.html"]


@pytest.mark.parametrize(
    ("runs", "shown", "hidden"),
    [
        (1, ["Too few runs", "One run does not show"], ["Never moved", "Nothing moved"]),
        (7, ["Too few runs to tell a step from noise: it takes 4 on each side.", "Never moved"], ["No step"]),
        (8, ["No step that is more than noise.", "Nothing moved.", "Never moved"], ["Too few", "One run"]),
    ],
)
def test_a_few_runs_show_no_step(runs: int, shown: list[str], hidden: list[str]) -> None:
    """The page says that there is no step only after enough runs."""
    (track,) = make_tracks(make_lines([0.010] * runs))
    pages = dict(render_pages(track, "index", "", ()))
    assert f"cpu: a: {runs} run{'s' if runs > 1 else ''} from" in pages["index.html"]
    assert all(text in pages["index-1-a-x.html"] for text in shown)
    assert not any(text in page for page in pages.values() for text in hidden)


def test_what_others_wrote_is_escaped_and_leads_nowhere() -> None:
    """Names are escaped, and other addresses than https are no links."""
    lines = [
        make_line(
            night,
            {HOSTILE: {LATENCY: (value,)}},
            machine=HOSTILE,
            torch=HOSTILE if night % 2 else "2",
            run_url="javascript:alert(1)",
        )
        for night, value in enumerate(make_year(0.5, 10, sd=0.001, nights=20))
    ]
    (track,) = make_tracks(lines)
    for name, page in render_pages(track, "index", "", ()):
        assert HOSTILE not in page
        assert "javascript:" not in page
        assert "<" not in name
        assert "/" not in name


def test_many_runs_are_drawn_with_a_few_points() -> None:
    """2,000 nights have at most 360 points."""
    (track,) = make_tracks(make_lines(make_year(0.0, 0, nights=300)))
    lines = [
        make_line(night % 300, {"a/x": {LATENCY: (value,)}}, id=f"{night:016x}")
        for night, value in enumerate(make_year(0.0, 0, nights=2000))
    ]
    (large,) = make_tracks(lines)
    small_page, large_page = (
        dict(render_pages(record, "index", "", ()))["index-1-a-x.html"] for record in (track, large)
    )
    assert len(large_page) < 1.5 * len(small_page)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2026-01-01T03:00", "2026-01-01T04:30"], ["03:00", "04:30"]),
        (["2026-01-01T03:00", "2026-01-02T04:30"], ["01-01 03:00", "01-02 04:30"]),
        ([f"2026-01-0{day}T03:00" for day in range(1, 5)], [f"2026-01-0{day}" for day in range(1, 5)]),
    ],
)
def test_runs_of_one_day_are_labelled_by_time(times: list[str], expected: list[str]) -> None:
    """Many runs are labelled by day, a few of one day by time."""
    lines = [
        make_line(number, {"a/x": {LATENCY: (1.0 + number,)}}, created=f"{time}:00+00:00")
        for number, time in enumerate(times)
    ]
    (track,) = make_tracks(lines)
    page = dict(render_pages(track, "index", "", ()))["index-1-a-x.html"]
    assert re.findall(r'class="tick(?: last)?"[^>]*>([^<]*)<', page) == expected


def test_an_axis_of_counts_has_whole_numbers_and_one_of_sizes_round_ones() -> None:
    """Counts have no fractions; 40 to 42 MiB have ticks in MiB."""
    mib = 1024 * 1024
    lines = [
        make_line(
            night,
            {"a/x": {Metric.GRAPH_BREAKS: (float(night),), Metric.PEAK_MEMORY: ((40.0 + night) * mib,)}},
        )
        for night in range(3)
    ]
    (track,) = make_tracks(lines)
    page = dict(render_pages(track, "index", "", ()))["index-1-a-x.html"]
    memory, breaks = page.split("<figcaption>peak memory")[1].split("<figcaption>graph breaks")
    assert re.findall(r'class="lane"[^>]*>([^<]*)<', breaks) == ["0", "1", "2"]
    assert re.findall(r'class="lane"[^>]*>([^<]*)<', memory) == ["40.0 MiB", "41.0 MiB", "42.0 MiB"]


def test_a_step_of_a_ratio_is_neither_good_nor_bad() -> None:
    """A memory ratio that falls by a fifth is neither; peak memory decides."""
    series = TrendSeries()
    for run in range(40):
        series.add(run, ((1.0 if run < 20 else 0.8) * (1 + 0.001 * (run % 3)),))

    assert [step.kind for step in mark_steps(Metric.MEMORY_RATIO, series)] == ["plain"]
    assert [step.kind for step in mark_steps(Metric.PEAK_MEMORY, series)] == ["good"]


def make_day(day: int, values: Iterable[float]) -> list[HistoryLine]:
    """Runs of a day, a minute apart."""
    return [
        make_line(
            60 * day + minute,
            {"a/x": {LATENCY: (value, value - 1, value + 1), Metric.GRAPH_BREAKS: (value,)}},
            created=f"2026-01-{1 + day:02}T03:{minute:02}:00+00:00",
        )
        for minute, value in enumerate(values)
    ]


def test_old_runs_are_one_a_day_with_their_medians() -> None:
    """The three newest stay; older ones of a day are one, of that first day too."""
    lines = [*make_day(0, (5.0, 1.0, 3.0)), *make_day(1, (7.0,)), *make_day(2, (8.0, 9.0, 10.0, 11.0))]
    anchored = make_line(
        7, {"a/x": {LATENCY: (0.1,)}}, created=lines[0].head.created, kind=HistoryKind.ANCHOR
    )
    (track,) = make_tracks([*lines, anchored], recent=3)
    series = track.values["a/x", LATENCY]
    assert list(series.centres) == [3.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    assert (series.lows[0], series.highs[0]) == (2.0, 4.0)
    assert list(track.values["a/x", Metric.GRAPH_BREAKS].centres[:1]) == [3.0]
    assert list(track.creep["a/x", LATENCY].centres) == [0.1]
    assert (track.runs, track.old) == (9, 4)
    assert track.heads[series.runs[0]].created == lines[2].head.created
    pages = dict(render_pages(track, "index", "", ()))
    assert "9 runs from 2026-01-01" in pages["index.html"]
    assert "Before 2026-01-03 a point is the median of a day." in pages["index.html"]


@pytest.mark.parametrize("order", ["in order", "backwards", "shuffled"])
def test_the_order_of_the_lines_does_not_matter(order: str) -> None:
    lines = [line for day in range(9) for line in make_day(day, (1.0 + day, 2.0 + day, 3.0 + day))]
    (expected,) = make_tracks(lines, recent=4)
    mixed = lines[::-1] if order == "backwards" else lines
    if order == "shuffled":
        random.Random(1).shuffle(mixed)  # noqa: S311 - an order
    (track,) = make_tracks(mixed, recent=4)
    assert [*track.values["a/x", LATENCY].runs] == [*expected.values["a/x", LATENCY].runs]
    assert track.heads == expected.heads
    assert [*track.values["a/x", LATENCY].centres][-4:] == [*expected.values["a/x", LATENCY].centres][-4:]


@pytest.mark.parametrize("at", [100, 296, 300, 304, 450])
def test_a_step_between_days_and_runs_is_found(at: int) -> None:
    """Medians of days and single runs are searched with their own noise, and the border between them."""
    values = make_year(0.05, at, nights=600)
    quiet = [0.010 * (1.05 if night >= at else 1.0) for night in range(300)]
    days = [level * (value / level) ** 0.15 for level, value in zip(quiet, values[:300], strict=True)]
    steps = find_steps(LATENCY, [*days, *values[300:]], 300)
    assert [step for step in steps if abs(step.position - at) <= 7] == list(steps)
    assert len(steps) == 1


def test_windows_of_one_value_have_no_step() -> None:
    values = make_year(0.10, 300, nights=400)
    (step,) = find_steps(LATENCY, [0.010] * 200 + values[200:], 200)
    assert abs(step.position - 300) <= 7


def test_the_overview_says_what_changed_in_a_week_and_in_a_month() -> None:
    """Five of 40 nights are 20 % slower; ten nights have no month."""
    values = [0.010] * 35 + [0.012] * 5
    pages = dict(render_pages(make_tracks(make_lines(values))[0], "index", "", []))
    row = re.search(r"a/x</a></th>(.*?)</tr>", pages["index.html"])
    assert row is not None
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row[1])[:3] == [
        "12.0 ms",
        "+20.0 % (slower)",
        "+20.0 % (slower)",
    ]
    short = dict(render_pages(make_tracks(make_lines(values[-10:]))[0], "index", "", []))
    assert "<td>+20.0 % (slower)</td><td></td>" in short["index.html"]


def test_a_run_of_months_before_is_no_change_of_a_week() -> None:
    """The run before lies 40 days back: nothing is known of seven days, nor of thirty since day ten."""
    lines = make_lines([0.010] * 60)
    kept = [*lines[:10], lines[59]]
    page = dict(render_pages(make_tracks(kept)[0], "index", "", []))["index.html"]
    row = re.search(r"a/x</a></th>(.*?)</tr>", page)
    assert row is not None
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row[1])[1:3] == ["", "0.0 %"]


@pytest.mark.parametrize("seed", range(5))
def test_a_badge_counts_no_noise_and_no_case_that_is_gone(seed: int) -> None:
    """Ten cases that vary by 1 %; one more was last measured two months ago, when it got slower."""
    rng = random.Random(seed)  # noqa: S311 - noise
    lines = [
        make_line(night, {f"m{n}/x": {LATENCY: (rng.gauss(0.010, 0.0001),)} for n in range(10)})
        for night in range(80)
    ]
    gone = make_lines([0.010] * 10 + [0.020] * 10)
    badge = json.loads(render_badge(make_tracks([*lines, *gone])[0]))
    assert (badge["message"], badge["color"]) == ("0 of 10 cases slower in 7 days", "brightgreen")


def test_a_badge_counts_cases_that_got_slower_in_a_week() -> None:
    badge = json.loads(render_badge(make_tracks(make_lines([0.010] * 35 + [0.012] * 5))[0]))
    assert (badge["message"], badge["color"]) == ("1 of 1 case slower in 7 days", "orange")
