"""The command line as a table: one row a command; imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from gate import __version__
from gate.cli.github_arguments import FAIL_ON, add_authorize, add_propose, add_publish, add_publish_upgrade
from gate.errors import ExitCode

EPILOG = """\
exit codes:
  0   PASS               measured and compared, nothing regressed
  1   -                  a bug in compile-gate
  2   -                  usage or configuration
  3   NOTHING_COMPARED   no baseline applies: measured, not judged
  4   -                  the machine: no device, no compiler, held lock, full disk
  10  REGRESSION         at least one regression
  11  INCONCLUSIVE       suspicious, not settled within the budget
  12  INCOMPLETE         a planned case crashed, hung or is missing
"""
FORMATS = ("text", "markdown", "json", "junit")
CALIBRATION_PAIRS = 8  # they know their own spread to a quarter of it
SELFTEST_MINUTES = 10.0  # all faults once on two cores
CALIBRATION_REQUESTS = 1000  # without any false alarm they exclude a rate above 0.4 %
SCHEMAS = ("config", "registry", "run", "verdict", "baseline", "accepted", "calibration", "selftest")


class UsageParser(argparse.ArgumentParser):
    """An argparse parser whose errors are two lines like every other error of the tool."""

    def error(self, message: str) -> None:  # type: ignore[override] # exits, as the base class does
        """Print what is wrong and where help is, then exit 2."""
        self.exit(ExitCode.USAGE, f"{self.prog}: {message}\nSee `{self.prog} --help` for the options.\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One command: how it is called, what it says of itself and the function that does it."""

    name: str
    summary: str
    example: str
    run: str  # "module:function", imported when the command is chosen
    add_arguments: Callable[[argparse.ArgumentParser], None]


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
        help="weakest outcome that fails; `regression` exits 0 on INCONCLUSIVE and says so",
    )


def _add_check(parser: argparse.ArgumentParser) -> None:
    add_measuring(parser)
    add_baselines(parser)
    parser.add_argument(
        "--base",
        metavar="REF",
        help="confirm what looks suspicious side by side with the commit where this tree left REF",
    )
    add_fail_on(parser)


def _add_ab(parser: argparse.ArgumentParser) -> None:
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


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
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
        "--run", dest="run_file", metavar="FILE", help="measure nothing: take the trials of this run.json"
    )


def _add_selftest(parser: argparse.ArgumentParser) -> None:
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


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="BASELINE", help="a run.json, or a directory of baselines")
    parser.add_argument("candidate", metavar="CANDIDATE", help="a run.json")
    parser.add_argument("--out", metavar="FILE", default="verdict.json", help="where the verdict is written")
    parser.add_argument("--format", choices=FORMATS, default="text")
    add_fail_on(parser)


def _add_baseline(parser: argparse.ArgumentParser) -> None:
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


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verdict", metavar="VERDICT", help="a verdict.json")
    parser.add_argument("--format", choices=FORMATS, default="text")


def _add_models(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument("--shards", type=int, default=1, metavar="N")
    parser.add_argument("--format", choices=("table", "json", "github-matrix"), default="table")


def _add_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the run.json of each shard")
    parser.add_argument("--out", metavar="FILE", default="run.json", help="where the joined run is written")
    parser.add_argument(
        "--select", metavar="S", help="the selection that was divided: a case of it in no shard is MISSING"
    )


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", metavar="D", help="cpu, cuda or cuda:N")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", choices=SCHEMAS, help=", ".join(SCHEMAS))


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dump", action="store_true", required=True, help="print the configuration in force")


def parse_count(text: str) -> int:
    """Parse a number of things, 0 included."""
    if not text.isdecimal() or len(text) > 6:  # noqa: PLR2004 - a million is a slip of the finger
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 999999")
    return int(text)


