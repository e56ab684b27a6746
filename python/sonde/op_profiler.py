# SPDX-License-Identifier: Apache-2.0
"""The operator profiler: measures one operator alone, with the kernels it uses in a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from . import _convert, _sonde
from ._errors import InvalidArgument


def _attribute(value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)):
        items = [_attribute(item) for item in value]
        return ",".join(items) if len(items) != 1 else f"[{items[0]}]"
    if isinstance(value, bool):
        return str(int(value))
    return value if isinstance(value, str) else repr(value)


def _input(shape: Sequence[int] | None, dtype: DTypeLike, constant: bool) -> tuple[int, tuple[int, ...], bool]:
    if shape is None:
        return 0, (), False
    return _convert.number_of(np.dtype(dtype)), tuple(int(n) for n in shape), constant


def profile_op(
    op: str,
    shapes: Sequence[Sequence[int] | None],
    attrs: Mapping[str, Any] | None = None,
    warmup: int = 10,
    exec: int = 10,
    repeat: int = 1,
    *,
    dtypes: DTypeLike | Sequence[DTypeLike] = np.float32,
    constant: Sequence[int] = (),
    domain: str = "",
    opset: int = 0,
    outputs: int = 1,
    seed: int = 0,
    variants: bool = False,
) -> dict[str, Any]:
    """Measures one operator: `repeat` latencies, each the mean of `exec` runs, after `warmup` runs.

    shapes: the shapes of the inputs; None is an absent optional input. dtypes: one dtype for all inputs, or one for each.
    constant: positions of inputs that are weights. The result contains latency (a list, in microseconds), workspace_size
    (bytes), all samples and statistics of them; with variants also results for the other variants that this machine can
    run. Repeated calls with the same arguments return a cached result: see cache_size and reset_cache.
    """
    if min(warmup, exec - 1, repeat - 1) < 0:
        raise InvalidArgument("warmup must be 0 or more, exec and repeat at least 1")
    each: list[Any] = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes] * len(shapes)
    if len(each) != len(shapes):
        raise InvalidArgument(f"there are {len(shapes)} shapes and {len(each)} dtypes")
    inputs = [_input(shape, dtype, i in constant) for i, (shape, dtype) in enumerate(zip(shapes, each))]
    text = ";".join(f"{name}={_attribute(value)}" for name, value in (attrs or {}).items())
    found = _sonde.op_profile(
        op, domain or None, opset, inputs, outputs, text, seed, warmup or -1, exec, repeat, not variants, False
    )
    return {**found[0], "variants": found} if variants else found[0]


def reset_cache() -> None:
    """Clears the cache of results."""
    _sonde.op_cache_reset()


def cache_size() -> int:
    """The number of cached results."""
    return _sonde.op_cache_size()
