"""Graph breaks and recompiles of two sides that torch records differently."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gate.decide.evidence.gather import Evidence
from gate.decide.evidence.places import count_kinds, list_changes
from gate.decide.side_by_side import decide_side_by_side
from gate.records.cases import Case, Metric
from gate.records.codes import Code
from gate.records.run import Compiled, Frame, GraphBreak, Recompile, Run
from gate.records.verdict import Reason, Status, Verdict
from gate.report.words.comparisons import complete_sentence
from tests.make import (
    POLICY,
    PairedCase,
    Situation,
    Values,
    decide,
    find_row,
    make_baseline,
    make_trials,
    pair_up,
    state,
)
from tests.words import describe_causes

from .one_case import BREAKS

GRAPHS, RECOMPILES = Metric.UNIQUE_GRAPHS, Metric.RECOMPILES
PRINT = 'print("", end="")'
WORSE, SAME = (Status.REGRESSED, Reason.BEYOND_BAR), (Status.UNCHANGED, Reason.BELOW_THRESHOLD)
BETTER, OPEN = (Status.IMPROVED, Reason.BEYOND_BAR), (Status.INCONCLUSIVE, Reason.UNSETTLED)
FOLLOWS = (Status.UNCHANGED, Reason.LEADER_STANDS)
LOST = (Status.NOT_COMPARABLE, Reason.NOT_MEASURED)

Records = tuple[GraphBreak | Recompile, ...]


def cut(
    function: str, line: int = 7, code: str = PRINT, through: Sequence[str] = (), **more: str
) -> GraphBreak:
    """A break in a function of model.py, called through others."""
    file = more.pop("file", "model.py")
    frames = [Frame(location=f"{file}:1", function=name, code="call") for name in through]
    last = Frame(location=f"{file}:{line}", function=function, code=code)
    reason = more.get("reason", "print")
    return GraphBreak(reason=reason, location=last.location, stack=(*frames, last), innermost=last)


# One print, three calls deep: once for each frame that is cut, or once.
FLAT = (
    cut("a", through=("forward", "c", "b")),
    cut("a", through=("c", "b")),
    cut("a", through=("b",)),
    cut("a"),
)
NESTED = FLAT[:1]
NEW = cut("forward", 16)


def ab(
    base: Records | list[Records],
    head: Records | list[Records],
    settings: tuple[str, str] = ("off", "on"),
    graphs: tuple[float, float] = (6.0, 2.0),
    release: str = "",
) -> Verdict:
    """The verdict of pairs with these records; settings are ``on``, ``off`` or "", not recorded."""

    def add(run: Run) -> Run:
        trials = []
        for trial in run.trials:
            records = base if trial.arm == "base" else head
            if isinstance(records, list):
                records = records[(trial.index - 1) % len(records)]
            breaks = tuple(record for record in records if isinstance(record, GraphBreak))
            guards = tuple(record for record in records if isinstance(record, Recompile))
            setting = settings[trial.arm == "head"]
            counts = {BREAKS: len(breaks), RECOMPILES: len(guards), GRAPHS: graphs[trial.arm == "head"]}
            trials.append(
                replace(
                    trial,
                    samples={**trial.samples} | {metric: (float(count),) for metric, count in counts.items()},
                    graph_breaks=breaks,
                    recompile_reasons=guards,
                    workload={"nested_graph_breaks": setting} if setting else {},
                )
            )
        assert run.base is not None
        environment = replace(run.base.environment, torch=release or run.base.environment.torch)
        return replace(run, trials=tuple(trials), base=replace(run.base, environment=environment))

    return decide_side_by_side(add(pair_up(PairedCase(pairs=2))), POLICY)


def test_fewer_records_of_the_same_break_are_no_gain() -> None:
    """4 breaks and 6 graphs, then 1 and 2, are the same print."""
    verdict = ab(FLAT, NESTED)
    row = find_row(verdict, BREAKS)
    assert state(row) == SAME
    assert row.baseline
    assert row.candidate
    assert (row.baseline.centre, row.candidate.centre) == (1, 1)
    assert state(find_row(verdict, GRAPHS)) == FOLLOWS
    assert not describe_causes(verdict, Code.GRAPH_BREAK, Code.GRAPH_BREAK_GONE)
    sentence = complete_sentence(row)
    assert "counted by place, since torch records otherwise on each side what it cuts: 4 and 1" in sentence
    assert "graphs are cut at breaks and by recompiles, which are matched by place" in complete_sentence(
        find_row(verdict, GRAPHS)
    )


def test_where_no_break_is_left_each_was_one() -> None:
    """4 -> 0: without a break of head the base's count stays."""
    row = find_row(ab(FLAT, (), release="2.14.0"), BREAKS)
    assert state(row) == BETTER
    assert row.baseline is not None
    assert row.baseline.centre == 4


