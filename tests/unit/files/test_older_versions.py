"""Files of older versions that held sentences are read, and say the same."""

from __future__ import annotations

import json

import pytest

from gate.errors import FileError
from gate.files.codec import CALIBRATION, RUN, SELFTEST, FileKind, decode_file, encode, encode_file
from gate.files.older_versions import migrate_version_2
from gate.records import (
    Case,
    CaseFailure,
    Code,
    Disturbance,
    Fact,
    FailureKind,
    Metric,
    Provenance,
    Run,
    Trial,
    make_text,
    name_words,
)
from gate.records.calibration import Calibration, Effort, Flaw, Instability
from gate.records.faults import Demand, FaultKind
from gate.records.selftest import Attempt, Complaint, FaultScore, Result, SelftestReport
from gate.report.calibration import render_calibration
from gate.report.selftest import render_selftest
from gate.report.words.failures import describe_failure
from gate.report.words.measuring import describe_measuring
from tests.hosts import CPU_HOST

SAID = "Trials fall into two groups that are 8.0 % apart."
NOTED = "No pairs were recorded."
CALIBRATED = Calibration(
    environment=CPU_HOST,
    provenance=Provenance(commit="abc"),
    case_ids=("m/x",),
    trials=8,
    pairs=0,
    effort=Effort(baseline_trials=5, trials=1, max_trials=3, requests=1000),
    noise=(),
    unstable=(
        Instability(
            case_id="m/x",
            metric=Metric.COMPILED_LATENCY,
            flaw=Flaw.TWO_MODES,
            told=Fact(code=Code.TEXT, names=name_words(text=SAID)),
        ),
    ),
    costs=(),
    replays=(),
    notes=(Fact(code=Code.TEXT, names=name_words(text=NOTED)),),
)


def write_version_1(kind: FileKind, record: object, said: dict[str, tuple[str, str]]) -> bytes:  # type: ignore[type-arg]
    """Write a file as version 1 did: what ``said`` names held a sentence under that key."""
    plain = json.loads(encode_file(kind, record))
    plain["schema"] = f"compile-gate/{kind.name}/1"
    for field, (key, text) in said.items():
        for one in plain[field]:
            one.pop("told", None)
            one[key] = text
    return json.dumps(plain).encode()


def test_calibration_of_version_1_says_what_it_said() -> None:
    """Its notes were sentences, and so was what made a case unstable."""
    plain = json.loads(write_version_1(CALIBRATION, CALIBRATED, {"unstable": ("sentence", SAID)}))
    plain["notes"] = [NOTED]
    read = decode_file(CALIBRATION, json.dumps(plain).encode(), "calibration.json")
    assert read == CALIBRATED
    told = render_calibration(read)
    assert SAID in told
    assert NOTED in told


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("it could not be tried: every attempt failed", Complaint.UNTRIED),
        ("2 of 5 harmless changes turned red", Complaint.ALARMS),
        ("2 of 5 were missed", Complaint.MISSES),
        ("only 1 of 5 were caught", Complaint.FEW_CAUGHT),
        ("", None),
    ],
)
def test_selftest_of_version_1_says_what_it_said(said: str, complaint: Complaint | None) -> None:
    """What the gate said of an attempt stays its words; what was not good enough has become a code."""
    attempt = Attempt(
        kind=FaultKind.SLOWDOWN,
        size=0.05,
        case_id="m/x",
        result=Result.MISSED,
        planted=0.05,
        is_asked=True,
        told=Fact(code=Code.TEXT, names=name_words(text="it is unchanged")),
    )
    score = FaultScore(
        kind=FaultKind.SLOWDOWN,
        size=0.05,
        planted=0.05,
        demand=Demand(),
        is_asked=True,
        tried=5,
        caught=1,
        inconclusive=2,
        missed=2,
        false_alarms=2,
        rate=None,
        wall_s=1.0,
        complaint=complaint,
    )
    report = SelftestReport(
        environment=CPU_HOST,
        provenance=Provenance(commit="abc"),
        case_ids=("m/x",),
        attempts=(attempt,),
        scores=(score,),
        untried=(),
        wall_s=1.0,
    )
    old = {"attempts": ("sentence", "it is unchanged"), "scores": ("complaint", said)}
    read = decode_file(SELFTEST, write_version_1(SELFTEST, report, old), "selftest.json")
    assert read == report
    assert said in render_selftest(read)


def test_run_of_version_1_keeps_what_disturbed_it_and_what_it_warned_of() -> None:
    """Each phrase becomes its code; a warning stays the sentence that it was; what is no list is told."""
    phrases = {
        "other programs kept 1.9 of 2 cores busy": Disturbance.CROWDED,
        "the hypervisor took 3 % of the time": Disturbance.STOLEN,
        "the container's quota stopped it for 5 % of the time": Disturbance.HELD_BACK,
        "processor cores lowered their clocks for heat": Disturbance.HEATED,
        "64 MiB were swapped": Disturbance.SWAPPED,
        "only 100 MiB of memory were free": Disturbance.SHORT_OF_MEMORY,
        "the device lowered its clocks (hardware thermal slowdown)": Disturbance.THROTTLED,
        "other processes used the device": Disturbance.SHARED,
    }
    trial = {"case_id": "a/x", "index": 1, "conditions": {"disturbances": [*phrases]}, "warnings": ["slow"]}
    cases = tuple(Case(id=name, model="a", definition="d") for name in ("a/x", "b"))
    run = Run(cases=cases, environment=CPU_HOST, provenance=Provenance())
    plain = {**encode(run), "schema": "compile-gate/run/1", "trials": [trial, {"case_id": "b", "index": 1}]}
    read = decode_file(RUN, json.dumps(plain).encode(), "run.json").trials[0]
    assert read.conditions.disturbances == tuple(phrases.values())
    assert [fact.name("text") for fact in read.warnings] == ["slow"]
    bad = {"case_id": "a/x", "index": 1, "conditions": {"disturbances": ["?"]}}
    for trials in ("none", [1], [{"conditions": 1, "warnings": 2}], [bad]):
        with pytest.raises(FileError):
            decode_file(RUN, json.dumps({**plain, "trials": trials}).encode(), "run.json")


