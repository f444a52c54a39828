"""The last lines of a command."""

import pytest

from gate.errors import ExitCode
from gate.records.verdict import Outcome
from gate.report.footer import render_exit_notice


def test_a_plain_pass_needs_no_words() -> None:
    """A pass with exit 0 has no notice."""
    assert render_exit_notice(Outcome.PASS, ExitCode.PASS) == ""


def test_a_failure_says_its_code() -> None:
    """The notice has exit code and outcome."""
    assert render_exit_notice(Outcome.REGRESSION, ExitCode.REGRESSION) == "exit 10 (REGRESSION)"


def test_a_pass_that_fails_says_why() -> None:
    """A PASS with exit 3 names --fail-on new."""
    notice = render_exit_notice(Outcome.PASS, ExitCode.NOTHING_COMPARED)
    assert notice == "exit 3 (PASS in what was judged, but not everything has a baseline: --fail-on new)"


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.PASS])
def test_a_hidden_outcome_is_loud(outcome: Outcome) -> None:
    """Exit 0 without a pass has two exclamation marks."""
    notice = render_exit_notice(outcome, ExitCode.PASS)

    assert notice == f"!! {outcome.value}, BUT EXIT 0: --fail-on lets it pass."
