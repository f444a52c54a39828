"""``baseline`` and ``calibrate``: record what unchanged code measures, and which changes are accepted."""

import math
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gate.calibrate.calibrate import calibrate_gate, list_unknown
from gate.check.schedule import want_whole
from gate.cli.commands import CALIBRATION_PAIRS
from gate.cli.lanes import load_measured, open_measured
from gate.cli.output import append_run
from gate.cli.setup import Project, load_configured, load_project, parse_metric
from gate.decide.conclude.accept import note_left
from gate.decide.constants import MIN_BASELINE_TRIALS
from gate.decide.evidence.baseline import make_baselines
from gate.decide.evidence.disturbed import collect_head, list_hopeless, note_disturbed, note_kept_disturbed
from gate.decide.suspects import Suspect
from gate.devices import get_kind, is_target
from gate.errors import ExitCode, MachineError, UsageError
from gate.files.codec import CALIBRATION, RUN
from gate.files.disk import is_present
from gate.files.entry import VERSION
from gate.lab.arms.provenance import load_provenance, read_time
from gate.metrics import NOISY_DECIDING
from gate.project.config import Config, apply_options
from gate.project.merge import pool_runs
from gate.project.registry import load_cases
from gate.project.selection import select_cases
from gate.records.cases import Acceptance
from gate.records.run import BaseArm, Run
from gate.records.studies import Effort
from gate.report.studies import render_calibration
from gate.report.tables import JSON, render_baselines
from gate.report.words.facts import write_note
from gate.report.words.steps import describe_hidden, describe_setback
from gate.revisions import find_tag, resolve_ancestor
from gate.store.acceptances import parse_allowance, save_acceptance
from gate.store.anchor import AnchorFile, describe_anchor, load_anchor, name_anchor, save_anchor
from gate.store.baselines import (
    Proposal,
    SetbackError,
    check_refresh,
    get_min_trials,
    load_baselines,
    load_placed,
    propose_baselines,
    save_baselines,
)
from gate.store.history import HistoryKind
from gate.store.policy import ACCEPTED_FILE, load_policy
from gate.units import format_age, format_noun, join_some

# A refresh measures up to so many times the trials that were asked for where others were disturbed.
MOST_REFRESHED = 2
CALIBRATION_FILE = "calibration.json"


def run_anchor(options: Namespace) -> ExitCode:
    config = load_configured(options)
    old = load_anchor(config.baselines)
    ref = options.ref or "HEAD"
    commit = resolve_ancestor(config.directory, ref).commit
    now = read_time()
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
    given = (("--config", options.config), ("--baselines", options.baselines))
    more = [word for name, value in given if value for word in (name, value)]
    print(
        f"Wrote {path}; commit it. Compare with it: {shlex.join(['compile-gate', 'ab', '--anchor', *more])}"
    )
    return ExitCode.PASS


def _describe_change(old: AnchorFile | None, anchor: AnchorFile, now: str) -> Iterator[str]:
    yield f"The anchor is {describe_anchor(anchor)}."
    if old is None:
        return
    age = format_age(old.created, now) if old.created else "of unknown age"
    if old.commit == anchor.commit:
        yield f"It was the same commit before ({age})."
    else:
        yield f"It replaces {name_anchor(old)} ({age}): what got worse in between passes from now on."


def run_refresh(options: Namespace) -> ExitCode:
    request = load_project(options)
    config = request.config
    # Read what is stored before minutes are spent: a damaged baseline shows at once.
    stored, policy = load_placed(config.baselines), load_policy(config)
    fewest = get_min_trials(get_kind(config.device).name)
    trials = options.trials or (fewest if is_target(config.device) else config.refresh_trials)
    if trials < fewest:
        what = f"a baseline needs at least {fewest} trials of a case, not {trials}"
        raise UsageError(what, f"Write --trials {fewest} or more, or refresh_trials in gate.yml.")
    with _measure_calm(options, request, trials, fewest) as run:
        check_refresh(run)
        refuse_disturbed(run, fewest, anyway=options.anyway)
        provenance = replace(run.provenance, reason=options.reason.strip())
        proposals = propose_baselines(make_baselines(run, provenance), stored, policy)
        try:
            save_baselines(config.baselines, proposals)
        except SetbackError as error:
            raise UsageError(describe_hidden(error.setbacks), error.fix) from None
        append_run(config, run, HistoryKind.BASELINE)
    for proposal in proposals:
        print(_describe(proposal))
    left = note_left((proposal.baseline for proposal in proposals), policy)
    for note in (*note_disturbed(collect_head(run)), *note_kept_disturbed(run, fewest), *left):
        print(f"note  {write_note(note)}")
    recorded, each = format_noun(len(proposals), "baseline"), format_noun(trials, "trial")
    print(f"Recorded {recorded} of {each} each in {config.baselines}; commit what is new there.")
    return ExitCode.PASS


@contextmanager
def _measure_calm(options: Namespace, request: Project, trials: int, fewest: int) -> Iterator[Run]:
    """Up to MOST_REFRESHED times as many trials, if too few were undisturbed.

    What measures is still open: a lane that hangs when it is closed withholds no baseline.
    """
    done = load_measured(options, request, trials)
    if done and (options.anyway or not list_hopeless(done, fewest)):
        yield done
        return
    with open_measured(options, request, trials) as (measurer, measured):
        run = measured
        for number in range(trials + 1, MOST_REFRESHED * trials + 1):
            if options.anyway or not (disturbed := list_hopeless(run, fewest)):
                break
            run = measurer.add_trials(run, want_whole(disturbed), number)
        yield run