def test_how_a_case_failed_was_a_sentence_in_version_2() -> None:
    """It stays its words; a run of which no failure is a list is refused as it is."""
    case = Case(id="a/x", model="a", definition="d")
    run = Run(cases=(case,), environment=CPU_HOST, provenance=Provenance())
    said = "timed out after 300 s in the cold process"
    failed = {"case_id": "a/x", "trial": 1, "kind": "hang", "stage": "compile", "message": said}
    plain = {**encode(run), "schema": "compile-gate/run/2", "failures": [failed]}
    (failure,) = decode_file(RUN, json.dumps(plain).encode(), "run.json").failures
    assert (failure.kind, failure.told) == (FailureKind.HANG, make_text(said))
    assert describe_failure(failure) == said
    with pytest.raises(FileError):
        decode_file(RUN, json.dumps({**plain, "failures": [1]}).encode(), "run.json")


def test_what_a_trial_warned_of_had_words_in_version_2() -> None:
    """They stay as they are, and so does what was not known; what is no warning is refused."""
    case = Case(id="a/x", model="a", definition="d")
    run = Run(cases=(case,), environment=CPU_HOST, provenance=Provenance())
    warned = [
        {"code": "not_forked", "names": {"why": ["a thread"]}},
        {"code": "left_to_eager", "names": {"text": ["left to eager at a.py:9: no"]}},
        {"code": "no_tensors"},
    ]
    trial = {
        "case_id": "a/x",
        "index": 1,
        "warnings": warned,
        "unknown": ["this torch does not report guards"],
    }
    plain = {**encode(run), "schema": "compile-gate/run/2", "trials": [trial]}
    read = decode_file(RUN, json.dumps(plain).encode(), "run.json").trials[0]
    assert [describe_measuring(fact) for fact in read.warnings[:2]] == [
        "workers are not forked, each imports everything itself: a thread",
        "left to eager at a.py:9: no",
    ]
    assert read.warnings[2] == Fact(code=Code.NO_TENSORS)
    assert read.unknown == (make_text("this torch does not report guards"),)
    for wrong in (1, {"code": "not_forked"}, {"code": ["not_forked"], "names": {}}, {"names": {"why": "?"}}):
        bad = {**plain, "trials": [{**trial, "warnings": [wrong]}]}
        with pytest.raises(FileError):
            decode_file(RUN, json.dumps(bad).encode(), "run.json")


def test_what_is_shown_of_a_side_had_words_in_version_2() -> None:
    """Of either side, and a note that was such a warning."""
    said = "this torch does not report guards"
    old = {
        "notes": [{"code": "unknown_here", "names": {"text": [said]}}],
        "evidence": [{"case_id": "a/x", "before": None, "after": {"unknown": [said]}}, 1],
    }
    text = {"code": "text", "names": {"text": [said]}}
    assert migrate_version_2(old) == {
        "notes": [{**text, "code": "warning"}],
        "evidence": [{"case_id": "a/x", "before": None, "after": {"unknown": [text]}}, 1],
    }


def test_what_is_not_known_of_a_trial_has_codes_of_its_own() -> None:
    """A warning that stands there is refused."""
    case = Case(id="a/x", model="a", definition="d")
    trial = Trial(case_id="a/x", index=1, unknown=(Fact(code=Code.NO_TENSORS),))
    run = Run(cases=(case,), environment=CPU_HOST, provenance=Provenance(), trials=(trial,))
    with pytest.raises(FileError, match="no_tensors does not stand there"):
        decode_file(RUN, encode_file(RUN, run).encode(), "run.json")


@pytest.mark.parametrize(
    "told",
    [
        Fact(code=Code.STOPPED),  # stands elsewhere
        Fact(code=Code.NO_END),  # without its limit
        Fact(code=Code.RAISED, numbers={"limit_s": 1.0}),  # has no numbers
    ],
)
def test_a_failure_of_another_shape_is_refused(told: Fact) -> None:
    """What could not be told in words is no failure that the gate wrote."""
    case = Case(id="a/x", model="a", definition="d")
    failure = CaseFailure(case_id="a/x", trial=1, kind=FailureKind.HANG, stage="compile", told=told)
    run = Run(cases=(case,), environment=CPU_HOST, provenance=Provenance(), failures=(failure,))
    with pytest.raises(FileError, match="failures"):
        decode_file(RUN, encode_file(RUN, run).encode(), "run.json")
