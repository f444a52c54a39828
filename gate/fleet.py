"""The lanes of a fleet, on Ray: one actor is one lane. Nothing else of compile-gate imports Ray.

An actor has a device with an open lab until the run ends: opening takes as long as several trials. Slots and
what came of them travel as the strict JSON of :mod:`gate.files.codec`: what a lane says is checked like a
file.
"""

import math
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gate.check.work import Answer, Part, Unit
from gate.devices import find_kind, is_target
from gate.errors import GateError, MachineError, UsageError
from gate.files.codec import dump
from gate.files.structure import decode
from gate.files.untrusted import parse_json
from gate.lab.arms.arms import CodeState
from gate.lab.arms.checkouts import READ_BY_CODE, hash_changes
from gate.lab.host.fitness import share_cores
from gate.lab.host.gpu import name_lock
from gate.lab.host.ownership import hold_device
from gate.lab.trials.runs import Lane, LaneTerms, OpenLane, OwnCode, keep_note, sort_lanes
from gate.programs import answer_signals
from gate.project.config import Config
from gate.records.codes import Code
from gate.records.events import Noted, Observer
from gate.records.facts import Fact, name_words
from gate.records.run import Place, Run
from gate.units import join_some

# Read as Ray is imported. It would print what its processes say amid a report, in part on standard output.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as it will be; without it Ray warns

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

OPENING_S = 300.0  # 23 s on two shared cores; a GPU's first kernels on a cold disk take minutes
# A lane ends its slot before it closes; after an interrupt it gets less time for that.
CLOSING_S, INTERRUPTED_S = 300.0, 20.0
_STORE_BYTES = 80 * 2**20  # the least that Ray takes: what travels is kilobytes
_REACHING_S = 10.0
_NICENESS = "RAY_worker_niceness"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What an actor says: a run, a part, or an error that is no bug."""

    run: Run | None = None
    tree_changes: str = ""  # beside the working tree's commit
    part: Part | None = None
    notes: tuple[Fact, ...] = ()
    what: str = ""
    fix: str = ""
    of_usage: bool = False  # the user's to mend, as a mistyped ref


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where a lane may run: a node, and which share of it."""

    node: str
    gpu: bool
    cpus: float  # that Ray has to give: a lane without a GPU takes all of its node
    cores: tuple[int, ...] = ()


class LaneActor:
    """One lane, in a process near its device."""

    def __init__(self) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray's, of every actor: workers set their own threads
        self._stack = ExitStack()
        self._lane: Lane  # once it is open

    def open(self, opening: OpenLane, directory: str, terms: LaneTerms) -> str:
        """Open the lab; returns the run that is to be measured."""
        notes: list[Fact] = []
        try:
            os.chdir(directory)
            self._lane = self._stack.enter_context(opening(replace(terms, observe=partial(keep_note, notes))))
        except GateError as error:
            of_usage = isinstance(error, UsageError)
            return dump(Reply(what=error.what, fix=error.fix, of_usage=of_usage))
        except OSError as error:  # the project is not there
            return dump(Reply(what=str(error), fix=_FIX_PROJECT))
        tree_changes = hash_changes(terms.project, READ_BY_CODE)
        return dump(Reply(run=self._lane.run, tree_changes=tree_changes, notes=tuple(notes)))

    def measure(self, unit: str) -> str:
        """Measure one slot."""
        try:
            return dump(Reply(part=self._lane.measure(_read(Unit, unit))))
        except GateError as error:
            return dump(Reply(what=error.what, fix=error.fix))

    def close(self) -> None:
        """Undo what opening made."""
        self._stack.close()


_FIX_PROJECT = "Have the project at the same path, commit and uncommitted edits on every host."


def _read(kind: type[Any], text: str) -> Any:  # noqa: ANN401 - of that kind
    return decode(kind, parse_json(text.encode(), "a lane"), "a lane")


class RayEngine:
    """Actors as the lanes of :class:`gate.check.measurer.Measurer`, and the run to be measured on them."""

    def __init__(self, actors: Mapping[str, Any], run: Run) -> None:
        self.run = run
        self._actors = actors
        self._pending: dict[Any, str] = {}  # what is awaited, and of whom
        self.ended: list[Any] = []  # actors

    def list_lanes(self) -> Mapping[str, Place]:
        """All that were opened."""
        return self.run.places

    def read_s(self) -> float:
        """Read the clock."""
        return time.monotonic()

    def submit(self, lane: str, unit: Unit) -> None:
        """Give a lane its next unit."""
        self._pending[self._actors[lane].measure.remote(dump(unit))] = lane

    def wait(self, limit_s: float) -> Answer | None:
        """Wait for an answer; one of a lane that is gone says so.

        Raises:
            RayTaskError: A bug in a lane.
        """
        limit = limit_s if math.isfinite(limit_s) else None
        (*ready,), _ = ray.wait(list(self._pending), num_returns=1, timeout=limit)
        if not ready:
            return None
        reply = _receive(ready[0])
        return Answer(lane=self._pending.pop(ready[0]), part=reply.part, why=reply.what)

    def end(self, lane: str) -> None:
        """Kill the actor of a lane; its device is free then."""
        ray.kill(self._actors[lane])
        self.ended.append(self._actors[lane])


