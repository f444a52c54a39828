import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gate.measure.environment import describe_runtime


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    torch.set_flush_denormal(True)
    yield
    torch.set_flush_denormal(False)


@contextmanager
def switch_cudnn(name: str, *, value: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.backends.cudnn, name, value)
        yield


@contextmanager
def profiled_python() -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    yield
    sys.setprofile(before)


@pytest.mark.parametrize(
    ("setting", "setting_name"),
    [
        (flushed_denormals, "denormals flushed"),
        (partial(torch.backends.mkldnn.flags, enabled=False), "oneDNN off"),
        (partial(switch_cudnn, "enabled", value=False), "cuDNN off"),
        (partial(switch_cudnn, "deterministic", value=True), "cuDNN deterministic"),
        (partial(torch.autograd.set_detect_anomaly, mode=True), "anomaly detection"),
        (TorchFunctionMode, "a function mode"),
        (TorchDispatchMode, "a dispatch mode"),
        (profiled_python, "Python traced"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")  # of mkldnn.flags, without a GPU
def test_what_slows_all_of_torch_is_reported(
    setting: Callable[[], AbstractContextManager[object]], setting_name: str
) -> None:
    """The generated code is the same, so only this shows it."""
    before = describe_runtime()
    with setting():
        assert describe_runtime() == f"{before}, {setting_name}"
    assert describe_runtime() == before


def test_threads_are_reported() -> None:
    """A module that leaves torch one thread slows eager and compiled alike."""
    with one_thread():
        assert describe_runtime().split(", ")[0] == "1 thread"
