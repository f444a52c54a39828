"""What the command does with lanes: opens them, chooses those that are alike, hands out slots, closes."""

import math
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from gate.check.work import Answer, Unit
from gate.devices import get_kind, is_target
from gate.errors import MachineError, UsageError
from gate.files.codec import dump
from gate.fleet import cluster
from gate.fleet.actor import FIX_PROJECT, Reply
from gate.lab.arms.arms import CodeState
from gate.lab.host.cores import share_cores
from gate.lab.host.device_lock import lock_device
from gate.lab.host.gpu import name_lock
from gate.lab.trials.runs import LaneTerms, OpenLane, OwnCode
from gate.lab.trials.same_run import sort_lanes
from gate.programs import answer_signals
from gate.project.config import Config
from gate.records.codes import Code
from gate.records.events import Noted, Observer
from gate.records.facts import Fact, make_text, name_words
from gate.records.run import Place, Run
from gate.units import format_noun, join_some

OPENING_S = 300.0  # 23 s on two shared cores; a GPU's first kernels on a cold disk take minutes
# For lanes that open later than the first; they join a run that has begun.
_GRACE_S, _LOOK_S = 10.0, 1.0
_STARTING_S = 30.0  # that an actor's process gets at least: nothing tells a full node from a slow one
# A lane ends its slot before it closes; after an interrupt it gets less time for that.
CLOSING_S, INTERRUPTED_S = 300.0, 20.0
# How often a lane is asked for a sign of life, and how many in a row it may owe: a minute. A model that hangs
# is its worker's affair, which has limits of its own; the lane answers meanwhile.
SIGN_S, MOST_OWED = 15.0, 4


class Openings:
    """Lanes that are still to open, by a number that names their directory."""

    def __init__(
        self, actors: Sequence[Any], sites: Sequence[cluster.Site], opening: OpenLane, config: Config
    ) -> None:
        self.actors, self.living = dict(enumerate(actors, start=1)), list(actors)
        self.refs: dict[Any, int] = {}
        self._sites, self._limit_s = dict(enumerate(sites, start=1)), config.lock_timeout_s
        self._room_s = max(config.lock_timeout_s, _STARTING_S)
        self._begun_s, self._signs, self._announced = time.monotonic(), dict[int, Any](), set[int]()
        for number, actor in self.actors.items():
            out = (config.out / "lanes" / str(number)).absolute()
            terms = LaneTerms(out=out, cores=self._sites[number].cores, project=config.directory)
            self.refs[actor.open.remote(opening, str(Path.cwd()), terms)] = number
            self._signs[number] = actor.give_sign.remote()

    def name_lane(self, number: int) -> str:
        return f"{number} on {self._sites[number].host}"

    def receive(self, limit_s: float) -> dict[int, Reply]:
        """Receive within so many seconds what opened, and why others did not; give up what took too long."""
        ready, _ = cluster.wait_replies(list(self.refs), len(self.refs), limit_s)
        replies = {self.refs.pop(ref): cluster.receive_reply(ref, of_opening=True) for ref in ready}
        passed_s = time.monotonic() - self._begun_s
        for ref, number in [*self.refs.items()] if passed_s >= self._limit_s else ():
            has_room = cluster.is_ready(self._signs[number])
            if passed_s < (self._limit_s + OPENING_S if has_room else self._room_s):
                continue
            del self.refs[ref]
            self.end(self.actors[number])
            why = "it did not open" if has_room else "the Ray cluster started no process for it"
            fix = "Wait for what else runs there, or raise `lock_timeout_s` in gate.yml."
            replies[number] = Reply(what=f"{why} within {passed_s:.0f} s", fix=fix)
        return replies

    def end(self, actor: Any) -> None:  # noqa: ANN401 - a handle of Ray's
        """Kill an actor; its device is free then."""
        ray.kill(actor)
        self.living.remove(actor)

    def end_waiting(self) -> None:
        """End the actors that got no room yet: their close would be waited for in vain."""
        for number in self.refs.values():
            if not cluster.is_ready(self._signs[number]):
                self.end(self.actors[number])

    def report_waiting(self, observe: Observer) -> None:
        passed_s, waiting = time.monotonic() - self._begun_s, dict[tuple[str, float], list[str]]()
        for number in sorted(set(self.refs.values()) - self._announced):
            waits = "room on the Ray cluster, or time to start there" if passed_s >= _GRACE_S else ""
            limit_s = self._room_s
            if cluster.is_ready(self._signs[number]):
                waits, limit_s = cluster.receive_reply(self._signs[number]).waits, self._limit_s
                self._signs[number] = self.actors[number].give_sign.remote()
            if waits:
                waiting.setdefault((waits, limit_s), []).append(self.name_lane(number))
                self._announced.add(number)
        for (waits, limit_s), lanes in waiting.items():
            words = name_words(waits=waits, seconds=f"{limit_s:g}")
            observe(Noted(fact=Fact(code=Code.LANES_WAIT, names={"lanes": tuple(lanes), **words})))


