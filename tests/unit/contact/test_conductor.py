"""Assumptions are asked in processes of their own, and whatever one of them does, the others are asked."""

from __future__ import annotations

import statistics
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gate.contact.conductor import MAX_FILE_BYTES, Contact, make_contact, write_bundle
from gate.contact.findings import (
    AssumptionResult,
    AssumptionStatus,
    count_outcomes,
    expect_range,
    render_results,
)
from gate.contact.worker import is_of_device
from gate.errors import MachineError, UsageError

# What asks four made-up things as the real one asks all: one raises, one ends its process, one never ends.
ASKING = """
import os, sys, time
from gate.contact import worker
from gate.contact.assumptions import assume
from gate.contact.findings import claim, expect_range

@assume(judged=("cpu",))
def holds(place):
    "One is one."
    return {"first": expect_range(1, 1, 1), "second": claim(True, "so")}

@assume()
def raises(place):
    "The question is asked well."
    raise ValueError("it went wrong\\nin detail")  # by the question's own code

@assume()
def ends(place):
    "The process lives on."
    os._exit(7)

@assume(limit_s=1)
def hangs(place):
    "It comes to an end."
    time.sleep(60)

@assume("cuda")
def of_a_gpu(place):
    "There is a card."

@assume(judged=("cpu",))
def opens(place):
    "The device can be opened."
    return claim(place.device.kind.name == "cpu" and place.is_open, f"process {os.getpid()}")

@assume(judged=("cpu",), alone=True)
def is_alone(place):
    "Nobody else is on the device."
    return claim(not place.is_open, f"process {os.getpid()}")

@assume()
def is_told(place):
    "What has its range on a GPU is told on a CPU."
    return expect_range(2.5, 0, 1, "ms")

worker.ALL = (holds, raises, ends, hangs, of_a_gpu, is_told, opens, is_alone)
sys.exit(worker.main(sys.argv[1:]))
"""


def make(out: Path, *names: str) -> Contact:
    """Return a contact that asks the made-up assumptions."""
    return Contact(device="cpu", out=out, threads=1, limit_s=100.0, names=names, worker=("-c", ASKING))


def test_one_that_fails_ends_no_other(tmp_path: Path) -> None:
    """What ends its process or hangs is refuted, what raises of its own is not asked; what follows is."""
    told: list[AssumptionResult] = []
    names = ("holds", "raises", "ends", "hangs", "is_told")
    found = make_contact(make(tmp_path, *names), told.append)
    assert [(one.name, one.outcome, one.found) for one in found] == [
        ("holds, first", AssumptionStatus.PROVED, "1"),
        ("holds, second", AssumptionStatus.PROVED, "so"),
        ("raises", AssumptionStatus.UNASKED, "the question itself failed: ValueError: it went wrong"),
        ("ends", AssumptionStatus.REFUTED, "the process ended with status 7"),
        ("hangs", AssumptionStatus.REFUTED, "no answer within 1 s"),
        ("is_told", AssumptionStatus.TOLD, "2.5 ms"),
    ]
    assert found[-1].expected == "0 to 1 on a GPU"
    assert found[-1].assumed == "What has its range on a GPU is told on a CPU."
    assert tuple(told) == found
    assert count_outcomes(found) == "2 PROVED, 2 REFUTED, 1 TOLD, 1 UNASKED"


@pytest.mark.parametrize(
    ("fails", "is_answer"),
    [
        (lambda: torch.ones(2) @ torch.ones(3), True),
        (lambda: torch.nn.Linear(2, 2)(torch.ones(3)), True),
        (lambda: torch.cuda.get_device_name(99), True),
        (lambda: statistics.median([]), False),
        (lambda: dict[str, int]()["no such key"], False),
        (lambda: next(iter(())), False),
    ],
    ids=["C++", "C++ below a module", "Python of torch", "statistics", "a key", "an iterator"],
)
def test_only_an_error_of_torchs_is_an_answer(fails: Callable[[], object], is_answer: bool) -> None:
    """What the code of a question raises says nothing of the device."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        fails()
    assert is_of_device(caught.value) is is_answer


def test_what_counts_who_is_on_the_device_is_asked_by_a_process_that_is_not(tmp_path: Path) -> None:
    """The one before has opened it, and would be found there by every trial."""
    opened, alone = make_contact(make(tmp_path, "opens", "is_alone"), lambda _: None)
    assert (opened.outcome, alone.outcome) == (AssumptionStatus.PROVED, AssumptionStatus.PROVED)
    assert opened.found != alone.found


# Says what the real one says, of three, and is at the second when its time is up.
SLOW = """
import json, sys, time
with open(sys.argv[2] + "/findings.jsonl", "a") as file:
    for line in (
        {"line": "planned", "assumed": {"one": "A.", "two": "B.", "three": "C."}},
        {"line": "asked", "name": "one", "assumed": "A.", "limit_s": 9},
        {"line": "answered", "name": "one", "assumed": "A.", "outcome": "PROVED", "found": "1"},
        {"line": "asked", "name": "two", "assumed": "B.", "limit_s": 9},
    ):
        file.write(json.dumps(line) + "\\n")
