"""The words of a command in a comment, and of the answer to it."""

from dataclasses import replace
from typing import Any

import pytest
from records import CASES, ENTRY, make_comparison
from refreshes import make_request

from gate.publish.comment_commands import (
    ACCEPT_COMMAND,
    REFRESH_COMMAND,
    Accepted,
    AuthorizedCommand,
    CommandRefusedError,
    CommandWords,
    parse_select,
    parse_words,
    render_accepted,
    split_command,
    write_message,
)
from gate.records.cases import Metric
from gate.records.verdict import Comparison, Outcome, Reason, Status

LATENCY = Metric.COMPILED_LATENCY
SLOWER = make_comparison(CASES[0], LATENCY, Status.REGRESSED, Reason.BEYOND_BAR, (0.010, 0.013))
REMOVED = replace(SLOWER, case_id=CASES[1].id, status=Status.MISSING, reason=Reason.REMOVED, change=None)
NO_REASON = "its reason is missing, or is not one line of 1 to 300 visible characters"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("/refresh-baselines", ()),
        ("  /refresh-baselines  select=bert abcdef1 \nthank you", ("select=bert", "abcdef1")),
        ("thank you\n/refresh-baselines", None),
        ("/refresh-baselines-too", None),
        ("/accept-regression", None),
        ("", None),
        (" \n ", None),
    ],
)
def test_a_command_is_the_first_word_of_a_comment(body: str, expected: tuple[str, ...] | None) -> None:
    """What follows on its line is for it; later lines are for people."""
    assert split_command(body, REFRESH_COMMAND) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (REFRESH_COMMAND, "", CommandWords()),
        (REFRESH_COMMAND, f"select=bert {COMMIT}", CommandWords(select="bert", sha=COMMIT)),
        (ACCEPT_COMMAND, f"reason={'x' * 300}", CommandWords(reason="x" * 300)),
        (ACCEPT_COMMAND, "0123abc reason=' x '", CommandWords(reason="' x '", sha="0123abc")),
    ],
)
def test_only_an_acceptance_has_a_reason(name: str, text: str, expected: CommandWords) -> None:
    """It has up to 300 characters; a commit is its id, or seven digits of it."""
    parsed = parse_words(name, tuple(text.split()))

    assert parsed == expected
    assert parsed.is_narrow is bool(expected.select or expected.metric)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        (REFRESH_COMMAND, "reason=x", "word 1 after the command cannot be read"),
        (REFRESH_COMMAND, "select=bert metric=drift", "word 2 after the command cannot be read"),
        (REFRESH_COMMAND, "select=a select=b", "word 2 after the command cannot be read"),
        (REFRESH_COMMAND, "abcdef1 select=a 0123abc", "word 3 after the command cannot be read"),
        (REFRESH_COMMAND, "abcdef", "word 1 after the command cannot be read"),
        (REFRESH_COMMAND, f"{COMMIT}0", "word 1 after the command cannot be read"),
        (ACCEPT_COMMAND, 'reason="a b c" please', "word 4 after the command cannot be read"),
        (ACCEPT_COMMAND, 'reason="a"b', "word 1 after the command cannot be read"),
        (ACCEPT_COMMAND, "metric=speed reason=x", "word 1 after the command cannot be read"),
        (
            ACCEPT_COMMAND,
            "abcdef1",
            NO_REASON,
        ),
        (
            ACCEPT_COMMAND,
            f"reason={'x' * 301}",
            NO_REASON,
        ),
        (
            ACCEPT_COMMAND,
            "reason=a\u200bb",
            NO_REASON,
        ),
    ],
)
def test_a_word_that_means_nothing_is_counted_and_not_repeated(name: str, text: str, what: str) -> None:
    """The answer shows how the command is written."""
    with pytest.raises(CommandRefusedError) as refused:
        parse_words(name, tuple(text.split()))

    assert refused.value.what == what
    assert refused.value.fix.startswith(f"Write: {name} ")
    assert refused.value.is_answered


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (f"select={'a' * 500}", "a" * 500),
        (f"select={'a' * 501}", ""),
        ("select=", ""),
        ("select=-x", ""),
        ("select=!tag:slow,bert/*", "!tag:slow,bert/*"),
        ("selects=a", ""),
    ],
)
def test_a_selection_has_at_most_500_characters(word: str, expected: str) -> None:
    """And begins no option."""
    assert parse_select(word) == expected


def test_a_command_by_hand_is_of_no_pull_request() -> None:
    """A dispatch names a branch of the repository alone."""
    words = CommandWords()
    command = AuthorizedCommand(author="ada", head_sha=COMMIT, head_branch="main", words=words)

    assert (command.asked, command.head_repository, command.pr_number) == ("", 0, 0)


