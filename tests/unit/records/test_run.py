"""What a run says of its trials, and a place of itself."""

import pytest

from gate.records.cases import Metric
from gate.records.run import Place
from tests.make import make_pair, make_run, make_trial


def test_a_pair_counts_once_and_a_trial_alone_not_at_all() -> None:
    """Both arms of a pair are one pair, and a case without pairs has none."""
    lone = make_trial("a/b", {Metric.DRIFT: 0.0})
    (base, _) = make_pair("c/d", 2)
    run = make_run(*make_pair("a/b", 1), *make_pair("a/b", 2), *make_pair("c/d", 1), base, lone)
    assert run.pair_counts == {"a/b": 2, "c/d": 2}


@pytest.mark.parametrize(
    ("device", "name", "title"), [("GPU-1", "GPU-1", "GPU-1 on lab"), ("", "lab:0-3", "lab:0-3")]
)
def test_a_place_is_a_card_or_the_cores_of_a_host(device: str, name: str, title: str) -> None:
    """A card is the same in any host."""
    place = Place(host="lab", device=device, cores="0-3")
    assert (place.name, place.title) == (name, title)
