"""Guesses of a module's inputs: from the sizes of its layers, and from names of parameters."""

import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

Guess = dict[str, Any]  # of a TensorSketch: shape, dtype, high, and what it is guessed from
BATCH, LENGTH, SIDE = 8, 64, 64  # what guessed inputs have of each: a call takes milliseconds
SHORT = 16  # a length for a short table of positions
CHANNELS = 3  # of an image
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


def is_module(value: Any) -> bool:  # noqa: ANN401
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def guess_inputs(made: Any, names: Sequence[str]) -> Iterator[list[Guess]]:  # noqa: ANN401 - any model
    """The likeliest first: one kind of tensor for all, then a kind for each."""
    general = list(guess_tensors(made))
    named = [_guess_by_name(name) for name in names]
    for guess in general:
        yield [by_name or guess for by_name in named]
    if any(named):
        for guess in general:
            yield [guess] * len(names)
    if 1 < len(names) <= _MOST_INPUTS:
        choices = ([by_name] if by_name else general[:_MOST_GUESSES] for by_name in named)
        yield from map(list, itertools.product(*choices))


def guess_tensors(made: Any) -> Iterator[Guess]:  # noqa: ANN401 - any model
    floats = _choose_dtype(made)
    seen = set()
    for guess in itertools.chain(_guess_by_layers(made, floats), _guess_blindly(floats)):
        key = (*guess["shape"], guess["dtype"], guess.get("high"))
        if key not in seen:
            seen.add(key)
            yield guess


def _guess_by_name(name: str) -> Guess | None:
    matching = (guess for pattern, guess in _NAMED if re.fullmatch(pattern, name))
    return next(({**guess, "source": f"its name, {name}"} for guess in matching), None)


def _guess_by_layers(made: Any, floats: str) -> Iterator[Guess]:  # noqa: ANN401 - any model
    layers = list(made.named_modules()) if is_module(made) else []
    tables = [(name, layer) for name, layer in layers if vars(layer).get("num_embeddings")]
    if tables:  # the largest holds the words, a smaller one may hold positions
        name, layer = max(tables, key=lambda pair: pair[1].num_embeddings)
        for length in (LENGTH, SHORT):
            ids = {"shape": [BATCH, length], "dtype": "int64", "high": layer.num_embeddings}
            yield {**ids, "source": _describe_layer(name, layer, layer.num_embeddings)}
    for name, layer in layers:
        for width, shape in _list_shapes(layer):
            guess = {"shape": shape, "dtype": floats, "source": _describe_layer(name, layer, width)}
            yield {**guess, "is_image": _is_image(shape, floats)}


def _list_shapes(layer: Any) -> Iterator[tuple[int, list[int]]]:  # noqa: ANN401 - any module
    """Yield the shapes that a layer takes, each with the width of the layer."""
    kernel = vars(layer).get("kernel_size")
    width = vars(layer).get("in_channels")
    if isinstance(kernel, tuple) and isinstance(width, int) and width:  # 0: a lazy layer
        for side in (SIDE, 224):
            yield width, [BATCH, width, *[side] * len(kernel)]
    for name in _WIDTHS:
        if isinstance(width := vars(layer).get(name), int) and width:
            yield width, [BATCH, width]
            yield width, [BATCH, LENGTH, width]
    if shape := vars(layer).get("normalized_shape"):
        yield shape[-1], [BATCH, LENGTH, *shape]


def _is_image(shape: list[int], dtype: str) -> bool:
    """Images are from 0 to 1: some models take no others."""
    return len(shape) == len("NCHW") and shape[1] in (1, CHANNELS) and not dtype.startswith("complex")


def _guess_blindly(floats: str) -> Iterator[Guess]:
    for shape in ([SIDE, SIDE], [BATCH, LENGTH, SIDE], [BATCH, CHANNELS, SIDE, SIDE], [BATCH]):
        guess = {"shape": shape, "dtype": floats, "source": "no layer's size"}
        yield {**guess, "is_image": _is_image(shape, floats)}
    yield {"shape": [BATCH, LENGTH], "dtype": "int64", "high": IDS, "source": "no layer's size"}


def _describe_layer(name: str, layer: Any, width: int) -> str:  # noqa: ANN401 - any module
    kind = f"{type(layer).__name__} {width}"
    return f"{name} ({kind})" if name else kind


def _choose_dtype(made: Any) -> str:  # noqa: ANN401 - any model
    for parameter in made.parameters() if is_module(made) else ():
        if parameter.dtype.is_floating_point or parameter.dtype.is_complex:
            return str(parameter.dtype).removeprefix("torch.")
    return "float32"