time.sleep(60)
"""


def test_what_there_was_no_time_for_is_said(tmp_path: Path) -> None:
    """With the time up in the middle of a question, neither it nor what would have followed is left out."""
    slow = Contact(device="cpu", out=tmp_path, threads=1, limit_s=3.0, worker=("-c", SLOW))
    told: list[AssumptionResult] = []
    found = make_contact(slow, told.append)
    assert [(one.name, one.outcome) for one in found] == [
        ("one", AssumptionStatus.PROVED),
        ("two", AssumptionStatus.UNASKED),
        ("three", AssumptionStatus.UNASKED),
    ]
    assert tuple(told) == found


def test_a_worker_whose_time_is_up_before_it_plans_is_told(tmp_path: Path) -> None:
    """Nothing asked must not look like nothing refuted: that is UNASKED, and names the worker's log."""
    idle = ("-c", "import time; time.sleep(60)")
    told: list[AssumptionResult] = []
    found = make_contact(Contact(device="cpu", out=tmp_path, threads=1, limit_s=1, worker=idle), told.append)
    log = tmp_path / "worker-0.log"
    expected = f"nothing was asked within 1.0 s; see {log}, or raise --minutes"
    assert [(one.name, one.outcome, one.found) for one in found] == [
        ("all", AssumptionStatus.UNASKED, expected)
    ]
    assert (tuple(told), log.exists()) == (found, True)


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    """Nothing asked must not look like nothing refuted; what is about GPUs is unknown on a CPU."""
    with pytest.raises(UsageError, match="no assumption 'of_a_gpu' about cpu"):
        make_contact(make(tmp_path, "of_a_gpu"), lambda _: None)


def test_a_device_that_is_not_there_is_the_machines_fault(tmp_path: Path) -> None:
    """The real worker says which device there is not."""
    contact = Contact(device="cuda:63", out=tmp_path, threads=1, limit_s=60.0)
    with pytest.raises(MachineError, match="no such device: cuda:63"):
        make_contact(contact, lambda _: None)


def test_the_table_says_what_was_assumed_of_what_is_refuted() -> None:
    """A line says name, number and range; a second line the assumption, only where it does not hold."""
    good = AssumptionResult(
        outcome=AssumptionStatus.PROVED, found="1.01", expected="0.9 to 1.1", name="clocks", assumed="so"
    )
    bad = AssumptionResult(
        outcome=AssumptionStatus.REFUTED, found="5 GiB", name="memory", assumed="It is less."
    )
    assert render_results((good, bad)) == (
        "PROVED   clocks: 1.01 (expected 0.9 to 1.1)\nREFUTED  memory: 5 GiB\n         assumed: It is less.\n"
    )


@pytest.mark.parametrize(
    ("value", "outcome"), [(2.0, "PROVED"), (2.01, "REFUTED"), (float("nan"), "REFUTED")]
)
def test_a_range_holds_both_its_ends(value: float, outcome: str) -> None:
    """What is no number is in no range."""
    assert expect_range(value, 1, 2).outcome == outcome


def test_the_bundle_holds_what_was_seen(tmp_path: Path) -> None:
    """Files keep their places below; one that no issue would take is named instead."""
    seen = tmp_path / "seen"
    (seen / "full").mkdir(parents=True)
    (seen / "full" / "run.json").write_text("{}")
    (seen / "core").write_bytes(b"\0" * (MAX_FILE_BYTES + 1))
    assert write_bundle(seen, tmp_path / "bundle.zip") == ("core",)
    assert zipfile.ZipFile(tmp_path / "bundle.zip").namelist() == ["full/run.json"]
