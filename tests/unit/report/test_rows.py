"""Rows and blocks of a report, and their order."""

import shlex
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gate.decide.explain.advice import add_base_to_headline, make_headline
from gate.records.cases import Metric
from gate.records.codes import Code
from gate.records.facts import Fact
from gate.records.run import FailureKind
from gate.records.verdict import Cause, Comparison, Estimate, Outcome, PairBase, Reason, Status, Verdict
from gate.report.case_blocks import MAX_CAUSES, render_command
from gate.report.comparison_rows import STATUS_ORDER
from gate.report.content import count_statuses, make_report, render_counts
from gate.report.junit import render_junit
from gate.report.words.comparisons import complete_sentence, describe_comparison
from gate.report.words.headline import write_headline
from gate.report.words.steps import write_again
from gate.report.words.templates import mention_move
from tests.make import make_change, make_failure, make_row
from tests.words import make_facts

TWO = Estimate(centre=2.0, low=1.9, high=2.1, noise=0.01, n=1)


def compare(
    case_id: str, metric: Metric, status: Status, centre: float = 0.2, *, decides: bool = True
) -> Comparison:
    change = make_change(centre, 0.1, detectable=0.08)
    return make_row(case_id, metric, status, decides=decides, baseline=TWO, candidate=TWO, change=change)


def keep_rows(verdict: Verdict, *comparisons: Comparison) -> Verdict:
    return replace(verdict, cases=(), comparisons=comparisons, failures=(), causes=())


def test_of_two_stacks_both_are_named_first(empty: Verdict) -> None:
    """What was upgraded is the head; of two commits only the base is named."""
    headline = add_base_to_headline(
        make_headline(Outcome.PASS, [compare("a/x", Metric.GRAPH_BREAKS, Status.UNCHANGED)], ())
    )
    base = PairBase(label="torch 2.13.0+cpu (/old/python)", other_stack=True)
    new = replace(empty.environment, torch="2.15.0+cpu")
    upgraded = write_headline(replace(empty, headline=headline, base=base, environment=new))
    assert upgraded.endswith(", torch 2.15.0+cpu against torch 2.13.0+cpu (/old/python).")
    same = write_headline(replace(empty, headline=headline, base=PairBase(label="main")))
    assert same.endswith(", against main.")


@pytest.mark.parametrize(("shift", "speed"), [(-0.32, "47 % faster"), (0.47, "47 % slower")])
def test_times_of_a_machine_of_another_speed_say_how_it_differs(
    empty: Verdict, shift: float, speed: str
) -> None:
    """A third less time is half as fast again, in row and headline."""
    row = compare("bert/x", Metric.COMPILED_LATENCY, Status.NOT_COMPARABLE)
    remark = Fact(code=Code.MACHINE_SPEED, numbers={"shift": shift})
    row = replace(row, reason=Reason.OTHER_ENVIRONMENT, change=None, remarks=(remark,))
    words = f"ot judged: this machine is {speed} than the one that recorded."
    assert describe_comparison(row, with_values=False) == f"N{words}"
    same = compare("bert/x", Metric.GRAPH_BREAKS, Status.UNCHANGED)
    headline = make_headline(Outcome.PASS, [row, same], ())
    assert write_headline(replace(empty, headline=headline)) == (
        f"Nothing got worse in what was judged: 1 of 2 comparisons, in 1 case; 1 timing n{words}"
    )


def test_what_had_no_time_for_a_pair_is_one_of_those_that_are_counted(empty: Verdict) -> None:
    """A comparison without a pair or baseline is counted as inconclusive."""
    row = compare("bert/x", Metric.COMPILED_LATENCY, Status.INCONCLUSIVE)
    rows = [
        replace(row, reason=Reason.UNPAIRED, baseline=None),
        compare("bert/x", Metric.GRAPH_BREAKS, Status.UNCHANGED),
    ]
    headline = make_headline(Outcome.INCONCLUSIVE, rows, ())
    sentence = "Nothing is shown to be worse; 1 of 2 comparisons is inconclusive."
    assert write_headline(replace(empty, headline=headline)) == sentence