def test_a_new_break_is_not_hidden_by_a_smaller_sum() -> None:
    """4 -> 2: the print in ``forward`` is new, the other one is not gone."""
    verdict = ab(FLAT, (*NESTED, NEW), graphs=(5.0, 3.0))
    row = find_row(verdict, BREAKS)
    assert state(row) == WORSE
    assert row.change is not None
    assert row.change.centre == 1
    assert describe_causes(verdict, Code.GRAPH_BREAK) == ["New graph break at model.py:16: print"]
    assert not describe_causes(verdict, Code.GRAPH_BREAK_GONE)
    assert state(find_row(verdict, GRAPHS)) == FOLLOWS


def test_more_records_of_the_same_break_are_no_loss() -> None:
    """1 -> 4 is the same break, since head turns the setting off."""
    verdict = ab(NESTED, FLAT, ("on", "off"), graphs=(2.0, 6.0))
    assert state(find_row(verdict, BREAKS)) == SAME
    assert state(find_row(verdict, GRAPHS)) == FOLLOWS


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        pytest.param(NESTED, (cut("a", reason="builtin print"),), SAME, id="another wording"),
        pytest.param(NESTED, (cut("a", 90),), SAME, id="another line"),
        pytest.param(NESTED, (cut("a", code="print()"),), SAME, id="an edited line"),
        pytest.param(NESTED, (cut("<listcomp>"),), SAME, id="another function with the line"),
        pytest.param(NESTED, (cut("a", file="net.py"),), SAME, id="another file"),
        pytest.param(
            (cut("info", file="/usr/lib/python3.11/logging/__init__.py"),),
            (cut("info", file="/usr/lib/python3.12/logging/__init__.py", code="self._log(level, text)"),),
            SAME,
            id="in the library of another Python",
        ),
        pytest.param(NESTED, FLAT, SAME, id="more often"),
        pytest.param(FLAT, NESTED, SAME, id="less often"),
        pytest.param(NESTED, (cut("b", 9, "x.item()"),), WORSE, id="one gone and one new"),
        pytest.param(NESTED, (cut("a"), cut("a", 9, "x.item()")), WORSE, id="one more in its function"),
        pytest.param((*FLAT, NEW), FLAT, BETTER, id="gone"),
        pytest.param(FLAT, (), BETTER, id="all gone"),
        pytest.param((), NESTED, WORSE, id="none before"),
        pytest.param(FLAT, (replace(NEW, innermost=None),), LOST, id="nobody knows where"),
        pytest.param(
            (cut("a"), cut("a", reason="builtin print")), NESTED, SAME, id="one for two reasons before"
        ),
        pytest.param(
            (cut("a"),), (cut("a", code="x.item()"), cut("b", 9, "x.sum()")), WORSE, id="edited, and one new"
        ),
    ],
)
def test_across_stacks_a_kind_is_its_place(
    base: Records, head: Records, expected: tuple[Status, Reason]
) -> None:
    """Under another release breaks are matched by place, not by wording or count."""
    verdict = ab(base, head, ("off", "off"), (2.0, 2.0), release="2.11.0")
    assert state(find_row(verdict, BREAKS)) == expected


