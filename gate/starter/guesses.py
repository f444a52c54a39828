"""Guesses at the inputs of a module: from its layers' sizes and the names of what its forward takes."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

Guess = dict[str, Any]  # of a TensorSketch: shape, dtype, high, and what it is guessed from

BATCH, LENGTH, SIDE = 8, 64, 64  # what guessed inputs have of each: a call takes milliseconds
SHORT = 16  # a length for a short table of positions
CHANNELS = 3  # of an image, where a lazy convolution does not say
IDS = 1000  # of a guessed vocabulary where no embedding says it
_WIDTHS = ("in_features", "input_size", "embed_dim", "num_features")
# Several inputs are guessed one by one as well, from so many guesses each.
_MOST_GUESSES, _MOST_INPUTS = 6, 3
# What inputs of these names are, whatever the layers say.
_NAMED: Sequence[tuple[str, Guess]] = (
    (r"(attention_)?mask", {"shape": [BATCH, LENGTH], "dtype": "bool", "high": 2}),
    (r"edge_index", {"shape": [2, LENGTH], "dtype": "int64", "high": BATCH}),
    (r"timesteps?|t", {"shape": [BATCH], "dtype": "float32"}),
)


def guess_inputs(made: Any, names: Sequence[str]) -> Iterator[list[Guess]]:  # noqa: ANN401 - any model
    """Guess the inputs of these names, the likeliest first: one kind of tensor for all, then one for each."""
    general = list(guess_tensors(made))
    named = [_guess_by_name(name) for name in names]
    for one in general:
        yield [own or one for own in named]
    if any(named):
        for one in general:
            yield [one] * len(names)
    if 1 < len(names) <= _MOST_INPUTS:
        choices = ([own] if own else general[:_MOST_GUESSES] for own in named)
        yield from map(list, itertools.product(*choices))


def guess_tensors(made: Any) -> Iterator[Guess]:  # noqa: ANN401 - any model
    """Guess a tensor, each once: for the first layers first, then what fits no layer's size."""
    floats = _find_dtype(made)
    seen = set()
    for guess in itertools.chain(_guess_by_layers(made, floats), _guess_blindly(floats)):
        key = (*guess["shape"], guess["dtype"], guess.get("high"))
        if key not in seen:
            seen.add(key)
            yield guess


def _guess_by_name(name: str) -> Guess | None:
    found = (guess for pattern, guess in _NAMED if re.fullmatch(pattern, name))
    return next(({**guess, "source": f"its name, {name}"} for guess in found), None)


def _guess_by_layers(made: Any, floats: str) -> Iterator[Guess]:  # noqa: ANN401 - any model
    layers = list(made.named_modules()) if _is_module(made) else []
    tables = [(name, layer) for name, layer in layers if vars(layer).get("num_embeddings")]
    if tables:  # the largest holds the words, a smaller one may hold positions
        name, layer = max(tables, key=lambda pair: pair[1].num_embeddings)
        for length in (LENGTH, SHORT):
            ids = {"shape": [BATCH, length], "dtype": "int64", "high": layer.num_embeddings}
            yield {**ids, "source": _describe_layer(name, layer, layer.num_embeddings)}
    for name, layer in layers:
        for width, shape in _list_shapes(layer):
            yield {"shape": shape, "dtype": floats, "source": _describe_layer(name, layer, width)}


def _list_shapes(layer: Any) -> Iterator[tuple[int, list[int]]]:  # noqa: ANN401 - any module
    """List shapes that a layer takes, each with the width that it is made of; a lazy layer has none yet."""
    kernel = vars(layer).get("kernel_size")
    if isinstance(kernel, tuple) and isinstance(width := vars(layer).get("in_channels"), int):
        for side in (SIDE, 224):
            yield width, [BATCH, width or CHANNELS, *[side] * len(kernel)]
    for name in _WIDTHS:
        if isinstance(width := vars(layer).get(name), int):
            yield width, [BATCH, width or SIDE]
            yield width, [BATCH, LENGTH, width or SIDE]
    if shape := vars(layer).get("normalized_shape"):
        yield shape[-1], [BATCH, LENGTH, *shape]


def _guess_blindly(floats: str) -> Iterator[Guess]:
    for shape in ([SIDE, SIDE], [BATCH, LENGTH, SIDE], [BATCH, CHANNELS, SIDE, SIDE], [BATCH]):
        yield {"shape": shape, "dtype": floats, "source": "no layer's size"}
    yield {"shape": [BATCH, LENGTH], "dtype": "int64", "high": IDS, "source": "no layer's size"}


def _describe_layer(name: str, layer: Any, width: int) -> str:  # noqa: ANN401 - any module
    kind = f"{type(layer).__name__} {width or ''}".rstrip()
    return f"{name} ({kind})" if name else kind


def _find_dtype(made: Any) -> str:  # noqa: ANN401 - any model
    """Find the floating-point or complex type of the parameters."""
    dtypes = (one.dtype for one in made.parameters()) if _is_module(made) else ()
    return next(
        (str(one).removeprefix("torch.") for one in dtypes if one.is_floating_point or one.is_complex),
        "float32",
    )


def _is_module(value: Any) -> bool:  # noqa: ANN401 - any value
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