def test_the_headline_names_what_got_better_in_the_same_case(empty: Verdict) -> None:
    """An improvement of another case is not in the headline."""
    worse = compare("bert/x", Metric.COLD_COMPILE_TIME, Status.REGRESSED)
    better = compare("bert/x", Metric.COMPILED_LATENCY, Status.IMPROVED)
    rows = [worse, better]
    text = write_headline(
        replace(empty, comparisons=tuple(rows), headline=make_headline(Outcome.REGRESSION, rows, ()))
    )
    assert text.endswith(f"; but {mention_move(better)}.")
    rows = [worse, replace(better, case_id="gpt/x")]
    text = write_headline(
        replace(empty, comparisons=tuple(rows), headline=make_headline(Outcome.REGRESSION, rows, ()))
    )
    assert "but" not in text


@pytest.fixture
def empty(verdicts: Mapping[str, Verdict]) -> Verdict:
    return keep_rows(verdicts["pass"])


def test_cases_are_ordered_by_their_strongest_status(empty: Verdict) -> None:
    """Regressed, failed, missing, inconclusive, accepted, improved."""
    shown = [
        status
        for status in STATUS_ORDER
        if status not in {Status.NEW, Status.NOT_COMPARABLE, Status.UNCHANGED}
    ]
    rows = [compare(status.value, Metric.COMPILED_LATENCY, status) for status in reversed(shown)]

    blocks = make_report(keep_rows(empty, *rows)).blocks

    assert [status.value for status in shown] == [block.title for block in blocks]


def test_among_equals_the_largest_change_is_first(empty: Verdict) -> None:
    """Of two regressed cases that with more thresholds of change is first."""
    small = compare("a", Metric.COMPILED_LATENCY, Status.REGRESSED, 0.1)
    large = compare("b", Metric.COMPILED_LATENCY, Status.REGRESSED, 0.9)

    assert [block.title for block in make_report(keep_rows(empty, small, large)).blocks] == ["b", "a"]


def test_unchanged_and_unjudged_are_counted_not_listed(empty: Verdict) -> None:
    quiet = [
        compare("a", Metric.COMPILED_LATENCY, Status.UNCHANGED),
        compare("a", Metric.DRIFT, Status.NEW),
        compare("a", Metric.PEAK_MEMORY, Status.NOT_COMPARABLE),
    ]
    report = make_report(keep_rows(empty, *quiet))

    assert report.blocks == ()
    assert render_counts(report.counts) == "2 not judged, 1 unchanged"


def test_everything_lists_unchanged_too(empty: Verdict) -> None:
    """With -v each comparison has a row."""
    report = make_report(keep_rows(empty, compare("a", Metric.DRIFT, Status.UNCHANGED)), everything=True)

    assert [row.label for block in report.blocks for row in block.rows] == ["UNCHANGED"]


def test_what_does_not_decide_is_neither_counted_nor_shown_alone(empty: Verdict) -> None:
    """A regressed metric that does not decide is not shown alone."""
    advisory = compare("a", Metric.COMPILE_PEAK_MEMORY, Status.REGRESSED, decides=False)
    verdict = keep_rows(empty, advisory)

    assert make_report(verdict).blocks == ()
    assert count_statuses(verdict) == ()


def test_what_does_not_decide_is_shown_with_what_does(empty: Verdict) -> None:
    """With a regression it is the last row, with its label."""
    advisory = compare("a", Metric.EAGER_LATENCY, Status.REGRESSED, 9.0, decides=False)
    real = compare("a", Metric.COMPILED_LATENCY, Status.REGRESSED)

    rows = make_report(keep_rows(empty, advisory, real)).blocks[0].rows

    assert [(r.label, r.metric) for r in rows] == [
        ("REGRESSED", "compiled latency"),
        ("(worse)", "eager latency"),
    ]


def test_the_sentence_does_not_repeat_the_columns(empty: Verdict) -> None:
    row = (
        make_report(keep_rows(empty, compare("a", Metric.COMPILED_LATENCY, Status.REGRESSED)))
        .blocks[0]
        .rows[0]
    )

    assert row.sentence == "Beyond the threshold, and too large to be noise."
    assert (
        row.before,
        row.after,
        row.change,
        row.interval,
    ) == ("2.00 s", "2.00 s", "+20.0 % (slower)", "+10.0 to +30.0 %")


def test_an_undecided_comparison_says_what_could_have_been_seen() -> None:
    """INCONCLUSIVE has the detectable change, unless a change was noticed."""
    undecided = compare("a", Metric.COLD_COMPILE_TIME, Status.INCONCLUSIVE, 0.07)
    noticed = compare("a", Metric.COLD_COMPILE_TIME, Status.INCONCLUSIVE, 0.09)

    assert complete_sentence(undecided).endswith("A change of 8.0 % or more would have been noticed.")
    assert complete_sentence(noticed).endswith(", and too large to be noise.")


