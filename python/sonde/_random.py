# SPDX-License-Identifier: Apache-2.0
"""Random inputs for a model, as `sonde run` makes them: numbers around 0, valid indices, masks of ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._errors import NotImplemented

if TYPE_CHECKING:
    from ._session import NodeArg


def rand(desc: NodeArg, seed: int | None = None, sizes: Mapping[str, int] | None = None) -> NDArray[Any]:
    """An array for an input such as session.input(0). Free dimensions are 1 unless `sizes` names them; equal seeds
    give equal arrays."""
    if not desc.type.startswith("tensor("):
        raise NotImplemented(f"random values of type {desc.type}")
    known = sizes or {}
    shape = tuple(dim if isinstance(dim, int) else known.get(dim or "", 1) for dim in desc.shape)
    generator = np.random.default_rng(seed)
    dtype = desc.dtype
    if dtype.kind == "O":
        array = np.empty(shape, dtype)
        array[...] = "text"
        return array
    if dtype.kind == "b" or (dtype.kind in "iu" and "mask" in desc.name.lower()):
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return generator.integers(0, 2, shape).astype(dtype)
    values = generator.standard_normal(shape)
    return (values + 1j * generator.standard_normal(shape) if dtype.kind == "c" else values).astype(dtype)
