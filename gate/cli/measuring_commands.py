"""The commands that measure: how they are called; imports nothing heavy."""

from __future__ import annotations

from operator import methodcaller

from gate.cli.options import (
    ANYWAY,
    APPROVALS,
    BASELINES,
    CONFIG,
    DEVICE,
    FAIL,
    GATE,
    HISTORY,
    LAB,
    LAB_OR_TARGET,
    LOCK,
    QUIET,
    REPORT_FORMAT,
    RESUME,
    TRACE,
    TRIALS,
    VOLUME,
    Command,
    JoinTerms,
    argument,
    lasting,
    parse_count,
    parse_shard,
    to_directory,
)
from gate.errors import ExitCode

# What a command that judges can end with.
VERDICT_CODES = (
    *(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
    *(ExitCode.REGRESSION, ExitCode.INCONCLUSIVE, ExitCode.INCOMPLETE),
)
AB_MINUTES = 60.0  # a dozen cases, ten pairs each, on two cores
BISECT_MINUTES = 20.0  # a small case between 32 commits on two cores
SELFTEST_MINUTES = 10.0  # all faults once on two cores
CONTACT_MINUTES = 30.0  # all assumptions once on one GPU
CALIBRATION_PAIRS = 8  # they know their own spread to a quarter of it
CALIBRATION_REQUESTS = 1000  # without any false alarm they exclude a rate above 0.4 %

SHARD = argument(
    "--shard",
    type=parse_shard,
    metavar="K/N",
    help="measure the K-th of N parts of the selection; `merge` misses a part that is not there",
)

CHECK = Command(
    name="check",
    summary="measure, judge against the stored baselines, report: the main job",
    example="compile-gate check --select tag:smoke",
    success="PASS: every planned case was measured, and nothing that has a baseline regressed",
    codes=VERDICT_CODES,
    run="gate.cli.check:run_check",
    arguments=(
        *(*CONFIG, *LAB_OR_TARGET, TRIALS, TRACE, RESUME, BASELINES, SHARD),
        argument(
            "--base",
            metavar="REF",
            help="re-measure suspected regressions side by side with the merge base of REF and HEAD",
        ),
        argument(
            "--budget",
            type=float,
            metavar="SECONDS",
            dest="budget_s",
            help="start no extra trial of an undecided case after so long",
        ),
        argument(
            "--pair-budget",
            type=float,
            metavar="SECONDS",
            dest="pair_budget_s",
            help="with --base: spend at most so long on re-measuring side by side",
        ),
        argument(
            "--thorough",
            action="store_true",
            help=(
                "with --base: settle every doubt about a case, though it has regressed for certain"
                " or imports nothing that changed"
            ),
        ),
        *(APPROVALS, GATE, HISTORY, FAIL, REPORT_FORMAT, VOLUME),
    ),
)
AB = Command(
    name="ab",
    summary="measure two commits, directories or interpreters side by side",
    example="compile-gate ab main --select 'bert/*'",
    success="PASS: every planned case was measured, and nothing that the base has regressed",
    codes=VERDICT_CODES,
    run="gate.cli.ab:run_ab",
    arguments=(
        argument(
            "base",
            nargs="?",
            metavar="BASE",
            help="a git ref or a directory (default: where HEAD forked from the main branch)",
        ),
        argument(
            "head",
            nargs="?",
            metavar="HEAD",
            help="a git ref or a directory (default: the working tree)",
        ),
        *CONFIG,
        argument(
            "--anchor",
            action="store_true",
            help="hold head against the release anchor (see `baseline anchor`); what is named is HEAD then",
        ),
        argument("--base-python", metavar="FILE", help="the base's interpreter, which has torch"),
        argument("--head-python", metavar="FILE", help="head's interpreter (default: this one)"),
        *(*LAB_OR_TARGET, TRACE, RESUME, lasting(AB_MINUTES, "start no new pair after M minutes")),
        *(HISTORY, FAIL, VOLUME, methodcaller("set_defaults", format="text")),  # it may print two reports
    ),
)
BISECT = Command(
    name="bisect",
    summary="find the first commit, or interpreter, at which a case got worse",
    example="compile-gate bisect --good v1.0 --bad main bert/inference-float32-smoke-default",
    success="the first bad one was found, and seen again side by side with the one before it",
    codes=(ExitCode.MACHINE, ExitCode.INCONCLUSIVE, ExitCode.INCOMPLETE),
    run="gate.cli.bisect:run_bisect",
    arguments=(
        # Not required by the parser: where it stands behind --pythons, that has taken it for an interpreter.
        argument("select", nargs="?", metavar="CASE", help="the one case, by id or pattern"),
        argument(
            "metric",
            nargs="?",
            metavar="METRIC",
            help="a metric that decides (default: what is worse at the bad end, a counter first)",
        ),
        *CONFIG,
        argument("--good", metavar="REF", help="a commit that is known to be good"),
        argument("--bad", metavar="REF", help="a later one that is known to be bad (default: HEAD)"),
        argument(
            "--pythons",
            nargs="+",
            metavar="FILE",
            help="search interpreters instead, the working tree's code on each: the first is good, the last"
            " bad; behind CASE, since it takes all that follows",
        ),
        *(DEVICE, to_directory("results go to bisect/ in there (default: out)"), LOCK, RESUME),
        lasting(BISECT_MINUTES, "of the whole search; what it leaves open goes on with --resume"),
        QUIET,
    ),
)
MEASURE = Command(
    name="measure",
    summary="measure only; writes out/run.json",
    example="compile-gate measure --select 'bert/*' --trials 3",
    success="every planned case was measured; nothing was judged",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.check:run_measure",
    arguments=(*(*CONFIG, *LAB_OR_TARGET, TRIALS, TRACE, RESUME, QUIET, SHARD),),
)
REFRESH = Command(
    name="baseline refresh",
    summary="measure and record this environment's baselines",
    example="compile-gate baseline refresh --trials 5",
    success="every selected case was measured and its baseline written",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.baseline:run_refresh",
    arguments=(
        *(*CONFIG, *LAB_OR_TARGET, TRIALS, RESUME, BASELINES, HISTORY),
        argument("--reason", default="", metavar="R", help="why a metric got worse; needed where one did"),
        *(ANYWAY, QUIET),
    ),
)
CALIBRATE = Command(
    name="calibrate",
    summary="measure unchanged code often: noise, unstable cases, what the gate can see here",
    example="compile-gate calibrate --select 'bert/*' --trials 12",
    success="every planned case was measured, and often enough to say something",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.calibrate:run_calibrate",
    arguments=(
        *(*CONFIG, *LAB, TRIALS, RESUME),
        argument(
            "--pairs",
            type=parse_count,
            metavar="P",
            help=f"pairs of each case with itself (default: {CALIBRATION_PAIRS})",
        ),
        argument(
            "--requests",
            type=parse_count,
            default=CALIBRATION_REQUESTS,
            metavar="N",
            help=f"pull requests to simulate from the trials (default: {CALIBRATION_REQUESTS})",
        ),
        argument(
            "--run",
            dest="run_files",
            action="extend",
            nargs="+",
            metavar="FILE",
            help="measure nothing: take the trials of these run.json files, all of one unchanged program",
        ),
        *(ANYWAY, QUIET),
    ),
)
SELFTEST = Command(
    name="selftest",
    summary="plant known faults into your models and count which ones the gate catches",
    example="compile-gate selftest --select 'bert/*' --minutes 30",
    success="every fault was tried, and all that must be caught were",
    codes=(ExitCode.MACHINE, ExitCode.REGRESSION, ExitCode.INCOMPLETE),
    run="gate.cli.selftest:run_selftest",
    arguments=(
        *(*CONFIG, *LAB, lasting(SELFTEST_MINUTES, "start no new fault after M minutes")),
        argument(
            "--repeats",
            type=parse_count,
            metavar="N",
            help="tries of each slowdown (default: as time allows)",
        ),
        argument(
            "--quick", action="store_true", help="only what needs no statistics, and the largest slowdown"
        ),
        argument(
            "--faults",
            action=JoinTerms,
            metavar="NAMES",
            help="only these faults, joined by commas: graph_break, 'slowdown-*'; may be repeated",
        ),
        QUIET,
    ),
)
FIRST_CONTACT = Command(
    name="first-contact",
    summary="ask a device whether what the gate assumes of it is so",
    example="compile-gate first-contact --device cuda",
    success="all was asked, and nothing that is assumed was refuted",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.first_contact:run_first_contact",
    arguments=(
        *(*CONFIG, DEVICE, to_directory("write what was seen there (default: first-contact)")),
        lasting(CONTACT_MINUTES, "ask nothing more after M minutes"),
        argument(
            "--only",
            action=JoinTerms,
            metavar="NAMES",
            help="only these assumptions, by the names in the table, joined by commas",
        ),
    ),
)
