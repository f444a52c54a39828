"""All commands, one row each: those that measure and serve a workflow are in files of their own.

Imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from gate.cli.github_commands import GITHUB
from gate.cli.measuring_commands import (
    AB,
    BISECT,
    CALIBRATE,
    CHECK,
    FIRST_CONTACT,
    MEASURE,
    REFRESH,
    SELFTEST,
    VERDICT_CODES,
)
from gate.cli.options import (
    ACCEPTED,
    BASELINES,
    CONFIG,
    DEVICE,
    FAIL,
    GATE,
    PROJECT,
    REPORT_FORMAT,
    SELECTION,
    VOLUME,
    Command,
    JoinTerms,
    argument,
    listed_as,
    parse_date,
    to_directory,
)
from gate.errors import ExitCode
from gate.installation import find_page

COMPARE = Command(
    name="compare",
    summary="judge one stored run against another, or against baselines",
    example="compile-gate compare old/run.json new/run.json",
    success="PASS: the run is whole, and nothing that has a baseline regressed",
    codes=VERDICT_CODES,
    run="gate.cli.compare:run_compare",
    arguments=(
        argument(
            "baseline",
            metavar="BASELINE",
            help="a run.json, or a directory of baselines",
        ),
        argument("candidate", metavar="CANDIDATE", help="a run.json"),
        *CONFIG,
        to_directory(
            "write verdict.json, report.md, report.html and junit.xml there (default: nothing is written)"
        ),
        *(ACCEPTED, GATE, FAIL, REPORT_FORMAT, VOLUME),
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
    summary="render a verdict again",
    example="compile-gate report --format markdown",
    success="the verdict was rendered, whatever it says",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.compare:run_report",
    arguments=(*(_VERDICT, REPORT_FORMAT, VOLUME),),
)
TREND = Command(
    name="trend",
    summary="render a history of runs as pages: when values changed",
    example="compile-gate trend perf/history --out site",
    success="the pages were written; damaged lines of the history are named",
    codes=(ExitCode.NOTHING_COMPARED, ExitCode.MACHINE),
    run="gate.cli.trend:run_trend",
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
    run="gate.cli.compare:run_explain",
    arguments=(
        argument(
            "case",
            nargs="?",
            metavar="CASE",
            help="a case id, or the beginning of one (default: the worst case)",
        ),
        _VERDICT,
    ),
)
MERGE = Command(
    name="merge",
    summary="join the runs of shards",
    example="compile-gate merge shard-*/run.json --select tag:pr --out out",
    success="the runs fit together and were joined, whatever failed in them",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.compare:run_merge",
    arguments=(
        argument("runs", nargs="+", metavar="RUN", help="the run.json of each shard"),
        *(*CONFIG, to_directory("write the joined run there, as run.json", required=True)),
        argument(
            "--select",
            action=JoinTerms,
            metavar="CASES",
            help="the selection that was divided: a case of it in no shard is MISSING",
        ),
    ),
)


_SCHEMAS = (
    *("config", "registry", "run", "verdict", "baseline"),
    *("accepted", "anchor", "acceptances", "calibration", "selftest", "bisection"),
)
_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")

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
            help="your torch.nn.Module class, a function that makes one, a function of tensors, or a factory",
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
            help="the action that the workflows use; without it none is written",
        ),
        argument(
            "--runner", metavar="LABELS", help="the labels of your runner (default: self-hosted, linux)"
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
_SHOW = Command(
    name="baseline show",
    summary="list the stored baselines with age and origin",
    example="compile-gate baseline show --select 'bert/*'",
    success="there are some, and they were listed",
    codes=(ExitCode.NOTHING_COMPARED,),
    run="gate.cli.baseline:run_show",
    arguments=(*CONFIG, BASELINES, SELECTION),
)
_ACCEPT = Command(
    name="baseline accept",
    summary="accept a known change until a date",
    example="compile-gate baseline accept bert/x drift --allow 0.5 --reason '...' --expires 2027-03-31",
    success="the acceptance was written",
    codes=(ExitCode.MACHINE,),
    run="gate.cli.baseline:run_accept",
    arguments=(
        argument("case", metavar="CASE", help="cases, as in --select"),
        argument("metric", metavar="METRIC", help=f"a metric that decides: see {find_page('metrics')}"),
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
    run="gate.cli.baseline:run_anchor",
    arguments=(
        argument("ref", nargs="?", metavar="REF", help="the commit, by branch, tag or id (default: HEAD)"),
        *(*CONFIG, BASELINES),
        argument("--reason", required=True, metavar="R", help="why this commit"),
    ),
)
_MODELS = Command(
    name="models",
    summary="list the cases, or try them before they are measured",
    example="compile-gate models --try --select tag:pr",
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
            f" `ab BASE --target T` (its limits: {find_page('targets')})",
        ),
        listed_as("github-matrix"),
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
_SCHEMA = Command(
    name="schema",
    summary="print the JSON Schema of a file",
    example="compile-gate schema run",
    success="it was printed",
    run="gate.cli.show:run_schema",
    arguments=(argument("name", metavar="NAME", choices=_SCHEMAS, help=", ".join(_SCHEMAS)),),
)
_CONFIGURATION = Command(
    name="config",
    summary="print the configuration and where each value comes from",
    example="compile-gate config",
    success="gate.yml can be read, and the configuration was printed",
    run="gate.cli.show:run_config",
    arguments=(*CONFIG, SELECTION, DEVICE),
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
    actions=(REFRESH, _SHOW, _ACCEPT, _ANCHOR),
)
# As --help shows them.
GROUPS: Mapping[str, tuple[Command, ...]] = {
    "daily": (_INIT, CHECK, AB, BISECT),
    "understand": (EXPLAIN, REPORT, TREND, COMPARE, _MODELS, _PLAN, _CONFIGURATION),
    "baselines and the machine": (_BASELINE, CALIBRATE, SELFTEST, _DOCTOR, FIRST_CONTACT),
    "CI and other programs": (MEASURE, MERGE, GITHUB, _SCHEMA, _COMPLETION),
}
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