def _describe(proposal: Proposal) -> str:
    worse = "".join(f"\n    worse: {describe_setback(setback)}" for setback in proposal.setbacks)
    return f"{proposal.kind:9} {proposal.path}{worse}"


def run_show(options: Namespace) -> ExitCode:
    """Nothing stored is exit 3."""
    config = load_configured(options)
    baselines, anchor = load_baselines(config.baselines), load_anchor(config.baselines)
    if options.select:
        chosen = {case.id for case in select_cases(load_cases(config), options.select)}
        baselines = tuple(item for item in baselines if item.case_id in chosen)
    where = f"in {config.baselines}"
    if not is_present(config.baselines):
        where += ", which does not exist"
    print(render_baselines(baselines, read_time(), where, options.format))
    if anchor is not None and options.format != JSON:
        print(f"\nanchor: {describe_anchor(anchor, read_time())}")
    return ExitCode.PASS if baselines else ExitCode.NOTHING_COMPARED


def run_accept(options: Namespace) -> ExitCode:
    config = load_configured(options)
    select_cases(load_cases(config), options.case)  # what fits no case would be accepted, and never count
    metric = parse_metric(options.metric, [limit.metric for limit in config.limits])
    acceptance = Acceptance(
        case=options.case,
        metric=metric,
        allowance=parse_allowance(options.allow, metric),
        reason=options.reason,
        author=load_provenance(config.directory).author,
        expires=options.expires,
    )
    path = config.baselines / ACCEPTED_FILE
    is_anew = save_acceptance(path, acceptance)
    print(f"Accepted {metric} of {options.case} up to {options.allow} worse until {options.expires}.")
    if is_anew:
        note = f"note: {path} was rewritten: its entries are kept, its comments are lost"
        print(note, file=sys.stderr)
    print(f"Wrote {path}; commit it.")
    return ExitCode.PASS


def refuse_disturbed(run: Run, fewest: int, *, anyway: bool, is_measured: bool = True) -> None:
    """The noise of other programs would be taken for the code's.

    Raises:
        MachineError: Of a case trials were disturbed, fewer than ``fewest`` were not, and it is not wanted
            ``anyway``.
    """
    hopeless = list_hopeless(run, fewest)
    if not hopeless or anyway:
        return
    why = " ".join(map(write_note, note_disturbed(collect_head(run))))
    what = f"fewer than {fewest} undisturbed trials came back of {join_some(hopeless)}. {why}"
    again = "--anyway --resume" if is_measured else "--anyway"
    raise MachineError(what, f"Run it again once the machine is quiet; {again} takes what there is.")


def run_calibrate(options: Namespace) -> ExitCode:
    """Recorded runs replace measuring.

    Raises:
        UsageError: Recorded runs, and an option that asks for measuring.
    """
    _refuse_measuring_recorded(options)
    # --trials is for this command; a check spends what gate.yml allows.
    request = load_project(Namespace(**{**vars(options), "trials": None}))
    config = request.config
    apply_options(config, trials=options.trials)  # refuses what is no number of trials
    recorded = [RUN.load(Path(name)) for name in options.run_files or ()]
    run = pool_runs(recorded, options.run_files) if recorded else _measure(options, request)
    refuse_disturbed(run, MIN_BASELINE_TRIALS, anyway=options.anyway, is_measured=not recorded)
    # What is accepted or in quarantine fails no check, and would hide how often it would.
    policy = replace(load_policy(config), acceptances=(), quarantine=())
    calibration = calibrate_gate(run, policy, _make_effort(config, options.requests))
    path = config.out / CALIBRATION_FILE
    CALIBRATION.save(calibration, path)
    print(f"{render_calibration(calibration)}\nWrote {path}.")
    return ExitCode.INCOMPLETE if run.failures or list_unknown(run) else ExitCode.PASS


def _refuse_measuring_recorded(options: Namespace) -> None:
    asked = {"--trials": options.trials, "--pairs": options.pairs, "--resume": options.resume or None}
    named = [option for option, value in asked.items() if value is not None]
    if options.run_files and named:
        raise UsageError(
            f"--run measures nothing, and {named[0]} says what to measure",
            f"Leave {named[0]} out, or leave --run out.",
        )


def _make_effort(config: Config, requests: int) -> Effort:
    return Effort(
        baseline_trials=config.refresh_trials,
        trials=config.trials,
        max_trials=config.max_trials,
        requests=requests,
        budget_s=config.budget_s,
        pair_budget_s=config.pair_budget_s,
    )


def _measure(options: Namespace, request: Project) -> Run:
    trials = options.trials or request.config.refresh_trials + request.config.max_trials
    pairs = CALIBRATION_PAIRS if options.pairs is None else options.pairs
    with open_measured(options, request, trials) as (measurer, run):
        if not pairs:
            return run
        base = BaseArm(
            label="the same tree",
            environment=run.environment,
            provenance=run.provenance,
            cases=run.cases,
            changes=run.changes,
        )
        needs = [
            Suspect(case_id=case.id, metrics=NOISY_DECIDING, more=pairs - run.pair_counts[case.id])
            for case in run.cases
        ]
        paired = measurer.add_pairs(replace(run, base=base), needs, math.inf)
        whole = replace(paired, finished=True)
        measurer.save(whole)
        return whole
