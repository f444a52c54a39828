"""What a proposal shows of its changes: moved medians, noise, and the rest."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refreshes import CASE, ENVIRONMENT, OTHER, POLICY

from gate.publish import proposal_text
from gate.publish.proposal_text import (
    MAX_PROPOSAL_BYTES,
    ProposalText,
    compute_scatter,
    describe_losses,
    list_growths,
    list_moves,
    render_message,
    render_proposal,
    render_title,
)
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import Baseline, CodeIdentity, Provenance
from gate.store.baselines import Proposal, ProposalKind, propose_baselines
from tests import make

LATENCY = Metric.COMPILED_LATENCY


def make_baseline(case_id: str = CASE, definition: str = "d", **trials: tuple[float, ...]) -> Baseline:
    """Make a baseline of these values a metric."""
    return make.make_baseline(
        case_id,
        {Metric(name): values for name, values in trials.items()},
        definition=definition,
        environment=ENVIRONMENT,
        provenance=Provenance(commit="c" * 40),
    )


QUIET = make_baseline(compiled_latency=(0.01, 0.01, 0.01))
OLD = make_baseline(compiled_latency=(0.010, 0.0101, 0.0099), graph_breaks=(0.0, 0.0, 0.0))


def make_text(*new: Baseline, old: tuple[Baseline, ...] = (OLD,), reason: str = "") -> ProposalText:
    """Make the input of the proposal's text as ``propose`` does."""
    return ProposalText(
        proposals=propose_baselines(
            new, {Path(str(index)): baseline for index, baseline in enumerate(old)}, POLICY
        ),
        head_sha="a" * 40,
        run_url="https://github.com/octo-org/models/actions/runs/77",
        environment_id="cpu-x",
        directory="baselines",
        is_known=bool(old),
        reason=reason,
    )


def pair_up(new: Baseline, old: Baseline = OLD) -> Proposal:
    return make_text(new, old=(old,)).proposals[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.020,) * 3, (0.010, 0.020, True)),
        ((0.005,) * 3, (0.010, 0.005, False)),
        ((0.01006,) * 3, (0.010, 0.01006, True)),
        ((0.01004,) * 3, None),
    ],
)
def test_a_median_that_moved_is_a_row(
    values: tuple[float, ...], expected: tuple[float, float, bool] | None
) -> None:
    """Twice as slow, twice as fast, 0.6 % slower, and 0.4 %, which is no row."""
    moves = list_moves([pair_up(replace(OLD, trials={LATENCY: values}))])

    assert [(move.old, move.new, move.is_worse) for move in moves] == ([expected] if expected else [])
    assert all((move.case_id, move.metric) == (CASE, LATENCY) for move in moves)


@pytest.mark.parametrize(
    ("metric", "values", "noise"),
    [
        (LATENCY, (1.0, math.e, math.e**2), 1.0),  # logarithms 0, 1, 2
        (LATENCY, (5.0,), 0.0),
        (LATENCY, (1.0, math.e), math.sqrt(0.5)),
        (LATENCY, (-2.0, 2.0, 6.0), 2.0),  # no logarithm: 4 over the median, 2
        (LATENCY, (-1.0, 0.0, 1.0), math.inf),
        (Metric.DRIFT, (1.0, 2.0, 3.0), 1.0),
        (Metric.GRAPH_BREAKS, (1.0, 4.0, 2.0), 3.0),
    ],
)
def test_noise_is_in_the_unit_of_its_family(metric: Metric, values: tuple[float, ...], noise: float) -> None:
    """A fraction for times and memory, log2 for drift, a difference for counters."""
    assert compute_scatter(metric, values) == pytest.approx(noise)


@pytest.mark.parametrize(
    ("old", "metric", "values", "row"),
    [
        # log(10) = 2.303 on either side of the median, three trials: a standard deviation of 230 %.
        (OLD, LATENCY, (0.001, 0.010, 0.100), "1.0 % | 230 %"),
        (OLD, LATENCY, (0.0, 0.0, 0.4), "1.0 % | not finite"),  # 0.4 s are no percentage of nothing
        (OLD, LATENCY, (0.0097, 0.010, 0.0103), "1.0 % | 3.0 %"),
        (OLD, LATENCY, (0.00985, 0.010, 0.01015), ""),  # 1.5 % after 1 %
        (OLD, LATENCY, (0.010,) * 3, ""),
        (OLD, Metric.DRIFT, (1.0, 1.0, 1.26), "0 log2 | 0.15 log2"),
        (OLD, Metric.DRIFT, (1.0, 1.0, 1.15), ""),  # 0.087
        (QUIET, LATENCY, (0.01, 0.01005, 0.00995), ""),  # a few quiet trials double by chance
        (
            OLD,
            Metric.GRAPH_BREAKS,
            (0.0, 0.0, 1.0),
            "0 count | 1 count",
        ),  # the same in all, else
    ],
)
def test_noise_that_doubled_is_listed(
    old: Baseline, metric: Metric, values: tuple[float, ...], row: str
) -> None:
    """It hides later regressions as a moved median does, and the row shows how much."""
    old = replace(old, trials={metric: (1.0,) * 3, **old.trials})
    body = render_proposal(make_text(replace(old, trials={**old.trials, metric: values}), old=(old,)))

    assert ("### 1 metric scatters more than before" in body) is bool(row)
    assert (f"| `{CASE}` | `{metric}` | {row} |" in body) is bool(row)


