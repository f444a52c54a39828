"""What workflows call: ``compile-gate github ...``; imports nothing heavy."""

from gate.cli.options import BASELINES, CONFIG, Command, argument, written_as
from gate.github.job import BRANCH_PATTERN
from gate.records.bounds import SHA

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
    "--artifact-name", default="compile-gate", metavar="NAME", help="the artifact with its shown.json"
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
