"""What a lane does on its host. Slots and replies travel as JSON, and are checked like files."""

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import ray

from gate.check.work import Unit, UnitResult
from gate.errors import GateError, UsageError
from gate.files.codec import dump
from gate.files.structure import decode
from gate.files.untrusted import parse_json
from gate.lab.arms.changes import READ_BY_CODE, hash_changes
from gate.lab.trials.runs import Lane, LaneTerms, OpenLane, keep_note
from gate.programs import die_with_parent
from gate.records.events import Event, LockAwaited
from gate.records.facts import Fact
from gate.records.run import Run

SIGNS = "signs"  # the group of methods that run while another is at work
FIX_PROJECT = "Have the project at the same path, commit and uncommitted edits on every host."


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A run, a part, or an error that is no bug."""

    run: Run | None = None
    tree_changes: str = ""  # beside the working tree's commit
    part: UnitResult | None = None
    notes: tuple[Fact, ...] = ()
    niceness: int = 0
    waits: str = ""  # for what, as it opens
    what: str = ""
    fix: str = ""
    of_usage: bool = False  # the user's to mend, as a mistyped ref


def read_message(kind: type[Any], text: str) -> Any:  # noqa: ANN401 - of that kind
    return decode(kind, parse_json(text.encode(), "a lane"), "a lane")


class LaneActor:
    def __init__(self, *, in_node: bool = False) -> None:
        """Where a node of Ray started this process, it ends with the node, and lets go of its device."""
        if in_node:
            die_with_parent(os.getppid())
        self._stack = ExitStack()
        self._lane: Lane  # once it is open
        self._waits = ""

    def open(self, opening: OpenLane, directory: str, terms: LaneTerms) -> str:
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray's, of every actor: workers set their own threads
        notes: list[Fact] = []

        def observe(event: Event) -> None:
            self._waits = (
                f"{event.device}, which {event.holder} uses" if isinstance(event, LockAwaited) else ""
            )
            keep_note(notes, event)

        try:
            os.chdir(directory)
            self._lane = self._stack.enter_context(opening(replace(terms, observe=observe)))
        except GateError as error:
            return dump(Reply(what=error.what, fix=error.fix, of_usage=isinstance(error, UsageError)))
        except OSError as error:  # the project is not there
            return dump(Reply(what=str(error), fix=FIX_PROJECT))
        tree_changes = hash_changes(terms.project, READ_BY_CODE)
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        reply = Reply(run=self._lane.run, tree_changes=tree_changes, notes=tuple(notes), niceness=niceness)
        return dump(reply)

    @ray.method(concurrency_group=SIGNS)  # type: ignore[untyped-decorator] # of Ray's
    def give_sign(self) -> str:
        return dump(Reply(waits=self._waits))

    def measure(self, unit: str) -> str:
        try:
            return dump(Reply(part=self._lane.measure(read_message(Unit, unit))))
        except GateError as error:
            return dump(Reply(what=error.what, fix=error.fix))

    def close(self) -> None:
        self._stack.close()
