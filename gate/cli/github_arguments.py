"""The arguments of the commands that a workflow calls; imports nothing heavy."""

from __future__ import annotations

import argparse
import re

from gate.cli.options import FAIL_ON, add_baselines, add_config, add_quiet
from gate.files.untrusted import format_value

_MAX_DIGITS = 18  # of what GitHub numbers: 64 bits hold them
COMMENTS = ("always", "on-change", "on-failure", "never")
COMMENT_COMMANDS = ("refresh-baselines", "accept-regression")


def add_authorize(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``authorize``."""
    parser.add_argument(
        "--command",
        dest="asked",
        choices=COMMENT_COMMANDS,
        default=COMMENT_COMMANDS[0],
        help=f"what a comment asks for (default: {COMMENT_COMMANDS[0]}); all else is in the event",
    )


def add_accept_regression(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``accept-regression``."""
    add_config(parser)
    parser.add_argument("--head-sha", required=True, metavar="SHA", help="the commit that was authorised")
    parser.add_argument(
        "--workflow",
        default=".github/workflows/gate.yml",
        metavar="FILE",
        help="the workflow that runs the gate (default: .github/workflows/gate.yml)",
    )
    parser.add_argument(
        "--artifact-name", default="compile-gate", metavar="NAME", help="the artifact with its verdict.json"
    )


def add_propose(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``propose``."""
    add_config(parser)
    add_baselines(parser)
    parser.add_argument(
        "--run", dest="run_file", metavar="FILE", help="the run.json to record (default: of the artifact)"
    )
    parser.add_argument(
        "--run-id", type=parse_id, metavar="N", help="the workflow run that left the artifact"
    )
    parser.add_argument("--artifact-name", metavar="NAME", default="compile-gate")
    parser.add_argument("--head-sha", required=True, metavar="SHA", help="the commit that was measured")
    parser.add_argument("--head-ref", required=True, metavar="BRANCH", help="what the baselines are for")
    parser.add_argument("--pr-number", type=parse_id, metavar="N", help="the pull request that asked for it")
    parser.add_argument("--reason", default="", metavar="R", help="why metrics moved the wrong way")


def add_publish(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``publish``."""
    add_config(parser)
    add_quiet(parser)
    parser.add_argument(
        "--run-id", type=parse_id, required=True, metavar="N", help="the finished run whose verdict is told"
    )
    parser.add_argument(
        "--workflow",
        default=".github/workflows/gate.yml",
        metavar="FILE",
        help="the workflow that the run must be of (default: .github/workflows/gate.yml)",
    )
    parser.add_argument(
        "--artifact-name", default="compile-gate", metavar="NAME", help="the artifact with its verdict.json"
    )
    parser.add_argument(
        "--comment",
        choices=COMMENTS,
        default="always",
        help="when a first comment is written (default: always); one that exists is kept up to date",
    )
    _add_identity(parser, "one comment for each key")
    parser.add_argument(
        "--status",
        default="compile-gate/report",
        metavar="CONTEXT",
        help="commit status to set; empty sets none",
    )
    parser.add_argument("--fail-on", choices=FAIL_ON, default="regression", help="as in `check`")


def add_publish_upgrade(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``publish-upgrade``."""
    add_config(parser)
    add_quiet(parser)
    parser.add_argument("--run-id", type=parse_id, required=True, metavar="N", help="the run that measured")
    parser.add_argument(
        "--conclusion",
        choices=("success", "failure", "cancelled", "skipped"),
        default="",
        help="how the job that measured ended, while its run goes on",
    )
    parser.add_argument(
        "--artifact-name", default="compile-gate", metavar="NAME", help="the artifact with its verdict.json"
    )
    parser.add_argument(
        "--issue",
        choices=COMMENTS,
        default="on-change",
        help="when there is to be an open issue (default: on-change); one that exists is kept up to date",
    )
    _add_identity(parser, "one issue for each environment")
    parser.add_argument("--fail-on", choices=FAIL_ON, default="regression", help="as in `check`")


def _add_identity(parser: argparse.ArgumentParser, text: str) -> None:
    """Add what the comment or the issue of a former run is found by."""
    parser.add_argument("--key", type=parse_key, default="default", metavar="KEY", help=text)
    parser.add_argument(
        "--author", default="", metavar="LOGIN", help="whom the token writes as, for an app's token"
    )


def parse_key(text: str) -> str:
    """Parse a comment's key, which stands in the comment's first line."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", text):
        raise argparse.ArgumentTypeError("at most 40 letters, digits, _, . and -")
    return text


def parse_id(text: str) -> int:
    """Parse the number of a run or a pull request, as GitHub gives them: from 1."""
    if not (text.isdecimal() and text.isascii() and len(text) <= _MAX_DIGITS and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {format_value(text)}")
    return int(text)
