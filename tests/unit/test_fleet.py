"""Opening, leaving out, losing and closing lanes without a cluster; with real nodes: integration/gate."""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")

from ray.exceptions import ActorDiedError  # noqa: E402 - only where there is Ray

from gate.check.work import Answer, Unit, UnitResult  # noqa: E402
from gate.errors import GateError, MachineError, UsageError  # noqa: E402
from gate.fleet import cluster, driver  # noqa: E402
from gate.fleet.actor import LaneActor, Reply, read_message  # noqa: E402
from gate.fleet.cluster import Site  # noqa: E402
from gate.fleet.driver import Openings, RayEngine  # noqa: E402
from gate.lab.arms.arms import ArmOptions, CodeState, read_code_states  # noqa: E402
from gate.lab.host import cores  # noqa: E402
from gate.lab.trials.runs import LaneTerms  # noqa: E402
from gate.project.config import Config, load_config  # noqa: E402
from gate.records.cases import Case  # noqa: E402
from gate.records.codes import Code  # noqa: E402
from gate.records.events import Event, LockAwaited, Noted, PrimeStarted, ignore_event  # noqa: E402
from gate.records.run import Place, Provenance, Run  # noqa: E402
from tests import make  # noqa: E402
from tests.git import run_git  # noqa: E402
from tests.hosts import CUDA_HOST  # noqa: E402

CASE = Case(id="mlp/x", model="mlp", definition="d")
PART = UnitResult(notes=())


# What this process finds where it is, as each actor of these tests does.
OWN = read_code_states(Path.cwd(), None)


def make_run(place: Place, torch: str = "2.13.0", commit: str = OWN[0].commit) -> Run:
    return make.make_run(
        cases=(CASE,),
        environment=replace(CUDA_HOST, device_uuid=place.device, torch=torch),
        provenance=Provenance(commit=commit),
        places={place.name: place},
        finished=False,
    )


def make_place(card: str, host: str = "a") -> Place:
    return Place(host=host, device=card, cores="0-3")


@dataclass
class ActingLane:
    """A lane with given answers."""

    run: Run
    error: GateError | None = None

    def measure(self, unit: Unit) -> UnitResult:
        del unit
        if self.error:
            raise self.error
        return PART


@dataclass
class FakeRay:
    """Runs actors' methods at once, unless the actor is dead, late or silent; has a clock.

    A late one answers only signs, which have a thread of their own.
    """

    dead: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)
    now_s: float = 0.0
    killed: list[int] = field(default_factory=list)

    def get(self, ref: Any) -> Any:
        if ref.actor in self.dead:
            raise ActorDiedError
        return ref.call()

    def wait(self, refs: Sequence[Any], num_returns: int, timeout: float) -> tuple[Any, Any]:
        ready = [ref for ref in refs if self.answers(ref)][:num_returns]
        self.now_s += 0.0 if len(ready) == num_returns else timeout
        return ready, [ref for ref in refs if ref not in ready]

    def answers(self, ref: Any) -> bool:
        return ref.actor not in self.silent and (ref.method == "give_sign" or ref.actor not in self.late)

    def monotonic(self) -> float:
        return self.now_s

    def kill(self, handle: Any) -> None:
        self.killed.append(handle.number)


@dataclass(eq=False)
class Handle:
    """An actor's handle: ``handle.method.remote(...)`` returns a reference."""

    number: int
    actor: LaneActor

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: object) -> Any:
            return Ref(actor=self.number, method=name, call=lambda: getattr(self.actor, name)(*arguments))

        return type("Method", (), {"remote": staticmethod(remote)})


@dataclass(eq=False)
class Ref:
    """The result of a call."""

    actor: int
    method: str
    call: Callable[[], Any]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return replace(load_config(None), out=tmp_path / "out", device="cuda")


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr(cluster, "ray", fake)
    monkeypatch.setattr(driver, "ray", fake)
    monkeypatch.setattr(driver, "time", fake)
    return fake


def make_handles(count: int) -> list[Handle]:
    return [Handle(number, LaneActor()) for number in range(1, count + 1)]


@contextmanager
def open_acting(
    lanes: list[ActingLane | GateError], closed: list[str], terms: LaneTerms
) -> Iterator[ActingLane]:
    """Open the lanes in the order of their directories."""
    lane = lanes[int(terms.out.name) - 1]
    if isinstance(lane, GateError):
        raise lane
    yield lane
    closed.append(terms.out.name)