def test_a_failed_case_shows_its_failure_and_the_end_of_its_log(empty: Verdict) -> None:
    """A crashed case without a comparison has a block."""
    log = "\n".join(f"line {number}" for number in range(30))
    failure = make_failure("a", "signal 11", trial=2, log_tail=log)

    block = make_report(replace(empty, failures=(failure,))).blocks[0]

    assert (block.status, block.failures) == (
        Status.FAILED,
        ("crash in stage compile of trial 2 of head: signal 11",),
    )
    assert (block.log_tail[0], block.log_tail[-1]) == ("line 18", "line 29")


def test_lost_metrics_of_one_fate_share_a_row(empty: Verdict) -> None:
    """Metrics that are missing for one reason share a row."""
    lost = [
        replace(compare("a", metric, Status.MISSING), baseline=None, candidate=None, change=None)
        for metric in (Metric.DRIFT, Metric.PEAK_MEMORY)
    ]

    assert [row.metric for row in make_report(keep_rows(empty, *lost)).blocks[0].rows] == ["2 metrics"]


def test_causes_are_distinct_and_capped(empty: Verdict) -> None:
    """A repeated cause is shown once, and many causes end in a count."""
    causes = [
        Cause(case_id="a", fact=fact)
        for fact in make_facts(Code.GRAPH_BREAK, *(f"Break {n}." for n in (0, 0, *range(9))))
    ]
    verdict = keep_rows(empty, compare("a", Metric.GRAPH_BREAKS, Status.REGRESSED))

    block = make_report(replace(verdict, causes=tuple(causes))).blocks[0]

    assert len(block.causes) == MAX_CAUSES + 1
    assert block.causes[-1] == "and 3 more: `explain` shows them"


def test_an_improvement_needs_no_command(empty: Verdict) -> None:
    """A regression has a command, an improvement has none."""
    rows = (compare("a", Metric.DRIFT, Status.IMPROVED), compare("b", Metric.DRIFT, Status.REGRESSED))
    commands = {block.title: block.command for block in make_report(keep_rows(empty, *rows)).blocks}

    assert commands == {"a": "", "b": "compile-gate check --select b"}


def test_what_pairs_found_is_seen_again_in_pairs(empty: Verdict) -> None:
    """The command repeats pairs with the same base, or the comparison with the baseline."""
    stored = compare("a", Metric.DRIFT, Status.REGRESSED)
    paired = replace(compare("b", Metric.DRIFT, Status.REGRESSED), pairs=3)
    verdict = replace(
        keep_rows(empty, stored, paired),
        base=PairBase(commit="0123456789abcdef"),
        baseline_environments=("cpu-x",),
    )
    commands = {block.title: block.command for block in make_report(verdict).blocks}

    assert commands == {
        "a": "compile-gate check --select a",
        "b": "compile-gate ab 0123456789ab --select b",
    }
    assert "run again: compile-gate ab 0123456789ab --select b" in render_junit(verdict)


@pytest.mark.parametrize(
    ("status", "quarantined", "expected"),
    [
        (Status.REGRESSED, False, "+20.0 % (slower)"),
        (Status.INCONCLUSIVE, False, "+20.0 % (inconclusive)"),
        (Status.ACCEPTED, False, "+20.0 % (slower, accepted)"),
        (Status.REGRESSED, True, "+20.0 % (slower, quarantined)"),
    ],
)
def test_a_change_says_what_it_is(empty: Verdict, status: Status, quarantined: bool, expected: str) -> None:
    """A change has a sign and a word."""
    row = replace(compare("a", Metric.COMPILED_LATENCY, status), quarantined=quarantined)
    assert make_report(keep_rows(empty, row)).blocks[0].rows[0].change == expected


def slow(name: str, centre: float, status: Status = Status.REGRESSED) -> Comparison:
    return compare(name, Metric.COMPILED_LATENCY, status, centre)


def test_cases_that_say_the_same_are_one(empty: Verdict) -> None:
    """Sixty slower cases are one block with the range, the worst first."""
    rows = [slow(f"case {index:02}", 0.29 + index / 2000) for index in range(60)]

    (block,) = make_report(keep_rows(empty, *rows)).blocks

    assert (block.title, block.rows[0].change) == ("60 cases", "+29.0 to +31.9 % (slower)")
    assert [block.members[0].case_id, block.members[0].change] == ["case 59", "+31.9 %"]
    assert len(block.members) == 60
    assert block.command == "compile-gate check --select 'case 59'"


