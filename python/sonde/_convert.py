# SPDX-License-Identifier: Apache-2.0
"""Conversion of Python objects to values and back, for the less common cases: the extension itself handles contiguous
arrays of the usual dtypes and calls this module for everything else."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _sonde
from ._errors import InvalidArgument, NotImplemented
from ._sonde import OrtValue

# ONNX's names of element types, by ONNX's numbers.
ONNX_NAMES = [
    "undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double",
    "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2",
]  # fmt: skip
NUMBERS = {name: number for number, name in enumerate(ONNX_NAMES)}
STRING = NUMBERS["string"]
# Types that numpy lacks, by their names in ml_dtypes.
SMALL = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "uint4": "uint4", "int4": "int4",
    "float4e2m1": "float4_e2m1fn", "float8e8m0": "float8_e8m0fnu", "uint2": "uint2", "int2": "int2",
}  # fmt: skip
SUB_BYTE = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2}  # bits
_NUMPY = {"float": np.float32, "double": np.float64}


def numpy_dtype(number: int) -> np.dtype[Any]:
    """numpy's type for ONNX's number; ml_dtypes has those that numpy lacks."""
    name = ONNX_NAMES[number] if 0 < number < len(ONNX_NAMES) else "undefined"
    if name == "undefined":
        raise InvalidArgument(f"{number} is not an element type")
    if name == "string":
        return np.dtype(object)
    if name not in SMALL:
        return np.dtype(_NUMPY.get(name, name))
    try:
        import ml_dtypes
    except ImportError:
        raise NotImplemented(f"arrays of {name} need the package ml_dtypes: pip install ml_dtypes") from None
    if not hasattr(ml_dtypes, SMALL[name]):
        raise NotImplemented(f"arrays of {name} need a newer version of the package ml_dtypes")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, SMALL[name]))
    return dtype


def number_of(dtype: np.dtype[Any]) -> int:
    """ONNX's number for numpy's type."""
    if dtype.kind in "OUST":
        return STRING
    name = {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)
    if name in NUMBERS:
        return NUMBERS[name]
    for onnx_name, small in SMALL.items():
        if dtype.name == small:
            return NUMBERS[onnx_name]
    raise InvalidArgument(f"arrays of {dtype} have no corresponding ONNX dtype")


def element_number(element_type: Any) -> int:
    """The same for whatever names a type: ONNX's number, a numpy type, "tensor(float)"."""
    if isinstance(element_type, str) and element_type.startswith("tensor("):
        return NUMBERS[element_type[7:-1]]
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        if not 0 < element_type < len(ONNX_NAMES):
            raise InvalidArgument(f"{element_type} is not an element type")
        return int(element_type)
    return number_of(np.dtype(element_type))


def parse_type(text: str) -> tuple[str, str]:
    """What "seq(tensor(float))" is of what: ("seq", "tensor(float)")."""
    match = re.fullmatch(r"(\w+)\((.*)\)", text)
    return (match[1], match[2]) if match else ("", "")


# ---------------------------------------------------------------- in
def tensor(array: NDArray[Any], number: int | None = None) -> OrtValue:
    """A value over an array's memory, or over a copy where that does not lie as it must."""
    number = number_of(array.dtype) if number is None else number
    shape = array.shape
    if number == STRING:
        return _sonde.string_tensor(shape, [_encode(text) for text in array.ravel().tolist()])
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    array = np.require(array, requirements=["C", "A"])
    # Buffers cannot name every type: the bytes are handed over, with our number.
    data = array.reshape(-1).view(np.uint8)
    return _sonde.tensor(number, shape, _sub_byte(data, number) if ONNX_NAMES[number] in SUB_BYTE else data)


def _sub_byte(data: NDArray[np.uint8], number: int) -> NDArray[np.uint8]:
    """Elements of less than a byte have one each, whose upper bits ml_dtypes leaves open: here they are the sign."""
    name = ONNX_NAMES[number]
    spare = np.uint8(8 - SUB_BYTE[name])
    if name.startswith("int"):
        return ((data << spare).view(np.int8) >> spare.view(np.int8)).view(np.uint8)
    return (data << spare) >> spare


def _encode(text: Any) -> bytes:
    if isinstance(text, bytes):
        return text
    return (text if isinstance(text, str) else str(text)).encode("utf-8", "surrogateescape")


