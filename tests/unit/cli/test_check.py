"""``check --base``: when pairs may decide."""

from __future__ import annotations

import subprocess
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from gate.cli.check import open_base_sources
from gate.cli.origin import note_rules
from gate.decide import decide_verdict
from gate.files.codec import load_verdict
from gate.project.config import load_config
from gate.records import Approval, Code, Policy
from gate.records.events import Event, Noted
from gate.store.approvals import render_approval
from tests.told import describe_measuring, tell_notes
from tests.unit.cli.conftest import Place, make_run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "gate.yml").write_text("version: 1\n", encoding="utf-8")
    identity = ("-c", "user.name=someone", "-c", "user.email=someone@example.com")
    for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "Begin")):
        subprocess.run(("git", *arguments), cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "decides_alone"), [("version: 1\n", True), ("version: 1\ntrials: 2\n", False)]
)
def test_commit_is_not_held_against_itself(project: Path, text: str, decides_alone: bool) -> None:
    """Pairs of one commit would acquit what the stored baselines convict; with a change they decide."""
    (project / "gate.yml").write_text(text, encoding="utf-8")
    events: list[Event] = []
    with ExitStack() as stack:
        config = load_config(project / "gate.yml")
        sources = open_base_sources(Namespace(base="HEAD"), config, stack, events.append)
        assert (sources is None) is decides_alone
    told = [describe_measuring(event.fact) for event in events if isinstance(event, Noted)]
    assert ("nothing differs from HEAD: the stored baselines decide alone" in told) is decides_alone


@pytest.mark.parametrize(
    ("commit", "told"),
    [
        ("", ["This change touches what changes are judged by: gate.yml (1 file), baselines (2 files)."]),
        ("0123456789", []),
    ],
)
def test_a_change_that_moves_its_own_bar_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, commit: str, told: list[str]
) -> None:
    """Its own thresholds and baselines judge it, unless those of a commit do."""
    monkeypatch.chdir(project)
    (project / "baselines" / "host").mkdir(parents=True)
    for name in ("accepted.yml", "host/old.json"):
        (project / "baselines" / name).write_text("{}", encoding="utf-8")
    subprocess.run(("git", "add", "baselines"), check=True)
    (project / "gate.yml").write_text("version: 1\nselect: '!bert'\n", encoding="utf-8")
    config = replace(load_config(None), commit=commit)
    verdict = decide_verdict(make_run(), (), Policy(thresholds={}))
    noted = note_rules(verdict, config, "HEAD")
    assert [f"{text} Look at that first." for text in told] == [
        text for text in tell_notes(noted) if text not in tell_notes(verdict)
    ]
    assert note_rules(verdict, config, "") == verdict


def test_a_check_tells_that_an_approval_is_of_another_commit(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured, and on standard error."""
    place.git("init", "--quiet")
    place.git("add", "gate.yml")
    place.git("commit", "--quiet", "--message", "Begin")
    (place.top / "other.yml").write_text(render_approval(Approval(commit="a" * 40)), encoding="utf-8")
    assert place.run("check", "--quiet", "--approvals", "other.yml") == 0
    assert f"other.yml is of commit {'a' * 12}, and " in capsys.readouterr().err


def test_shards_that_were_checked_are_merged_and_judged_again(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each says which part it is, so that `merge` misses none; what they found is found of the whole."""
    text = (place.top / "gate.yml").read_text(encoding="utf-8")
    second = text[text.index("  - name: actor") :].replace("name: actor", "name: other")
    (place.top / "gate.yml").write_text(text + second, encoding="utf-8")
    assert [place.run("check", "--quiet", "--shard", f"{n}/2", "--out", f"s{n}") for n in (1, 2)] == [0, 3]
    notes = load_verdict(Path("s1", "verdict.json")).notes
    assert Code.ONE_SHARD in [note.code for note in notes]
    assert place.run("merge", "s1/run.json", "--out", "one") == 2
    assert place.run("merge", "s1/run.json", "s2/run.json", "--out", "joined") == 0
    assert place.run("compare", "baselines", "joined/run.json") == 0
    assert "2 cases" in capsys.readouterr().out
