"""Parameters that a call uses and nobody finds: in class attributes, weak references, or plain lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gate.errors import UsageError
from gate.measure.workload.build import Subject

_FIX = "Register what it uses in a module, as in a torch.nn.ModuleList, and give that module as forward."


def call_watched(subject: Subject, step: Callable[[], Any]) -> str:
    """Call ``step``; describe what it uses that is neither cast nor trained, ``""`` if nothing is.

    Raises:
        UsageError: It fails, or is to train, and uses such parameters. Else what the call raises.
    """
    watch = _Watch(subject)
    try:
        with watch:
            step()
    except Exception as error:
        if told := watch.describe():
            raise UsageError(f"{type(error).__name__}: {error}; {told}", _FIX) from error
        raise
    told = watch.describe()
    if told and subject.is_training:
        raise UsageError(told, _FIX)
    return told


class _Watch(TorchFunctionMode):
    """Collects the parameters that functions of torch get and the subject does not hold."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self._known = {id(tensor) for tensor in subject.list_state()}
        self._unseen: dict[int, torch.nn.Parameter] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 - torch's interface
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's interface
        """Look at what ``func`` gets; reading a dtype or a shape is no use."""
        if getattr(func, "__name__", "") != "__get__":
            for one in pytree.tree_leaves((args, kwargs)):
                if isinstance(one, torch.nn.Parameter) and id(one) not in self._known:
                    self._unseen[id(one)] = one
        return func(*args, **(kwargs or {}))

    def describe(self) -> str:
        """Describe what was collected."""
        if not self._unseen:
            return ""
        shapes = ["x".join(map(str, one.shape)) or "one number" for one in self._unseen.values()]
        more = f" and {len(shapes) - 1} more" if shapes[1:] else ""
        return (
            f"forward uses a parameter of {shapes[0]}{more} that no module which can be found has registered"
        )
