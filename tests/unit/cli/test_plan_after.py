"""``plan --after``: a target's result counts for the checkout that it was of."""

from dataclasses import replace
from itertools import chain

import pytest

from gate.devices import TARGET_KIND
from gate.files.codec import RUN
from gate.lab.arms.changes import hash_changes
from gate.project.config import load_config
from gate.project.registry import load_cases
from gate.records.run import CodeIdentity, Provenance, Run
from tests.hosts import CUDA_HOST
from tests.make import make_pair, make_run
from tests.unit.cli.conftest import Sandbox

TARGET = replace(CUDA_HOST, device_kind=TARGET_KIND, device_model="cuda:sm_90")


@pytest.fixture
def shown(sandbox: Sandbox) -> Run:
    """A target's run of the checkout: the only case has the base's code, in both pairs."""
    sandbox.begin()
    cases = load_cases(load_config(sandbox.top / "gate.yml"))
    run = make_run(
        *chain.from_iterable(make_pair(cases[0].id, at, identity=CodeIdentity(digest="a1")) for at in (1, 2)),
        cases=cases,
        environment=TARGET,
        provenance=Provenance(commit=sandbox.git("rev-parse", "HEAD")),
        changes=hash_changes(sandbox.top),
        base=cases,
    )
    RUN.save(run, sandbox.top / "shown.json")
    return run


@pytest.mark.usefixtures("shown")
def test_a_case_of_the_same_code_is_left_out(sandbox: Sandbox) -> None:
    """Nothing is left to measure."""
    assert sandbox.run("plan", "--after", "shown.json") == 0
    assert "left out: 1 of 1 cases" in sandbox.read().err


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("is_committed", [False, True])
def test_what_was_shown_of_other_code_is_refused(sandbox: Sandbox, is_committed: bool) -> None:
    """A later edit or commit may have other code, which no GPU would measure."""
    (sandbox.top / "actor.py").write_text("edited = True\n", encoding="utf-8")
    if is_committed:
        sandbox.git("add", "-A")
        sandbox.git("commit", "--quiet", "--message", "Edit")
    assert sandbox.run("plan", "--after", "shown.json") == 2
    errors = sandbox.read().err
    assert "so it does not say whose code is the same" in errors
    assert ("other files than these" in errors) is not is_committed
    assert "Measure it here: compile-gate ab BASE --target cuda:sm_90." in errors
