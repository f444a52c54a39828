"""The arguments of the commands that a person calls; imports nothing heavy."""

from __future__ import annotations

import argparse

from gate.cli.options import (
    JoinTerms,
    add_approvals,
    add_baselines,
    add_config,
    add_device,
    add_fail_on,
    add_list_format,
    add_lock,
    add_minutes,
    add_out,
    add_report_format,
    add_selection,
    add_volume,
)

CONTACT_MINUTES = 30.0  # all assumptions once on one GPU
SCHEMAS = (
    *("config", "registry", "run", "verdict", "baseline"),
    *("accepted", "anchor", "approval", "calibration", "selftest", "bisection"),
)
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def add_init(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``init``."""
    parser.add_argument(
        "target",
        metavar="MODULE:NAME",
        help="your torch.nn.Module class, a function that makes one, a function of tensors, or a factory",
    )
    parser.add_argument(
        "--argument",
        dest="arguments",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what the class or function is called with; may be repeated",
    )
    parser.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="SHAPE",
        help="a tensor that forward takes: 8x64, or 8x64:int64<30000 for whole numbers below 30000;"
        " one for each (default: guessed from the first layers, and tried)",
    )
    add_device(parser)
    parser.add_argument(
        "--action",
        metavar="OWNER/REPO@COMMIT",
        help="the action that the workflows use (default: what this installation came from)",
    )
    parser.add_argument(
        "--runner", metavar="LABELS", help="the labels of your runner (default: self-hosted, linux)"
    )


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``completion``."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``compare``."""
    parser.add_argument(
        "baseline",
        metavar="BASELINE",
        help="a run.json, - for standard input, or a directory of baselines",
    )
    parser.add_argument("candidate", metavar="CANDIDATE", help="a run.json, or - for standard input")
    add_config(parser)
    add_out(
        parser, "write verdict.json, report.md, report.html and junit.xml there (default: nothing is written)"
    )
    add_approvals(parser)
    add_fail_on(parser)
    add_report_format(parser)
    add_volume(parser)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline show``."""
    add_config(parser)
    add_baselines(parser)
    add_selection(parser)
    add_list_format(parser)


def add_accept(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline accept``."""
    parser.add_argument("case", metavar="CASE", help="case id or glob")
    parser.add_argument("metric", metavar="METRIC", help="a metric that decides, as in the README's table")
    add_config(parser)
    add_baselines(parser)
    parser.add_argument("--allow", required=True, metavar="8%", help="how much worse it may be")
    parser.add_argument("--reason", required=True, metavar="R", help="why it is taken, for whoever asks")
    parser.add_argument("--expires", required=True, metavar="YYYY-MM-DD", help="the last day it counts")


def add_anchor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``baseline anchor``."""
    parser.add_argument(
        "ref", nargs="?", metavar="REF", help="the commit, by branch, tag or id (default: HEAD)"
    )
    add_config(parser)
    add_baselines(parser)
    parser.add_argument("--reason", required=True, metavar="R", help="why this commit, for whoever asks")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``report``."""
    parser.add_argument("verdict", metavar="VERDICT", help="a verdict.json, or - for standard input")
    add_report_format(parser)
    add_volume(parser)


def add_trend(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``trend``."""
    parser.add_argument(
        "history", nargs="*", metavar="HISTORY", help="files or directories (default: `history` of gate.yml)"
    )
    add_config(parser)
    add_out(parser, "write the pages there (default: trend in the out directory)")
    parser.add_argument("--repository", metavar="OWNER/NAME", help="on GitHub, for links to commits")
    parser.add_argument("--compact", action="store_true", help="first write each history into one file")


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``explain``."""
    parser.add_argument("case", metavar="CASE", help="a case id, or the beginning of one")
    parser.add_argument(
        "verdict",
        nargs="?",
        default="out",
        metavar="VERDICT",
        help="a verdict.json, the directory of a run, or - for standard input (default: out)",
    )


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``models``."""
    add_config(parser)
    add_selection(parser)
    add_list_format(parser)
    parser.add_argument(
        "--try",
        dest="tried",
        action="store_true",
        help="build each selected case (default: `select` of gate.yml) and call it, compiling nothing",
    )
    add_lock(parser)


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``plan``."""
    add_config(parser)
    add_selection(parser)
    parser.add_argument(
        "--shards", type=int, default=1, metavar="N", help="machines to divide the cases over (default: 1)"
    )
    parser.add_argument(
        "--after",
        metavar="RUN",
        help="leave out the cases whose generated code is that of the base, by the run.json of"
        " `ab BASE --target T` (what that cannot see is in docs/targets.md)",
    )
    add_list_format(parser, "github-matrix")


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``merge``."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the run.json of each shard")
    add_config(parser)
    add_out(parser, "write the joined run there, as run.json", required=True)
    parser.add_argument(
        "--select",
        action=JoinTerms,
        metavar="CASES",
        help="the selection that was divided: a case of it in no shard is MISSING",
    )


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``doctor``."""
    add_config(parser)
    add_device(parser)
    add_list_format(parser)


def add_first_contact(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``first-contact``."""
    add_config(parser)
    add_device(parser)
    add_out(parser, "write what was seen there (default: first-contact)")
    add_minutes(parser, CONTACT_MINUTES, "ask nothing more after M minutes")
    parser.add_argument(
        "--only",
        action=JoinTerms,
        metavar="NAMES",
        help="only these assumptions, by the names in the table, joined by commas",
    )


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``schema``."""
    parser.add_argument("name", metavar="NAME", choices=SCHEMAS, help=", ".join(SCHEMAS))


def add_config_command(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``config``."""
    add_config(parser)
    add_selection(parser)
    add_device(parser)
    parser.add_argument("--dump", action="store_true", help="the same: there is nothing else to do yet")
