"""The arguments of the commands that a person calls; imports nothing heavy."""

from __future__ import annotations

import argparse

from gate.cli.github_arguments import FAIL_ON

FORMATS = ("text", "markdown", "json", "junit")
CALIBRATION_PAIRS = 8  # they know their own spread to a quarter of it
SELFTEST_MINUTES = 10.0  # all faults once on two cores
CALIBRATION_REQUESTS = 1000  # without any false alarm they exclude a rate above 0.4 %
SCHEMAS = (
    *("config", "registry", "run", "verdict", "baseline"),
    *("accepted", "approval", "calibration", "selftest"),
)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    parser.add_argument("--config", metavar="PATH", help="configuration file (default: gate.yml)")
    # For whoever takes the configuration from another commit, as the action does: not a person's options.
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    parser.add_argument("--rules-commit", default="", help=argparse.SUPPRESS)
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="only the verdict")
    volume.add_argument("-v", "--verbose", action="store_true", help="unchanged comparisons too")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that names cases."""
    parser.add_argument(
        "--select", metavar="S", help="case ids, globs and tag:NAME, joined by commas; a leading ! removes"
    )


def add_measuring(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that measures."""
    add_selection(parser)
    parser.add_argument("--device", metavar="D", help="cpu, cuda or cuda:N")
    parser.add_argument(
        "--trials", type=int, metavar="N", help="trials of each case, each in fresh processes"
    )
    parser.add_argument("--out", metavar="DIR", help="directory for results (default: out)")
    parser.add_argument("--resume", action="store_true", help="continue the run that is in the out directory")
    parser.add_argument(
        "--lock-timeout",
        type=float,
        metavar="S",
        dest="lock_timeout_s",
        help="seconds to wait for the device",
    )


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the baselines."""
    parser.add_argument("--baselines", metavar="DIR", help="directory of baselines (default: baselines)")


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses which outcomes fail."""
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="inconclusive",
        help="lowest outcome with a non-zero exit (default: inconclusive); `new` fails a PASS too in which"
        " something has no baseline (exit 3), `regression` lets INCONCLUSIVE pass and says so",
    )


def add_approvals(parser: argparse.ArgumentParser) -> None:
    """Add the option that names approvals."""
    parser.add_argument(
        "--approvals",
        action="append",
        default=[],
        metavar="FILE",
        help="what was accepted for the commit that is judged, as /accept-regression writes it",
    )


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``check``."""
    add_measuring(parser)
    add_baselines(parser)
    parser.add_argument(
        "--base",
        metavar="REF",
        help="confirm what looks suspicious side by side with the commit where this tree left REF",
    )
    add_approvals(parser)
    add_fail_on(parser)


def add_ab(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ab``."""
    parser.add_argument(
        "base",
        nargs="?",
        metavar="BASE",
        help="a git ref or a directory (default: where HEAD left main)",
    )
    parser.add_argument(
        "head", nargs="?", metavar="HEAD", help="a git ref or a directory (default: the working tree)"
    )
    parser.add_argument("--base-python", metavar="P", help="the base's interpreter, which has torch")
    parser.add_argument("--head-python", metavar="P", help="head's interpreter (default: this one)")
    add_measuring(parser)
    parser.add_argument(
        "--minutes", type=float, default=60.0, metavar="M", help="start no pair after so many (default: 60)"
    )
    add_fail_on(parser)


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``calibrate``."""
    add_measuring(parser)
    parser.add_argument(
        "--pairs",
        type=parse_count,
        default=CALIBRATION_PAIRS,
        metavar="P",
        help=f"pairs of each case with itself (default: {CALIBRATION_PAIRS})",
    )
    parser.add_argument(
        "--requests",
        type=parse_count,
        default=CALIBRATION_REQUESTS,
        metavar="N",
        help=f"pull requests to simulate from the trials (default: {CALIBRATION_REQUESTS})",
    )
    parser.add_argument(
        "--run",
        dest="run_files",
        nargs="+",
        metavar="FILE",
        help="measure nothing: take the trials of these run.json files, all of one unchanged program",
    )


def add_selftest(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``selftest``."""
    add_selection(parser)
    parser.add_argument("--device", metavar="D", help="cpu, cuda or cuda:N")
    parser.add_argument("--out", metavar="DIR", help="directory for results (default: out)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=SELFTEST_MINUTES,
        metavar="M",
        help=f"plant no further fault after so many (default: {SELFTEST_MINUTES:g})",
    )
    parser.add_argument(
        "--repeats",
        type=parse_count,
        metavar="N",
        help="tries of each slowdown (default: as time allows)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="only what needs no statistics, and the largest slowdown"
    )
    parser.add_argument(
        "--faults", metavar="F", help="only these, by name, joined by commas: graph_break, 'slowdown-*'"
    )


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``compare``."""
    parser.add_argument("baseline", metavar="BASELINE", help="a run.json, or a directory of baselines")
    parser.add_argument("candidate", metavar="CANDIDATE", help="a run.json")
    parser.add_argument("--out", metavar="FILE", default="verdict.json", help="where the verdict is written")
    parser.add_argument("--format", choices=FORMATS, default="text")
    add_approvals(parser)
    add_fail_on(parser)


def add_baseline(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline``."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    refresh = commands.add_parser("refresh", help="measure and record this environment's baselines")
    add_common(refresh)
    add_measuring(refresh)
    add_baselines(refresh)
    refresh.add_argument(
        "--reason", default="", metavar="R", help="needed where a metric moved the wrong way"
    )
    show = commands.add_parser("show", help="list the stored baselines with age and origin")
    add_common(show)
    add_baselines(show)
    add_selection(show)
    show.add_argument("--format", choices=("table", "json"), default="table")
    accept = commands.add_parser("accept", help="accept a known change until a date")
    add_common(accept)
    add_baselines(accept)
    accept.add_argument("case", metavar="CASE", help="case id or glob")
    accept.add_argument("metric", metavar="METRIC")
    accept.add_argument("--allow", required=True, metavar="8%", help="how much worse it may be")
    accept.add_argument("--reason", required=True, metavar="R")
    accept.add_argument("--expires", required=True, metavar="YYYY-MM-DD")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``report``."""
    parser.add_argument("verdict", metavar="VERDICT", help="a verdict.json")
    parser.add_argument("--format", choices=FORMATS, default="text")


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``models``."""
    add_selection(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table")


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``plan``."""
    add_selection(parser)
    parser.add_argument("--shards", type=int, default=1, metavar="N")
    parser.add_argument("--format", choices=("table", "json", "github-matrix"), default="table")


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``merge``."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the run.json of each shard")
    parser.add_argument("--out", metavar="FILE", default="run.json", help="where the joined run is written")
    parser.add_argument(
        "--select", metavar="S", help="the selection that was divided: a case of it in no shard is MISSING"
    )


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``doctor``."""
    parser.add_argument("--device", metavar="D", help="cpu, cuda or cuda:N")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``schema``."""
    parser.add_argument("name", metavar="NAME", choices=SCHEMAS, help=", ".join(SCHEMAS))


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``config``."""
    parser.add_argument("--dump", action="store_true", required=True, help="print the configuration in force")


def parse_count(text: str) -> int:
    """Parse a number of things, 0 included."""
    if not text.isdecimal() or len(text) > 6:  # noqa: PLR2004 - a million is a slip of the finger
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 999999")
    return int(text)
