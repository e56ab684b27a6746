# SPDX-License-Identifier: Apache-2.0
"""Random inputs for a model, in the ranges that `sonde run` uses: numbers from 0 to 1, small indices, masks of ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InvalidArgument, NotImplemented

if TYPE_CHECKING:
    from ._session import NodeArg


def _range(name: str, dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and largest random integer. Integers are mostly indices, and small indices are usually valid."""
    if "mask" in name or dtype.kind == "b":
        return 1, 1
    if "token_type" in name or "segment" in name:
        return 0, 0
    if dtype.name in ("uint8", "int8"):
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (0, 7) if dtype.name not in ("int4", "uint2", "int2") else (0, 1)


def _check_names(desc: NodeArg, sizes: Mapping[str, int]) -> None:
    symbols = {*desc.symbols, *(dim for dim in desc.shape if isinstance(dim, str))}
    for name in sizes:
        if name not in symbols:
            have = ", ".join(sorted(symbols)) or "none"
            raise InvalidArgument(f"the model has no dimension '{name}'; its symbolic dimensions are: {have}")


def rand(desc: NodeArg, seed: int | None = None, sizes: Mapping[str, int] | None = None) -> NDArray[Any]:
    """A random array for an input such as session.input(0). The size of a symbolic dimension comes from `sizes`, else
    from the defaults of the model, else it is 1. `sizes` may name dimensions that only other inputs of the model have.
    Equal seeds give equal arrays."""
    if not desc.type.startswith("tensor("):
        raise NotImplemented(f"cannot generate random values of type {desc.type}")
    _check_names(desc, sizes or {})
    known = {**desc.sizes, **(sizes or {})}
    shape = tuple(dim if isinstance(dim, int) else known.get(dim or "", 1) for dim in desc.shape)
    generator = np.random.default_rng(seed)
    dtype = desc.dtype
    if dtype.kind == "O":
        return np.full(shape, "hello", dtype)
    if dtype.kind in "iub" or dtype.name.startswith(("int", "uint")):
        least, greatest = _range(desc.name, dtype)
        return generator.integers(least, greatest, shape, endpoint=True).astype(dtype)
    values: NDArray[Any] = generator.random(shape)
    return (values + 1j * generator.random(shape) if dtype.kind == "c" else values).astype(dtype)