@pytest.mark.parametrize(
    "rows",
    [
        [slow(str(index), 0.3) for index in range(3)],
        [*(slow(str(index), 0.3) for index in range(3)), slow("x", 0.3, Status.ACCEPTED)],
        [*(slow(str(index), 0.3) for index in range(3)), replace(slow("x", 0.3), pairs=3)],
    ],
    ids=["three", "another status", "another way of measuring"],
)
def test_cases_that_differ_stay_apart(empty: Verdict, rows: list[Comparison]) -> None:
    """Few cases, or with another status or evidence, have rows of their own."""
    assert len(make_report(keep_rows(empty, *rows)).blocks) == len(rows)


def test_everything_lists_each_case(empty: Verdict) -> None:
    """With -v nothing is grouped."""
    rows = [slow(str(index), 0.3) for index in range(9)]
    assert len(make_report(keep_rows(empty, *rows), everything=True).blocks) == 9


def test_cases_that_failed_alike_are_one(empty: Verdict) -> None:
    """The message of one missing package is shown once."""
    failures = tuple(
        make_failure(str(index), "No module named x", kind=FailureKind.ERROR, stage="import")
        for index in range(5)
    )

    (block,) = make_report(replace(empty, failures=failures, comparisons=(), cases=())).blocks

    assert (block.title, block.failures) == (
        "5 cases",
        ("error in stage import of trial 1 of head: No module named x",),
    )


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (None, "check"),
        (PairBase(), "ab BASE"),
        (PairBase(commit="1a2b3c4"), "ab 1a2b3c4"),
        (PairBase(commit="1a2b3c4", head_commit="5d6e7f8"), "ab 1a2b3c4 5d6e7f8"),
        (PairBase(head_commit="5d6e7f8"), "ab BASE 5d6e7f8"),
        (PairBase(commit="1a2b3c4", other_stack=True), "ab --base-python OLD --head-python NEW"),
        (
            PairBase(commit="1a2b3c4", other_stack=True, pythons=("/a/python", "/b;x")),
            "ab --base-python /a/python --head-python /b;x",
        ),
        (
            PairBase(commit="1a2b3c4", head_commit="5d6e7f8", pythons=("/a", "/a")),
            "ab 1a2b3c4 5d6e7f8 --base-python /a --head-python /a",
        ),
        (PairBase(pythons=("/a", "/a")), "ab BASE --base-python /a --head-python /a"),
        (PairBase(pythons=("/a",)), "ab BASE --base-python /a --head-python OLD"),  # a file that was edited
    ],
)
def test_a_command_is_safe_to_paste(empty: Verdict, base: PairBase | None, expected: str) -> None:
    """Case ids and names of configurations are quoted."""
    words = shlex.split(
        render_command(["a; rm -rf b"], [], replace(empty, base=base, baseline_environments=()))
    )
    assert words == ["compile-gate", *expected.split(), "--select", "a; rm -rf b"]
    configured = replace(empty, base=base, baseline_environments=(), options={"--config": "$(rm c).yml"})
    words = shlex.split(render_command(["a; rm -rf b"], [], configured))
    name, *more = expected.split()
    assert words == ["compile-gate", name, "--config", "$(rm c).yml", *more, "--select", "a; rm -rf b"]


def test_what_is_fixed_is_measured_in_the_working_tree(empty: Verdict) -> None:
    """The command measures the working tree, not the judged commit."""
    judged = replace(empty, base=PairBase(commit="1a2b3c4", head_commit="5d6e7f8"), baseline_environments=())
    assert write_again(["a"], [], judged) == "compile-gate ab 1a2b3c4 5d6e7f8 --select a"
    assert write_again(["a"], [], judged, fixed=True) == "compile-gate ab 1a2b3c4 --select a"


