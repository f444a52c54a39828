"""What a workload may be made of; checked where it is made."""

from typing import Any

import pytest

import gate
from gate.errors import UsageError


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        pytest.param({"forward": "x", "inputs": 3}, "forward is str, not callable", id="forward"),
        pytest.param({"inputs": 3}, "inputs is int, not a tuple", id="one input"),
        pytest.param({"inputs": [1]}, "inputs is list, not a tuple", id="list of inputs"),
        pytest.param({"kwargs": [1]}, "kwargs is list, not a mapping of names", id="kwargs"),
        pytest.param({"kwargs": {1: 2}}, "kwargs is dict, not a mapping of names", id="names of kwargs"),
        pytest.param({"loss": 0.5}, "loss is float, not callable", id="loss"),
        pytest.param({"optimizer": "sgd"}, "optimizer is str, not callable", id="optimizer"),
    ],
)
def test_wrong_part_is_refused_at_once(parts: dict[str, Any], message: str) -> None:
    """The error names the part and the fix."""
    with pytest.raises(UsageError, match=message) as caught:
        gate.Workload(**{"forward": abs, "inputs": (1,), **parts})
    assert caught.value.fix.startswith(("Give", "Write"))


def test_no_input_at_all_is_a_workload() -> None:
    """A function without arguments is a workload."""
    assert () == gate.Workload(forward=dict, inputs=()).inputs