def test_of_two_lines_of_a_function_the_new_one_is_named() -> None:
    """The line that broke before is the same, whatever torch counts."""
    verdict = ab(FLAT, (*NESTED, cut("a", 9, "x.item()", reason="item")))
    assert describe_causes(verdict, Code.GRAPH_BREAK) == ["New graph break at model.py:9: item"]


def test_without_breaks_and_recompiles_graphs_are_compared_by_number() -> None:
    """Without breaks three graphs instead of one are worse, under another release as well."""
    verdict = ab((), (), ("off", "on"), (1.0, 3.0), release="2.11.0")
    assert state(find_row(verdict, GRAPHS)) == WORSE
    assert state(find_row(verdict, BREAKS)) == SAME
    assert find_row(verdict, BREAKS).remarks == ()


@pytest.mark.parametrize(("stored", "measured"), [({}, {BREAKS: (0.0,)}), ({BREAKS: (1.0,)}, {})])
def test_graphs_need_no_counts_that_a_side_lacks(stored: Values, measured: Values) -> None:
    """Three graphs instead of one are worse where only one side counts breaks."""
    verdict = decide(Situation(before={GRAPHS: (1.0,), **stored}, after={GRAPHS: (3.0,), **measured}))
    assert state(find_row(verdict, GRAPHS)) == WORSE


def test_another_break_at_the_same_line_is_new() -> None:
    """One line breaks for one reason before, and for another after."""
    verdict = ab(NESTED, [(cut("a", reason="item"),)], ("on", "on"), (2.0, 6.0))
    assert describe_causes(verdict, Code.GRAPH_BREAK) == ["New graph break at model.py:7: item"]


def test_what_cannot_be_matched_says_so() -> None:
    """Older records without a function are not compared, and the sentence says so."""
    old = tuple(replace(graph_break, innermost=None) for graph_break in FLAT)
    verdict = ab(old, NESTED)
    assert state(find_row(verdict, BREAKS)) == LOST
    assert state(find_row(verdict, GRAPHS)) == LOST
    assert "its places are not known on both" in complete_sentence(find_row(verdict, BREAKS))
    assert not describe_causes(verdict, Code.GRAPH_BREAK, Code.GRAPH_BREAK_GONE)


def test_a_new_kind_in_one_of_two_trials_is_open() -> None:
    """A new break in one of two trials is open."""
    assert state(find_row(ab(FLAT, [NESTED, (*NESTED, NEW)]), BREAKS)) == OPEN


def test_within_one_stack_and_setting_counts_decide() -> None:
    """With the same setting, or none recorded, counts decide: 4 -> 1 is better, 1 -> 4 worse."""
    for settings in (("off", "off"), ("on", "on"), ("", ""), ("", "off")):
        assert state(find_row(ab(FLAT, NESTED, settings), BREAKS)) == BETTER
        assert state(find_row(ab(NESTED, FLAT, settings), BREAKS)) == WORSE
    assert state(find_row(ab(FLAT, NESTED, ("", "on")), BREAKS)) == SAME


@pytest.mark.parametrize(("setting", "expected"), [("on", SAME), ("off", BETTER)])
def test_stored_values_of_the_other_setting_are_matched_by_kind(
    setting: str, expected: tuple[Status, Reason]
) -> None:
    """A baseline keeps no stacks: its 4 and head's 1 are the same break, or fewer under its own setting."""
    verdict = decide(
        Situation(
            before={BREAKS: (4.0, 4.0, 4.0)},
            after={BREAKS: (1.0,)},
            breaks_before=tuple(replace(graph_break, stack=()) for graph_break in FLAT),
            breaks_after=NESTED,
            workload_before={"nested_graph_breaks": "off"},
            workload_after={"nested_graph_breaks": setting},
        )
    )
    assert state(find_row(verdict, BREAKS)) == expected


