"""What a command measures with: a lane of its own, or a fleet of many."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gate.check.measurer import LaneMeasurer
from gate.cli.output import RunSaver
from gate.cli.setup import RUN_FILE, Project, describe_source, is_surprising
from gate.decide.evidence.gather import list_short
from gate.devices import CPU, get_kind
from gate.errors import FileError, InterruptedRunError, UsageError
from gate.files.codec import RUN
from gate.files.disk import is_present
from gate.github.job import find_text, load_payload
from gate.installation import find_release, name_page
from gate.lab.arms.arms import ArmSources, make_working_tree_arm, read_code_states
from gate.lab.arms.changes import Changes, hash_changes, read_changes
from gate.lab.arms.checkouts import read_working_tree
from gate.lab.arms.provenance import load_provenance
from gate.lab.host.cores import write_cores
from gate.lab.trials.bench import LabSettings
from gate.lab.trials.opening import Lab, make_results_directory, open_lab
from gate.lab.trials.runs import (
    Lane,
    LaneTerms,
    OpenLane,
    OwnCode,
    describe_base,
    make_measurer,
    make_run,
    measure_plan,
)
from gate.lab.trials.same_run import refuse_other_run, resume_run
from gate.programs import MOST_WALL_LIMITS, list_cores
from gate.project.arm_cases import load_base_cases
from gate.project.config import Config
from gate.project.lending import lend_files
from gate.project.registry import check_factories
from gate.records.codes import Code
from gate.records.events import Noted, Observer
from gate.records.facts import Fact, make_text, name_words
from gate.records.protocol import Checkouts
from gate.records.run import Arm, BaseArm, Extent, Run
from gate.report.progress import show_progress
from gate.units import format_noun

if TYPE_CHECKING:
    from gate.fleet.driver import RayEngine

_DRIVER = Path("/dev/nvidiactl")  # of NVIDIA's
Opening = Callable[[Project, LaneTerms], AbstractContextManager[Lane]]
# A trial has two processes, and may be repeated twice; the arms of a pair may take turns.
_PATIENCE = 8 * MOST_WALL_LIMITS


def load_previous(options: Namespace, out: Path) -> Run | None:
    """The run that ``--resume`` continues.

    Raises:
        UsageError: There is none.
        FileError: It cannot be used.
    """
    if not options.resume:
        return None
    path = out / RUN_FILE
    if not is_present(path):
        what = f"--resume: {path} does not exist, so there is no run to continue"
        raise UsageError(what, "Run without --resume, or name the run's directory with --out.")
    try:
        return RUN.load(path)
    except FileError as error:
        raise FileError(str(path), error.key, error.problem, "Run without --resume.") from None


def load_measured(options: Namespace, request: Project, trials: int) -> Run | None:
    """The run that ``--resume`` continues, if it is complete. Raises as :func:`load_previous`."""
    run = load_previous(options, request.config.out)
    if run is None or run.base or run.failures or not run.finished:
        return None
    if not run.changes or run.environment.torch != find_release("torch"):
        return None
    whole = tuple(trial for trial in run.trials if trial.extent is Extent.WHOLE)
    if list_short(replace(run, trials=whole, trials_planned=trials)):
        return None
    _refuse_other(run, request, place_lab(request.config)[1], None, trials)
    return run


def _refuse_other(
    begun: Run, request: Project, settings: LabSettings, sources: ArmSources | None, trials: int
) -> None:
    """Compares all that is known before anything is warmed up."""
    base = sources.base if sources else None
    directory = Path(sources.head.arm.directory) if sources else request.config.directory
    # The rest of this machine's environment is still to be found out.
    kind = get_kind(settings.device).name
    draft = Run(
        cases=request.cases,
        environment=replace(begun.environment, device_kind=kind, threads=settings.threads),
        provenance=load_provenance(directory),
        changes=hash_changes(directory),
        trials_planned=trials,
        sampling=asdict(settings.sampling),
        counts_only=settings.counts_only,
        base=None
        if base is None
        else BaseArm(
            label=base.label,
            environment=(begun.base or begun).environment,
            provenance=base.provenance,
            cases=(),
            changes=hash_changes(Path(base.arm.directory)),
        ),
    )
    refuse_other_run(draft, begun)


@contextmanager
def open_measurer(
    options: Namespace, request: Project, opening: Opening, previous: Run | None
) -> Iterator[tuple[LaneMeasurer, Run]]:
    """With ``previous``; lanes get that without its trials, and refuse to continue another run.

    Raises as :func:`gate.lab.trials.opening.open_lab`, and as :func:`gate.fleet.driver.open_fleet`.
    """
    config = request.config
    begun = previous and replace(previous, trials=(), failures=(), retried=(), sources={})
    open_begun = partial(opening, replace(request, begun=begun))
    cores = getattr(options, "cores", ())
    # Closed before the lanes are, which may take longer than a job's stop may; and again after them,
    # if a second signal came meanwhile.
    with (
        show_progress(quiet=options.quiet) as show,
        closing(RunSaver(path=config.out / RUN_FILE, observe=show)) as saver,
        ExitStack() as opened,
    ):
        observe = saver.report
        if asked := getattr(options, "lanes", None):  # `measure` has no such option
            _refuse_lanes(options, os.environ)
            read_states = partial(read_code_states, config.directory, request.arms)
            lanes = opened.enter_context(_open_fleet(asked, open_begun, read_states, config, observe))
            patience_s = _PATIENCE * config.trial_timeout_s
            measurer = LaneMeasurer(
                engine=lanes, save=saver.save, keep=saver.keep, observe=observe, patience_s=patience_s
            )
            run = lanes.run
        else:
            cores = _choose_cores(cores, config.threads)
            lane = opened.enter_context(open_begun(LaneTerms(out=config.out, observe=observe, cores=cores)))
            measurer, run = make_measurer(lane.lab, saver.save, saver.keep), lane.run
        opened.enter_context(closing(saver))
        note_config(config, options, observe)
        yield measurer, resume_run(run, previous, measurer.observe) if previous else run


def _choose_cores(cores: tuple[int, ...], threads: int) -> tuple[int, ...]:
    """Of ``--cores``; () without the option.

    Raises:
        UsageError: This process may not run on one of them, or they are fewer than ``threads``.
    """
    if absent := set(cores) - set(list_cores()):
        what = f"--cores: this process may not run on {write_cores(absent)}"
        raise UsageError(what, f"Choose among {write_cores(list_cores())}.")
    if cores and len(cores) < threads:
        what = f"--cores: {format_noun(len(cores), 'core')} for {threads} threads"
        raise UsageError(what, "Name more cores, or write fewer `threads` in gate.yml.")
    return cores


@contextmanager
def open_measured(
    options: Namespace, request: Project, trials: int, opening: Opening | None = None
) -> Iterator[tuple[LaneMeasurer, Run]]:
    check_factories(request.config, request.cases)
    traces = getattr(options, "trace", False)  # neither a refresh nor a calibration has the option
    opening = opening or partial(open_lane, trials=trials, traces=traces)
    previous = load_previous(options, request.config.out)
    with open_measurer(options, request, opening, previous) as (measurer, run):
        yield measurer, measure_plan(measurer, run)


def measure_request(options: Namespace, request: Project, trials: int) -> Run:
    """Nothing is opened where ``--resume`` finds all trials."""
    if done := load_measured(options, request, trials):
        return done
    with open_measured(options, request, trials) as (_, run):
        return run


def _refuse_lanes(options: Namespace, environ: Mapping[str, str]) -> None:
    """A fork's code must not reach what steers Ray.

    Raises:
        UsageError: This is a job of a pull request of another repository, or a trace is asked for.
    """
    if getattr(options, "trace", False):
        raise UsageError("--lanes records no traces", "Leave --trace out, or measure without --lanes.")
    if getattr(options, "cores", ()):
        raise UsageError("--lanes divides the cores itself", "Leave --cores out, or measure without --lanes.")
    request = load_payload(environ).get("pull_request")
    if not request:
        return
    names = [find_text(request, f"{side}.repo.full_name") for side in ("head", "base")]
    if names[0] != names[1] or not names[0]:
        what = f"--lanes runs no code of another repository ({names[0] or 'unknown'})"
        fix = f"Measure it in shards, on runners that are used once ({name_page('fleet')})."
        raise UsageError(what, fix)


@contextmanager
def _open_fleet(
    asked: tuple[int, str], opening: OpenLane, read_states: OwnCode, config: Config, observe: Observer
) -> Iterator[RayEngine]:
    """Raises as :func:`gate.fleet.driver.open_fleet`.

    Raises:
        UsageError: Ray is not installed.
        InterruptedRunError: Ctrl-C or SIGTERM; everything measured has been saved.
    """
    try:
        from gate.fleet.driver import open_fleet  # noqa: PLC0415 - Ray is an extra, and slow to import
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise UsageError("--lanes needs Ray", "Install it: pip install 'ray>=2.49'.") from None
    make_results_directory(config.out)
    try:
        with open_fleet(asked, opening, read_states, config, observe) as opened:
            yield opened
    except KeyboardInterrupt:
        fix = "What was measured is saved: continue with --resume."
        raise InterruptedRunError("stopped", fix) from None


def place_lab(config: Config, arm: Arm | None = None) -> tuple[Arm, LabSettings]:
    """The arm is the working tree unless it is given."""
    settings = LabSettings(
        out=config.out,
        device=config.device,
        threads=config.threads,
        counts_only=config.counts_only,
        sampling=config.sampling.shorten() if config.counts_only else config.sampling,
        trial_timeout_s=config.trial_timeout_s,
        lock_timeout_s=config.lock_timeout_s,
        tree=read_working_tree(config.directory),
    )
    return arm or make_working_tree_arm(config.directory), settings


@contextmanager
def open_lane(
    request: Project,
    terms: LaneTerms,
    sources: ArmSources | None = None,
    trials: int = 0,
    **how: Any,  # noqa: ANN401 - fields of LabSettings
) -> Iterator[Lane]:
    """For ``trials`` trials of the working tree, or of head and the base of ``sources``."""
    config, cases = replace(request.config, out=terms.out), request.cases
    arm, settings = place_lab(config, sources.head.arm if sources else None)
    if request.begun:
        _refuse_other(request.begun, request, settings, sources, trials)
    settings, base = replace(settings, cores=terms.cores, **how), sources.base.arm if sources else None
    with open_lab(arm, settings, terms.observe, cases, base) as lab:
        run = replace(make_run(lab, cases, config.select, trials), shard=request.shard)
        if sources:
            run = add_base(lab, replace(run, provenance=sources.head.provenance), sources, config)
        yield Lane(lab=lab, run=run)


def note_config(config: Config, options: Namespace, observe: Observer) -> None:
    """Which gate.yml is used, unless it was reported before; and a GPU that it leaves out."""
    is_asked = options.device or getattr(options, "target", None)
    if config.device == CPU.name and not is_asked and _DRIVER.exists():
        what = f"this machine has a GPU, and {config.source} measures the CPU"
        observe(Noted(fact=make_text(f"{what}: write `device: cuda` there, or give --device cuda")))
    if not is_surprising(config, options):
        source = describe_source(config)
        observe(Noted(fact=make_text(source)))


def add_base(lab: Lab, run: Run, sources: ArmSources, config: Config) -> Run:
    source = sources.base
    defined = load_base_cases(config, run.cases, Path(source.arm.directory))
    for note in defined.notes:
        lab.observe(Noted(fact=note))
    base = describe_base(lab, source.label, source.provenance, defined.cases)
    pythons = tuple(arm.python for arm in (source.arm, sources.head.arm) if arm.variables)  # not this one
    return replace(run, base=replace(base, head_commit=sources.head.commit, pythons=pythons))


def read_base_changes(checkouts: Checkouts | None, base: str, config: Config) -> Changes | None:
    """They show which cases run the same program."""
    outputs = (config.out, config.baselines)
    # Where results lie around the project itself, not all that lies there is the gate's.
    apart = [path for path in outputs if not config.directory.resolve().is_relative_to(path.resolve())]
    return read_changes(Path(checkouts.head), base, apart) if checkouts else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    has_lent: bool
    notes: tuple[Fact, ...]


def begin_sources(sources: ArmSources, request: Project, observe: Observer) -> Begun:
    """A checkout without a gate.yml gets the working tree's."""
    names = name_words(base=sources.base.label, head=sources.head.label)
    observe(Noted(fact=Fact(code=Code.ARMS, names=names)))
    files: list[str] = []
    modules: list[str] = []
    for source in (sources.base, sources.head):
        for note in source.notes:
            observe(Noted(fact=note))
        if not source.commit:
            continue
        lent = lend_files(request.config, request.cases, Path(source.arm.directory))
        if lent.files:
            paths = (*lent.files, *lent.modules)
            observe(Noted(fact=Fact(code=Code.LENT, names={"arm": (source.label,), "paths": paths})))
        files += lent.files
        modules += lent.modules
    note = Fact(code=Code.LENT_MODULES, names={"paths": tuple(modules)})
    return Begun(has_lent=bool(files), notes=(note,) if modules else ())
