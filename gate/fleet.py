"""The lanes of a fleet, on Ray: one actor is one lane. Nothing else of compile-gate imports Ray.

An actor has a device with an open lab until the run ends: opening takes as long as several trials. Slots and
what came of them travel as the strict JSON of :mod:`gate.files.codec`: what a lane says is checked like a
file.
"""

import logging
import math
import os
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gate.check.work import Answer, Part, Unit
from gate.devices import find_kind, is_target
from gate.errors import GateError, MachineError, UsageError
from gate.files.codec import dump
from gate.files.structure import decode
from gate.files.untrusted import parse_json
from gate.lab.arms.arms import CodeState
from gate.lab.arms.changes import READ_BY_CODE, hash_changes
from gate.lab.host.cores import share_cores
from gate.lab.host.device_lock import hold_device
from gate.lab.host.gpu import name_lock
from gate.lab.host.scratch import open_scratch
from gate.lab.trials.runs import Lane, LaneTerms, OpenLane, OwnCode, keep_note
from gate.lab.trials.same_run import sort_lanes
from gate.programs import answer_signals, die_with_parent
from gate.project.config import Config
from gate.records.codes import Code
from gate.records.events import Event, LockAwaited, Noted, Observer
from gate.records.facts import Fact, make_text, name_words
from gate.records.run import Place, Run
from gate.units import count_noun, join_some

# Read as Ray is imported. It would print what its processes say amid a report, in part on standard output.
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as it will be; without it Ray warns

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

OPENING_S = 300.0  # 23 s on two shared cores; a GPU's first kernels on a cold disk take minutes
# For lanes that open later than the first; they join a run that has begun.
_GRACE_S, _LOOK_S = 10.0, 1.0
# A lane ends its slot before it closes; after an interrupt it gets less time for that.
CLOSING_S, INTERRUPTED_S = 300.0, 20.0
# How often a lane is asked for a sign of life, and how many in a row it may owe: a minute. A model that hangs
# is its worker's affair, which has limits of its own; the lane answers meanwhile.
SIGN_S, MOST_OWED = 15.0, 4
_SIGNS = "signs"  # the group of methods that run while another is at work
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
    niceness: int = 0
    waits: str = ""  # for what, as it opens
    what: str = ""
    fix: str = ""
    of_usage: bool = False  # the user's to mend, as a mistyped ref


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where a lane may run: a node, and which share of it."""

    node: str
    host: str
    gpu: bool
    cpus: float  # that Ray has to give: a lane without a GPU takes all of its node
    cores: tuple[int, ...] = ()


class LaneActor:
    """One lane, in a process near its device."""

    def __init__(self, *, in_node: bool = False) -> None:
        """Begin; ``in_node`` of Ray's this process ends with its node, and lets go of its device."""
        if in_node:
            die_with_parent(os.getppid())
        self._stack = ExitStack()
        self._lane: Lane  # once it is open
        self._waits = ""

    def open(self, opening: OpenLane, directory: str, terms: LaneTerms) -> str:
        """Open the lab; returns the run that is to be measured."""
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray's, of every actor: workers set their own threads
        notes: list[Fact] = []

        def observe(event: Event) -> None:
            self._waits = ""
            if isinstance(event, LockAwaited):
                self._waits = f"{event.device}, which {event.holder} uses"
            keep_note(notes, event)

        try:
            os.chdir(directory)
            self._lane = self._stack.enter_context(opening(replace(terms, observe=observe)))
        except GateError as error:
            of_usage = isinstance(error, UsageError)
            return dump(Reply(what=error.what, fix=error.fix, of_usage=of_usage))
        except OSError as error:  # the project is not there
            return dump(Reply(what=str(error), fix=_FIX_PROJECT))
        tree_changes = hash_changes(terms.project, READ_BY_CODE)
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        return dump(
            Reply(run=self._lane.run, tree_changes=tree_changes, notes=tuple(notes), niceness=niceness)
        )

    @ray.method(concurrency_group=_SIGNS)  # type: ignore[untyped-decorator] # of Ray's
    def sign(self) -> str:
        """Give a sign of life, while another method is at work; as the lane opens, with what it waits for."""
        return dump(Reply(waits=self._waits))

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