def open_lanes(
    lanes: list[Any],
    config: Config,
    events: list[Event],
    closed: list[str],
    states: Sequence[CodeState] = OWN,
) -> tuple[list[Handle], RayEngine, Run]:
    handles = make_handles(len(lanes))
    sites = [Site(node="n", host="h", gpu=True, cpus=0)] * len(lanes)

    def opening(terms: LaneTerms) -> Any:
        return open_acting(lanes, closed, terms)

    openings = Openings(handles, sites, opening, config)
    opened, refused = driver._open_first(openings, events.append)
    engine, facts = driver._choose_lanes(openings, opened, states, refused)
    events += [Noted(fact=fact) for fact in facts]
    return handles, engine, engine.run


def list_left_out(events: list[Event]) -> list[tuple[str, str]]:
    facts = [event.fact for event in events if isinstance(event, Noted)]
    return [(fact.name("lane"), fact.name("reason")) for fact in facts if fact.code is Code.LANE_LEFT_OUT]


@pytest.mark.usefixtures("acting")
def test_a_lane_that_differs_is_left_out(config: Config) -> None:
    """The first lane has another torch than the others; the run has no card and names all places."""
    lanes = [
        ActingLane(make_run(make_place("GPU-1"), torch="2.12.0")),
        ActingLane(make_run(make_place("GPU-2"))),
        ActingLane(make_run(make_place("GPU-3", host="b"))),
        ActingLane(make_run(make_place("GPU-3", host="b"))),
        MachineError("no room", "Make some."),
    ]
    events: list[Event] = []
    _, engine, run = open_lanes(lanes, config, events, [])
    assert list_left_out(events) == [
        ("5 on h", "no room"),
        ("GPU-1 on a", "torch 2.13.0 -> 2.12.0"),
        ("GPU-3 on b", "it is at GPU-3, where another lane is"),
    ]
    assert list(engine.list_lanes()) == ["GPU-2", "GPU-3"]
    assert run.places == engine.list_lanes()
    assert (run.environment.device_uuid, run.environment.torch) == ("", "2.13.0")


STALE, BASE, OLD_BASE = "a" * 40, "b" * 40, "c" * 40
OURS = OWN[0].commit or "none"


@pytest.mark.usefixtures("acting")
def test_lanes_must_have_this_hosts_commit(config: Config) -> None:
    """The one lane with this host's commit is kept, although the others agree."""
    lanes = [
        ActingLane(make_run(make_place("GPU-1"), commit=STALE)),
        ActingLane(make_run(make_place("GPU-2"))),
        ActingLane(make_run(make_place("GPU-3"), commit=STALE)),
        ActingLane(make_run(make_place("GPU-4"), commit="")),  # no git there
    ]
    events: list[Event] = []
    _, engine, run = open_lanes(lanes, config, events, [])
    stale, unknown = (
        f"not this host's code: commit {OURS[:10]} -> {commit}" for commit in ("aaaaaaaaaa", "none")
    )
    assert list_left_out(events) == [("GPU-1 on a", stale), ("GPU-3 on a", stale), ("GPU-4 on a", unknown)]
    assert list(engine.list_lanes()) == ["GPU-2"]
    assert run.provenance.commit == OWN[0].commit
    with pytest.raises(MachineError, match=f"no lane could be used: {stale}") as caught:
        open_lanes(lanes[:1], config, events, [])
    assert "commit" in caught.value.fix


@pytest.mark.usefixtures("acting")
def test_lanes_must_have_this_hosts_uncommitted_changes(config: Config, tmp_path: Path) -> None:
    """A lane without an edit or new file of this host is left out."""
    project = tmp_path / "project"
    project.mkdir()
    run_git(project, "init", "-q")
    (project / "model.py").write_text("1\n", encoding="utf-8")
    run_git(project, "add", ".")
    run_git(project, "commit", "-qm", "a model")
    ((commit, _, _),) = clean = read_code_states(project, None)
    config, lanes = (
        replace(config, directory=project),
        [ActingLane(make_run(make_place("GPU-1"), commit=commit))],
    )
    (project / "log.txt").write_text("a result\n", encoding="utf-8")
    open_lanes(lanes, config, [], [], clean)
    for name in ("model.py", "new.py", "fault.json"):
        (project / name).write_text("2\n", encoding="utf-8")
        with pytest.raises(MachineError, match="not this host's code: what is not committed has changed"):
            open_lanes(lanes, config, [], [], clean)
        clean = read_code_states(project, None)
        open_lanes(lanes, config, [], [], clean)
    (project / ".git").rename(tmp_path / "git")  # a host that has the commit, and no word on edits
    with pytest.raises(MachineError, match="not this host's code: what is not committed has changed"):
        open_lanes(lanes, config, [], [], clean)


