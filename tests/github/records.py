"""Verdicts, bases, runs and archives by hand, for the tests of publishing."""

import io
import zipfile
from dataclasses import replace
from typing import Any

from gate.decide.conclude.outcome import decide_outcome
from gate.files.codec import SHOWN
from gate.fingerprint import compute_environment_id
from gate.metrics import SPECS, Family
from gate.publish.shown import SHOWN_FILE, make_shown
from gate.publish.submitted import CiRun
from gate.publish.trusted import Base
from gate.records.cases import Acceptance, Case, Metric, Policy, Threshold
from gate.records.codes import Code
from gate.records.run import Provenance
from gate.records.verdict import Change, Comparison, Estimate, MachineShift, Reason, Status, Verdict
from tests import make
from tests.hosts import CUDA_HOST
from tests.make import make_baseline
from tests.words import make_facts

SHA = "a" * 40
ENVIRONMENT_ID = compute_environment_id(CUDA_HOST)
CASES = tuple(
    Case(id=f"{model}/inference-float32-smoke-default", model=model, factory=f"bench:{model}")
    for model in ("bert", "resnet50", "unet")
)
GATE_YML = "version: 1\nreference_models: false\nmodels:\n" + "".join(
    f"  - {{name: {case.model}, factory: 'bench:{case.model}', cases: [{{size: smoke}}]}}\n" for case in CASES
)
ENTRY = Acceptance(
    case=CASES[0].id,
    metric=Metric.COMPILED_LATENCY,
    allowance=0.33,
    reason="worth it",
    author="ada",
    expires="2026-11-15",
    gate="gate.yml",
    environment=ENVIRONMENT_ID,
)
RUN = CiRun(
    id=100,
    attempt=1,
    event="pull_request",
    conclusion="failure",
    head_sha=SHA,
    head_branch="topic",
    head_owner="octo-org",
    head_repository=1000,
    repository=1000,
    started="2026-11-01T11:00:00Z",
    url="https://github.com/octo-org/models/actions/runs/100",
)


GREEN = replace(RUN, conclusion="success")


def make_base(cases: tuple[Case, ...] = CASES) -> Base:
    """A base commit with baselines of three weeks ago."""
    provenance = Provenance(commit="c" * 40, created="2026-10-11T08:00:00+00:00", author="Ada")
    baselines = tuple(
        make_baseline(case.id, {}, definition="", environment=CUDA_HOST, provenance=provenance)
        for case in cases
    )
    return Base(cases=cases, baselines=baselines, policy=Policy(thresholds={}, today="2026-11-01"))


def make_estimate(centre: float, noise: float) -> Estimate:
    return Estimate(centre=centre, low=centre * (1 - noise), high=centre * (1 + noise), noise=noise, n=3)


def make_comparison(
    case: Case, metric: Metric, status: Status, reason: Reason, values: tuple[float, float] = (0.01, 0.01)
) -> Comparison:
    """A comparison with numbers; its change follows from the values.

    A counter has whole numbers, no noise and no tolerance.
    """
    before, after = values
    is_counted = SPECS[metric].family is Family.EXACT
    centre = after - before if is_counted else after / before - 1.0
    noise, width, detectable = (0.0, 0.0, 1.0) if is_counted else (0.01, 0.02, 0.04)
    if is_counted:
        reason = Reason.BEYOND_BAR if centre else Reason.BELOW_THRESHOLD
    return Comparison(
        case_id=case.id,
        metric=metric,
        status=status,
        reason=reason,
        remarks=make_facts(Code.FAILURE, "Text of whoever measured."),
        decides=True,
        baseline=make_estimate(before, noise),
        candidate=make_estimate(after, noise),
        change=Change(centre=centre, low=centre - width, high=centre + width, detectable=detectable),
        threshold=Threshold(relative=0.0 if is_counted else 0.05, absolute=0.0 if is_counted else 20e-6),
    )


def make_unchanged(case: Case) -> tuple[Comparison, ...]:
    return tuple(
        make_comparison(case, metric, Status.UNCHANGED, Reason.BELOW_THRESHOLD)
        for metric in (Metric.COMPILED_LATENCY, Metric.COLD_COMPILE_TIME)
    )


def make_regressed(case: Case, values: tuple[float, float] = (0.0121, 0.0158)) -> tuple[Comparison, ...]:
    slower = make_comparison(case, Metric.COMPILED_LATENCY, Status.REGRESSED, Reason.BEYOND_BAR, values)
    return (slower, make_unchanged(case)[1])


def make_verdict(*comparisons: Comparison, cases: tuple[Case, ...] = CASES, **more: Any) -> Verdict:
    """A verdict whose outcome follows from its comparisons."""
    verdict = make.make_verdict(
        *comparisons,
        outcome=decide_outcome(comparisons, finished=True),
        headline=make_facts(Code.REGRESSED_CASE, "Headline of whoever measured."),
        cases=cases,
        next_steps=make_facts(Code.SETTLE_QUIETLY, "Next step of whoever measured."),
        options={"--config": "configuration of whoever measured"},
        notes=make_facts(Code.RULES_OF, "Note of whoever measured."),
        machine=MachineShift(canary=0.004, suite=-0.002, known=True),
        environment=CUDA_HOST,
        provenance=Provenance(commit="d" * 40, author="Mallory"),
        baseline_environments=(ENVIRONMENT_ID,),
        trials=9,
        wall_s=312.0,
        toolchain_s=9.0,
        overhead_s=14.0,
    )
    return replace(verdict, **more)


def make_rows(**changes: Any) -> tuple[Comparison, ...]:
    """The unchanged rows of all cases; ``fields`` apply to each."""
    return tuple(replace(row, **changes) for case in CASES for row in make_unchanged(case))


UNSTORED = {"status": Status.NEW, "reason": Reason.NO_BASELINE, "baseline": None, "change": None}


def make_passing(**more: Any) -> Verdict:
    return make_verdict(*make_rows(), **more)


def make_failing(**more: Any) -> Verdict:
    rows = (*make_regressed(CASES[0]), *make_unchanged(CASES[1]), *make_unchanged(CASES[2]))
    return make_verdict(*rows, **more)


def make_archive(verdict: Verdict) -> bytes:
    """The artifact as the measuring job uploads it."""
    return make_zip({SHOWN_FILE: SHOWN.encode(make_shown(verdict)).encode(), "report.md": b"# Report"})


def make_zip(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()