def test_minutes_that_were_up_are_doubled_to_measure_again(empty: Verdict) -> None:
    """The same eight would end as they did; eight that sufficed stay, and so does what nobody set."""
    up = Fact(code=Code.TIME_UP, cases=("a",), numbers={"minutes": 8.0})
    asked = replace(empty, base=PairBase(commit="1a2b3c4"), baseline_environments=())
    asked = replace(asked, options={"--minutes": "8"}, notes=())
    assert write_again(["a"], [], asked) == "compile-gate ab --minutes 8 1a2b3c4 --select a"
    for options in ({"--minutes": "8"}, {}):
        short = replace(asked, options=options, notes=(up,))
        assert write_again(["a"], [], short) == "compile-gate ab --minutes 16 1a2b3c4 --select a"


@pytest.mark.parametrize(
    ("device_kind", "named"), [("cpu", []), ("cuda", ["--device", "cuda"]), ("cuda; rm -rf b", [])]
)
def test_a_command_measures_the_device_that_was_judged(
    empty: Verdict, device_kind: str, named: list[str]
) -> None:
    """The command has the --device that was judged."""
    judged = replace(empty, environment=replace(empty.environment, device_kind=device_kind))
    words = shlex.split(render_command("a", [], replace(judged, baseline_environments=())))
    assert words == ["compile-gate", "check", *named, "--select", "a"]


def test_a_case_that_failed_in_pairs_is_seen_again_in_pairs(empty: Verdict) -> None:
    """It has neither a pair nor a baseline, and its command is `ab`."""
    failed = replace(compare("a", Metric.DRIFT, Status.FAILED), baseline=None)
    verdict = replace(
        keep_rows(empty, failed), base=PairBase(commit="1a2b3c4"), baseline_environments=("cpu-x",)
    )
    (block,) = make_report(verdict).blocks
    assert block.command == "compile-gate ab 1a2b3c4 --select a"


def test_cases_that_failed_and_cases_that_lack_a_metric_are_named_apart(empty: Verdict) -> None:
    """Two failed cases and two incomplete ones are counted separately."""
    lacking = [
        replace(compare(name, Metric.DRIFT, Status.MISSING), reason=Reason.NOT_MEASURED, change=None)
        for name in ("p/x", "q/x")
    ]
    failed = [
        replace(compare(name, Metric.COMPILED_LATENCY, Status.FAILED), reason=Reason.CASE_FAILED, change=None)
        for name in ("a/x", "b/x")
    ]
    rows = (*lacking, *failed)
    headline = make_headline(Outcome.INCOMPLETE, rows, range(5))
    verdict = replace(empty, outcome=Outcome.INCOMPLETE, comparisons=rows, headline=headline)
    assert write_headline(verdict) == (
        "2 of 5 cases could not be measured, the first is a/x; 2 of 5 cases measured only in part, the first"
        " is p/x."
    )


@pytest.mark.parametrize(
    ("case_id", "beginning"),
    [("a/x", "Read the log of each failed case"), ("p/x", "See why not all was measured")],
)
def test_only_a_case_that_failed_has_a_log_to_read(empty: Verdict, case_id: str, beginning: str) -> None:
    """The step of a missing case names no log."""
    fact = Fact(code=Code.FIX_FAILED, cases=(case_id,))
    (step,) = make_report(replace(empty, failures=(make_failure("a/x"),), next_steps=(fact,))).next_steps
    assert step.text == f"{beginning}, fix it and run:"


def test_a_step_has_its_command_apart(empty: Verdict) -> None:
    """A step's command is a field of its own."""
    fact = Fact(code=Code.SETTLE_BY_TRIALS, cases=("a",))
    (step,) = make_report(replace(empty, next_steps=(fact,))).next_steps
    assert step.text == "Or measure inconclusive cases again, with more trials:"
    assert step.command == "compile-gate check --select a --trials 2"


def test_what_got_better_makes_no_case_worse(empty: Verdict) -> None:
    """The worst case is first, whatever got better; of improved cases the best is."""
    slow = compare("slow/x", Metric.COMPILED_LATENCY, Status.REGRESSED, 0.5)
    slower = compare("mixed/x", Metric.COMPILED_LATENCY, Status.REGRESSED, 0.1)
    smaller = compare("mixed/x", Metric.PEAK_MEMORY, Status.IMPROVED, -0.9)
    fast = compare("fast/x", Metric.COMPILED_LATENCY, Status.IMPROVED, -0.1)
    faster = compare("faster/x", Metric.COMPILED_LATENCY, Status.IMPROVED, -0.3)
    report = make_report(keep_rows(empty, slower, smaller, fast, slow, faster))
    assert [block.title for block in report.blocks] == ["slow/x", "mixed/x", "faster/x", "fast/x"]
