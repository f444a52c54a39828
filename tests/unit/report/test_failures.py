"""Sentences of failures, with and without words that may not be quoted."""

from dataclasses import replace

import pytest

from gate.records.codes import Code
from gate.records.facts import FAILURE_CODES, Fact, name_words
from gate.records.run import CaseFailure, FailureKind
from gate.report.words.facts import describe_failure, describe_unavailable, find_failing_line

WARM = name_words(role="warm")


def fail(fact: Fact, kind: FailureKind = FailureKind.CRASH) -> CaseFailure:
    return CaseFailure(case_id="m/x", trial=1, kind=kind, stage="compile", fact=fact)


@pytest.mark.parametrize("code", sorted(FAILURE_CODES))
def test_every_code_has_words(code: Code) -> None:
    """With names and without."""
    numbers = dict.fromkeys(code.numbers, 2.0)
    names = name_words(message="it broke", text="it broke", role="cold", shortage="disk", packages="onnx")
    for fact in (Fact(code=code, numbers=numbers, names=names), Fact(code=code, numbers=numbers)):
        text = describe_failure(fail(fact))
        assert text
        assert "{" not in text
        assert "  " not in text


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (
            Fact(code=Code.NO_END, numbers={"wall_s": 1234.5, "cpu_s": 300.2}, names=WARM),
            "did not end in 300.2 CPU seconds (1,234 s by the clock) in the warm process",
        ),
        (
            Fact(code=Code.HANGS, numbers={"wall_s": 1200.1, "cpu_s": 3.4}, names=WARM),
            "used 3.4 CPU seconds in 1,200 s in the warm process, and none at the end",
        ),
        (
            Fact(
                code=Code.NO_RESULT, numbers={"status": 3}, names=name_words(role="cold", shortage="memory")
            ),
            "ended with exit status 3, it left no result in the cold process; the log mentions memory",
        ),
        (
            Fact(code=Code.RESULT_UNFINISHED, numbers={"status": -11}, names=WARM),
            "ended with SIGSEGV, its result is unfinished in the warm process",
        ),
        (
            Fact(code=Code.RESULT_TOO_LARGE, numbers={"status": -40, "bytes": 67108864}),
            "ended with signal 40, its result is larger than 67108864 bytes",
        ),
        (
            Fact(code=Code.SIGKILLED, numbers={"oom_kills": 2}, names=WARM),
            (
                "killed by SIGKILL, which the gate did not send"
                " (the kernel's out-of-memory killer was at work meanwhile) in the warm process"
            ),
        ),
        (
            Fact(code=Code.PYTEST_ENDED, numbers={"status": 5}),
            "pytest ended with status 5 before the result was complete; see the log",
        ),
        (Fact(code=Code.RAISED, names=name_words(message="KeyError: 3")), "KeyError: 3"),
        (
            Fact(code=Code.NO_BFLOAT16, numbers={"capability": 7.5, "needed": 8.0}, cases=("m/x",)),
            (
                "UNAVAILABLE: this GPU compiles no bfloat16: its compute capability is 7.5, 8.0 is needed;"
                " leave it out here: --select '...,!m/x'"
            ),
        ),
    ],
)
def test_a_failure_is_described_with_its_numbers(fact: Fact, words: str) -> None:
    """The sentence has the process, its status and what its log mentions."""
    assert describe_failure(fail(fact)) == words


def test_without_a_quote_the_kind_is_named() -> None:
    """A verdict from elsewhere shows the kind of failure only."""
    assert describe_failure(fail(Fact(code=Code.RAISED), FailureKind.NOT_FINITE)) == "NaN or infinity"


def test_cases_that_lack_the_same_are_named_together() -> None:
    """Three are named, the others counted."""
    onnx = Fact(code=Code.PACKAGES_LACKING, names={"packages": ("onnx",)})
    two = Fact(code=Code.PACKAGES_LACKING, names={"packages": ("onnx", "timm")})
    assert describe_unavailable({"a": onnx, "b": two, "c": onnx}) == (
        "UNAVAILABLE: a, c: onnx is not installed (pip install onnx);"
        " b: onnx and timm are not installed (pip install onnx timm)"
    )
    assert not describe_unavailable({})


@pytest.mark.parametrize(
    ("log", "location"),
    [
        (
            (
                'Traceback (most recent call last):\n  File "/srv/shop/bench.py", line 7, in build\n'
                '  File "/srv/shop/model.py", line 12, in forward\n'
                '  File "/venv/lib/python3.12/site-packages/torch/nn/functional.py", line 9, in gelu\n'
            ),
            "/srv/shop/model.py:12",
        ),
        (
            (
                "Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n"
                '  File "/usr/lib/python3.12/ctypes/__init__.py", line 5 in string_at\n'
                '  File "model.py", line 3 in forward\n  File "bench.py", line 7 in build\n'
                '  File "/opt/gate/measure/trial.py", line 88 in measure\n'
            ),
            "model.py:3",
        ),
        ('  File "/opt/gate/measure/trial.py", line 88 in measure\n', ""),
        ("no result\n", ""),
    ],
    ids=["traceback", "dump", "not the user's", "nothing"],
)
def test_a_failing_line_is_the_innermost_of_the_user(log: str, location: str) -> None:
    """It ends a traceback and begins a fault handler's dump; installed packages do not count."""
    failed = replace(fail(Fact(code=Code.NO_END, numbers={"wall_s": 9, "cpu_s": 9})), log_tail=log)
    assert find_failing_line(failed) == location
