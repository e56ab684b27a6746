# SPDX-License-Identifier: Apache-2.0
"""Columns of a batch as inputs of a model: data frames have numbers, lists and arrays in cells, and mostly float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import InvalidArgument
from ._session import NodeArg


def _cells(name: str, array: Any) -> Any:
    """A column of objects: texts stay, arrays and lists become one array with a dimension more."""
    if not len(array) or isinstance(array[0], (str, bytes)):
        return array
    for row, cell in enumerate(array):
        if cell is None:
            raise InvalidArgument(f"row {row} of column '{name}' has no value")
    try:
        return np.stack([np.asarray(cell.tolist() if _nested(cell) else cell) for cell in array])
    except ValueError:
        shapes = sorted({str(np.shape(cell)) for cell in array})[:4]
        raise InvalidArgument(
            f"the rows of column '{name}' have different shapes ({', '.join(shapes)}); make them equal in `pre`"
        ) from None


def _nested(cell: Any) -> bool:
    """An array of arrays, as Arrow gives lists of lists."""
    return isinstance(cell, np.ndarray) and cell.dtype == object


def _cast(name: str, array: Any, arg: NodeArg) -> Any:
    """In the type of the input, if that loses no more than digits: floats to floats, whole numbers to whole numbers
    that fit."""
    dtype = arg.dtype
    if array.dtype == dtype:
        return array
    if dtype == np.dtype(object):
        return array.astype(object)
    if not len(array):
        return array.astype(dtype)
    if np.can_cast(array.dtype, dtype, "same_kind"):
        with np.errstate(over="ignore"):
            cast = array.astype(dtype)
        if dtype.kind not in "iu" or np.array_equal(cast, array):
            return cast
        raise InvalidArgument(f"column '{name}' has numbers that do not fit {dtype}, the type of input '{arg.name}'")
    if dtype.kind in "iu" and array.dtype.kind in "iu":
        cast = array.astype(dtype)
        if np.array_equal(cast, array):
            return cast
        raise InvalidArgument(f"column '{name}' has numbers that do not fit {dtype}, the type of input '{arg.name}'")
    raise InvalidArgument(
        f"column '{name}' is {array.dtype}, but input '{arg.name}' takes {dtype}; convert it in `pre`"
    )


def _fixed(dims: Sequence[Any]) -> bool:
    return all(isinstance(dim, int) for dim in dims)


def _shaped(array: Any, arg: NodeArg) -> Any:
    """With the dimensions of the input behind the rows, if those are known: cells may be flat."""
    dims = arg.shape[1:]
    if array.ndim == 0 or not arg.shape or list(array.shape[1:]) == dims or not _fixed(dims):
        return array
    size = int(np.prod([int(dim) for dim in dims if isinstance(dim, int)], dtype=np.int64))
    if not len(array) or array.size == len(array) * size:
        return array.reshape(len(array), *dims)
    return array


def column_rows(names: Sequence[str], columns: Sequence[Any], arg: NodeArg) -> Any:
    """The array for an input from its columns; several are put side by side."""
    arrays = []
    for name, column in zip(names, columns, strict=True):
        array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        if array.dtype == object and array.ndim == 1:
            array = _cells(name, array)
        arrays.append(_cast(name, array, arg))
    if len(arrays) == 1:
        return _shaped(arrays[0], arg)
    if len({len(array) for array in arrays}) > 1:
        raise InvalidArgument(f"the columns {', '.join(map(repr, names))} have different numbers of rows")
    flat = [array.reshape(len(array), -1) if array.size else array.reshape(len(array), 1) for array in arrays]
    return _shaped(np.concatenate(flat, axis=1), arg)


def fit(arg: NodeArg, array: Any, begin: int, count: int, piece: int) -> Any:
    """`piece` rows from `begin` on. Where there are only `count`, the last one is repeated, or zeros take their place
    if there is none: a model may have a fixed number of rows, and of an empty batch only the shapes of results are
    wanted."""
    if not array.ndim:
        return array
    rows = array[begin : begin + count]
    if count == piece:
        return rows
    if count > 0:
        return np.concatenate([rows, np.repeat(rows[-1:], piece - count, axis=0)])
    dims = array.shape[1:]
    if array.ndim == 1 and arg.shape and len(arg.shape) > 1:  # empty cells have no shape
        dims = tuple(dim if isinstance(dim, int) else 1 for dim in arg.shape[1:])
    if arg.dtype == np.dtype(object):
        return np.full((piece, *dims), "", object)
    return np.zeros((piece, *dims), arg.dtype)
