"""A day of measurements on a card: its parts, order and report."""

import json
import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import card_day
import pytest
from card_day import PARTS, Day, Step

from gate.project.config import load_config
from gate.project.registry import load_cases

ROOT = Path(__file__).resolve().parents[2]
CASE = card_day.PULL_REQUEST[0]


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Day:
    """A day on a card at full size, with nothing begun."""
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path / "work"))
    return Day(tmp_path / "day", "cuda", small=False)


def leave(day: Day, out: str, digest: str, **counts: float) -> None:
    """Leave a run of one trial."""
    samples = {name: [value] for name, value in {"graph_breaks": 0.0, **counts}.items()}
    trial: dict[str, Any] = {"case_id": CASE, "identity": {"digest": digest}, "samples": samples}
    trial |= {"extent": "whole", "stages_s": {}}
    (day.work / out).mkdir(parents=True)
    text = json.dumps({"trials": [trial], "environment": {"torch": f"2.{len(out)}"}})
    (day.work / out / "run.json").write_text(text)


def test_a_day_measures_what_a_pull_request_does() -> None:
    """The nine cases of ``tag:pr`` take 25 minutes with all else, at most nine a part."""
    cases = load_cases(load_config(ROOT / "gate.yml"))
    assert {case.id for case in cases if "pr" in case.tags} == set(card_day.PULL_REQUEST)
    assert {case.id for case in cases} >= set(card_day.TARGETED.split(","))
    assert sum(part.minutes for part in PARTS) == 25
    assert max(part.minutes for part in PARTS) <= 9


def test_the_next_day_begins_with_parts_that_have_time(day: Day) -> None:
    """The next day begins with parts that have time left, without finished ones."""
    day.rows["doctor"].status = "done"
    day.rows["baselines"].status, day.rows["baselines"].seconds = "cut off", 420.0
    day.rows["unchanged"].status, day.rows["unchanged"].seconds = "cut off", 100.0
    names = [part.name for part in card_day.choose_parts(day, None)]
    assert names[:2] == ["first contact", "unchanged"]
    assert names[-1] == "baselines"
    assert "doctor" not in names
    named = ["doctor", "unchanged"]  # the first again, the second where it was
    assert [part.name for part in card_day.choose_parts(day, named)] == named
    assert (day.rows["doctor"].status, day.rows["unchanged"].seconds) == ("open", 100.0)


@pytest.mark.parametrize(("used_s", "left_s"), [(0.0, 420.0), (400.0, 20.0), (401.0, 0.0), (500.0, 0.0)])
def test_a_part_has_its_time_on_all_days_together(day: Day, used_s: float, left_s: float) -> None:
    """Seven minutes in all; a rest of less than twenty seconds is none."""
    day.rows["baselines"].seconds = used_s
    assert day.left_s(next(part for part in PARTS if part.name == "baselines")) == left_s


def test_a_part_that_breaks_is_a_row(day: Day) -> None:
    """Exceptions and refused commands are rows."""

    def refuse(_: Day) -> list[Step]:
        raise KeyError("trials")

    broken = replace(PARTS[0], list_steps=refuse)
    refused = replace(PARTS[1], list_steps=lambda _: [Step(arguments=("doctor", "--no-such"), out="x")])
    for part in (broken, refused):
        card_day.run_part(day, part, math.inf)
    rows = json.loads((day.folder / "day.json").read_text())
    assert (rows["doctor"]["status"], rows["doctor"]["found"]) == ("failed", "KeyError: 'trials'")
    assert rows["first contact"]["status"] == "failed"
    assert rows["first contact"]["found"].startswith("exit 2: ")
    assert "| failed |" in (day.folder / "table.md").read_text()


def test_a_command_without_time_is_asked_to_end(day: Day) -> None:
    """A part without time is cut off, and has not failed."""
    part = replace(PARTS[0], list_steps=lambda _: [Step(arguments=("doctor",), out="x")])
    card_day.run_part(day, part, time.monotonic())
    assert (day.rows["doctor"].status, day.rows["doctor"].finished) == ("cut off", 0)


@pytest.mark.parametrize(
    ("digest", "kernels", "words"),
    [
        ("a", 1.0, "same code, same counts"),
        ("b", 1.0, "other code, same counts"),
        ("b", 2.0, "other code, other generated_kernels"),
    ],
)
def test_a_target_is_compared_with_the_card(day: Day, digest: str, kernels: float, words: str) -> None:
    """By the code's digest and by counts, with both releases of torch."""
    leave(day, "target", "a", generated_kernels=1.0)
    leave(day, "unchanged", digest, generated_kernels=kernels)
    assert card_day.describe_target(day) == f"{CASE}: {words}; torch 2.6 and 2.9"
