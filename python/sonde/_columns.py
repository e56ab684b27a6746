# SPDX-License-Identifier: Apache-2.0
"""Columns of a batch as inputs of a model, and results as columns. Data frames have numbers, lists and arrays in cells,
and mostly float64; a number that the model would not get as it is in the batch is an error that says where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import InvalidArgument
from ._session import NodeArg


def _absent(cell: Any) -> bool:
    """No value, in Python's, Arrow's or pandas's way."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _nested(cell: Any) -> bool:
    """An array of arrays, as Arrow gives lists of lists."""
    return isinstance(cell, np.ndarray) and cell.dtype == object


def _cells(name: str, column: Any, arg: NodeArg) -> Any:
    """A column of objects: texts stay, arrays and lists become one array with a dimension more."""
    for row, cell in enumerate(column):
        if _absent(cell):
            raise InvalidArgument(f"row {row} of column '{name}' has no value")
    if not len(column) or isinstance(column[0], (str, bytes)):
        return column
    wanted = object if _is_text(arg) else None  # numpy's own texts end before trailing zeros
    try:
        cells = [np.asarray(cell.tolist() if _nested(cell) else cell, wanted) for cell in column]
        array = np.stack(cells)
    except ValueError:
        shapes = sorted({_shape(cell) for cell in column})[:4]
        raise InvalidArgument(
            f"the rows of column '{name}' have different shapes ({', '.join(shapes)}); make them equal in `pre`"
        ) from None
    except TypeError:
        raise InvalidArgument(
            f"the rows of column '{name}' have types that go into no common array; convert them in `pre`"
        ) from None
    _check_joined(name, column, array)
    return array


def _shape(cell: Any) -> str:
    try:
        return str(np.shape(cell))
    except ValueError:
        return "uneven"


def _check_joined(name: str, column: Any, array: Any) -> None:
    """Integers beside floats become float64, which has not all integers beyond 2^53."""
    if array.dtype.kind != "f" or not array.size:
        return
    with np.errstate(all="ignore"):
        large = (np.abs(array) >= 2.0**53).reshape(len(array), -1).any(axis=1)
    for row in np.flatnonzero(large):
        if isinstance(column[row], np.ndarray) and column[row].dtype.kind == "f":
            continue
        for number in np.asarray(column[row], object).ravel():
            if isinstance(number, (int, np.integer)) and int(number) != float(number):
                raise InvalidArgument(
                    f"column '{name}' has integers beside floats that do not fit float64: row {row} has {number}"
                )


# ---------------------------------------------------------------- types
def _is_text(arg: NodeArg) -> bool:
    return arg.type == "tensor(string)"


def _rank(dtype: np.dtype[Any]) -> int:
    """bool < integers < floats < complex: numbers become those of their own kind or of a wider one. -1: no numbers."""
    kind = re.match("bool|u?int|b?float|complex", dtype.name)
    return {"bool": 0, "uint": 1, "int": 1, "float": 2, "bfloat": 2, "complex": 3}[kind[0]] if kind else -1


def _misfit(name: str, array: Any, arg: NodeArg, lost: Any) -> InvalidArgument:
    place = np.unravel_index(int(np.argmax(lost)), np.shape(lost))
    where = f"row {place[0]} has {array[place]!s}" if place else f"it is {array}"
    return InvalidArgument(
        f"column '{name}' has numbers that do not fit {arg.dtype}, the type of input '{arg.name}': {where}"
    )


def _integers_lost(array: Any, dtype: np.dtype[Any]) -> Any:
    """Where integers do not fit integers of a type, or None if all do."""
    bits = int(re.sub("[a-z]", "", dtype.name))
    least, most = (0, 2**bits - 1) if dtype.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if least <= int(array.min()) and int(array.max()) <= most:
        return None
    own = np.iinfo(array.dtype)  # comparisons stay within the type of the array
    return (array < max(least, own.min)) | (array > min(most, own.max))


def _digits_lost(array: Any, dtype: np.dtype[Any]) -> Any:
    """Where integers are not exactly numbers of a type of floats, or None if all are.

    float64 has those that are an odd number below 2^53 times a power of two; (u & -u) is that power. Narrower types
    have those that come back from them."""
    exact = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24}.get(dtype.name, 2**53)
    low, high = int(array.min()), int(array.max())
    if -exact <= low and high <= exact:
        return None
    lost = np.zeros(array.shape, bool)
    if low < -(2**53) or high > 2**53:
        size = array.astype(np.uint64)
        size = np.where(array < 0, -size, size)
        lost |= (size >> np.uint64(53)) >= np.maximum(size & -size, np.uint64(1))
    if dtype.itemsize < 8:
        wide = array.astype(np.float64)
        lost |= wide.astype(dtype).astype(np.float64) != wide
    return lost


def _range_lost(array: Any, cast: Any) -> Any:
    """Where finite numbers became infinite, or None if none did. What is not finite stays so."""
    if np.isfinite(cast).all():
        return None
    return (np.isinf(cast) & ~np.isinf(array)) | (np.isnan(cast) & ~np.isnan(array))


def _texts(name: str, array: Any, arg: NodeArg) -> Any:
    """Texts only: the session would write numbers as texts."""
    if array.dtype.kind in "USTO":
        array = array.astype(object)
        kinds = {type(cell) for cell in array.ravel()}
        wrong = next((kind for kind in kinds if not issubclass(kind, (str, bytes))), None)
        if wrong is None:
            return array
        told = f"has a value of type {wrong.__name__}"
    else:
        told = f"is {array.dtype}"
    raise InvalidArgument(f"column '{name}' {told}, but input '{arg.name}' takes texts; convert it in `pre`")


