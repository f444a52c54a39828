"""The command line as a table: one row a command; imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from gate import __version__
from gate.cli.arguments import (
    add_ab,
    add_baseline,
    add_calibrate,
    add_check,
    add_common,
    add_compare,
    add_config,
    add_doctor,
    add_measuring,
    add_merge,
    add_models,
    add_plan,
    add_report,
    add_schema,
    add_selftest,
)
from gate.cli.github_arguments import (
    add_accept_regression,
    add_authorize,
    add_propose,
    add_publish,
    add_publish_upgrade,
)
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
    holds_token: bool = False  # what it prints is made harmless: see gate.github.log


COMMANDS = (
    Command(
        name="check",
        summary="measure, judge against the stored baselines, report: the main job",
        example="compile-gate check --select tag:smoke",
        run="gate.cli.check:run_check",
        add_arguments=add_check,
    ),
    Command(
        name="ab",
        summary="measure two commits, directories or interpreters side by side",
        example="compile-gate ab main --select 'bert/*'",
        run="gate.cli.ab:run_ab",
        add_arguments=add_ab,
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
        add_arguments=add_compare,
    ),
    Command(
        name="baseline",
        summary="record, show or accept baselines",
        example="compile-gate baseline refresh --trials 5",
        run="gate.cli.baseline:run_baseline",
        add_arguments=add_baseline,
    ),
    Command(
        name="calibrate",
        summary="measure unchanged code often: noise, unstable cases, what the gate can see here",
        example="compile-gate calibrate --select 'bert/*' --trials 12",
        run="gate.cli.calibrate:run_calibrate",
        add_arguments=add_calibrate,
    ),
    Command(
        name="selftest",
        summary="plant known faults into your models and count which ones the gate catches",
        example="compile-gate selftest --select 'bert/*' --minutes 30",
        run="gate.cli.selftest:run_selftest",
        add_arguments=add_selftest,
    ),
    Command(
        name="report",
        summary="render a verdict again",
        example="compile-gate report out/verdict.json --format markdown",
        run="gate.cli.compare:run_report",
        add_arguments=add_report,
    ),
    Command(
        name="models",
        summary="list the cases of the registry",
        example="compile-gate models --select tag:smoke",
        run="gate.cli.show:run_models",
        add_arguments=add_models,
    ),
    Command(
        name="plan",
        summary="show what would run, with expected minutes",
        example="compile-gate plan --shards 4 --format github-matrix",
        run="gate.cli.show:run_plan",
        add_arguments=add_plan,
    ),
    Command(
        name="merge",
        summary="join the runs of shards",
        example="compile-gate merge shard-*/run.json --select tag:pr --out run.json",
        run="gate.cli.compare:run_merge",
        add_arguments=add_merge,
    ),
    Command(
        name="publish",
        summary="tell a finished run's verdict on its pull request",
        example="compile-gate publish --run-id 1234567890",
        run="gate.cli.publish:run_publish",
        add_arguments=add_publish,
        holds_token=True,
    ),
    Command(
        name="publish-upgrade",
        summary="in a workflow: tell in one issue how an upgrade of the stack went",
        example='compile-gate publish-upgrade --run-id "$GITHUB_RUN_ID" --key h200',
        run="gate.cli.publish_upgrade:run_publish_upgrade",
        add_arguments=add_publish_upgrade,
        holds_token=True,
    ),
    Command(
        name="authorize",
        summary="in a workflow: decide whether what a comment asks for may go on",
        example="compile-gate authorize",
        run="gate.cli.authorize:run_authorize",
        add_arguments=add_authorize,
        holds_token=True,
    ),
    Command(
        name="accept-regression",
        summary="in a workflow: accept what regressed for one commit, and start its check again",
        example='compile-gate accept-regression --head-sha "$SHA"',
        run="gate.cli.accept_regression:run_accept_regression",
        add_arguments=add_accept_regression,
        holds_token=True,
    ),
    Command(
        name="propose",
        summary="in a workflow: open a pull request with refreshed baselines",
        example='compile-gate propose --run out/run.json --head-sha "$SHA" --head-ref main',
        run="gate.cli.propose:run_propose",
        add_arguments=add_propose,
        holds_token=True,
    ),
    Command(
        name="doctor",
        summary="is this machine fit to judge?",
        example="compile-gate doctor --device cuda",
        run="gate.cli.show:run_doctor",
        add_arguments=add_doctor,
    ),
    Command(
        name="schema",
        summary="print the JSON Schema of a file",
        example="compile-gate schema run",
        run="gate.cli.show:run_schema",
        add_arguments=add_schema,
    ),
    Command(
        name="config",
        summary="print the configuration in force and where each value comes from",
        example="compile-gate config --dump",
        run="gate.cli.show:run_config",
        add_arguments=add_config,
    ),
)


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
