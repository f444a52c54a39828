"""All commands, one row each, in the order of ``--help``; imports nothing heavy."""

from collections.abc import Mapping
from itertools import chain

from gate.cli.github_commands import GITHUB
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
    SELECTION,
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
from gate.installation import name_page
from gate.report import FORMATS

# What a command that judges can end with.
_VERDICT_CODES = (
    ExitCode.NOTHING_COMPARED, ExitCode.MACHINE, ExitCode.REGRESSION, ExitCode.INCONCLUSIVE,
    ExitCode.INCOMPLETE,
)  # fmt: skip
AB_MINUTES = 60.0  # a dozen cases, ten pairs each, on two cores
BISECT_MINUTES = 20.0  # a small case between 32 commits on two cores
SELFTEST_MINUTES = 10.0  # all faults once on two cores
CONTACT_MINUTES = 30.0  # all assumptions once on one GPU
CALIBRATION_PAIRS = 8  # they know their own spread to a quarter of it
CALIBRATION_REQUESTS = 1000  # without any false alarm they exclude a rate above 0.4 %
_SCHEMAS = (
    "config", "registry", "run", "verdict", "baseline", "accepted", "anchor", "acceptances", "calibration",
    "bisection",
)  # fmt: skip
_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")

_SHARD = argument(
    "--shard",
    type=parse_shard,
    metavar="K/N",
    help="measure part K of N of the selection; `merge` reports a missing part",
)
_VERDICT = argument(
    "verdict",
    nargs="?",
    metavar="VERDICT",
    help="a verdict.json, or the directory of a run (default: the last run's)",
)
_INIT = Command(
    name="init",
    summary="write gate.yml, a factory and workflows for a module of yours",
    example="compile-gate init my_package.model:MyModel",
    success="the module was built and called, and what was missing was written; nothing was overwritten",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.init:run_init",
    arguments=(
        argument(
            "target",
            metavar="MODULE:NAME",
            help="your torch.nn.Module class, a function that makes one, a function of tensors, or a factory;"
            " of a notebook: NOTEBOOK.ipynb:NAME",
        ),
        argument(
            "--argument",
            dest="arguments",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="what the class or function is called with; may be repeated",
        ),
        argument(
            "--input",
            dest="inputs",
            action="append",
            default=[],
            metavar="SHAPE",
            help="a tensor that forward takes: 8x64, or 8x64:int64<30000 for whole numbers below 30000;"
            " one for each (default: guessed from the first layers, and tried)",
        ),
        DEVICE,
        argument(
            "--action",
            metavar="OWNER/REPO@COMMIT",
            help="the action that the workflows use (default: where this installation is from)",
        ),
        argument(
            "--runner",
            metavar="LABELS",
            help="the labels of your runner, joined by commas (default: self-hosted,linux)",
        ),
        argument(
            "--comments",
            action="store_true",
            help="write a second workflow: the comment, /accept-regression and /refresh-baselines",
        ),
        argument(
            "--long-workflows",
            action="store_true",
            help="write the workflows in full, for GitHub Enterprise Server and old runners",
        ),
    ),
)
_CHECK = Command(
    name="check",
    summary="compare with the commit at which your branch left main",
    example="compile-gate check --select tag:smoke",
    success="PASS: every planned case was measured, and nothing that the base or a baseline has regressed",
    codes=_VERDICT_CODES,
    run="gate.cli.check:run_check",
    arguments=(
        *(*PROJECT, *RULES, *LAB_OR_TARGET, LANES, TRIALS, *JUDGING, BASELINES, _SHARD),
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
_AB = Command(
    name="ab",
    summary="measure two commits, directories or interpreters side by side",
    example="compile-gate ab main --select 'bert/*'",
    success="PASS: every planned case was measured, and nothing that the base has regressed",
    codes=_VERDICT_CODES,
    run="gate.bisect.after_ab:run_ab",
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
            help="compare HEAD with the release anchor (see `baseline anchor`); BASE is then HEAD. What got"
            " worse is bisected in the time left",
        ),
        argument("--base-python", metavar="FILE", help="the base's interpreter, which has torch"),
        argument("--head-python", metavar="FILE", help="head's interpreter (default: this one)"),
        *(
            *LAB_OR_TARGET,
            LANES,
            *JUDGING,
            BASELINES,
            lasting(AB_MINUTES, "start no pair after M minutes of measuring"),
        ),
        *(HISTORY, FAIL, REPORT_FORMAT, OPEN, VOLUME),
    ),
)
_BISECT = Command(
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
_EXPLAIN = Command(
    name="explain",
    summary="show all of one case: numbers, causes, changed code, rerun",
    example="compile-gate explain bert",
    success="the case was shown, whatever the verdict says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.reports:run_explain",
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
_REPORT = Command(
    name="report",
    summary="print the last report again: text, Markdown, HTML, JSON, JUnit",
    example="compile-gate report --format markdown",
    success="the verdict was rendered, whatever it says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.reports:run_report",
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
_TREND = Command(
    name="trend",
    summary="render a history of runs as pages: when values changed",
    example="compile-gate trend perf/history --out site",
    success="the pages were written; damaged lines of the history are named",
    codes=(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
    run="gate.cli.reports:run_trend",
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
_COMPARE = Command(
    name="compare",
    summary="judge one stored run against another, or against baselines",
    example="compile-gate compare old/run.json new/run.json",
    success="PASS: the run is whole, and nothing that has a baseline regressed",
    codes=_VERDICT_CODES,
    run="gate.cli.reports:run_compare",
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
_MODELS = Command(
    name="models",
    summary="list the cases, or try them before they are measured",
    example="compile-gate models --try --select tag:smoke",
    success="gate.yml and its registries can be read; with --try, every case can be built, called and traced",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.show:run_models",
    arguments=(
        *(*PROJECT, SELECTION, listed_as()),
        argument(
            "--try",
            dest="tried",
            action="store_true",
            help="build, call and trace each selected case (default: `select` of gate.yml); nothing is timed",
        ),
    ),
)
_PLAN = Command(
    name="plan",
    summary="show what would run, with expected minutes",
    example="compile-gate plan --shards 4 --format github-matrix",
    success="there is at least one case to run",
    run="gate.cli.show:run_plan",
    arguments=(
        *(*PROJECT, SELECTION),
        argument(
            "--shards",
            type=int,
            default=1,
            metavar="N",
            help="machines to divide the cases over (default: 1)",
        ),
        argument(
            "--after",
            metavar="RUN",
            help="leave out cases with the base's generated code, by the run.json of"
            f" `ab BASE --target T` (its limits: {name_page('targets')})",
        ),
        listed_as("github-matrix"),
    ),
)
_CONFIGURATION = Command(
    name="config",
    summary="print the configuration and where each value comes from",
    example="compile-gate config",
    success="gate.yml can be read, and the configuration was printed",
    run="gate.cli.show:run_config",
    arguments=(*CONFIG, SELECTION, DEVICE),
)
_REFRESH = Command(
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
_SHOW = Command(
    name="baseline show",
    summary="list the stored baselines with age and origin",
    example="compile-gate baseline show --select 'bert/*'",
    success="there are some, and they were listed",
    codes=(ExitCode.NOTHING_COMPARED,),
    run="gate.cli.recording:run_show",
    arguments=(*CONFIG, BASELINES, SELECTION, listed_as()),
)
_ACCEPT = Command(
    name="baseline accept",
    summary="accept a known change until a date",
    example="compile-gate baseline accept bert/x drift --allow 0.5 --reason '...' --expires 2027-03-31",
    success="the acceptance was written",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.recording:run_accept",
    arguments=(
        argument("case", metavar="CASE", help="cases, as in --select"),
        argument("metric", metavar="METRIC", help=f"a metric that decides: see {name_page('metrics')}"),
        *(*PROJECT, BASELINES),
        argument("--allow", required=True, metavar="8%", help="how much worse it may be"),
        argument("--reason", required=True, metavar="R", help="why it is accepted"),
        argument("--expires", required=True, metavar="YYYY-MM-DD", help="the last day it counts"),
    ),
)
_ANCHOR = Command(
    name="baseline anchor",
    summary="name the release to compare with, so that small slowdowns do not add up",
    example="compile-gate baseline anchor v1.2 --reason 'the release of March'",
    success="the anchor was written",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.recording:run_anchor",
    arguments=(
        argument("ref", nargs="?", metavar="REF", help="the commit, by branch, tag or id (default: HEAD)"),
        *(*CONFIG, BASELINES),
        argument("--reason", required=True, metavar="R", help="why this commit"),
    ),
)
_CALIBRATE = Command(
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
_SELFTEST = Command(
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
_DOCTOR = Command(
    name="doctor",
    summary="check whether this machine is fit to measure",
    example="compile-gate doctor --device cuda",
    success="it is",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.show:run_doctor",
    arguments=(*CONFIG, DEVICE, listed_as()),
)
_FIRST_CONTACT = Command(
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
_MEASURE = Command(
    name="measure",
    summary="measure only; writes out/run.json",
    example="compile-gate measure --select 'bert/*' --trials 3",
    success="every planned case was measured; nothing was judged",
    codes=(ExitCode.MACHINE, ExitCode.INCOMPLETE),
    run="gate.cli.check:run_measure",
    arguments=(*(*PROJECT, *LAB_OR_TARGET, TRIALS, TRACE, RESUME, QUIET, _SHARD),),
)
_MERGE = Command(
    name="merge",
    summary="join the runs of shards",
    example="compile-gate merge shard-*/run.json --select tag:smoke --out out",
    success="the runs fit together and were joined, whatever failed in them",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.reports:run_merge",
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
_SCHEMA = Command(
    name="schema",
    summary="print the JSON Schema of a file",
    example="compile-gate schema run",
    success="it was printed",
    run="gate.cli.show:run_schema",
    arguments=(argument("name", metavar="NAME", choices=_SCHEMAS, help=", ".join(_SCHEMAS)),),
)
_COMPLETION = Command(
    name="completion",
    summary="print shell code that completes commands, options and cases",
    example="compile-gate completion bash",
    success="it was printed",
    run="gate.cli.parser:run_completion",
    arguments=(argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS)),),
)

_BASELINE = Command(
    name="baseline",
    summary="record, show or accept baselines, or anchor a release",
    example="compile-gate baseline refresh --trials 5",
    actions=(_REFRESH, _SHOW, _ACCEPT, _ANCHOR),
)
# As --help shows them.
GROUPS: Mapping[str, tuple[Command, ...]] = {
    "daily": (_INIT, _CHECK, _AB, _BISECT),
    "understand": (_EXPLAIN, _REPORT, _TREND, _COMPARE, _MODELS, _PLAN, _CONFIGURATION),
    "baselines and the machine": (_BASELINE, _CALIBRATE, _SELFTEST, _DOCTOR, _FIRST_CONTACT),
    "CI and other programs": (_MEASURE, _MERGE, GITHUB, _SCHEMA, _COMPLETION),
}
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