def make_accepted(*rows: Comparison, lacking: int = 0, **changes: Any) -> Accepted:
    """What is accepted of these rows, and of so many cases without a baseline."""
    shared = replace(ENTRY, commit=COMMIT, gate="perf/gate.yml", allowance=0.33)
    entries = [replace(shared, case=row.case_id, metric=row.metric) for row in rows]
    entries += [replace(shared, case=case.id, metric=None) for case in CASES[:lacking]]
    accepted = Accepted(
        acceptances=tuple(entries),
        rows=rows,
        remaining=Outcome.PASS,
        left=0,
        undecided=(),
        is_lack_accepted=False,
        run_url="https://example.org/run",
    )
    return replace(accepted, **changes)


@pytest.mark.parametrize(
    ("rows", "lacking", "what"),
    [
        ((SLOWER,), 0, "1 regression"),
        ((SLOWER, REMOVED), 0, "2 regressions"),
        ((SLOWER,), 2, "1 regression and a lack of baselines"),
        ((), 1, "a lack of baselines"),
    ],
)
def test_a_commit_of_acceptances_counts_them(rows: tuple[Comparison, ...], lacking: int, what: str) -> None:
    """By whom, and on which pull request."""
    request = make_request(author="ada", head_sha=COMMIT)

    assert write_message(request, make_accepted(*rows, lacking=lacking)) == (
        f"Accept {what} of 0123456789ab\n\nBy ada, on pull request 7.\n"
    )


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ((SLOWER,), "1 of what regressed."),
        ((SLOWER, REMOVED), "2 of what regressed or is removed."),
        ((REMOVED,), "1 of what regressed or is removed."),
        ((), "the lack of baselines."),
    ],
)
def test_an_answer_says_what_is_accepted_of_which_commit(rows: tuple[Comparison, ...], what: str) -> None:
    """And for which gate, on which machine, how long."""
    first, second, *rest = render_accepted(make_accepted(*rows, lacking=1)).split("\n\n")

    assert first == f"Accepted for commit 0123456789ab alone, until {ENTRY.expires}: {what}"
    assert second.startswith("It counts for `perf/gate.yml` on ")
    assert any(part.startswith("| case |") for part in rest) is bool(rows)


def test_an_answer_lists_what_was_measured_and_the_allowance() -> None:
    """A case that is removed has neither."""
    table = next(
        part for part in render_accepted(make_accepted(SLOWER, REMOVED)).split("\n\n") if "| case" in part
    )

    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert cells[0] == ["case", "metric", "measured", "accepted up to"]
    assert cells[2] == [f"`{CASES[0].id}`", "compiled latency", "+30.0 %", "33 %"]
    assert cells[3] == [f"`{CASES[1].id}`", "the whole case", "removed", ""]
    bare = render_accepted(make_accepted(replace(SLOWER, change=None)))
    assert "| compiled latency |  | 33 % |" in bare


@pytest.mark.parametrize(("count", "more"), [(40, ""), (41, "... and 1 more"), (45, "... and 5 more")])
def test_an_answer_lists_forty_rows(count: int, more: str) -> None:
    """A reader has seen them in the report; the rest is counted."""
    rows = tuple(replace(SLOWER, case_id=f"m{index}/test") for index in range(count))

    answer = render_accepted(make_accepted(*rows))

    assert answer.count("/test`") == 40
    assert ("... and " in answer) is bool(more)
    assert more in answer


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"left": 1}, "1 regression is not covered by it: the check stays red."),
        ({"left": 2}, "2 regressions are not covered by it: the check stays red."),
        (
            {"remaining": Outcome.NOTHING_COMPARED, "is_lack_accepted": True},
            "Nothing was compared; the check says so, and is green.",
        ),
    ],
)
def test_an_answer_says_what_becomes_of_the_check(changes: dict[str, Any], words: str) -> None:
    """A regression that is left matters more than that baselines are missing."""
    others: list[dict[str, Any]] = [{"remaining": Outcome.NOTHING_COMPARED}, {"is_lack_accepted": True}]
    answer = render_accepted(make_accepted(SLOWER, **changes))

    assert words in answer
    assert ("and is green" in answer) is ("is_lack_accepted" in changes)
    for other in others:
        assert "and is green" not in render_accepted(make_accepted(SLOWER, **other))


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("", "Now [the check](https://example.org/run) runs again, and counts it."),
        ("no right", "re-run the failed jobs of [the check](https://example.org/run) yourself."),
    ],
)
def test_an_answer_ends_with_what_happens_next(trouble: str, words: str) -> None:
    """Why it was not started again is for the log."""
    last = render_accepted(make_accepted(SLOWER, trouble=trouble)).split("\n\n")[-1]

    assert words in last
    assert "no right" not in last
    assert last.endswith("A new commit needs a new acceptance.")


def test_an_answer_names_what_may_turn_red_yet() -> None:
    """Each metric once; without one the answer has no such words."""
    undecided = (
        SLOWER,
        replace(SLOWER, case_id=CASES[1].id),
        replace(SLOWER, metric=Metric.COLD_COMPILE_TIME),
    )

    answer = render_accepted(make_accepted(SLOWER, undecided=undecided))

    assert "not covered: compiled latency, cold compile time. If the next run" in answer
    assert "Inconclusive so far" not in render_accepted(make_accepted(SLOWER))