def test_a_function_that_was_given_up_is_of_the_break_within() -> None:
    """Nested, torch names only the ``with`` of f; flat, the print that f calls. A new break is new."""
    flat = (cut("manager", 3, through=("g", "f")),)
    given_up = cut("f", 9, "with manager():", reason="step_unsupported")
    assert state(find_row(ab(flat, (given_up,)), BREAKS)) == SAME
    assert state(find_row(ab((given_up,), flat, ("on", "off")), BREAKS)) == SAME
    assert state(find_row(ab((*flat, NEW), (given_up, NEW)), BREAKS)) == SAME
    other = cut("h", 20, "with manager():", reason="step_unsupported")
    assert state(find_row(ab(flat, (given_up, other)), BREAKS)) == WORSE


SIZE = "tensor 'x' size mismatch at index 0. expected 3, actual 4"
GUARD = Recompile(guard="n == 1", code="return x * n", location="model.py:9", function="f")
IN_G = Recompile(guard=SIZE, location="model.py:1", function="g")
IN_F = Recompile(guard=SIZE.replace("'x'", "'__stack0'"), location="model.py:5", function="f")


def test_recompiles_of_callers_are_no_loss_and_no_gain() -> None:
    """Each cut frame recompiles: fewer of them are no gain, and a new guard is worse."""
    flat: Records = (*FLAT, IN_G, IN_F, GUARD, replace(GUARD, code="return f(x, n)", function="g"))
    nested: Records = (*NESTED, IN_G, replace(GUARD, guard="__nested_frame_values[0][2] == 1"))
    verdict = ab(flat, nested)
    assert state(find_row(verdict, RECOMPILES)) == SAME
    assert not describe_causes(verdict, Code.RECOMPILED, Code.RECOMPILED_NO_MORE)
    new = Recompile(guard="self.odd", code="if self.odd:", location="model.py:30", function="h")
    verdict = ab(flat, (*nested, new))
    assert state(find_row(verdict, RECOMPILES)) == WORSE
    assert describe_causes(verdict, Code.RECOMPILED) == [
        "Recompiled because self.odd (made by `if self.odd:`) at model.py:30"
    ]


def test_recompiles_of_a_head_that_cuts_more_frames_are_not_compared() -> None:
    """Recompiles that may come from more frames are not compared; without breaks they are."""
    assert state(find_row(ab((*NESTED, IN_G), (*FLAT, IN_G, IN_F), ("on", "off")), RECOMPILES)) == LOST
    for base, head in (((), ()), (NESTED, ()), ((), FLAT)):
        verdict = ab((*base, IN_G), (*head, IN_G, IN_F), ("on", "off"))
        assert state(find_row(verdict, RECOMPILES)) == WORSE


def test_across_stacks_recompiles_are_matched_by_kind() -> None:
    """One more with the same guard is not worse, and one that is gone is better."""
    across: dict[str, Any] = {"settings": ("off", "off"), "release": "2.11.0"}
    assert state(find_row(ab((IN_G,), (IN_G, IN_F), **across), RECOMPILES)) == SAME
    assert state(find_row(ab((IN_G, GUARD), (IN_G,), **across), RECOMPILES)) == BETTER


@pytest.mark.parametrize(
    ("base", "head", "centres"),
    [
        ([FLAT, FLAT], [NESTED, ()], (1.0, 0.5)),
        ([(), FLAT], [NESTED, NESTED], (0.5, 1.0)),
        ([FLAT, NESTED], [(), ()], (2.5, 0.0)),  # nothing to match: as they were counted
        ([(), ()], [NESTED, FLAT], (0.0, 2.5)),
    ],
)
def test_trials_that_lack_all_breaks_are_counted_by_place_as_well(
    base: list[Records], head: list[Records], centres: tuple[float, float]
) -> None:
    """One print counts 1 in a trial and 0 in the other, on either side."""
    row = find_row(ab(base, head, release="2.14.0"), BREAKS)
    assert row.baseline is not None
    assert row.candidate is not None
    assert (row.baseline.centre, row.candidate.centre) == centres
    assert row.has_remark(Code.BY_PLACE) is (min(centres) > 0)