def _as_array(obj: Any, number: int | None, name: str) -> NDArray[Any]:
    """An array of lists and numbers, of the type that the input takes. Arrays keep their own type."""
    if isinstance(obj, (np.ndarray, np.generic)) or hasattr(obj, "__array__"):
        return np.asarray(obj)
    wanted = None if number is None else numpy_dtype(number)
    try:
        array = np.asarray(obj, dtype=wanted)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        reason = str(error) or "it does not fit into memory"
        raise InvalidArgument(f"input '{name}' cannot be converted to an array of {wanted}: {reason}") from None
    if array.dtype.kind == "O" and number != STRING:
        raise InvalidArgument(f"input '{name}' cannot be converted to an array: it is {type(obj).__name__}")
    return array


def to_value(obj: Any, onnx_type: str | None, name: str | None) -> OrtValue:
    """A value for an input of that type; anything that can be fed."""
    name = name or "?"
    kind, inner = parse_type(onnx_type or "")
    if isinstance(obj, OrtValue):
        return obj
    if isinstance(getattr(obj, "_ortvalue", None), OrtValue):
        return obj._ortvalue  # type: ignore[no-any-return]
    if kind == "optional":
        if obj is None:
            return _sonde.optional(None)
        return _sonde.optional(to_value(obj, inner, name))
    if kind == "seq":
        if isinstance(obj, (str, bytes, Mapping)) or not hasattr(obj, "__iter__"):
            raise InvalidArgument(f"input '{name}' takes a list, not {type(obj).__name__}")
        return _sonde.sequence([to_value(item, inner, name) for item in obj])
    if kind == "map":
        return _map(obj, inner, name)
    if obj is None:
        raise InvalidArgument(f"input '{name}' was fed None")
    if onnx_type is None and isinstance(obj, (list, tuple)) and obj and all(
        isinstance(item, (np.ndarray, OrtValue)) for item in obj
    ):
        return _sonde.sequence([to_value(item, None, name) for item in obj])
    if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__"):
        return OrtValue.from_dlpack(obj.detach() if hasattr(obj, "detach") else obj)
    number = NUMBERS.get(inner) if kind == "tensor" else None
    return tensor(_as_array(obj, number, name))


def _map(obj: Any, inner: str, name: str) -> OrtValue:
    key, _, value = inner.partition(",")
    if not isinstance(obj, Mapping):
        raise InvalidArgument(f"input '{name}' takes a dict, not {type(obj).__name__}")
    keys = _as_array(list(obj.keys()), NUMBERS.get(key), name)
    values = _as_array(list(obj.values()), NUMBERS.get(parse_type(value)[1]), name)
    return _sonde.map(tensor(keys), tensor(values))


def as_value(obj: Any, onnx_type: str | None, name: str) -> OrtValue:
    """to_value, for what may also be a plain array."""
    if isinstance(obj, np.ndarray) and parse_type(onnx_type or "tensor()")[0] == "tensor":
        return OrtValue.ortvalue_from_numpy(obj)
    return to_value(obj, onnx_type, name)


def with_onnx_type(data: NDArray[Any], number: int) -> OrtValue:
    """The bits of an array as elements of that type: uint16 as bfloat16, uint8 as float8 …"""
    wanted = element_number(number)
    if wanted == STRING or data.dtype.itemsize != _sonde.dtype_bytes(wanted):
        raise InvalidArgument(f"elements of {data.dtype} cannot be read as {ONNX_NAMES[wanted]}")
    return tensor(data, wanted)


def empty(shape: Sequence[int], element_type: Any) -> OrtValue:
    """A tensor with memory of its own; its elements are 0."""
    return _sonde.zeros(element_number(element_type), tuple(int(dim) for dim in shape))


# ---------------------------------------------------------------- out
def strings(shape: tuple[int, ...], texts: list[str]) -> NDArray[Any]:
    """An array of str objects."""
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def mapping(keys: NDArray[Any], values: NDArray[Any]) -> dict[Any, Any]:
    """The dict of a map's two tensors."""
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


def as_array(value: Any, dtype: Any, copy: bool | None) -> NDArray[Any]:
    """What OrtValue.__array__ is asked for beyond the plain array."""
    array: NDArray[Any] = np.asarray(value)
    wanted: np.dtype[Any] = array.dtype if dtype is None else np.dtype(dtype)
    if wanted == array.dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ValueError(f"an array of {wanted} needs a copy")
    return array.astype(wanted)


_sonde.set_convert(sys.modules[__name__])
