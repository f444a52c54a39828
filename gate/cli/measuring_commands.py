"""The commands that measure, and those that read what was measured: how they are called.

Imports nothing heavy.
"""

from gate.cli.options import (
    ACCEPTED,
    ANYWAY,
    BASELINES,
    BENCHMARK,
    CONFIG,
    DEVICE,
    FAIL,
    GATE,
    HISTORY,
    JUDGING,
    LAB,
    LAB_OR_TARGET,
    LANES,
    LOCK,
    OPEN,
    PROJECT,
    QUIET,
    REPORT_FORMAT,
    RESUME,
    RULES,
    TRACE,
    TRIALS,
    VOLUME,
    Command,
    JoinTerms,
    argument,
    either,
    lasting,
    listed_as,
    parse_count,
    parse_date,
    parse_shard,
    to_directory,
)
from gate.errors import ExitCode
from gate.report import FORMATS

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
    help="measure part K of N of the selection; `merge` reports a missing part",
)

CHECK = Command(
    name="check",
    summary="compare with the commit at which your branch left main",
    example="compile-gate check --select tag:smoke",
    success="PASS: every planned case was measured, and nothing that the base or a baseline has regressed",
    codes=VERDICT_CODES,
    run="gate.cli.check:run_check",
    arguments=(
        *(*PROJECT, *RULES, *LAB_OR_TARGET, LANES, TRIALS, *JUDGING, BASELINES, SHARD),
        either(
            argument(
                "--base",
                metavar="REF",
                help="compare side by side with the merge base of REF and HEAD (default: of the main branch)",
            ),
            argument("--no-base", action="store_true", help="compare with the stored baselines alone"),
        ),
        argument(
            "--thorough",
            action="store_true",
            help="measure every suspect fully, even if the result is already known",
        ),
        *(ACCEPTED, GATE, HISTORY, FAIL, REPORT_FORMAT, OPEN, VOLUME),
    ),
)
AB = Command(
    name="ab",
    summary="measure two commits, directories or interpreters side by side",
    example="compile-gate ab main --select 'bert/*'",
    success="PASS: every planned case was measured, and nothing that the base has regressed",
    codes=VERDICT_CODES,
    run="gate.cli.check:run_ab",
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
        *PROJECT,
        argument(
            "--anchor",
            action="store_true",
            help="compare HEAD with the release anchor (see `baseline anchor`); BASE is then HEAD",
        ),
        argument("--base-python", metavar="FILE", help="the base's interpreter, which has torch"),
        argument("--head-python", metavar="FILE", help="head's interpreter (default: this one)"),
        *(
            *LAB_OR_TARGET,
            LANES,
            *JUDGING,
            lasting(AB_MINUTES, "start no pair after M minutes of measuring"),
        ),
        *(HISTORY, FAIL, REPORT_FORMAT, OPEN, VOLUME),
    ),
)
BISECT = Command(
    name="bisect",
    summary="find the commit, or interpreter, that slowed or broke a case",
    example="compile-gate bisect --good v1.0 --bad main bert/inference-float32-smoke-default",
    success="the first bad one was found, and seen again side by side with the one before it",
    codes=(ExitCode.MACHINE, ExitCode.INCONCLUSIVE, ExitCode.INCOMPLETE),
    run="gate.bisect.command:run_bisect",
    arguments=(
        # Not required by the parser: where it stands behind --pythons, that has taken it for an interpreter.
        argument("select", nargs="?", metavar="CASE", help="the one case, by id or pattern"),
        argument(
            "metric",
            nargs="?",
            metavar="METRIC",
            help="a metric that decides (default: what is worse at the bad end, a counter first)",
        ),
        *PROJECT,
        argument("--good", metavar="REF", help="a commit that is known to be good"),
        argument("--bad", metavar="REF", help="a later one that is known to be bad (default: HEAD)"),
        argument(
            "--pythons",
            nargs="+",
            metavar="FILE",
            help="search interpreters instead, with the working tree's code: the first is good, the"
            " last bad; write it after CASE",
        ),
        *(DEVICE, to_directory("results go to bisect/ in there (default: out)"), LOCK, RESUME),
        lasting(BISECT_MINUTES, "stop the search after M minutes; --resume continues it"),
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
    arguments=(*(*PROJECT, *LAB_OR_TARGET, TRIALS, TRACE, RESUME, QUIET, SHARD),),
)
REFRESH = Command(
    name="baseline refresh",
    summary="measure and record this environment's baselines",
    example="compile-gate baseline refresh --trials 5",
    success="every selected case was measured and its baseline written",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.recording:run_refresh",
    arguments=(
        *(*PROJECT, *LAB_OR_TARGET, LANES, TRIALS, RESUME, BASELINES, HISTORY),
        argument("--reason", default="", metavar="R", help="why a metric may get worse; required if one did"),
        *(ANYWAY, QUIET),
    ),
)
CALIBRATE = Command(
    name="calibrate",
    summary="measure unchanged code often: noise, smallest visible change",
    example="compile-gate calibrate --select 'bert/*' --trials 12",
    success="every planned case was measured, and often enough",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.recording:run_calibrate",
    arguments=(
        *(*PROJECT, *LAB, LANES, TRIALS, RESUME),
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
            help="measure nothing: use the trials of these run.json files, all of one unchanged program",
        ),
        *(ANYWAY, QUIET),
    ),
)
SELFTEST = Command(
    name="selftest",
    summary="add known faults to your models and count which ones are found",
    example="compile-gate selftest --select 'bert/*' --minutes 30",
    success="every fault was tried, and all required ones were found",
    codes=(ExitCode.MACHINE, ExitCode.REGRESSION, ExitCode.INCOMPLETE),
    run="gate.selftest.command:run_selftest",
    arguments=(
        *(*PROJECT, *LAB, lasting(SELFTEST_MINUTES, "start no new fault after M minutes")),
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
    summary="check that a device behaves as compile-gate expects",
    example="compile-gate first-contact --device cuda",
    success="everything was tested, and nothing failed",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.device_tests.runner:run_first_contact",
    arguments=(
        *(*CONFIG, DEVICE, to_directory("write what was seen there (default: first-contact)")),
        lasting(CONTACT_MINUTES, "start no test after M minutes"),
        argument(
            "--only",
            action=JoinTerms,
            metavar="NAMES",
            help="only tests with these names, or parts of names, joined by commas",
        ),
    ),
)
COMPARE = Command(
    name="compare",
    summary="judge one stored run against another, or against baselines",
    example="compile-gate compare old/run.json new/run.json",
    success="PASS: the run is whole, and nothing that has a baseline regressed",
    codes=VERDICT_CODES,
    run="gate.cli.stored:run_compare",
    arguments=(
        argument(
            "baseline",
            metavar="BASELINE",
            help="a run.json, or a directory of baselines",
        ),
        argument("candidate", metavar="CANDIDATE", help="a run.json"),
        *(*CONFIG, *RULES),
        to_directory(
            "write verdict.json, report.md, report.html and junit.xml there (default: nothing is written)"
        ),
        *(ACCEPTED, GATE, FAIL, REPORT_FORMAT, OPEN, VOLUME),
    ),
)
_VERDICT = argument(
    "verdict",
    nargs="?",
    metavar="VERDICT",
    help="a verdict.json, or the directory of a run (default: the last run's)",
)
REPORT = Command(
    name="report",
    summary="print the last report again: text, Markdown, HTML, JSON, JUnit",
    example="compile-gate report --format markdown",
    success="the verdict was rendered, whatever it says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.stored:run_report",
    arguments=(
        _VERDICT,
        argument(
            "--format",
            choices=(*FORMATS, BENCHMARK),
            default="text",
            help=f"how to print the verdict; {BENCHMARK}: the values, for PyTorch's benchmark database",
        ),
        VOLUME,
    ),
)
TREND = Command(
    name="trend",
    summary="render a history of runs as pages: when values changed",
    example="compile-gate trend perf/history --out site",
    success="the pages were written; damaged lines of the history are named",
    codes=(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
    run="gate.cli.stored:run_trend",
    arguments=(
        argument(
            "history",
            nargs="*",
            metavar="HISTORY",
            help="files or directories (default: `history` of gate.yml)",
        ),
        *(*CONFIG, to_directory("write the pages there (default: trend in the out directory)")),
        argument("--repository", metavar="OWNER/NAME", help="on GitHub, for links to commits"),
        argument("--since", type=parse_date, metavar="DATE", help="leave out older runs"),
        argument(
            "--compact",
            action="store_true",
            help="first sort each history; the files of a directory become one a month",
        ),
    ),
)
EXPLAIN = Command(
    name="explain",
    summary="show all of one case: numbers, causes, changed code, rerun",
    example="compile-gate explain bert",
    success="the case was shown, whatever the verdict says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.stored:run_explain",
    arguments=(
        argument(
            "case",
            nargs="?",
            metavar="CASE",
            help="a case id, or the beginning of one (default: the worst case)",
        ),
        _VERDICT,
        listed_as(),
    ),
)
MERGE = Command(
    name="merge",
    summary="join the runs of shards",
    example="compile-gate merge shard-*/run.json --select tag:smoke --out out",
    success="the runs fit together and were joined, whatever failed in them",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.stored:run_merge",
    arguments=(
        argument("runs", nargs="+", metavar="RUN", help="the run.json of each shard"),
        *(*CONFIG, *RULES, to_directory("write the joined run there, as run.json", required=True)),
        argument(
            "--select",
            action=JoinTerms,
            metavar="CASES",
            help="the whole selection, so that a lost shard is noticed",
        ),
    ),
)