@pytest.mark.usefixtures("acting")
def test_lanes_must_have_the_commits_that_names_mean_here(config: Config) -> None:
    """A lane's own ``main`` may be older, and its working tree is neither of two commits."""

    def make_pair(card: str, head: str, base: str) -> ActingLane:
        run = make_run(make_place(card), commit=head)
        return ActingLane(make.give_base(run, provenance=Provenance(commit=base)))

    lanes = [
        make_pair("GPU-1", STALE, BASE),
        make_pair("GPU-2", STALE, OLD_BASE),
        make_pair("GPU-3", OURS, BASE),
    ]
    events: list[Event] = []
    _, engine, _ = open_lanes(lanes, config, events, [], [CodeState(STALE), CodeState(BASE)])
    assert list(engine.list_lanes()) == ["GPU-1"]
    assert list_left_out(events) == [
        ("GPU-2 on a", "not this host's code: base commit bbbbbbbbbb -> cccccccccc"),
        ("GPU-3 on a", f"not this host's code: commit aaaaaaaaaa -> {OURS[:10]}"),
    ]


def test_what_both_sides_are_on_this_host(tmp_path: Path) -> None:
    """A name is its commit, a directory its commit and edits, the working tree also new files."""
    run_git(tmp_path, "init", "-qb", "main")
    run_git(tmp_path, "commit", "-qm", "one", "--allow-empty")
    commit = run_git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "new.json").write_text("1\n", encoding="utf-8")
    (tree,) = read_code_states(tmp_path, None)
    assert (tree.commit, tree.is_tree) == (commit, True)
    head, base = read_code_states(tmp_path, ArmOptions(directory=tmp_path, base="main", head=str(tmp_path)))
    assert base == CodeState(commit)
    assert (head.commit, head.is_tree) == (commit, False)
    assert head.changes not in {"", tree.changes}
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / ".git").rename(outside / "elsewhere")
    assert read_code_states(tmp_path, None) == [CodeState("", "", is_tree=True)]


def test_an_actor_that_is_gone_says_so(config: Config, acting: FakeRay) -> None:
    """A full disk and a lost process are reasons; results before count, and the actor is ended."""
    lanes = [ActingLane(make_run(make_place(f"GPU-{number}"))) for number in (1, 2, 3)]
    lanes[1].error = MachineError("the disk is full", "Make room.")
    closed: list[str] = []
    handles, engine, run = open_lanes(lanes, config, [], closed)
    unit = Unit(run=run, metrics=(), index=1)
    engine.submit("GPU-1", unit)
    assert engine.wait(1.0) == Answer(lane="GPU-1", part=PART)
    engine.submit("GPU-2", unit)
    assert engine.wait(1.0) == Answer(lane="GPU-2", why="the disk is full")
    acting.dead = {3}
    engine.submit("GPU-3", unit)
    assert engine.wait(1.0) == Answer(lane="GPU-3", why="its process or its host is gone (ActorDiedError)")
    acting.late = {1}
    engine.submit("GPU-1", unit)
    assert engine.wait(1.0) is None
    engine.end("GPU-1")
    assert (acting.killed, engine._openings.living) == ([1], handles[1:])
    acting.dead = set()
    acting.late = set()
    driver._close_lanes(handles[1:], 20.0, ignore_event)
    assert acting.killed == [1, 2, 3]


def test_a_fleet_without_lanes_says_why(config: Config, acting: FakeRay) -> None:
    """The first refusal, that all are late, or that the device does not exist."""
    with pytest.raises(MachineError, match="no lane could be opened: no room"):
        open_lanes([MachineError("no room", "Make some.")], config, [], [])
    with pytest.raises(UsageError, match="no lane could be opened: another run"):
        open_lanes([UsageError("another run", "Name this one.")], config, [], [])
    acting.late = {1}
    with pytest.raises(MachineError, match="it did not open within 360 s"):
        open_lanes([ActingLane(make_run(make_place("GPU-1")))], replace(config, lock_timeout_s=60.0), [], [])
    acting.silent, acting.now_s = {1}, 0.0
    with pytest.raises(MachineError, match="the Ray cluster started no process for it within 60 s"):
        open_lanes([ActingLane(make_run(make_place("GPU-1")))], replace(config, lock_timeout_s=60.0), [], [])
    acting.now_s = 0.0
    with pytest.raises(MachineError, match="the Ray cluster started no process for it within 30 s"):
        open_lanes([ActingLane(make_run(make_place("GPU-1")))], replace(config, lock_timeout_s=1.0), [], [])
    assert acting.killed == [1, 1, 1]
    acting.late = acting.silent = set()
    acting.dead = {1}
    with pytest.raises(MachineError, match="its process or its host is gone"):
        open_lanes([ActingLane(make_run(make_place("GPU-1")))], config, [], [])
    with pytest.raises(MachineError, match="no node of Ray has such a device"):
        open_lanes([], config, [], [])


