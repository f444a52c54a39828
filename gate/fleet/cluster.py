"""Ray itself: a cluster that is started or connected to, its nodes, and calls of actors there."""

import logging
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from gate.errors import GateError, MachineError
from gate.fleet.actor import SIGNS, LaneActor, Reply, read_message
from gate.lab.host.scratch import open_scratch
from gate.sizes import MIB

_STORE_BYTES = 80 * MIB  # the least that Ray takes: what travels is kilobytes
_REACHING_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    node: str
    host: str
    gpu: bool
    cpus: float  # that Ray has to give: a lane without a GPU takes all of its node
    cores: tuple[int, ...] = ()


@contextmanager
def start(cpus: int) -> Iterator[None]:
    """Start Ray on this host for the time being; its logs go with it."""
    os.environ.setdefault("RAY_worker_niceness", "0")  # as without lanes; Ray's own is 15
    tmp = Path("/tmp")  # noqa: S108 - a socket's path has 107 bytes at most
    with open_scratch(tmp if os.access(tmp, os.W_OK) else None) as scratch:
        yield from _init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _temp_dir=str(scratch),
        )


@contextmanager
def connect(address: str) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:  # Ray itself tries for minutes
        try:
            socket.create_connection((host, int(port)), timeout=_REACHING_S).close()
        except OSError as error:
            raise _refuse_unreachable(address) from error
    yield from _init(address=address)


def _refuse_unreachable(address: object) -> MachineError:
    fix = (
        "Start one (`ray start --head`), or name it: --lanes ray:HOST:6379. Have its RAY_AUTH_MODE and token."
    )
    return MachineError(f"no Ray cluster can be reached at {address}", fix)


def _init(**settings: object) -> Iterator[None]:
    interrupt = signal.getsignal(signal.SIGTERM)
    logging.getLogger("ray").setLevel(logging.ERROR)  # it warns of tokens and others amid a report
    try:
        ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **settings)
        signal.signal(signal.SIGTERM, interrupt)  # Ray's own handler would end this process without saving
    except ConnectionError as error:
        raise _refuse_unreachable(settings["address"]) from error
    except Exception as error:  # of Ray's: another version than the cluster's, a host that is too busy
        message = " ".join(str(error).split())
        fix = "Have the same Ray and Python on every host, and start it where the host is not too busy."
        raise MachineError(f"Ray does not start: {message}", fix) from error
    try:
        yield
    finally:
        ray.shutdown()


def list_sites(*, gpu: bool) -> list[Site]:
    """One a GPU, or one a node that has processors to give."""
    sites = []
    for node in ray.nodes():
        resources = node["Resources"] if node["Alive"] else {}
        site = Site(node=node["NodeID"], host=node["NodeManagerHostname"], gpu=gpu, cpus=0)
        if gpu:
            sites += [site] * int(resources.get("GPU", 0))
        elif resources.get("CPU", 0) >= 1:
            sites.append(replace(site, cpus=resources["CPU"]))
    return sites


def make_actor(site: Site) -> Any:  # noqa: ANN401 - a handle of Ray's
    strategy = NodeAffinitySchedulingStrategy(node_id=site.node, soft=False)
    options = {"num_cpus": site.cpus, "num_gpus": int(site.gpu), "max_restarts": 0}
    remote = ray.remote(concurrency_groups={SIGNS: 1})(LaneActor)
    return remote.options(scheduling_strategy=strategy, **options).remote(in_node=True)


def wait_replies(refs: Sequence[Any], count: int, limit_s: float) -> tuple[list[Any], list[Any]]:
    """Wait until so many are ready; these, and the others."""
    return ray.wait(refs, num_returns=count, timeout=limit_s) if refs else ([], [])


def is_ready(ref: Any) -> bool:  # noqa: ANN401 - a reference of Ray's
    return bool(wait_replies([ref], 1, 0.0)[0])


def receive_reply(ref: Any, *, of_opening: bool = False) -> Reply:  # noqa: ANN401 - a reference of Ray's
    """An actor that is gone, or says what is no reply, is an error that it cannot report.

    Raises:
        RayTaskError: A bug in a lane that was open.
    """
    try:
        reply: Reply = read_message(Reply, ray.get(ref))
    except RayTaskError as error:
        if not of_opening:
            raise
        return Reply(what=f"{type(error.cause).__name__}: {error.cause}")  # as without compile-gate there
    except RayError as error:
        return Reply(what=f"its process or its host is gone ({type(error).__name__})")
    except GateError as error:
        return Reply(what=error.what, fix=error.fix)
    return reply