class RayEngine:
    """Actors as lanes of :class:`gate.check.measurer.LaneMeasurer`, and the run to be measured there."""

    def __init__(
        self, run: Run, openings: Openings, host_code: Sequence[CodeState], tree_changes: str
    ) -> None:
        self.run = run
        self._openings, self._host_code, self._tree_changes = openings, host_code, tree_changes
        self._actors: dict[str, Any] = {}
        self._pending: dict[Any, str] = {}  # what is awaited, and of whom
        self._answers: deque[Answer] = deque()  # that came with others
        self._signs: dict[str, Any] = {}
        self._owed: Counter[str] = Counter()
        self._next_look_s = 0.0

    def join(self, number: int, place: Place) -> None:
        self._actors[place.name] = self._openings.actors[number]
        self._signs[place.name] = self._actors[place.name].give_sign.remote()
        self.run = replace(self.run, places={**self.run.places, place.name: place})

    def list_lanes(self) -> Mapping[str, Place]:
        return self.run.places

    def read_s(self) -> float:
        return time.monotonic()

    def submit(self, lane: str, unit: Unit) -> None:
        self._pending[self._actors[lane].measure.remote(dump(unit))] = lane

    def wait(self, limit_s: float) -> Answer | None:
        """Wait for an answer; one of a lane that is gone, silent or left out says so.

        ``None`` comes early where a lane joined.

        Raises:
            RayTaskError: A bug in a lane.
        """
        end_s, lanes = self.read_s() + limit_s, len(self._actors)
        while not self._answers and lanes == len(self._actors):
            left_s = max(0.0, end_s - self.read_s())
            ready, _ = cluster.wait_replies([*self._pending, *self._openings.refs], 1, min(left_s, SIGN_S))
            if ready and ready[0] in self._pending:
                reply, lane = cluster.receive_reply(ready[0]), self._pending.pop(ready[0])
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
        self._openings.end(self._actors[lane])
        self._signs.pop(lane, None)
        self._pending = {ref: name for ref, name in self._pending.items() if name != lane}

    def _admit(self, number: int, reply: Reply) -> None:
        why = reply.what
        if reply.run is not None:
            run = _drop_card(reply.run)
            (place,) = run.places.values()
            first = replace(self.run, places=dict([*self.run.places.items()][:1]))
            changes = {0: self._tree_changes, number: reply.tree_changes}
            _, differences = sort_lanes({0: first, number: run}, changes, self._host_code)
            if not differences[number] and place.name not in self._actors:
                self.join(number, place)
                return
            taken = [f"it is at {place.name}, where another lane is"]
            why = join_some(differences[number] or taken, comma="; ")
        self._answers.append(Answer(lane=self._openings.name_lane(number), why=why))

    def _look_for_signs(self) -> None:
        """Give up what owes too many signs of life, and lanes that are gone as they idled."""
        if self.read_s() < self._next_look_s:
            return
        self._next_look_s = self.read_s() + SIGN_S
        for lane, ref in [*self._signs.items()]:
            if cluster.is_ready(ref):
                why = cluster.receive_reply(ref).what
                self._owed[lane] = 0
                self._signs[lane] = self._actors[lane].give_sign.remote()
            else:
                self._owed[lane] += 1
                is_silent = self._owed[lane] >= MOST_OWED
                why = f"no sign of life for {MOST_OWED * SIGN_S:.0f} s" if is_silent else ""
            if why:
                self.end(lane)
                self._answers.append(Answer(lane=lane, why=why))


@contextmanager
def open_fleet(
    asked: tuple[int, str], opening: OpenLane, own: OwnCode, config: Config, observe: Observer
) -> Iterator[RayEngine]:
    """Open so many lanes on this host, or all of the cluster at an address.

    Those that cannot be opened, have other code than this host's ``own``, or differ from most, are left out.

    Raises:
        UsageError: This host has fewer devices or cores; the lanes refuse what they are asked for.
        MachineError: Ray cannot be reached, or is of another version; no lane is left.
    """
    count, address = asked
    if ":" in config.device and not is_target(config.device):
        what = f"--lanes takes all GPUs, and {config.device} names one of them"
        raise UsageError(what, f"Write --device {get_kind(config.device).name}.")
    with ExitStack() as stack:
        gpu = get_kind(config.device).is_gpu
        if address:
            stack.enter_context(cluster.connect(address))
            sites = cluster.list_sites(gpu=gpu)
        elif gpu:
            stack.enter_context(cluster.start(count))
            sites = cluster.list_sites(gpu=True)[:count]
            if len(sites) < count:
                raise UsageError(f"--lanes {count}: this host has {len(sites)} GPUs", "Ask for as many.")
        else:
            shares = share_cores(count, config.threads)
            stack.enter_context(lock_device(name_lock(config.device, None), config.lock_timeout_s, observe))
            stack.enter_context(cluster.start(count))
            (node,) = cluster.list_sites(gpu=False)
            sites = [replace(node, cpus=1, cores=share) for share in shares]
        stack.enter_context(answer_signals(signal.default_int_handler, (signal.SIGTERM, signal.SIGHUP)))
        openings = Openings([cluster.make_actor(site) for site in sites], sites, opening, config)
        limit_s = INTERRUPTED_S
        try:
            opened, refused = _open_first(openings, observe)
            engine, facts = _choose_lanes(openings, opened, own(), refused)
            for fact in facts:
                observe(Noted(fact=fact))
            yield engine
            limit_s = CLOSING_S
        finally:
            openings.end_waiting()
            _close_lanes(openings.living, limit_s, observe)