class Openings:
    """Lanes that are still to open, by a number that names their directory."""

    def __init__(
        self, actors: Sequence[Any], sites: Sequence[Site], opening: OpenLane, config: Config
    ) -> None:
        """Open all at once."""
        self.actors = dict(enumerate(actors, start=1))
        self.refs: dict[Any, int] = {}
        self._sites, self._lock_s = dict(enumerate(sites, start=1)), config.lock_timeout_s
        self._begun_s, self._signs, self._told = time.monotonic(), dict[int, Any](), set[int]()
        for number, actor in self.actors.items():
            out = (config.out / "lanes" / str(number)).absolute()
            terms = LaneTerms(out=out, cores=self._sites[number].cores, project=config.directory)
            self.refs[actor.open.remote(opening, str(Path.cwd()), terms)] = number
            self._signs[number] = actor.sign.remote()

    def name(self, number: int) -> str:
        """Name a lane that has no place yet."""
        return f"{number} on {self._sites[number].host}"

    def receive(self, limit_s: float) -> dict[int, Reply]:
        """Receive what comes within so many seconds: of lanes that are open, and why others are not.

        What got no room on the cluster within the lock's time, or did not open in its own, is given up.
        """
        ready = ray.wait(list(self.refs), num_returns=len(self.refs), timeout=limit_s)[0] if self.refs else ()
        replies = {self.refs.pop(ref): _receive_opened(ref) for ref in ready}
        passed_s = time.monotonic() - self._begun_s
        for ref, number in [*self.refs.items()] if passed_s >= self._lock_s else ():
            is_there = _is_ready(self._signs[number])
            if passed_s < self._lock_s + OPENING_S * is_there:
                continue
            del self.refs[ref]
            ray.kill(self.actors[number])
            why = "it did not open" if is_there else "the Ray cluster had no room for it"
            fix = "Wait for what else runs there, or raise `lock_timeout_s` in gate.yml."
            replies[number] = Reply(what=f"{why} within {passed_s:.0f} s", fix=fix)
        return replies

    def end_waiting(self) -> list[Any]:
        """End the actors that got no room yet: their close would be waited for in vain."""
        ended = [self.actors[one] for one in self.refs.values() if not _is_ready(self._signs[one])]
        for actor in ended:
            ray.kill(actor)
        return ended

    def tell_waiting(self, observe: Observer) -> None:
        """Tell of each lane once for what it waits."""
        passed_s, waiting = time.monotonic() - self._begun_s, dict[str, list[str]]()
        for number in sorted(set(self.refs.values()) - self._told):
            waits = "room on the Ray cluster, which other programs use" if passed_s >= _GRACE_S else ""
            if _is_ready(self._signs[number]):
                waits = _receive(self._signs[number]).waits
                self._signs[number] = self.actors[number].sign.remote()
            if waits:
                waiting.setdefault(waits, []).append(self.name(number))
                self._told.add(number)
        for waits, names in waiting.items():
            words = name_words(waits=waits, seconds=f"{self._lock_s:g}")
            observe(Noted(fact=Fact(code=Code.LANES_WAIT, names={"lanes": tuple(names), **words})))


def _wait_all(refs: Sequence[Any], limit_s: float) -> list[Any]:
    """Wait for all of these; those that are late."""
    late: list[Any] = ray.wait(refs, num_returns=len(refs), timeout=limit_s)[1] if refs else []
    return late


def _is_ready(ref: Any) -> bool:  # noqa: ANN401 - a reference of Ray's
    return bool(ray.wait([ref], num_returns=1, timeout=0)[0])