@pytest.mark.parametrize(
    ("changes", "losses"),
    [
        ({"trials": {LATENCY: OLD.trials[LATENCY]}}, "no longer measured: graph_breaks"),
        (
            {"trials": {LATENCY: OLD.trials[LATENCY][:2]}},
            "2 trials instead of 3; no longer measured: graph_breaks",
        ),
        ({"trials": {name: (*values, values[0]) for name, values in OLD.trials.items()}}, ""),
        ({"trials": {**OLD.trials, LATENCY: OLD.trials[LATENCY][:2]}}, ""),  # one trial lacked it
        ({"identity": CodeIdentity(digest="x")}, ""),
        ({"trials": {**OLD.trials, Metric.GRAPH_BREAKS: (0.0,)}}, ""),  # the others have as many
    ],
)
def test_what_is_measured_less_is_reported(changes: dict[str, Any], losses: str) -> None:
    """A missing metric is no longer judged, and fewer trials detect less."""
    new = replace(OLD, **changes)

    assert describe_losses(pair_up(new)) == losses
    body = render_proposal(make_text(new))
    assert (f"### 1 case measured less than before\n\n- `{CASE}`: {losses}\n" in body) is bool(losses)


def test_a_case_that_is_defined_anew_shows_its_values() -> None:
    """Three times as slow under another definition: shown, but not asked about."""
    new = make_baseline(definition="d2", compiled_latency=(0.030,) * 3, graph_breaks=(0.0,) * 3)

    body = render_proposal(make_text(new))

    assert "### 1 case is redefined on this branch" in body
    row = f"| `{CASE}` | `compiled_latency` | 10.0 ms | 30.0 ms | worse |"
    assert row in body.partition("<details>")[0]
    assert "moved the wrong way" not in body


@pytest.mark.parametrize("old", [(OLD,), ()])
def test_an_environment_without_baselines_is_pointed_out(old: tuple[Baseline, ...]) -> None:
    """A run under another machine's name has no baselines to compare with."""
    body = render_proposal(make_text(OLD if not old else replace(OLD, definition="d2"), old=old))

    assert ("has no baselines of this environment" in body) is (not old)


def test_kinds_are_separate_lists() -> None:
    """A new case has no old values; changed and redefined cases are two lists."""
    text = make_text(replace(OLD, identity=CodeIdentity(digest="x")), make_baseline(OTHER))

    assert [proposal.kind for proposal in text.proposals] == [ProposalKind.CHANGED, ProposalKind.NEW]
    assert "1 case recorded for the first time" in (body := render_proposal(text).lower())
    assert "1 new, 1 changed." in body


@pytest.mark.parametrize(("cases", "left"), [(60, []), (61, ["1"]), (63, ["3"])])
def test_sixty_cases_are_listed_and_the_rest_is_counted(cases: int, left: list[str]) -> None:
    """New ones in a sentence; what moved in a table; what was measured less in a list."""
    olds = tuple(replace(OLD, case_id=f"model{index}/x") for index in range(cases))
    slower = [replace(old, trials={LATENCY: (0.030,) * 3}) for old in olds]
    new, moved = render_proposal(make_text(*olds, old=())), render_proposal(make_text(*slower, old=olds))

    assert re.findall(r"and (-?\d+) more\.", new) == left
    assert re.findall(r"\.\.\. and (-?\d+) more, in the files", moved) == left
    assert re.findall(r"- and (-?\d+) more, in the files", moved) == left
    assert (f"model{cases - 1}/x" in new) is (not left)


def test_a_title_names_the_environment_or_how_many_there_are() -> None:
    """A commit's message has the reason, where one was given."""
    text = make_text(make_baseline(OTHER), old=(), reason="a new compiler")
    other = replace(make_text(OLD, make_baseline(OTHER), old=()), environment_id="cpu-y")

    assert render_title(text) == "Refresh 1 baseline of cpu-x"
    assert render_title(text, other) == "Refresh 3 baselines of 2 environments"
    assert render_message(text).endswith("\n\nReason: a new compiler\n")
    assert "Reason" not in render_message(other)