def _cast(name: str, array: Any, arg: NodeArg) -> Any:
    """In the type of the input, if that loses no more than digits of floats: floats to floats within their range, whole
    numbers to those that are equal."""
    dtype = arg.dtype
    if not array.size:
        return array.astype(dtype)
    if _is_text(arg):
        return _texts(name, array, arg)
    if array.dtype == dtype:
        return array
    rank, wanted = _rank(array.dtype), _rank(dtype)
    if not 0 <= rank <= wanted or (wanted == 2 and dtype.itemsize == 1):  # floats of a byte have ranges of their own
        raise InvalidArgument(
            f"column '{name}' is {array.dtype}, but input '{arg.name}' takes {dtype}; convert it in `pre`"
        )
    if rank == 1 and array.dtype.kind not in "iu":
        array = array.astype(np.int8 if array.dtype.name.startswith("i") else np.uint8)  # of four bits
    lost = None
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        if rank == 1:
            part = np.dtype(f"float{dtype.itemsize * 4}") if wanted == 3 else dtype
            lost = _integers_lost(array, dtype) if wanted == 1 else _digits_lost(array, part)
        elif rank > 1:
            lost = _range_lost(array, cast)
    if lost is not None and lost.any():
        raise _misfit(name, array, arg, lost)
    return cast


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


def _hidden(column: Any) -> Any:
    """Which values are missing, where numpy would not tell: masked arrays have something else in their place, and
    pandas's own types of integers become floats. Its types of floats have NaN."""
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.getmaskarray(column)
    dtype = getattr(column, "dtype", None)
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "") in ("b", "i", "u") and hasattr(column, "isna"):
        return np.asarray(column.isna())
    return None


def _array(name: str, column: Any, arg: NodeArg) -> Any:
    """A column as an array, before its type is looked at."""
    if isinstance(column, (list, tuple)):
        array = objects(column)
    elif hasattr(column, "to_numpy") and hasattr(column, "ndim"):
        array = column.to_numpy()
    else:
        array = np.asarray(column)
    hidden = _hidden(column)
    if hidden is not None and hidden.any():
        raise InvalidArgument(f"row {np.argwhere(np.atleast_1d(hidden))[0][0]} of column '{name}' has no value")
    if array.dtype == object and array.ndim == 1:
        return _cells(name, array, arg)
    if array.dtype == object and not array.ndim and not isinstance(array.item(), (str, bytes)):
        raise InvalidArgument(
            f"column '{name}' is a value of type {type(column).__name__}, expected an array with a row for each sample"
        )
    return array


def objects(values: Sequence[Any]) -> Any:
    """A column of values as they are."""
    column = np.empty(len(values), object)
    column[:] = values
    return column


def column_rows(names: Sequence[str], columns: Sequence[Any], arg: NodeArg) -> Any:
    """The array for an input from its columns; several are put side by side."""
    arrays = []
    for name, column in zip(names, columns, strict=True):
        array = _array(name, column, arg)
        if not array.ndim and (arg.shape or len(names) > 1):
            raise InvalidArgument(
                f"column '{name}' is a single value, but input '{arg.name}' needs an array with a row for each sample"
            )
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


# ---------------------------------------------------------------- results
def table(what: str, given: Any) -> dict[str, Any]:
    """The columns that a function of the user or an engine gave, if that is what it is."""
    if not (isinstance(given, Mapping) or (hasattr(given, "keys") and hasattr(given, "__getitem__"))):
        raise InvalidArgument(f"{what} a value of type {type(given).__name__}, expected a dict of columns")
    return dict(given)


def frame_columns(frame: Any) -> dict[str, Any]:
    """The columns of a pandas data frame."""
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise InvalidArgument(f"the data frame has more than one column {name!r}; rename them")
    return {name: frame[name] for name in frame.columns}


def result_column(name: Any, value: Any) -> Any:
    """A column that `post` returned: an array or a pandas series. Lists become arrays."""
    if not isinstance(name, str):
        raise InvalidArgument(f"`post` returned a column with the name {name!r}, but names of columns are texts")
    if isinstance(value, (list, tuple)):
        try:
            array = np.asarray(value)
        except ValueError:  # of different lengths
            return objects(value)
        _check_joined(name, value, array)
        return array if array.dtype.kind in "biufc" else objects(value)
    kind = type(value).__name__
    series = hasattr(value, "to_numpy") and getattr(value, "ndim", 0) == 1
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray) and not series:
        value = np.asarray(value)
    if not hasattr(value, "__array__") or not value.ndim:
        raise InvalidArgument(
            f"`post` returned a single value ({kind}) for column '{name}', expected an array with a row for each sample"
        )
    return value


def _count(name: str, column: Any) -> int:
    shape = getattr(column, "shape", None)
    if shape == () or isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
        raise InvalidArgument(f"column '{name}' is a single value, expected an array with a row for each sample")
    return int(shape[0]) if shape is not None else len(column)


def check_rows(columns: Mapping[str, Any], rows: int | None, kept: Mapping[str, Any], maker: str) -> None:
    """All columns of a result have equally many rows, and so many if that is given. maker: says what made those that
    are not kept."""
    counts = {name: _count(name, column) for name, column in columns.items()}
    for name, count in counts.items():
        if rows is not None and count != rows:
            made = "the batch has" if name in kept else maker
            raise InvalidArgument(f"{made} {count} rows in column '{name}' for {rows} rows of the batch")
    if len(set(counts.values())) > 1:
        told = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
        raise InvalidArgument(f"the columns of a result need equal numbers of rows: {told}")
