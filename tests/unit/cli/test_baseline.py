"""What `compile-gate baseline` records, accepts and says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.cli.conftest import CASE_ID, Place

EXPIRES = (datetime.now(UTC) + timedelta(days=9)).date().isoformat()
ACCEPT = ("baseline", "accept", CASE_ID, "graph_breaks", "--allow", "2", "--reason", "a print")


def test_a_refresh_names_what_is_accepted_on_top_of_the_new_values(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry of accepted.yml that fits what was recorded allows so much again."""
    assert place.run(*ACCEPT, "--expires", EXPIRES) == 0
    assert place.run("baseline", "refresh", "--quiet", "--reason", "again") == 0
    assert f"accepted.yml still allows 2 of {CASE_ID} graph_breaks on top" in capsys.readouterr().out