def test_where_one_side_has_no_break_all_of_the_other_are_named() -> None:
    """Nobody knows in which function it is, under another release; without any it is new, or gone."""
    unknown = (replace(NEW, innermost=None),)
    added, gone = ab((), unknown, release="2.14.0"), ab(unknown, (), release="2.14.0")
    assert describe_causes(added, Code.GRAPH_BREAK) == ["New graph break at model.py:16: print"]
    assert len(describe_causes(gone, Code.GRAPH_BREAK_GONE)) == 1


EVIDENCE = Evidence(
    case=Case(id="mlp/x", model="mlp"),
    trials=make_trials("mlp/x", [{BREAKS: 1.0}], graph_breaks=NESTED),
    failures=(),
    values={BREAKS: (1.0,)},
    stored=(),
)


def test_a_count_without_records_has_no_place() -> None:
    """Two breaks of the base were counted in one trial and one in the other, and none was recorded."""
    baseline = make_baseline("mlp/x", {BREAKS: (2.0, 1.0)})
    counts = count_kinds(replace(EVIDENCE, other_stack=True), baseline, BREAKS)
    assert counts is not None
    assert counts[:2] == ([0.0, 0.0], [1.0])


PRINTS = cut("a")
UNKNOWN = replace(PRINTS, innermost=None)
NAMELESS = replace(UNKNOWN, location="model.py:9")


@pytest.mark.parametrize(
    ("before", "after", "added", "gone"),
    [
        # Beside the same break one is new that differs in its reason, function, code or line.
        ([PRINTS], [PRINTS, cut("a", reason="item")], [cut("a", reason="item")], []),
        ([PRINTS], [PRINTS, cut("b")], [cut("b")], []),
        ([PRINTS], [PRINTS, cut("a", code="x")], [cut("a", code="x")], []),
        ([PRINTS], [PRINTS, cut("a", 9)], [cut("a", 9)], []),
        ([PRINTS, cut("b")], [cut("b")], [], [PRINTS]),
        # A line moved and was edited, or its function was renamed; a line that nobody knows is no line.
        ([PRINTS], [cut("a", 9, "x")], [], []),
        ([PRINTS], [cut("b", 9)], [], []),
        ([PRINTS], [cut("b", 9, "x")], [cut("b", 9, "x")], [PRINTS]),
        ([PRINTS], [cut("a", 9, "x", reason="item")], [cut("a", 9, "x", reason="item")], [PRINTS]),
        ([cut("a", code="")], [cut("b", 9, "")], [cut("b", 9, "")], [cut("a", code="")]),
        # An older record names the file alone: any break in it may be the same.
        ([UNKNOWN], [cut("b", 9, "x")], [], []),
        ([UNKNOWN], [cut("b", 9, "x", file="net.py")], [cut("b", 9, "x", file="net.py")], [UNKNOWN]),
        ([UNKNOWN], [NAMELESS, cut("b", 9, "x")], [NAMELESS, cut("b", 9, "x")], []),
    ],
)
def test_what_recorded_alike_is_the_same_break(
    before: list[GraphBreak], after: list[GraphBreak], added: list[GraphBreak], gone: list[GraphBreak]
) -> None:
    """The closest record is the same break: at its place, in its function, of its line, in its file."""
    assert list_records(before, after) == (added, gone)


@pytest.mark.parametrize(
    ("before", "after", "added", "gone"),
    [
        # Beside the same line of a function another line is new, however torch words the reason.
        ([PRINTS], [cut("a", reason="item"), cut("a", 9, "x")], [cut("a", 9, "x")], []),
        ([PRINTS], [cut("a", 9, "x", reason="item")], [], []),
        ([PRINTS], [cut("b", 9, reason="item")], [], []),
        ([PRINTS], [cut("b", 9, "x")], [cut("b", 9, "x")], [PRINTS]),
        ([cut("a", code="")], [cut("b", 9, "")], [cut("b", 9, "")], [cut("a", code="")]),
    ],
)
def test_what_is_recorded_otherwise_is_the_same_break(
    before: list[GraphBreak], after: list[GraphBreak], added: list[GraphBreak], gone: list[GraphBreak]
) -> None:
    """Under another release the closest record is that of its line, else of its function or its code."""
    assert list_records(before, after, across=True) == (added, gone)


