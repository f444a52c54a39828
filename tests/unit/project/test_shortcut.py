"""Cases that need no GPU, by a target's result."""

from dataclasses import replace
from functools import partial

import pytest

from gate.errors import UsageError
from gate.project.plan import drop_unchanged_code
from gate.records.cases import Case
from gate.records.run import CodeIdentity, FailureKind, Run, Trial
from tests import make
from tests.hosts import CPU_HOST
from tests.make import make_failure

TARGET = replace(CPU_HOST, device_kind="target", device_model="cuda:sm_90")
CASES = tuple(Case(id=name, model=name, definition=f"of {name}") for name in ("same", "changed", "other"))


def make_pair(case_id: str, base: str, head: str, index: int = 1) -> tuple[Trial, Trial]:
    """A pair whose arms generated code with these identities."""
    sides = [{"identity": CodeIdentity(digest=digest)} for digest in (base, head)]
    return make.make_pair(case_id, index, *sides)


# Finished runs of a target against a base.
run_target = partial(make.make_run, cases=CASES, base=CASES, environment=TARGET)
RUN = run_target(*make_pair("same", "a", "a"), *make_pair("changed", "a", "b"))


def test_only_what_is_known_to_be_the_same_is_left_out() -> None:
    """A case whose code changed, or was not compiled, goes to the GPU."""
    assert [case.id for case in drop_unchanged_code(CASES, RUN)] == ["changed", "other"]


def test_every_pair_must_show_it() -> None:
    """One pair with different code is enough to measure."""
    run = run_target(*RUN.trials, *make_pair("same", "a", "c", index=2))
    assert drop_unchanged_code(CASES, run) == CASES


def test_unknown_code_is_not_the_same() -> None:
    """Two empty identities show nothing."""
    assert drop_unchanged_code(CASES, run_target(*make_pair("same", "", ""))) == CASES


def test_a_case_that_failed_is_measured() -> None:
    """Whatever its earlier pairs show."""
    failure = make_failure("same", "", trial=2, kind=FailureKind.ERROR)
    assert drop_unchanged_code(CASES, replace(RUN, failures=(failure,))) == CASES


def test_a_case_that_is_defined_otherwise_is_measured() -> None:
    """The run has another case under the same name."""
    redefined = (replace(CASES[0], definition="another"),)
    assert drop_unchanged_code(redefined, RUN) == redefined


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (replace(RUN, environment=CPU_HOST), "no target"),
        (replace(RUN, base=None), "no target with a base"),
        (replace(RUN, finished=False), "did not end"),
    ],
)
def test_another_run_is_no_evidence(run: Run, message: str) -> None:
    """A device's code is not the target's, and a stopped run has not compiled all."""
    with pytest.raises(UsageError, match=message):
        drop_unchanged_code(CASES, run)