def test_a_lane_that_is_silent_is_not_one_whose_model_hangs(config: Config, acting: FakeRay) -> None:
    """Two lanes work for an hour, then one answers no sign for a minute; the third dies while idle."""
    lanes = [ActingLane(make_run(make_place(f"GPU-{number}"))) for number in (1, 2, 3)]
    handles, engine, run = open_lanes(lanes, config, [], [])
    acting.late, begun_s = {1, 2}, acting.now_s
    for lane in ("GPU-1", "GPU-2"):
        engine.submit(lane, Unit(run=run, metrics=(), index=1))
    assert engine.wait(3600.0) is None
    assert acting.now_s == begun_s + 3600.0
    acting.silent = {2}
    assert engine.wait(3600.0) == Answer(lane="GPU-2", why="no sign of life for 60 s")
    assert 3645.0 <= acting.now_s - begun_s <= 3675.0
    acting.dead = {3}
    assert engine.wait(3600.0) == Answer(lane="GPU-3", why="its process or its host is gone (ActorDiedError)")
    assert engine.wait(3600.0) is None
    assert engine._openings.living == handles[:1]
    events, begun_s = list[Event](), acting.now_s
    driver._close_lanes(handles, 300.0, events.append)
    assert acting.now_s == begun_s + 300.0
    driver._close_lanes(handles[1:2], 300.0, events.append)
    assert acting.now_s == begun_s + 360.0
    late = [event.fact.name("text")[:7] for event in events if isinstance(event, Noted)]
    assert late == ["2 lanes", "1 lane "]


def test_a_lane_that_is_not_free_delays_no_other(config: Config, acting: FakeRay) -> None:
    """Each joins as it opens, unless it has other code or no room."""
    lanes = [
        ActingLane(make_run(make_place("GPU-1"))),
        ActingLane(make_run(make_place("GPU-2", host="b"))),
        ActingLane(make_run(make_place("GPU-3"), commit=STALE)),
        ActingLane(make_run(make_place("GPU-1"))),
        ActingLane(make_run(make_place("GPU-5"))),
    ]
    acting.late, acting.silent, events = {2, 3, 4}, {5}, list[Event]()
    config = replace(config, lock_timeout_s=600.0)
    _, engine, run = open_lanes(lanes, config, events, [])
    assert acting.now_s <= 12.0
    assert list(engine.list_lanes()) == ["GPU-1"]
    (waits,) = [event.fact for event in events if isinstance(event, Noted)]
    assert (waits.code, waits.names["lanes"], waits.name("seconds")) == (Code.LANES_WAIT, ("5 on h",), "600")
    acting.late = {1}
    engine.submit("GPU-1", Unit(run=run, metrics=(), index=1))
    stale = f"not this host's code: commit {OURS[:10]} -> aaaaaaaaaa"
    assert engine.wait(60.0) == Answer(lane="3 on h", why=stale)
    assert list(engine.list_lanes()) == ["GPU-1", "GPU-2"]
    assert engine.wait(60.0) == Answer(lane="4 on h", why="it is at GPU-1, where another lane is")
    answer = engine.wait(3600.0)
    assert answer is not None
    assert (answer.lane, answer.why[:41]) == ("5 on h", "the Ray cluster started no process for it")
    assert acting.killed == [5]


