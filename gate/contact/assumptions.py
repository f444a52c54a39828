"""What an assumption is: a function with a name, a sentence, and the kinds of device that it is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from gate import devices
from gate.contact.findings import Answer, AssumptionResult, AssumptionStatus
from gate.files.disk import write_atomic
from gate.measure.device.device import Device
from gate.measure.device.opening import open_device

CPU, CUDA = devices.CPU.name, devices.CUDA.name
_LIMIT_S = 120


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an assumption is asked about, and where what was seen is kept."""

    name: str  # of the device, as the worker was given it
    out: Path

    @cached_property
    def device(self) -> Device:
        """The device, opened as it is first asked for: from then on this process is one of those on it."""
        return open_device(self.name)

    @property
    def is_open(self) -> bool:
        """Whether this process has opened the device."""
        return "device" in vars(self)

    @property
    def kind(self) -> devices.DeviceKind:
        """The kind of device."""
        return devices.find_kind(self.name)

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU: sizes follow from it."""
        return self.kind.is_gpu

    def keep(self, file: str, content: object) -> None:
        """Keep what was seen for the bundle: text as it is, else as JSON."""
        text = content if isinstance(content, str) else json.dumps(content, indent=1, default=str)
        write_atomic(self.out / file, text)


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One assumption: a function that asks, which says in its first line what is assumed."""

    ask: Callable[[Place], Answer]
    on: tuple[str, ...]  # kinds of device that can be asked
    judged: tuple[str, ...]  # kinds for which the range is meant; on others the answer is told
    limit_s: int
    alone: bool  # it asks other processes, which count who is on the device: this one must not be

    @property
    def name(self) -> str:
        """The function's name."""
        return self.ask.__name__

    @property
    def assumed(self) -> str:
        """What is assumed, in the function's own words."""
        return (self.ask.__doc__ or "").strip().splitlines()[0]


def assume(
    *on: str, judged: tuple[str, ...] = (CUDA,), limit_s: int = _LIMIT_S, alone: bool = False
) -> Callable[[Callable[[Place], Answer]], Assumption]:
    """Make an assumption of the function below: about these kinds of device, all of them by default."""

    def make(ask: Callable[[Place], Answer]) -> Assumption:
        return Assumption(ask=ask, on=on or (CPU, CUDA), judged=judged, limit_s=limit_s, alone=alone)

    return make


def answer(assumption: Assumption, place: Place) -> tuple[AssumptionResult, ...]:
    """Ask, and name the answer's parts; what the function raises passes through."""
    told = assumption.ask(place)
    parts = {"": told} if isinstance(told, AssumptionResult) else told
    return tuple(_name_part(assumption, place, part, found) for part, found in parts.items())


def _name_part(assumption: Assumption, place: Place, part: str, found: AssumptionResult) -> AssumptionResult:
    name = f"{assumption.name}, {part}" if part else assumption.name
    found = replace(found, name=name, assumed=assumption.assumed)
    if place.kind.name in assumption.judged:
        return found
    expected = f"{found.expected} on a GPU" if found.expected else ""
    return replace(found, outcome=AssumptionStatus.TOLD, expected=expected)
