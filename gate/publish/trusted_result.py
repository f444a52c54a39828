"""What came of a run, as far as it may be told: a trusted verdict, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from gate.decide.conclude.coverage import Coverage
from gate.decide.conclude.outcome import FailOn, compute_exit_code
from gate.errors import ExitCode
from gate.publish.ci_run import CiRun
from gate.publish.submitted_verdict import Refusal
from gate.records import Fact, Outcome, Status, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustedResult:
    """What came of a run: a trusted verdict, or why there is none.

    ``counts``, ``case_count`` and ``coverage`` are of all comparisons and cases, also of those that are
    not shown. ``remarks`` are what GitHub itself says of the change, where there is no verdict to say it in.
    ``preface`` is a paragraph of Markdown that stands below the heading.
    """

    run: CiRun
    verdict: Verdict | None = None
    counts: tuple[tuple[Status, int], ...] = ()
    case_count: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    refusal: Refusal | None = None
    remarks: tuple[Fact, ...] = ()
    preface: str = ""
    steps: tuple[str, ...] = ()  # in Markdown, what to do next where it is no pull request
    fail_on: FailOn = FailOn.REGRESSION
    base_sha: str = ""  # what head was measured side by side with, where it is on the base branch
    is_waived: bool = False  # somebody accepts for this commit that baselines are missing
    can_accept: bool = True  # the repository has a workflow that accepts regressions
    can_refresh: bool = True  # and one that records baselines
    gate: str = ""  # the key that tells it from others of the repository, if it has one

    @property
    def outcome(self) -> Outcome:
        """The verdict's outcome; INCOMPLETE without one, since nothing is known."""
        return self.verdict.outcome if self.verdict else Outcome.INCOMPLETE

    @property
    def is_failing(self) -> bool:
        """Whether the verdict fails the check."""
        code = compute_exit_code(self.outcome, self.fail_on, self.coverage, is_waived=self.is_waived)
        return code is not ExitCode.PASS

    @property
    def has_other_trouble(self) -> bool:
        """Whether the run failed although its verdict lets it pass: it knows better than its artifact."""
        return not self.is_failing and self.run.conclusion not in {"success", ""}
