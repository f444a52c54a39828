"""``check`` and ``measure``: run a plan in the lab, judge it, write and print the reports."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from gate.check.measurer import Measurer
from gate.check.procedure import CheckTerms, check_against_base, check_against_baselines
from gate.cli.lanes import Opening, begin_sources, find_measured, load_previous, open_lane, open_measurer
from gate.cli.output import (
    append_run,
    find_history,
    list_reports,
    print_traces,
    remove_files,
    report_verdict,
)
from gate.cli.setup import RUN_FILE, Project, find_gate, load_project, note_idle, note_origin, note_rules
from gate.decide.conclude.outcome import FailOn
from gate.decide.evidence.disturbed import list_hopeless, note_disturbed
from gate.decide.explain.notes import note_shard
from gate.devices import is_target
from gate.errors import ExitCode, GateError, MachineError, NothingComparedError
from gate.lab.arms.arms import ArmOptions, find_checkouts, open_arms, resolve_arms
from gate.lab.arms.worktree import Changes, read_changes
from gate.lab.trials.lane import Lane, LaneTerms
from gate.lab.trials.runs import measure_plan
from gate.project.config import Config
from gate.project.registry import check_factories
from gate.records import Code, Fact, Run, make_text, name_words
from gate.records.events import Noted, Observer
from gate.records.protocol import Checkouts
from gate.report.words.facts import describe_failure, write_note
from gate.revisions import NothingDiffersError
from gate.store.baselines import load_baselines
from gate.store.history import HistoryKind
from gate.store.policy import load_policy
from gate.units import count_noun, join_some


def run_check(options: Namespace) -> ExitCode:
    """Measure the selection, judge it against the stored baselines, confirm what is suspicious, report."""
    request = load_project(options)
    config = request.config
    policy = load_policy(config, options.accepted, gate=find_gate(options, config))
    terms = CheckTerms(
        baselines=load_baselines(config.baselines),
        policy=policy,
        trials=config.trials,
        max_trials=config.max_trials,
        pair_budget_s=config.pair_budget_s,
        thorough=options.thorough,
    )
    alone = find_why_alone(options, config)
    stored = {one.case_id for one in terms.baselines}
    judges_alone = bool(config.limits) or any(case.id in stored for case in request.cases)
    if not judges_alone:
        _refuse_in_vain(options, config, alone)
    opening = partial(open_check, options, alone, judges_alone=judges_alone)
    with open_measured(options, request, config.trials, opening) as (measurer, run):
        judge = check_against_baselines if run.base is None else check_against_base
        checked = judge(replace(measurer, budget_s=config.budget_s), run, terms)
        measurer.save(checked.run)
    verdict = note_idle(checked.verdict, policy, request.registry, terms.baselines)
    verdict = note_origin(verdict, config, options)
    verdict = replace(verdict, notes=(*note_shard(checked.run), *([alone] if alone else []), *verdict.notes))
    verdict = note_rules(verdict, config, checked.run.base.provenance.commit if checked.run.base else "")
    append_run(options, config, checked.run, HistoryKind.CHECK)
    code = report_verdict(verdict, config, options, config.out, policy)
    print_traces(checked.run, config.out)
    return code


_LACK = "the directory {} has no baseline of these cases"


def _refuse_in_vain(options: Namespace, config: Config, alone: Fact | None) -> None:
    """Refuse to spend minutes on an unchanged main branch that nothing can be compared with.

    No earlier verdict stays: it would be taken for this one.

    Raises:
        NothingComparedError: So it is, that may fail, and neither an option nor a history asks for figures
            alone.
    """
    if alone is None or alone.code is not Code.NOTHING_DIFFERS or options.base:
        return
    if config.fail_on is FailOn.NEVER or find_history(options, config):
        return
    remove_files(*list_reports(config.out))
    why = f"nothing differs from {alone.name('base')}, and {_LACK.format(config.baselines)}"
    fix = "Make a change, add --base HEAD~1, or record baselines: `compile-gate baseline refresh`."
    what = f"there is nothing to compare with: {why}"
    raise NothingComparedError(what, f"{fix} --no-base measures all the same.")


def _note_unjudged(options: Namespace, config: Config, observe: Observer) -> None:
    """Say before minutes are spent that there is nothing to compare with."""
    what = f"nothing will be judged: {_LACK.format(config.baselines)}"
    compare = "compare with the commit before, add --base HEAD~1"
    if options.no_base:
        compare = "compare with a base, leave out --no-base"
    fix = f"To {compare}; to record baselines, `compile-gate baseline refresh`"
    observe(Noted(fact=make_text(f"{what}. {fix}")))


@contextmanager
def open_check(
    options: Namespace, alone: Fact | None, request: Project, terms: LaneTerms, *, judges_alone: bool
) -> Iterator[Lane]:
    """Open a lane with the base beside the working tree, unless ``alone`` says why there is none.

    ``judges_alone`` says that something can be judged without it: by an absolute limit, or by a baseline.
    """
    config = request.config
    if alone or options.no_base:
        if alone:
            terms.observe(Noted(fact=alone))
        if not judges_alone:
            _note_unjudged(options, config, terms.observe)
        with open_lane(request, terms, trials=config.trials, traces=options.trace) as lane:
            yield lane
        return
    with open_arms(_name_arms(options, config)) as sources:
        begin_sources(sources, request, terms.observe)
        checkouts = find_checkouts(sources)
        changes = _read_changes(checkouts, sources.base.commit, config)
        told = replace(checkouts, changed=changes.python) if checkouts and changes else None
        how = {"checkouts": told, "keeps_caches": True, "traces": options.trace}
        with open_lane(request, terms, sources, config.trials, **how) as lane:
            base = lane.run.base and replace(lane.run.base, other_changes=changes.other if changes else None)
            yield replace(lane, run=replace(lane.run, base=base))


def find_why_alone(options: Namespace, config: Config) -> Fact | None:
    """Find why there is no base, though none was refused; ``None`` where there is one, or none is wanted.

    It is not known; or it is the very commit that is measured, so that pairs would acquit whatever the stored
    baselines convict it of.

    Raises:
        UsageError, MachineError: One is named that cannot be found.
    """
    if options.no_base:
        return None
    try:
        resolve_arms(_name_arms(options, config))
    except NothingDiffersError as error:
        return Fact(code=Code.NOTHING_DIFFERS, names=name_words(base=error.main))
    except GateError as error:
        if options.base:
            raise
        return Fact(code=Code.NO_BASE, names=name_words(reason=error.what, fix=error.fix))
    return None


def _name_arms(options: Namespace, config: Config) -> ArmOptions:
    return ArmOptions(directory=config.directory, base=options.base or "", from_merge_base=True)


def _read_changes(checkouts: Checkouts | None, base: str, config: Config) -> Changes | None:
    """Read what differs from the base, a commit: it shows which cases run the same program."""
    own = (config.out, config.baselines)
    # Where results lie around the project itself, not all that lies there is the gate's.
    apart = [place for place in own if not config.directory.resolve().is_relative_to(place.resolve())]
    return read_changes(Path(checkouts.head), base, apart) if checkouts else None


def run_measure(options: Namespace) -> ExitCode:
    """Measure the selection and judge nothing; the exit code still shows a case that failed."""
    request = load_project(options)
    config = request.config
    run = measure_request(options, request, config.trials)
    measured = len({trial.case_id for trial in run.trials} - {failure.case_id for failure in run.failures})
    cases = count_noun(len(run.cases), "case")
    print(f"Measured {measured} of {cases} in {run.wall_s:.0f} s; nothing was judged.")
    print(
        f"Wrote {config.out / RUN_FILE}; judge it with: compile-gate compare BASELINE {config.out / RUN_FILE}"
    )
    if is_target(config.device):
        print(write_note(Fact(code=Code.NO_DEVICE)))
    print_traces(run, config.out)
    for failure in run.failures:
        print(f"FAILED {failure.case_id} ({failure.kind} at {failure.stage}): {describe_failure(failure)}")
        print(f"    log: {failure.log}")
    return ExitCode.INCOMPLETE if measured < len(run.cases) else ExitCode.PASS


@contextmanager
def open_measured(
    options: Namespace, request: Project, trials: int, opening: Opening | None = None
) -> Iterator[tuple[Measurer, Run]]:
    """Measure ``trials`` trials of each selected case; what measures is still open."""
    check_factories(request.config, request.cases)
    previous = load_previous(options, request.config.out)
    traces = getattr(options, "trace", False)  # neither a refresh nor a calibration has the option
    opening = opening or partial(open_lane, trials=trials, traces=traces)
    with open_measurer(options, request, opening, previous) as (measurer, run):
        yield measurer, measure_plan(measurer, run)


def measure_request(options: Namespace, request: Project, trials: int) -> Run:
    """Measure ``trials`` trials of each selected case; where ``--resume`` finds them all, open nothing."""
    if done := find_measured(options, request, trials):
        return done
    with open_measured(options, request, trials) as (_, run):
        return run


def refuse_disturbed(run: Run, fewest: int, *, anyway: bool, is_measured: bool = True) -> None:
    """Refuse to learn from a machine that others used: what it varied by would be taken for the code's.

    A run that was measured just now is in the out directory: --resume takes it up.

    Raises:
        MachineError: Of a case trials were disturbed, fewer than ``fewest`` were not, and it is not wanted
            ``anyway``.
    """
    hopeless = list_hopeless(run, fewest)
    if not hopeless or anyway:
        return
    why = " ".join(map(write_note, note_disturbed(run)))
    what = f"fewer than {fewest} undisturbed trials came back of {join_some(hopeless)}. {why}"
    again = "--anyway --resume" if is_measured else "--anyway"
    raise MachineError(what, f"Run it again once the machine is quiet; {again} takes what there is.")