def test_a_thousand_cases_stay_within_githubs_limit() -> None:
    """Every section is cut, the longest most."""
    olds = tuple(replace(OLD, case_id=f"model{index}/{'x' * 150}") for index in range(1000))
    news = [
        replace(old, definition="d2" if index % 2 else "d", trials={LATENCY: (0.001, 0.030, 0.100)})
        for index, old in enumerate(olds)
    ]

    body = render_proposal(make_text(*news, old=olds))

    assert len(body.encode()) <= MAX_PROPOSAL_BYTES
    assert "### 500 metrics moved the wrong way" in body or "Too long" in body


@pytest.mark.parametrize(("count", "more"), [(60, 0), (61, 1)])
def test_the_first_sixty_rows_are_shown_and_the_rest_is_counted(count: int, more: int) -> None:
    """In the table of what moved as in the list of what moved the wrong way."""
    olds = tuple(replace(OLD, case_id=f"m/{index:02}") for index in range(count))
    slower = [replace(old, trials={**old.trials, LATENCY: (0.020,) * 3}) for old in olds]

    body = render_proposal(make_text(*slower, old=olds))

    row = "`m/59` | `compiled_latency` | 10.0 ms | 20.0 ms"
    assert (body.count("*why?*"), row in body, "`m/60`" in body) == (60, True, False)
    assert body.count("and 1 more, in the files") == 2 * more
    assert "and 0 more" not in body


@pytest.mark.parametrize("reason", ["", "the new layer"])
def test_a_commit_names_its_environment_and_the_reason_given(reason: str) -> None:
    """Without a reason there is no line of one; of one environment its id is named."""
    lines = render_message(make_text(OLD, old=(), reason=reason)).splitlines()

    assert lines[0] == "Refresh 1 baseline of cpu-x"
    assert [line for line in lines if "Reason" in line] == ([f"Reason: {reason}"] if reason else [])


@pytest.mark.parametrize(("number", "expected"), [(0, ""), (7, " for #7")])
def test_a_proposal_names_the_pull_request_that_asked(number: int, expected: str) -> None:
    """One that was started by hand is of none."""
    text = make_text(OLD, old=())
    assert text.pr_number == 0

    body = render_proposal(replace(text, pr_number=number))

    assert body.splitlines()[0].endswith(f"[this run]({text.run_url}){expected}: 1 new.")


@pytest.mark.parametrize("latency_s", [0.020, 0.005])
def test_a_commit_lists_what_moved_the_wrong_way(latency_s: float) -> None:
    """What became faster is not asked about."""
    message = render_message(make_text(replace(OLD, trials={**OLD.trials, LATENCY: (latency_s,) * 3})))

    lines = message.splitlines()
    assert ("Moved the wrong way:" in lines) is (latency_s > 0.010)
    assert sum(line.startswith(f"- {CASE}") for line in lines) == (latency_s > 0.010)


def test_a_redefined_case_whose_values_stayed_says_so() -> None:
    """The stored values are of another definition all the same."""
    assert "No median moved." in render_proposal(make_text(replace(OLD, definition="d2")))


def test_only_what_decides_in_both_is_compared() -> None:
    """A metric that only describes has no row, nor has one that is new or gone."""
    old = make_baseline(compiled_latency=(0.01,) * 3, eager_latency=(0.01,) * 3, graph_breaks=(0.0,) * 3)
    new = make_baseline(compiled_latency=(0.02,) * 3, eager_latency=(0.02,) * 3, recompiles=(1.0,) * 3)

    assert [move.metric for move in list_moves([pair_up(new, old)])] == [LATENCY]


def test_noise_of_just_twice_as_much_is_listed() -> None:
    """A drift that scattered by a half scatters by a whole."""
    old = make_baseline(drift=(1.0, 1.5, 2.0))

    (growth,) = list_growths([pair_up(make_baseline(drift=(1.0, 2.0, 3.0)), old)])

    assert (growth.old, growth.new) == (0.5, 1.0)


def test_a_baseline_without_values_has_lost_them_all() -> None:
    """None is the least that can be measured; more than before is no loss."""
    empty = replace(OLD, trials={})

    assert describe_losses(pair_up(empty)).startswith("0 trials instead of 3; ")
    assert describe_losses(pair_up(OLD, empty)) == ""


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True)])
def test_a_proposal_takes_60000_bytes_and_keeps_its_first_sentence(more: int, is_cut: bool) -> None:
    """Beyond that the longest of the other sections is left out."""
    notes = tuple(Fact(code=Code.LANE_SLOW, numbers={"slower": 0.5 + index}) for index in range(9))
    text = replace(make_text(OLD, old=()), notes=notes)
    sections = [*proposal_text._list_sections(text), proposal_text._ENDING]
    room = 60_000 - len("\n\n".join(sections).encode())
    wide = replace(text, environment_id=text.environment_id + "x" * (room + more))

    body = render_proposal(wide)

    assert body.startswith(f"Baselines of `{wide.environment_id}` in `baselines`, ")
    assert ("*Too long to be shown here: see the files.*" in body) is is_cut
    assert (sections[1] in body) is not is_cut
    assert proposal_text._ENDING in body
