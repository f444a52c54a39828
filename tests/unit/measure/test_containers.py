"""Each kind of container is read, cast and moved alike."""

import threading
from argparse import Namespace
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils import _pytree as pytree

from gate.errors import UsageError
from gate.measure.workload.tensors import compare_leaves, iterate_leaves, iterate_tensors, map_tensors


@dataclass(frozen=True, slots=True)
class Frozen:
    """A record that cannot be assigned to."""

    value: Any
    count: int = 3


@dataclass
class Plain:
    """A record as most are."""

    value: Any


class Point(NamedTuple):
    """A named tuple of tensors."""

    x: Any
    y: Any


class Table(Mapping[str, Any]):
    """A mapping that keeps its items to itself."""

    def __init__(self, items: dict[str, Any]) -> None:
        self._items = items

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Batch:
    """An object of a user's own, with a parent, a lock, and where its tensors are."""

    def __init__(self, value: Any) -> None:
        self.value, self.lock, self.parent, self.device = value, threading.Lock(), self, torch.device("cpu")


class Slots:
    """An object without a dictionary."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value


class Registered:
    """An object that only torch's pytrees know how to take apart: its attribute is a function."""

    def __init__(self, value: Any) -> None:
        self.get = lambda: value


pytree.register_pytree_node(
    Registered, lambda registered: ([registered.get()], None), lambda items, _: Registered(next(iter(items)))
)

KINDS: dict[str, tuple[Callable[[torch.Tensor], Any], list[str]]] = {
    "tensor": (lambda value: value, [""]),
    "tuple": (lambda value: (value, "text"), ["[0]"]),
    "nested": (lambda value: [{"a": (value,)}], ["[0]['a'][0]"]),
    "twice": (lambda value: (value, [value]), ["[0]", "[1][0]"]),
    "namedtuple": (lambda value: Point(value, 2), ["[0]"]),
    "returned": (lambda value: value.max(0), ["[0]", "[1]"]),
    "ordered": (lambda value: OrderedDict(a=value), ["['a']"]),
    "default": (lambda value: defaultdict(list, a=[value]), ["['a'][0]"]),
    "deque": (lambda value: deque([value], maxlen=4), ["[0]"]),
    "user dict": (lambda value: UserDict(a=value), ["['a']"]),
    "user list": (lambda value: UserList([value]), [".data[0]"]),
    "mapping": (lambda value: Table({"a": value}), ["['a']"]),
    "dataclass": (lambda value: Plain([value]), [".value[0]"]),
    "frozen": (lambda value: Frozen(Frozen(value)), [".value.value"]),
    "namespace": (lambda value: Namespace(a=value), [".a"]),
    "object": (Batch, [".value"]),
    "slots": (Slots, ["._value"]),
    "registered": (Registered, ["[0]"]),
    "distribution": (lambda value: torch.distributions.Normal(value, 1.0), [".loc", ".scale"]),
    "packed": (lambda value: pack_sequence([value, value]), [".data"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_cast(kind: str) -> None:
    """Each tensor has a cast copy at the same path; the original keeps its own."""
    make, paths = KINDS[kind]
    value = make(torch.ones(3))
    before = dict(iterate_tensors(value))
    copied = map_tensors(lambda tensor: tensor.double() + 1, value)
    assert list(before) == paths
    assert type(copied) is type(value)
    expected = {path: tensor.double() + 1 for path, tensor in before.items()}
    tensors = dict(iterate_tensors(copied))
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[path], expected[path]) for path in expected)
    assert all(tensor is before[path] for path, tensor in iterate_tensors(value))


def test_one_tensor_stays_one() -> None:
    """A tensor that is given twice is written in both places."""
    value = torch.ones(3)
    first, second = map_tensors(torch.clone, (value, Plain(value)))
    assert first is second.value


def test_what_cannot_be_seen_into_stays_itself() -> None:
    """A lock cannot be copied: the copy of the object that has it shares it, and has its own tensors."""
    batch = Batch(torch.ones(3))
    copied = map_tensors(torch.clone, batch)
    assert copied.lock is batch.lock
    assert copied.value is not batch.value
    assert copied.parent is copied


def test_an_object_names_where_its_tensors_are() -> None:
    """A device among the attributes follows the tensors."""
    assert map_tensors(lambda tensor: tensor.to("meta"), Batch(torch.ones(3))).device.type == "meta"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param([{torch.ones(3)}], r"\[0\] is a set of tensors, which has no order", id="set"),
        pytest.param(
            Plain(MappingProxyType({"a": torch.ones(3)})),
            "Plain cannot be copied with other tensors: TypeError: cannot pickle 'mappingproxy' object",
            id="uncopied",
        ),
    ],
)
def test_what_cannot_be_rebuilt_is_named(value: Any, message: str) -> None:
    """The error names the types and what to give instead."""
    with pytest.raises(UsageError, match=message) as caught:
        map_tensors(torch.clone, value)
    assert caught.value.fix.startswith("Give ")


def test_leaves_are_all_there_is() -> None:
    """Numbers, text, empty containers and opaque objects have paths as well."""
    lock = threading.Lock()
    value = {"n": 3, "held": Frozen(None, 4), "empty": [], "lock": lock}
    assert dict(iterate_leaves(value)) == {
        "['n']": 3,
        "['held'].value": None,
        "['held'].count": 4,
        "['empty']": [],
        "['lock']": lock,
    }


def test_a_long_chain_is_walked() -> None:
    """Objects that hold each other 5000 deep end no walk."""
    chain: Any = None
    for _ in range(5000):
        chain = Plain([chain])
    assert [leaf for _, leaf in iterate_leaves(chain)] == [None]


class Equal:
    """An object that knows its equals."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    __hash__ = None  # type: ignore[assignment] # as of any class with its own comparison


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, True, False),
        (float("nan"), float("nan"), True),
        (0.5, 0.25, False),
        (None, "a", False),
        ("a", "a", True),
        ({1, 2}, {2, 1}, True),
        ({1}, {2}, False),
        ({torch.ones(1)}, {torch.ones(1)}, None),
        (torch.float32, torch.float64, False),
        (Equal(), Equal(), True),
        (object(), object(), None),
        (len, len, True),
        (lambda: 1, lambda: 1, None),
    ],
)
def test_leaves_are_compared_where_that_can_be(left: Any, right: Any, expected: bool | None) -> None:
    """Two objects that know only themselves are neither the same nor different."""
    assert compare_leaves(left, right) is expected
