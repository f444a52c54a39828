"""Options that several commands have, and how their values are read; imports nothing heavy."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from gate.devices import DEVICE_FORMS
from gate.records.targets import BOARDS, name_targets, read_architecture
from gate.report import FORMATS

LIST_FORMATS = ("text", "json")
FAIL_ON = ("new", "inconclusive", "regression", "never")


class JoinTerms(argparse.Action):
    """Given twice, a list grows: ``--select a --select b`` is ``--select a,b``."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Join what was given before and now by a comma."""
        del parser, option_string
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before},{values}" if before else values)


def parse_directory(text: str) -> str:
    """Parse the name of a directory to write to; a file's name is what an older option wanted."""
    if text.endswith((".json", ".md", ".xml")):
        raise argparse.ArgumentTypeError(f"names a directory, and {text!r} looks like a file")
    return text


def parse_minutes(text: str) -> float:
    """Parse minutes, more than none and not for ever."""
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"must be minutes above 0, not {text!r}")
    return minutes


def parse_target(text: str) -> str:
    """Parse the name of a target."""
    if read_architecture(text) not in BOARDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no target: choose one of {name_targets()}")
    return text


def parse_count(text: str) -> int:
    """Parse a number of things, 0 included."""
    if not text.isdecimal() or len(text) > 6:  # noqa: PLR2004 - a million is a slip of the finger
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 999999")
    return int(text)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option that names gate.yml."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="configuration file (default: gate.yml, here or in a directory above)",
    )
    # For whoever takes the configuration from another commit, as the action does: not a person's options.
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    parser.add_argument("--rules-commit", default="", help=argparse.SUPPRESS)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that tell how far they are."""
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")


def add_volume(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that print a report."""
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="no progress; print only the verdict")
    volume.add_argument("-v", "--verbose", action="store_true", help="print unchanged comparisons too")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the option that names cases."""
    parser.add_argument(
        "--select",
        action=JoinTerms,
        metavar="CASES",
        help="case ids, globs and tag:NAME, joined by commas; a leading ! removes; may be repeated",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the device."""
    parser.add_argument("--device", metavar="D", help=DEVICE_FORMS)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the device, or a target that code is compiled for instead."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--device", metavar="D", help=DEVICE_FORMS)
    where.add_argument(
        "--target",
        type=parse_target,
        metavar="T",
        help="compile for a GPU that need not be here, and run nothing: cuda:sm_80, cuda:sm_90, ...;"
        " judged is what is exact of the code, and no speed (see docs/targets.md)",
    )


def add_lab(parser: argparse.ArgumentParser, *, targets: bool = False) -> None:
    """Add the options of every command that measures; some can do so for a target, too."""
    add_selection(parser)
    (add_target if targets else add_device)(parser)
    add_out(parser, "results go there (default: out)")
    add_lock(parser)


def add_lock(parser: argparse.ArgumentParser) -> None:
    """Add the option of every command that holds the device."""
    parser.add_argument(
        "--lock-timeout",
        type=float,
        metavar="SECONDS",
        dest="lock_timeout_s",
        help="how long to wait for another run that holds the device",
    )


def add_trials(parser: argparse.ArgumentParser) -> None:
    """Add the option of every command that measures a plan of trials."""
    parser.add_argument(
        "--trials", type=int, metavar="N", help="trials of each case, each in fresh processes"
    )


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks for torch's own trace."""
    parser.add_argument(
        "--trace",
        action="store_true",
        help="record torch's structured trace too, for tlparse: one more compile a trial, which nothing is"
        " measured in",
    )


def add_resume(parser: argparse.ArgumentParser) -> None:
    """Add the option that goes on with what was interrupted."""
    parser.add_argument("--resume", action="store_true", help="continue the run that is in the out directory")


def add_out(parser: argparse.ArgumentParser, text: str, *, required: bool = False) -> None:
    """Add the option that names the directory to write to."""
    parser.add_argument("--out", type=parse_directory, metavar="DIR", help=text, required=required)


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the baselines."""
    parser.add_argument("--baselines", metavar="DIR", help="directory of baselines (default: baselines)")


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the history."""
    parser.add_argument(
        "--history",
        metavar="PATH",
        help="append a line about this run for `trend`: to a file that ends in .jsonl, or to a directory",
    )


def add_report_format(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses how a verdict is printed."""
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="how to print the verdict")


def add_list_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Add the option that chooses how a list is printed."""
    parser.add_argument("--format", choices=(*LIST_FORMATS, *more), default="text", help="how to print it")


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
        help="what was accepted for the commit that is judged, as /accept-regression writes it;"
        " may be repeated",
    )


def add_minutes(parser: argparse.ArgumentParser, default: float, text: str) -> None:
    """Add the option that limits how long a command goes on."""
    parser.add_argument(
        "--minutes",
        type=parse_minutes,
        default=default,
        metavar="M",
        help=f"{text} (default: {default:g})",
    )