@pytest.mark.usefixtures("acting")
def test_lanes_that_give_way_are_noted(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes that give way are noted if this command would not, in the run too."""
    lanes = [ActingLane(make_run(make_place("GPU-1"))), ActingLane(make_run(make_place("GPU-2")))]
    nice = iter((15, 0, 0))
    monkeypatch.setattr(os, "getpriority", lambda *_: next(nice))
    events: list[Event] = []
    _, _, run = open_lanes(lanes, config, events, [])
    (fact,) = run.lanes
    assert (fact.code, fact.names, fact.numbers) == (
        Code.LANES_NICE,
        {"lanes": ("GPU-1 on a",)},
        {"niceness": 15, "own": 0},
    )
    assert Noted(fact=fact) in events


def test_a_lane_says_for_what_it_waits_as_it_opens(config: Config) -> None:
    """The reason is shown until the lane goes on."""
    actor, reasons = LaneActor(), list[str]()

    @contextmanager
    def opening(terms: LaneTerms) -> Iterator[Any]:
        for event in (LockAwaited(device="cpu", holder="process 7 of ada", limit_s=60.0), PrimeStarted()):
            terms.observe(event)
            reasons.append(read_message(Reply, actor.give_sign()).waits)
        yield ActingLane(make_run(make_place("GPU-1")))

    actor.open(opening, str(Path.cwd()), LaneTerms(out=config.out / "1"))
    assert reasons == ["cpu, which process 7 of ada uses", ""]


def test_a_lane_undoes_what_it_opened(config: Config, tmp_path: Path) -> None:
    """A project that its host lacks is reported."""
    closed: list[str] = []
    lane, actor = ActingLane(make_run(make_place("GPU-1"))), LaneActor()
    terms = LaneTerms(out=config.out / "1")

    def opening(terms: LaneTerms) -> Any:
        return open_acting([lane], closed, terms)

    absent = read_message(Reply, actor.open(opening, str(tmp_path / "no"), terms))
    assert "No such file or directory" in absent.what
    assert "same path" in absent.fix
    opened = read_message(Reply, actor.open(opening, str(Path.cwd()), terms))
    assert opened.run == lane.run
    assert closed == []
    actor.close()
    assert closed == ["1"]


def test_one_lane_a_gpu_or_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead nodes, and those without free processors, have none."""
    nodes = [
        {"NodeID": "head", "NodeManagerHostname": "a", "Alive": True, "Resources": {"memory": 1.0}},
        {"NodeID": "two", "NodeManagerHostname": "b", "Alive": True, "Resources": {"GPU": 2.0, "CPU": 8.0}},
        {"NodeID": "gone", "NodeManagerHostname": "c", "Alive": False, "Resources": {"GPU": 8.0, "CPU": 8.0}},
    ]
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    assert cluster.list_sites(gpu=True) == [Site(node="two", host="b", gpu=True, cpus=0)] * 2
    assert cluster.list_sites(gpu=False) == [Site(node="two", host="b", gpu=False, cpus=8.0)]


@pytest.mark.parametrize(
    ("error", "message", "advice"),
    [
        (ConnectionError("x"), "no Ray cluster can be reached at auto", "RAY_AUTH_MODE"),
        (RuntimeError("Version mismatch:\n  2.60 and 2.50"), "Version mismatch: 2.60 and 2.50", "same Ray"),
        (Exception("The current node timed out."), "Ray does not start: The current node timed out", "busy"),
    ],
)
def test_a_cluster_that_cannot_be_used(
    error: Exception, message: str, advice: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is absent, has another token or version, or starts too slowly."""

    def refuse(**_: object) -> None:
        raise error

    monkeypatch.setattr(ray, "init", refuse)
    with (
        pytest.raises(MachineError, match=message) as caught,
        driver.open_fleet((0, "auto"), lambda _: pytest.fail("opened"), list, config, ignore_event),
    ):
        pass
    assert advice in caught.value.fix


def test_lanes_that_this_host_does_not_have(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """One GPU by its number, and more lanes than cores."""
    monkeypatch.setattr(cores, "list_cores", lambda: range(4))
    for count, changes, message in (
        (2, {"device": "cuda:1"}, "takes all GPUs, and cuda:1 names one"),
        (3, {"device": "cpu", "threads": 2}, "--lanes 3: each lane needs 2 cores of its own, of 4"),
    ):
        with (
            pytest.raises(UsageError, match=message),
            driver.open_fleet(
                (count, ""), lambda _: pytest.fail("opened"), list, replace(config, **changes), ignore_event
            ),
        ):
            pass


def test_an_address_where_nobody_listens(config: Config) -> None:
    """It fails at once, where Ray would try for minutes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        with (
            pytest.raises(MachineError, match=f"no Ray cluster can be reached at {address}"),
            driver.open_fleet((0, address), lambda _: pytest.fail("opened"), list, config, ignore_event),
        ):
            pass
