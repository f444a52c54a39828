"""The tables and figures of docs/security.md: who may refresh, and how much was tried."""

import re
from pathlib import Path
from typing import Any

import pytest
from deliveries import make_comment
from fake.server import FakeGitHub
from hostile_archives import ARCHIVES, INJECTED
from publishing import FOR_GOOD, make_faults
from refreshes import make_context
from test_publish_command import MAX_RSS_BYTES, MAX_S
from test_publish_faults import PLACES

from gate.errors import UsageError
from gate.github.comment_command import authorize
from gate.publish.comment_commands import ACCEPT_COMMAND, REFRESH_COMMAND

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
HEAD = "a" * 40
# A role in GitHub's words -> what the permission API calls it.
TOLD = {
    "admin": "admin",
    "maintain": "write",
    "write": "write",
    "triage": "read",
    "read": "read",
    "none": "none",
}


def parse_matrix(heading: str) -> dict[tuple[str, str], bool]:
    """Parse a table of the document: role and situation -> whether the command goes on."""
    block = TEXT.split(heading)[1].split("\n## ")[0]
    rows = [line.strip("| \n").split(" | ") for line in block.splitlines() if line.startswith("|")]
    situations = [cell.strip() for cell in rows[0][1:]]
    return {
        (role, situation): {"yes": True, "no": False}[cell.strip()]
        for row in rows[2:]
        for role in re.findall("`([^`]+)`", row[0])
        for situation, cell in zip(situations, row[1:], strict=True)
    }


MATRIX = parse_matrix("## Who may refresh")
ACCEPTING = parse_matrix("## Who may accept")
SITUATIONS = ("a branch's pull request", "a fork's", "a closed one", "an issue", "started by hand")


def make_event(situation: str, body: str) -> tuple[str, dict[str, Any]]:
    """Make the event that gives a command in a situation."""
    if situation == "started by hand":
        sender = {"login": "octocat", "type": "User"}
        return "workflow_dispatch", {"ref": "refs/heads/topic", "sender": sender}
    return "issue_comment", make_comment(body) | ({"issue": {"number": 7}} if situation == "an issue" else {})


def set_stage(github: FakeGitHub, role: str, situation: str) -> None:
    """Make pull request 7, and give a user a role."""
    github.state.add_pull(7, HEAD, owner="mallory" if situation == "a fork's" else "octo-org")
    github.state.pulls[7]["state"] = "closed" if situation == "a closed one" else "open"
    github.state.permissions = {"octocat": TOLD[role]} if role in TOLD else {}


@pytest.mark.parametrize(
    ("command", "role", "situation", "goes_on"),
    [
        *((f'{ACCEPT_COMMAND} reason="worth it"', *cell, goes_on) for cell, goes_on in ACCEPTING.items()),
        *((REFRESH_COMMAND, *cell, goes_on) for cell, goes_on in MATRIX.items()),
    ],
)
def test_who_may(github: FakeGitHub, command: str, role: str, situation: str, goes_on: bool) -> None:
    """Each cell of both tables holds, whatever the event calls its author."""
    set_stage(github, role, situation)
    event_name, event = make_event(situation, command)
    name = command.split(maxsplit=1)[0]

    try:
        context = make_context(event_name, event, sha=HEAD)
        request = authorize(github.client, context, name)
    except UsageError:
        request = None

    assert (request is not None) is goes_on
    assert github.list_writes() == []


def test_the_table_has_every_role_and_situation() -> None:
    """GitHub's five roles, no role, and a user whom the repository does not know."""
    assert {role for role, _ in MATRIX} == {role for role, _ in ACCEPTING} == {*TOLD, "no collaborator"}
    assert {situation for _, situation in ACCEPTING} == set(SITUATIONS[:-1])
    assert len(ACCEPTING) == 7 * 4
    assert {situation for _, situation in MATRIX} == set(SITUATIONS)
    assert len(MATRIX) == 7 * 5


def test_the_figures_are_those_of_the_tests() -> None:
    """The document's figures are counted from the tests."""
    faults = len(PLACES) * (len(make_faults()) + len(FOR_GOOD))
    figures = {
        "archives": len(ARCHIVES),
        "texts": len(INJECTED),
        "faults": faults,
        "seconds": round(MAX_S),
        "MiB": MAX_RSS_BYTES // 2**20,
    }

    documented = {word: int(number) for number, word in re.findall(r"\*\*(\d+) (\w+)\*\*", TEXT)}

    assert documented == figures | {"requests": 20}