def _receive(ref: Any) -> Reply:  # noqa: ANN401 - a reference of Ray's
    """Receive a reply; that an actor is gone, or says what is no reply, is an error that it cannot report."""
    try:
        reply: Reply = _read(Reply, ray.get(ref))
    except RayTaskError:
        raise
    except RayError as error:
        return Reply(what=f"its process or its host is gone ({type(error).__name__})")
    except GateError as error:
        return Reply(what=error.what, fix=error.fix)
    return reply


@contextmanager
def open_fleet(
    asked: tuple[int, str], opening: OpenLane, own: OwnCode, config: Config, observe: Observer
) -> Iterator[RayEngine]:
    """Open so many lanes on this host, or all of the cluster at an address.

    A lane that cannot be opened, has not this host's ``own`` code, or differs from most others otherwise, is
    left out with a note.

    Raises:
        UsageError: This host has fewer devices or cores; the lanes refuse what they are asked for.
        MachineError: Ray cannot be reached, or is of another version; no lane is left.
    """
    count, address = asked
    if ":" in config.device and not is_target(config.device):
        what = f"--lanes takes all GPUs, and {config.device} names one of them"
        raise UsageError(what, f"Write --device {find_kind(config.device).name}.")
    with ExitStack() as stack:
        gpu = find_kind(config.device).is_gpu
        if address:
            stack.enter_context(_connect(address))
            sites = _list_sites(gpu=gpu)
        elif gpu:
            stack.enter_context(_start(count))
            sites = _list_sites(gpu=True)[:count]
            if len(sites) < count:
                raise UsageError(f"--lanes {count}: this host has {len(sites)} GPUs", "Ask for as many.")
        else:
            shares = share_cores(count, config.threads)
            stack.enter_context(hold_device(name_lock(config.device, None), config.lock_timeout_s, observe))
            stack.enter_context(_start(count))
            node = ray.nodes()[0]["NodeID"]
            sites = [Site(node=node, gpu=False, cpus=1, cores=share) for share in shares]
        stack.enter_context(answer_signals(signal.default_int_handler, (signal.SIGTERM, signal.SIGHUP)))
        actors = [_make_actor(site) for site in sites]
        ended, limit_s = list[Any](), INTERRUPTED_S
        try:
            opened = _open_actors(actors, sites, opening, config, observe)
            engine = _choose_lanes(actors, opened, own(), observe)
            ended = engine.ended
            yield engine
            limit_s = CLOSING_S
        finally:
            _close([actor for actor in actors if actor not in ended], limit_s)


@contextmanager
def _start(cpus: int) -> Iterator[None]:
    """Start Ray on this host for the time being; its logs go with it."""
    os.environ.setdefault(_NICENESS, "0")  # as without lanes; Ray's own is 15
    short = "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108 - a socket's path has 107 bytes at most
    with tempfile.TemporaryDirectory(prefix="gate-ray-", dir=short, ignore_cleanup_errors=True) as place:
        yield from _init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _temp_dir=place,
        )


@contextmanager
def _connect(address: str) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:  # Ray itself tries for minutes
        try:
            socket.create_connection((host, int(port)), timeout=_REACHING_S).close()
        except OSError as error:
            raise _refuse_unreachable(address) from error
    yield from _init(address=address)


def _refuse_unreachable(address: object) -> MachineError:
    fix = "Start one (`ray start --head`), or name it: --lanes ray:HOST:6379."
    return MachineError(f"no Ray cluster can be reached at {address}", fix)


def _init(**settings: object) -> Iterator[None]:
    interrupt = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **settings)
        signal.signal(signal.SIGTERM, interrupt)  # Ray's own handler would end this process without saving
    except ConnectionError as error:
        raise _refuse_unreachable(settings["address"]) from error
    except RuntimeError as error:  # another version of Ray or Python than the cluster's, among others
        message = " ".join(str(error).split())
        fix = "Have the same Ray and Python on every host."
        raise MachineError(f"Ray does not start: {message}", fix) from error
    try:
        yield
    finally:
        ray.shutdown()


