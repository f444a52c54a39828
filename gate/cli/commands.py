"""All commands, one row each: those that measure, or read what was measured, are in a file of their own.

Imports nothing heavy.
"""

from collections.abc import Mapping
from itertools import chain

from gate.cli.measuring_commands import (
    AB,
    BISECT,
    CALIBRATE,
    CHECK,
    COMPARE,
    EXPLAIN,
    FIRST_CONTACT,
    MEASURE,
    MERGE,
    REFRESH,
    REPORT,
    SELFTEST,
    TREND,
)
from gate.cli.options import (
    BASELINES,
    CONFIG,
    DEVICE,
    PROJECT,
    SELECTION,
    Command,
    argument,
    listed_as,
    written_as,
)
from gate.errors import ExitCode
from gate.github.job import BRANCH_PATTERN
from gate.installation import find_page
from gate.records.bounds import SHA

_SCHEMAS = (
    *("config", "registry", "run", "verdict", "baseline"),
    *("accepted", "anchor", "acceptances", "calibration", "bisection"),
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
    run="gate.cli.recording:run_anchor",
    arguments=(
        argument("ref", nargs="?", metavar="REF", help="the commit, by branch, tag or id (default: HEAD)"),
        *(*CONFIG, BASELINES),
        argument("--reason", required=True, metavar="R", help="why this commit"),
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

_COMMENTS = ("always", "on-change", "on-failure", "never")
_ASKED = ("refresh-baselines", "accept-regression")
_WORKFLOW = ".github/workflows/gate.yml"


_parse_key = written_as("[A-Za-z0-9_.-]{1,40}", "at most 40 letters, digits, _, . and -", str)
# Of a run or a pull request, as GitHub gives them: 64 bits hold them.
_parse_id = written_as("[1-9][0-9]{0,17}", "a whole number above 0", int)
_HEAD = argument(
    "--head-sha",
    type=written_as(SHA, "a whole commit id, 40 or 64 digits of 0-9 and a-f", str),
    required=True,
    metavar="SHA",
    help="the output head-sha of `github authorize`",
)
_ARTIFACT = argument(
    "--artifact-name", default="compile-gate", metavar="NAME", help="the artifact with its verdict.json"
)
_CONCLUSION = argument(
    "--conclusion",
    choices=("success", "failure", "cancelled", "skipped"),
    default="",
    help="how the job that measured ended, while its run goes on",
)
_RUNNING = argument(
    "--workflow", default=_WORKFLOW, metavar="FILE", help=f"the workflow of the gate (default: {_WORKFLOW})"
)
_KEY = argument(
    "--comment-key",
    type=_parse_key,
    default="default",
    metavar="KEY",
    help="one comment or issue for each key, such as a gate or an environment",
)

_PUBLISH = Command(
    name="github publish",
    summary="post a run's verdict on its pull request, or that of an upgrade in an issue",
    example="compile-gate github publish --run-id 1234567890",
    success="the result was published; trouble with publishing is a warning",
    run="gate.cli.github:run_publish",
    arguments=(
        *CONFIG,
        argument("--issue", action="store_true", help="the run is an upgrade's: keep one issue about it"),
        argument("--run-id", type=_parse_id, required=True, metavar="N", help="the run that measured"),
        *(_RUNNING, _CONCLUSION, _ARTIFACT),
        argument(
            "--comment",
            choices=_COMMENTS,
            help="when to write a first comment (default: always) or open an issue (default: on-change);"
            " an existing one is updated",
        ),
        _KEY,
    ),
)
_AUTHORIZE = Command(
    name="github authorize",
    summary="decide whether a comment's command may run",
    example="compile-gate github authorize",
    success="it was decided: the output `authorized` says how",
    run="gate.cli.github:run_authorize",
    arguments=(
        argument(
            "--command",
            dest="asked",
            choices=_ASKED,
            default=_ASKED[0],
            help=f"the command of a comment (default: {_ASKED[0]}); all else is in the event",
        ),
    ),
)
_ACCEPT_REGRESSION = Command(
    name="github accept-regression",
    summary="accept what regressed for one commit, and start its check again",
    example='compile-gate github accept-regression --head-sha "$SHA"',
    success="what regressed was accepted, and the check started again",
    run="gate.cli.github:run_accept_regression",
    arguments=(
        *CONFIG,
        _HEAD,
        *(_RUNNING, _ARTIFACT, _KEY),
    ),
)
_PROPOSE = Command(
    name="github propose",
    summary="open a pull request with refreshed baselines",
    example='compile-gate github propose --head-sha "$SHA" --head-ref main',
    success="the baselines were proposed, or nothing changed",
    run="gate.cli.github:run_propose",
    arguments=(
        *(*CONFIG, BASELINES),
        argument("--artifact-name", metavar="NAME", default="compile-gate"),
        _CONCLUSION,
        _HEAD,
        argument(
            "--head-ref",
            type=written_as(BRANCH_PATTERN, "the name of a branch", str),
            required=True,
            metavar="BRANCH",
            help="what the baselines are for",
        ),
        argument("--pr-number", type=_parse_id, metavar="N", help="the pull request that asked for it"),
        argument("--reason", default="", metavar="R", help="why a metric may get worse"),
    ),
)

GITHUB = Command(
    name="github",
    summary="what workflows call: publish, answer comments, propose",
    example="compile-gate github publish --run-id 1234567890",
    actions=(_PUBLISH, _AUTHORIZE, _ACCEPT_REGRESSION, _PROPOSE),
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
