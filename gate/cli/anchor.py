"""``baseline anchor`` and what ``ab --anchor`` holds head against."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from gate.cli.setup import load_configured
from gate.errors import ExitCode, FileError, UsageError
from gate.files.key_types import VERSION
from gate.lab.host.provenance import format_time, load_provenance
from gate.project.config import Config
from gate.records import Code, Fact, Verdict, name_words
from gate.revisions import advise_missing, find_ref, find_tag, find_top, resolve_ancestor
from gate.store.anchor import ANCHOR_FILE, AnchorFile, describe_anchor, load_anchor, name_anchor, save_anchor
from gate.units import render_age

_RECORD = "compile-gate baseline anchor REF --reason TEXT"


def run_anchor(options: Namespace) -> ExitCode:
    """Write down a commit as the anchor, and tell of the one that it replaces."""
    config = load_configured(options)
    old = load_anchor(config.baselines)
    ref = options.ref or "HEAD"
    commit = resolve_ancestor(config.directory, ref).commit
    now = format_time(datetime.now(UTC))
    anchor = AnchorFile(
        version=VERSION,
        commit=commit,
        name=find_tag(config.directory, commit, ref),
        created=now,
        author=load_provenance(config.directory).author,
        reason=options.reason,
    )
    path = save_anchor(config.baselines, anchor)
    for line in _describe_change(old, anchor, now):
        print(line)
    print(f"Wrote {path}; commit it. Hold head against it with: compile-gate ab --anchor")
    return ExitCode.PASS


def _describe_change(old: AnchorFile | None, anchor: AnchorFile, now: str) -> Iterator[str]:
    yield f"The anchor is {describe_anchor(anchor)}."
    if old is None:
        return
    age = render_age(old.created, now) if old.created else "of unknown age"
    if old.commit == anchor.commit:
        yield f"It was the same commit before ({age})."
    else:
        yield f"It replaces {name_anchor(old)} ({age}): what got worse in between passes from now on."


def find_anchor(options: Namespace, config: Config) -> AnchorFile | None:
    """Find the anchor that ``--anchor`` asks for; ``None`` where it is not asked for.

    Raises:
        UsageError: There is none, or BASE is named as well.
        FileError: It cannot be used, or its commit is not in this repository.
    """
    if not options.anchor:
        return None
    if options.head:
        what = f"--anchor is the base, so there is no place for both {options.base} and {options.head}"
        raise UsageError(what, "Give HEAD alone: compile-gate ab --anchor HEAD.")
    anchor, path = load_anchor(config.baselines), config.baselines / ANCHOR_FILE
    if anchor is None:
        what = f"--anchor: {path} does not exist, so there is no anchor"
        raise UsageError(what, f"Record one and commit it: {_RECORD}")
    find_top(config.directory)
    if find_ref(config.directory, anchor.commit) is None:
        fix = advise_missing(config.directory, f"Fetch it, or record another: {_RECORD}")
        raise FileError(str(path), "commit", f"{anchor.commit} is not in this repository", fix)
    return anchor


def note_anchor(verdict: Verdict, anchor: AnchorFile | None) -> Verdict:
    """Say first what head was held against, and that a change may be that of many commits."""
    if anchor is None:
        return verdict
    note = Fact(code=Code.ANCHOR, names=name_words(anchor=describe_anchor(anchor)))
    return replace(verdict, notes=(note, *verdict.notes))