def test_a_new_break_is_named_before_another_one_and_the_own_code_before_a_library() -> None:
    """Reasons that the base did not have stand first, then lines of the measured code."""
    library = cut("info", file="/usr/lib/python3.11/logging/__init__.py", code="self._log()")
    item = cut("c", code="x.item()", reason="item")
    added, _ = list_records([PRINTS], [library, cut("d", code="y"), PRINTS, item])
    assert added == [item, cut("d", code="y"), library]


def list_records(
    before: list[GraphBreak], after: list[GraphBreak], *, across: bool = False
) -> tuple[list[GraphBreak | Recompile], ...]:
    """The records that are new and those that are gone."""
    old, new = (Compiled(graph_breaks=tuple(side)) for side in (before, after))
    changes = list_changes(replace(EVIDENCE, other_stack=across), old, new, BREAKS)
    assert changes is not None
    return tuple([site.record for site in change] for change in changes)


def test_a_function_of_the_same_name_in_another_file_breaks_anew() -> None:
    """A print in ``f`` of a.py is gone, and another one in ``f`` of b.py is new."""
    old, new = cut("f", file="a.py"), cut("f", file="b.py", code="print(x)")
    verdict = ab((old,), (new, cut("h", 9, "x.sum()")), ("on", "on"))
    assert describe_causes(verdict, Code.GRAPH_BREAK) == [
        "New graph break at b.py:7: print",
        "New graph break at model.py:9: print",
    ]


def test_a_base_that_differs_from_trial_to_trial_proves_nothing() -> None:
    """What one of the base's trials lacks is open, neither gone nor new."""
    assert state(find_row(ab([FLAT, (*FLAT, NEW)], (*NESTED, NEW)), BREAKS)) == OPEN
    assert state(find_row(ab([(*FLAT, NEW), FLAT], NESTED), BREAKS)) == OPEN  # it takes a third pair


def test_a_recompile_that_some_trials_of_the_base_lack_is_not_new() -> None:
    """The base's first trial lacks it, and its second one has it, as all of head's have."""
    flickering: list[Records] = [(), (IN_F,)]
    row = find_row(ab(flickering, (IN_F,), ("off", "off"), release="2.14.0"), RECOMPILES)
    assert state(row) == OPEN
    assert row.baseline is not None
    assert row.baseline.centre == 0.5


def test_a_reason_keeps_its_registry_id() -> None:
    """The id stays if torch rewords the sentence."""
    verdict = ab(FLAT, (*NESTED, replace(NEW, registry="GB0059")))
    assert describe_causes(verdict, Code.GRAPH_BREAK) == ["New graph break at model.py:16: print (GB0059)"]


def test_a_break_that_moved_to_another_line_is_no_cause() -> None:
    """A moved line or a renamed function is no cause within one stack."""
    old = (cut("a", 7), cut("b", 9, "x.item()", reason="item"))
    new = (cut("a", 70), cut("b2", 90, "x.item()", reason="item"), NEW)
    verdict = ab(old, new, ("off", "off"))
    assert state(find_row(verdict, BREAKS)) == WORSE
    assert describe_causes(verdict, Code.GRAPH_BREAK) == ["New graph break at model.py:16: print"]
    assert not describe_causes(verdict, Code.GRAPH_BREAK_GONE)


def test_a_stored_break_is_known_without_its_stack() -> None:
    """Another line of the function breaks for the same reason, and is the new one."""
    known, new = cut("a", through=("forward",)), cut("a", 9, "print(x)", through=("forward",))
    situation = Situation(
        before={BREAKS: (1.0,)},
        after={BREAKS: (2.0,)},
        breaks_before=(replace(known, stack=()),),
        breaks_after=(known, new),
    )
    assert describe_causes(decide(situation), Code.GRAPH_BREAK) == ["New graph break at model.py:9: print"]