def _open_first(openings: Openings, observe: Observer) -> tuple[dict[int, Reply], list[Fact]]:
    """Wait for lanes to open, for further ones as long again as for the first; why some did not."""
    opened, refused = dict[int, Reply](), dict[int, Reply]()
    begun_s, end_s = time.monotonic(), math.inf
    while openings.refs and time.monotonic() < end_s:
        for number, reply in openings.receive(_LOOK_S).items():
            (refused if reply.what else opened)[number] = reply
        if opened and math.isinf(end_s):
            end_s = time.monotonic() + max(time.monotonic() - begun_s, _GRACE_S)
        openings.report_waiting(observe)
    if not opened:
        first = next(iter(refused.values()), Reply(what="no node of Ray has such a device"))
        kind = UsageError if first.of_usage else MachineError
        fix = first.fix or "Look at `ray status`, and have the same RAY_AUTH_MODE on every host."
        raise kind(f"no lane could be opened: {first.what}", fix)
    facts = [
        _note_left_out(openings.name_lane(number), reply.what) for number, reply in sorted(refused.items())
    ]
    return dict(sorted(opened.items())), facts


def _choose_lanes(
    openings: Openings, opened: Mapping[int, Reply], host_code: Sequence[CodeState], facts: Collection[Fact]
) -> tuple[RayEngine, list[Fact]]:
    """Keep the lanes that :func:`sort_lanes` does; all that is to be noted, with ``facts`` about lanes."""
    changes = {number: reply.tree_changes for number, reply in opened.items()}
    runs = {number: _drop_card(reply.run) for number, reply in opened.items() if reply.run is not None}
    chosen, differences = sort_lanes(runs, changes, host_code)
    if differences[chosen]:
        reasons = join_some(differences[chosen], comma="; ")
        raise MachineError(f"no lane could be used: {reasons}", FIX_PROJECT)
    left_out = [
        _note_left_out(next(iter(run.places.values())).title, join_some(differences[number], comma="; "))
        for number, run in runs.items()
        if differences[number]
    ]
    facts = [*facts, *left_out, *_note_niceness(runs, opened)]
    run = replace(runs[chosen], places={}, lanes=tuple(facts))
    engine = RayEngine(run, openings, host_code, changes[chosen])
    for number, run in runs.items():
        if not differences[number]:
            engine.join(number, next(iter(run.places.values())))
    return engine, [*facts, *opened[chosen].notes]


def _note_niceness(runs: Mapping[int, Run], opened: Mapping[int, Reply]) -> list[Fact]:
    """Note lanes that give way to what else runs on their hosts, where this command would not."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    nice = {number: opened[number].niceness for number in runs if opened[number].niceness > own}
    titles = tuple(place.title for number in nice for place in runs[number].places.values())
    numbers = {"niceness": max(nice.values(), default=0), "own": own}
    return [Fact(code=Code.LANES_NICE, numbers=numbers, names={"lanes": titles})] if nice else []


def _drop_card(run: Run) -> Run:
    """Name no card for the whole run: each trial says which one it ran on."""
    base = run.base and replace(run.base, environment=replace(run.base.environment, device_uuid=""))
    return replace(run, environment=replace(run.environment, device_uuid=""), base=base)


def _note_left_out(lane: str, reason: str) -> Fact:
    return Fact(code=Code.LANE_LEFT_OUT, names=name_words(lane=lane, reason=reason))


def _close_lanes(actors: Sequence[Any], limit_s: float, observe: Observer) -> None:
    """Let lanes undo what they made as soon as their slots have ended; what gives no sign is not awaited."""
    signs = {actor.close.remote(): actor.give_sign.remote() for actor in actors}
    _, late = cluster.wait_replies(list(signs), len(signs), _GRACE_S)
    if late:
        lanes = format_noun(len(late), "lane")
        observe(Noted(fact=make_text(f"{lanes} not done with the last slot: waiting up to {limit_s:.0f} s")))
        silent_s = min(MOST_OWED * SIGN_S, limit_s)
        _, late = cluster.wait_replies(late, len(late), silent_s - _GRACE_S)
        living = [close for close in late if cluster.is_ready(signs[close])]
        cluster.wait_replies(living, len(living), limit_s - silent_s)
    for actor in actors:
        ray.kill(actor)
