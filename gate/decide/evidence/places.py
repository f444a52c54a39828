"""Where trials ran: each place has a speed of its own, and so has each card of one model."""

from __future__ import annotations

from collections.abc import Iterable

from gate.records import Run, Trial


def find_place(trials: Iterable[Trial]) -> str:
    """Name the place that all these trials ran at; "" where that is several, or not known."""
    places = {trial.place for trial in trials}
    return places.pop() if len(places) == 1 else ""


def find_card(run: Run, place: str) -> str:
    """The UUID of the card at a place of a run; where no place is known, that of the whole run."""
    return run.places[place].device if place in run.places else run.environment.device_uuid