class RayEngine:
    """Actors as the lanes of :class:`gate.check.measurer.Measurer`, and the run to be measured on them.

    A lane that opens later joins it.
    """

    def __init__(self, run: Run, openings: Openings, own: Sequence[CodeState], tree_changes: str) -> None:
        self.run = run
        self.ended: list[Any] = []  # actors
        self._openings, self._own, self._tree_changes = openings, own, tree_changes
        self._actors: dict[str, Any] = {}
        self._pending: dict[Any, str] = {}  # what is awaited, and of whom
        self._answers: deque[Answer] = deque()  # that came with others
        self._signs: dict[str, Any] = {}
        self._owed: Counter[str] = Counter()
        self._look_s = 0.0

    def join(self, number: int, place: Place) -> None:
        """Take in a lane."""
        self._actors[place.name] = self._openings.actors[number]
        self._signs[place.name] = self._actors[place.name].sign.remote()
        self.run = replace(self.run, places={**self.run.places, place.name: place})

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
        """Wait for an answer; one of a lane that is gone, silent or left out says so.

        ``None`` comes early where a lane joined.

        Raises:
            RayTaskError: A bug in a lane.
        """
        end_s, lanes = self.read_s() + limit_s, len(self._actors)
        while not self._answers and lanes == len(self._actors):
            left_s = end_s - self.read_s()
            refs = [*self._pending, *self._openings.refs]
            (*ready,), _ = ray.wait(refs, num_returns=1, timeout=max(0.0, min(left_s, SIGN_S)))
            if ready and ready[0] in self._pending:
                reply, lane = _receive(ready[0]), self._pending.pop(ready[0])
                if reply.what:
                    self._signs.pop(lane, None)
                return Answer(lane=lane, part=reply.part, why=reply.what)
            for number, reply in self._openings.receive(0.0).items():
                self._admit(number, reply)
            self._look_for_signs()
            if left_s <= 0:
                break
        return self._answers.popleft() if self._answers else None

    def end(self, lane: str) -> None:
        """Kill the actor of a lane; its device is free then."""
        ray.kill(self._actors[lane])
        self.ended.append(self._actors[lane])
        self._signs.pop(lane, None)
        self._pending = {ref: name for ref, name in self._pending.items() if name != lane}

    def _admit(self, number: int, reply: Reply) -> None:
        why = reply.what
        if reply.run is not None:
            run = _drop_card(reply.run)
            (place,) = run.places.values()
            first = replace(self.run, places=dict([*self.run.places.items()][:1]))
            changes = {0: self._tree_changes, number: reply.tree_changes}
            _, differences = sort_lanes({0: first, number: run}, changes, self._own)
            if not differences[number] and place.name not in self._actors:
                self.join(number, place)
                return
            taken = [f"it is at {place.name}, where another lane is"]
            why = join_some(differences[number] or taken, comma="; ")
        self._answers.append(Answer(lane=self._openings.name(number), why=why))

    def _look_for_signs(self) -> None:
        """Give up what owes too many signs of life, and lanes that are gone as they idled."""
        if self.read_s() < self._look_s:
            return
        self._look_s = self.read_s() + SIGN_S
        for lane, ref in [*self._signs.items()]:
            if _is_ready(ref):
                why = _receive(ref).what
                self._owed[lane] = 0
                self._signs[lane] = self._actors[lane].sign.remote()
            else:
                self._owed[lane] += 1
                is_silent = self._owed[lane] >= MOST_OWED
                why = f"no sign of life for {MOST_OWED * SIGN_S:.0f} s" if is_silent else ""
            if why:
                self.end(lane)
                self._answers.append(Answer(lane=lane, why=why))


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
            (node,) = _list_sites(gpu=False)
            sites = [replace(node, cpus=1, cores=share) for share in shares]
        stack.enter_context(answer_signals(signal.default_int_handler, (signal.SIGTERM, signal.SIGHUP)))
        openings = Openings([_make_actor(site) for site in sites], sites, opening, config)
        ended, limit_s = list[Any](), INTERRUPTED_S
        try:
            opened, refused = _open_first(openings, observe)
            engine, facts = _choose_lanes(openings, opened, own(), refused)
            for fact in facts:
                observe(Noted(fact=fact))
            ended = engine.ended
            yield engine
            limit_s = CLOSING_S
        finally:
            ended = [*ended, *openings.end_waiting()]
            _close([actor for actor in openings.actors.values() if actor not in ended], limit_s, observe)


@contextmanager
def _start(cpus: int) -> Iterator[None]:
    """Start Ray on this host for the time being; its logs go with it."""
    os.environ.setdefault(_NICENESS, "0")  # as without lanes; Ray's own is 15
    tmp = Path("/tmp")  # noqa: S108 - a socket's path has 107 bytes at most
    with open_scratch(tmp if os.access(tmp, os.W_OK) else None) as place:
        yield from _init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _temp_dir=str(place),
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
    logging.getLogger("ray").setLevel(logging.ERROR)  # it warns of tokens and others amid a report
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
        site = Site(node=node["NodeID"], host=node["NodeManagerHostname"], gpu=gpu, cpus=0)
        if gpu:
            sites += [site] * int(held.get("GPU", 0))
        elif held.get("CPU", 0) >= 1:
            sites.append(replace(site, cpus=held["CPU"]))
    return sites


def _make_actor(site: Site) -> Any:  # noqa: ANN401 - a handle of Ray's
    strategy = NodeAffinitySchedulingStrategy(node_id=site.node, soft=False)
    options = {"num_cpus": site.cpus, "num_gpus": int(site.gpu), "max_restarts": 0}
    remote = ray.remote(concurrency_groups={_SIGNS: 1})(LaneActor)
    return remote.options(scheduling_strategy=strategy, **options).remote(in_node=True)