COMMANDS = (
    Command(
        name="check",
        summary="measure, judge against the stored baselines, report: the main job",
        example="compile-gate check --select tag:smoke",
        run="gate.cli.check:run_check",
        add_arguments=_add_check,
    ),
    Command(
        name="ab",
        summary="measure two commits, directories or interpreters side by side",
        example="compile-gate ab main --select 'bert/*'",
        run="gate.cli.ab:run_ab",
        add_arguments=_add_ab,
    ),
    Command(
        name="measure",
        summary="measure only; writes out/run.json",
        example="compile-gate measure --select 'bert/*' --trials 3",
        run="gate.cli.check:run_measure",
        add_arguments=add_measuring,
    ),
    Command(
        name="compare",
        summary="judge one stored run against another, or against baselines",
        example="compile-gate compare old/run.json new/run.json",
        run="gate.cli.compare:run_compare",
        add_arguments=_add_compare,
    ),
    Command(
        name="baseline",
        summary="record, show or accept baselines",
        example="compile-gate baseline refresh --trials 5",
        run="gate.cli.baseline:run_baseline",
        add_arguments=_add_baseline,
    ),
    Command(
        name="calibrate",
        summary="measure unchanged code often: noise, unstable cases, what the gate can see here",
        example="compile-gate calibrate --select 'bert/*' --trials 12",
        run="gate.cli.calibrate:run_calibrate",
        add_arguments=_add_calibrate,
    ),
    Command(
        name="selftest",
        summary="plant known faults into your models and count which ones the gate catches",
        example="compile-gate selftest --select 'bert/*' --minutes 30",
        run="gate.cli.selftest:run_selftest",
        add_arguments=_add_selftest,
    ),
    Command(
        name="report",
        summary="render a verdict again",
        example="compile-gate report out/verdict.json --format markdown",
        run="gate.cli.compare:run_report",
        add_arguments=_add_report,
    ),
    Command(
        name="models",
        summary="list the cases of the registry",
        example="compile-gate models --select tag:smoke",
        run="gate.cli.show:run_models",
        add_arguments=_add_models,
    ),
    Command(
        name="plan",
        summary="show what would run, with expected minutes",
        example="compile-gate plan --shards 4 --format github-matrix",
        run="gate.cli.show:run_plan",
        add_arguments=_add_plan,
    ),
    Command(
        name="merge",
        summary="join the runs of shards",
        example="compile-gate merge shard-*/run.json --select tag:pr --out run.json",
        run="gate.cli.compare:run_merge",
        add_arguments=_add_merge,
    ),
    Command(
        name="publish",
        summary="tell a finished run's verdict on its pull request",
        example="compile-gate publish --run-id 1234567890",
        run="gate.cli.publish:run_publish",
        add_arguments=add_publish,
    ),
    Command(
        name="publish-upgrade",
        summary="in a workflow: tell in one issue how an upgrade of the stack went",
        example='compile-gate publish-upgrade --run-id "$GITHUB_RUN_ID" --key h200',
        run="gate.cli.publish_upgrade:run_publish_upgrade",
        add_arguments=add_publish_upgrade,
    ),
    Command(
        name="authorize",
        summary="in a workflow: decide whether the refresh that a comment asks for may go on",
        example="compile-gate authorize",
        run="gate.cli.authorize:run_authorize",
        add_arguments=add_authorize,
    ),
    Command(
        name="propose",
        summary="in a workflow: open a pull request with refreshed baselines",
        example='compile-gate propose --run out/run.json --head-sha "$SHA" --head-ref main',
        run="gate.cli.propose:run_propose",
        add_arguments=add_propose,
    ),
    Command(
        name="doctor",
        summary="is this machine fit to judge?",
        example="compile-gate doctor --device cuda",
        run="gate.cli.show:run_doctor",
        add_arguments=_add_doctor,
    ),
    Command(
        name="schema",
        summary="print the JSON Schema of a file",
        example="compile-gate schema run",
        run="gate.cli.show:run_schema",
        add_arguments=_add_schema,
    ),
    Command(
        name="config",
        summary="print the configuration in force and where each value comes from",
        example="compile-gate config --dump",
        run="gate.cli.show:run_config",
        add_arguments=_add_config,
    ),
)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has."""
    parser.add_argument("--config", metavar="PATH", help="configuration file (default: gate.yml)")
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="only the verdict")
    volume.add_argument("-v", "--verbose", action="store_true", help="unchanged comparisons too")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = UsageParser(
        prog="compile-gate",
        description="A regression gate for torch.compile: speed, compile time, memory and drift.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=UsageParser
    )
    for command in COMMANDS:
        child = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=f"example:\n  {command.example}\n\n{EPILOG}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if command.name != "baseline":
            add_common(child)
        command.add_arguments(child)
        child.set_defaults(run=command.run)
    return parser
