"""The arguments of the commands that measure and judge; imports nothing heavy."""

from __future__ import annotations

import argparse

from gate.cli.options import (
    JoinTerms,
    add_approvals,
    add_baselines,
    add_config,
    add_device,
    add_fail_on,
    add_history,
    add_lab,
    add_lock,
    add_minutes,
    add_out,
    add_quiet,
    add_report_format,
    add_resume,
    add_trace,
    add_trials,
    add_volume,
    parse_count,
)

AB_MINUTES = 60.0  # a dozen cases, ten pairs each, on two cores


BISECT_MINUTES = 10.0  # a few pairs of a case on two cores


CALIBRATION_PAIRS = 8  # they know their own spread to a quarter of it


SELFTEST_MINUTES = 10.0  # all faults once on two cores


CALIBRATION_REQUESTS = 1000  # without any false alarm they exclude a rate above 0.4 %


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``check``."""
    add_config(parser)
    add_lab(parser, targets=True)
    add_trials(parser)
    add_trace(parser)
    add_resume(parser)
    add_baselines(parser)
    parser.add_argument(
        "--base",
        metavar="REF",
        help="re-measure suspected regressions side by side with the merge base of REF and HEAD",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        dest="budget_s",
        help="start no extra trial of an undecided case after so long",
    )
    parser.add_argument(
        "--pair-budget",
        type=float,
        metavar="SECONDS",
        dest="pair_budget_s",
        help="with --base: spend at most so long on re-measuring side by side",
    )
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="with --base: settle every doubt about a case, though it has regressed for certain",
    )
    add_approvals(parser)
    add_history(parser)
    add_fail_on(parser)
    add_report_format(parser)
    add_volume(parser)


def add_ab(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ab``."""
    parser.add_argument(
        "base",
        nargs="?",
        metavar="BASE",
        help="a git ref or a directory (default: where HEAD forked from the main branch)",
    )
    parser.add_argument(
        "head",
        nargs="?",
        metavar="HEAD",
        help="a git ref or a directory (default: the working tree)",
    )
    add_config(parser)
    parser.add_argument(
        "--anchor",
        action="store_true",
        help="hold head against the release anchor (see `baseline anchor`); what is named is HEAD then",
    )
    parser.add_argument("--base-python", metavar="FILE", help="the base's interpreter, which has torch")
    parser.add_argument("--head-python", metavar="FILE", help="head's interpreter (default: this one)")
    add_lab(parser, targets=True)
    add_trace(parser)
    add_resume(parser)
    add_minutes(parser, AB_MINUTES, "start no new pair after M minutes")
    add_history(parser)
    add_fail_on(parser)
    add_volume(parser)
    parser.set_defaults(format="text")  # it may print two reports


def add_bisect(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``bisect``."""
    # Not required by the parser: where it stands behind --pythons, that has taken it for an interpreter.
    parser.add_argument("select", nargs="?", metavar="CASE", help="the one case, by id or pattern")
    parser.add_argument(
        "metric",
        nargs="?",
        metavar="METRIC",
        help="a metric that decides (default: what is worse at the bad end, a counter first)",
    )
    add_config(parser)
    parser.add_argument("--good", metavar="REF", help="a commit that is known to be good")
    parser.add_argument("--bad", metavar="REF", help="a later one that is known to be bad (default: HEAD)")
    parser.add_argument(
        "--pythons",
        nargs="+",
        metavar="FILE",
        help="search interpreters instead, the working tree's code on each: the first is good, the last bad;"
        " behind CASE, since it takes all that follows",
    )
    add_device(parser)
    add_out(parser, "results go to bisect/ in there (default: out)")
    add_lock(parser)
    add_resume(parser)
    add_minutes(parser, BISECT_MINUTES, "time for the pairs of a step, twice where it cannot tell")
    add_quiet(parser)


def add_measure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``measure``."""
    add_config(parser)
    add_lab(parser, targets=True)
    add_trials(parser)
    add_trace(parser)
    add_resume(parser)
    add_quiet(parser)


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``calibrate``."""
    add_config(parser)
    add_lab(parser)
    add_trials(parser)
    add_resume(parser)
    parser.add_argument(
        "--pairs",
        type=parse_count,
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
        action="extend",
        nargs="+",
        metavar="FILE",
        help="measure nothing: take the trials of these run.json files, all of one unchanged program",
    )
    add_quiet(parser)


def add_selftest(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``selftest``."""
    add_config(parser)
    add_lab(parser)
    add_minutes(parser, SELFTEST_MINUTES, "start no new fault after M minutes")
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
        "--faults",
        action=JoinTerms,
        metavar="NAMES",
        help="only these faults, joined by commas: graph_break, 'slowdown-*'; may be repeated",
    )
    add_quiet(parser)


def add_refresh(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline refresh``."""
    add_config(parser)
    add_lab(parser, targets=True)
    add_trials(parser)
    add_resume(parser)
    add_baselines(parser)
    add_history(parser)
    parser.add_argument(
        "--reason", default="", metavar="R", help="why a metric got worse; needed where one did"
    )
    add_quiet(parser)