def _receive_opened(ref: Any) -> Reply:  # noqa: ANN401 - a reference of Ray's
    try:
        return _receive(ref)
    except RayTaskError as error:  # as where compile-gate is not installed
        return Reply(what=f"{type(error.cause).__name__}: {error.cause}")


def _open_first(openings: Openings, observe: Observer) -> tuple[dict[int, Reply], list[Fact]]:
    """Wait for lanes to open, for further ones as long again as for the first; why some did not.

    Raises:
        UsageError, MachineError: None did.
    """
    opened, refused = dict[int, Reply](), dict[int, Reply]()
    begun_s, end_s = time.monotonic(), math.inf
    while openings.refs and time.monotonic() < end_s:
        for number, reply in openings.receive(_LOOK_S).items():
            (refused if reply.what else opened)[number] = reply
        if opened and math.isinf(end_s):
            took_s = time.monotonic() - begun_s
            end_s = time.monotonic() + max(took_s, _GRACE_S)
        openings.tell_waiting(observe)
    if not opened:
        first = next(iter(refused.values()), Reply(what="no node of Ray has such a device"))
        kind = UsageError if first.of_usage else MachineError
        fix = first.fix or "Look at `ray status`, and have the same RAY_AUTH_MODE on every host."
        raise kind(f"no lane could be opened: {first.what}", fix)
    facts = [_leave_out(openings.name(number), reply.what) for number, reply in sorted(refused.items())]
    return dict(sorted(opened.items())), facts


def _choose_lanes(
    openings: Openings, opened: Mapping[int, Reply], own: Sequence[CodeState], facts: Collection[Fact]
) -> tuple[RayEngine, list[Fact]]:
    """Keep the lanes that :func:`sort_lanes` does; all that is to be noted, with ``facts`` about lanes.

    The run has the places of those that are kept, and what was left out.
    """
    changes = {number: reply.tree_changes for number, reply in opened.items()}
    runs = {number: _drop_card(reply.run) for number, reply in opened.items() if reply.run is not None}
    chosen, differences = sort_lanes(runs, changes, own)
    if differences[chosen]:
        told = join_some(differences[chosen], comma="; ")
        raise MachineError(f"no lane could be used: {told}", _FIX_PROJECT)
    left_out = [
        _leave_out(next(iter(run.places.values())).title, join_some(differences[number], comma="; "))
        for number, run in runs.items()
        if differences[number]
    ]
    facts = [*facts, *left_out, *_note_niceness(runs, opened)]
    engine = RayEngine(replace(runs[chosen], places={}, lanes=tuple(facts)), openings, own, changes[chosen])
    for number, run in runs.items():
        if not differences[number]:
            engine.join(number, next(iter(run.places.values())))
    return engine, [*facts, *opened[chosen].notes]


def _note_niceness(runs: Mapping[int, Run], opened: Mapping[int, Reply]) -> list[Fact]:
    """A note on lanes that give way to what else runs on their hosts, where this command would not."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    nice = {number: opened[number].niceness for number in runs if opened[number].niceness > own}
    names = tuple(place.title for number in nice for place in runs[number].places.values())
    numbers = {"niceness": max(nice.values(), default=0), "own": own}
    return [Fact(code=Code.LANES_NICE, numbers=numbers, names={"lanes": names})] if nice else []


def _drop_card(run: Run) -> Run:
    """Name no card for the whole run: each trial says which one it ran on."""
    base = run.base and replace(run.base, environment=replace(run.base.environment, device_uuid=""))
    return replace(run, environment=replace(run.environment, device_uuid=""), base=base)


def _leave_out(lane: str, reason: str) -> Fact:
    return Fact(code=Code.LANE_LEFT_OUT, names=name_words(lane=lane, reason=reason))


def _close(actors: Sequence[Any], limit_s: float, observe: Observer) -> None:
    """Let every lane undo what it made, as soon as its slot has ended; then end the actors.

    What gives no sign of life is not waited for.
    """
    signs = {actor.close.remote(): actor.sign.remote() for actor in actors}
    if late := _wait_all(list(signs), _GRACE_S):
        lanes = count_noun(len(late), "lane")
        observe(Noted(fact=make_text(f"{lanes} not done with the last slot: waiting up to {limit_s:.0f} s")))
        silent_s = min(MOST_OWED * SIGN_S, limit_s)
        late = _wait_all(late, silent_s - _GRACE_S)
        _wait_all([close for close in late if _is_ready(signs[close])], limit_s - silent_s)
    for actor in actors:
        ray.kill(actor)