def _list_sites(*, gpu: bool) -> list[Site]:
    """List the lanes that a cluster has room for: one a GPU, or one a node that has processors to give."""
    sites = []
    for node in ray.nodes():
        held = node["Resources"] if node["Alive"] else {}
        if gpu:
            sites += [Site(node=node["NodeID"], gpu=True, cpus=0)] * int(held.get("GPU", 0))
        elif held.get("CPU", 0) >= 1:
            sites.append(Site(node=node["NodeID"], gpu=False, cpus=held["CPU"]))
    return sites


def _make_actor(site: Site) -> Any:  # noqa: ANN401 - a handle of Ray's
    strategy = NodeAffinitySchedulingStrategy(node_id=site.node, soft=False)
    options = {"num_cpus": site.cpus, "num_gpus": int(site.gpu), "max_restarts": 0}
    return ray.remote(LaneActor).options(scheduling_strategy=strategy, **options).remote()


def _open_actors(
    actors: Sequence[Any], sites: Sequence[Site], opening: OpenLane, config: Config, observe: Observer
) -> dict[int, Reply]:
    """Open all at once; those that are open by their number, which names their directory."""
    pending = {}
    for number, (actor, site) in enumerate(zip(actors, sites, strict=True), start=1):
        out = (config.out / "lanes" / str(number)).absolute()
        terms = LaneTerms(out=out, cores=site.cores, project=config.directory)
        pending[actor.open.remote(opening, str(Path.cwd()), terms)] = number
    limit_s = OPENING_S + config.lock_timeout_s
    ready, late = ray.wait(list(pending), num_returns=len(pending), timeout=limit_s) if pending else ([], [])
    opened: dict[int, Reply] = {}
    refused: dict[int, Reply] = {}
    for ref in ready:
        try:
            reply = _receive(ref)
        except RayTaskError as error:  # as where compile-gate is not installed
            reply = Reply(what=f"{type(error.cause).__name__}: {error.cause}")
        (refused if reply.what else opened)[pending[ref]] = reply
    for ref in late:
        why = f"it did not open within {limit_s:.0f} s: another run may have its device"
        refused[pending[ref]] = Reply(what=why, fix="Wait for it, or raise `lock_timeout_s` in gate.yml.")
    if not opened:
        first = next(iter(refused.values()), Reply(what="no node of Ray has such a device"))
        kind = UsageError if first.of_usage else MachineError
        raise kind(f"no lane could be opened: {first.what}", first.fix or "Look at `ray status`.")
    for number, reply in sorted(refused.items()):
        _note_left_out(observe, str(number), reply.what)
    return dict(sorted(opened.items()))


def _choose_lanes(
    actors: Sequence[Any], opened: Mapping[int, Reply], own: Sequence[CodeState], observe: Observer
) -> RayEngine:
    """Keep the lanes that :func:`sort_lanes` does, and note the rest; the run has the places of all."""
    changes = {number: reply.tree_changes for number, reply in opened.items()}
    runs = {number: _drop_card(reply.run) for number, reply in opened.items() if reply.run is not None}
    chosen, differences = sort_lanes(runs, changes, own)
    lanes, places = dict[str, Any](), dict[str, Place]()
    for number, run in runs.items():
        (place,) = run.places.values()
        if differences[number]:
            _note_left_out(observe, place.name, join_some(differences[number], comma="; "))
        else:
            lanes[place.name], places[place.name] = actors[number - 1], place
    if not lanes:
        told = join_some(differences[chosen], comma="; ")
        raise MachineError(f"no lane could be used: {told}", _FIX_PROJECT)
    for fact in opened[chosen].notes:
        observe(Noted(fact=fact))
    return RayEngine(lanes, replace(runs[chosen], places=places))


def _drop_card(run: Run) -> Run:
    """Name no card for the whole run: each trial says which one it ran on."""
    base = run.base and replace(run.base, environment=replace(run.base.environment, device_uuid=""))
    return replace(run, environment=replace(run.environment, device_uuid=""), base=base)


def _note_left_out(observe: Observer, lane: str, reason: str) -> None:
    observe(Noted(fact=Fact(code=Code.LANE_LEFT_OUT, names=name_words(lane=lane, reason=reason))))


def _close(actors: Sequence[Any], limit_s: float) -> None:
    """Let every lane undo what it made, as soon as its slot has ended; then end the actors."""
    closing = [actor.close.remote() for actor in actors]
    if closing:
        ray.wait(closing, num_returns=len(closing), timeout=limit_s)
    for actor in actors:
        ray.kill(actor)
