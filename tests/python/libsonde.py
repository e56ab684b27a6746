# SPDX-License-Identifier: Apache-2.0
"""libsonde.so in this process, through ctypes and the public C API only: enough to load a model from
memory and run it on numpy arrays. SONDE_LIBRARY names the library."""

import ctypes as c
import os

import ml_dtypes
import numpy as np

NUMPY_OF = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
            9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64,
            15: np.complex128, 16: ml_dtypes.bfloat16, 17: ml_dtypes.float8_e4m3fn,
            18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e5m2fnuz,
            21: ml_dtypes.uint4, 22: ml_dtypes.int4}
NUMPY_OF = {number: np.dtype(d) for number, d in NUMPY_OF.items()}
NUMBER_OF = {d: number for number, d in NUMPY_OF.items()}
STRING = 8
TENSOR, SEQUENCE, OPTIONAL = 1, 2, 3


class Failure(Exception):
    """A call that did not return SONDE_OK."""


class _Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 1020)]


class _ContextOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("threads", c.c_int), ("cpu", c.c_char_p), ("max_memory", c.c_size_t),
                ("log", c.c_void_p), ("log_user", c.c_void_p), ("log_level", c.c_int), ("alloc", c.c_void_p),
                ("free", c.c_void_p), ("alloc_user", c.c_void_p)]


class _SessionOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("no_optimize", c.c_int), ("disabled_passes", c.POINTER(c.c_char_p)),
                ("disabled_pass_count", c.c_size_t), ("no_prepack", c.c_int), ("threads", c.c_int),
                ("plan_only", c.c_int)]


class _String(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t)]


P, SIZE = c.c_void_p, c.c_size_t
SIGNATURES = {
    "sonde_context_create": (c.c_int, [P, P, P]),
    "sonde_context_release": (None, [P]),
    "sonde_tensor_create": (c.c_int, [P, c.c_int, P, SIZE, P, SIZE, P, P]),
    "sonde_tensor_borrow": (c.c_int, [P, c.c_int, P, SIZE, P, SIZE, P, P]),
    "sonde_tensor_create_strings": (c.c_int, [P, P, SIZE, P, P, P]),
    "sonde_sequence_create": (c.c_int, [P, P, SIZE, P, P]),
    "sonde_value_release": (None, [P]),
    "sonde_value_kind": (c.c_int, [P]),
    "sonde_tensor_dtype": (c.c_int, [P]),
    "sonde_tensor_rank": (SIZE, [P]),
    "sonde_tensor_dims": (c.POINTER(c.c_int64), [P]),
    "sonde_tensor_bytes": (SIZE, [P]),
    "sonde_tensor_data": (P, [P]),
    "sonde_value_count": (SIZE, [P]),
    "sonde_value_item": (c.c_int, [P, SIZE, P, P]),
    "sonde_model_load_memory": (c.c_int, [P, c.c_char_p, SIZE, P, P, P]),
    "sonde_model_release": (None, [P]),
    "sonde_session_create": (c.c_int, [P, P, P, P]),
    "sonde_session_release": (None, [P]),
    "sonde_session_output_count": (SIZE, [P]),
    "sonde_session_run": (c.c_int, [P, P, P, P, SIZE, P, P, SIZE, P]),
    "sonde_session_partial_run": (c.c_int, [P, P, P, P, SIZE, P, P]),
    "sonde_value_set_count": (SIZE, [P]),
    "sonde_value_set_name": (c.c_char_p, [P, SIZE]),
    "sonde_value_set_value": (P, [P, SIZE]),
    "sonde_value_set_release": (None, [P]),
    "sonde_pass_name": (c.c_char_p, [SIZE]),
}


def _load(path):
    library = c.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


LIB = _load(os.environ["SONDE_LIBRARY"])


def _call(name, *arguments):
    """Calls a function whose last parameter is the error; raises what it says."""
    error = _Error()
    if getattr(LIB, name)(*arguments, c.byref(error)):
        raise Failure(error.message.decode("utf-8", "replace"))


def pass_names():
    names = []
    while name := LIB.sonde_pass_name(len(names)):
        names.append(name.decode())
    return names


def _texts(names):
    return (c.c_char_p * max(1, len(names)))(*[n.encode() for n in names])


def _dims(shape):
    return (c.c_int64 * max(1, len(shape)))(*shape)


class Context:
    def __init__(self, threads=1, cpu=None):
        options = _ContextOptions(struct_size=c.sizeof(_ContextOptions), threads=threads,
                                  cpu=cpu.encode() if cpu else None)
        self.ptr = P()
        _call("sonde_context_create", c.byref(options), c.byref(self.ptr))

    def value(self, item):
        """A new sonde_value of an array, or of a list of them."""
        out = P()
        if isinstance(item, (list, tuple)):
            parts = [self.value(i) for i in item]
            array = (P * max(1, len(parts)))(*parts)
            try:
                _call("sonde_sequence_create", self.ptr, array, len(parts), c.byref(out))
            finally:
                for part in parts:
                    LIB.sonde_value_release(part)
            return out
        item = np.asarray(item)
        if item.dtype.kind in "OUS":
            texts = [str(s).encode() for s in item.ravel()]
            strings = (_String * max(1, len(texts)))()
            keep = [c.create_string_buffer(t, len(t) + 1) for t in texts]
            for i, (t, k) in enumerate(zip(texts, keep)):
                strings[i] = _String(c.cast(k, P), len(t))
            _call("sonde_tensor_create_strings", self.ptr, _dims(item.shape), item.ndim, strings, c.byref(out))
            return out
        number = NUMBER_OF[item.dtype]
        item = np.ascontiguousarray(whole_bytes(item)).reshape(item.shape)
        _call("sonde_tensor_create", self.ptr, number, _dims(item.shape), item.ndim,
              item.ctypes.data, item.nbytes, c.byref(out))
        return out

    def borrow(self, array):
        out = P()
        _call("sonde_tensor_borrow", self.ptr, NUMBER_OF[array.dtype], _dims(array.shape), array.ndim,
              array.ctypes.data, array.nbytes, c.byref(out))
        return out


def whole_bytes(item):
    """Elements of 4 bits as sonde has them, in a byte each: ml_dtypes leaves the upper bits open."""
    return item.astype({"uint4": np.uint8, "int4": np.int8}[item.dtype.name]) if item.dtype.name in ("uint4", "int4") \
        else item


def to_python(value):
    """Array of a tensor, list of a sequence; an optional is its element or None."""
    kind = LIB.sonde_value_kind(value)
    if kind != TENSOR:
        items = []
        for i in range(LIB.sonde_value_count(value)):
            item = P()
            _call("sonde_value_item", value, i, c.byref(item))
            items.append(to_python(item))
            LIB.sonde_value_release(item)
        return items if kind == SEQUENCE else (items[0] if items else None)
    rank, dims = LIB.sonde_tensor_rank(value), LIB.sonde_tensor_dims(value)
    shape = tuple(dims[i] for i in range(rank))
    number, data, size = (LIB.sonde_tensor_dtype(value), LIB.sonde_tensor_data(value), LIB.sonde_tensor_bytes(value))
    if number == STRING:
        count = int(np.prod(shape, dtype=np.int64))
        array = np.empty(count, object)
        if count:
            strings = c.cast(data, c.POINTER(_String))
            for i in range(count):
                array[i] = c.string_at(strings[i].data, strings[i].size).decode() if strings[i].size else ""
        return array.reshape(shape)
    raw = c.string_at(data, size) if size else b""
    return np.frombuffer(raw, NUMPY_OF[number]).reshape(shape)


class Session:
    """A model made ready to run; `run` may be called again with other shapes."""

    def __init__(self, context, model, without=(), **options):
        """`without`: names of passes to leave out."""
        self.context, self.ptr = context, P()
        loaded = P()
        _call("sonde_model_load_memory", context.ptr, model, len(model), None, c.byref(loaded))
        wanted = _SessionOptions(struct_size=c.sizeof(_SessionOptions), disabled_passes=_texts(without),
                                 disabled_pass_count=len(without), **options)
        try:
            _call("sonde_session_create", loaded, c.byref(wanted), c.byref(self.ptr))
        finally:
            LIB.sonde_model_release(loaded)

    def run(self, feeds, buffers=None, wanted=None):
        """The graph's outputs in order, or the values named in `wanted`. Feeds may name inner values.
        `buffers`: an array or None per output, to be written to."""
        count = LIB.sonde_session_output_count(self.ptr) if wanted is None else len(wanted)
        outputs = (P * max(1, count))()
        names, inputs = _texts(feeds), (P * max(1, len(feeds)))()
        try:
            for i, item in enumerate(feeds.values()):
                inputs[i] = self.context.value(item)
            for i, array in enumerate(buffers or []):
                if array is not None:
                    outputs[i] = self.context.borrow(array)
            _call("sonde_session_run", self.ptr, None, names, inputs, len(feeds),
                  None if wanted is None else _texts(wanted), outputs, count)
            return [to_python(outputs[i]) for i in range(count)]
        finally:
            for v in [*inputs, *outputs]:
                LIB.sonde_value_release(v)

    def partial_run(self, feeds):
        """{name: value} of what the rest of the model needs beside the missing inputs."""
        made, inputs = P(), (P * max(1, len(feeds)))()
        try:
            for i, item in enumerate(feeds.values()):
                inputs[i] = self.context.value(item)
            _call("sonde_session_partial_run", self.ptr, None, _texts(feeds), inputs, len(feeds), c.byref(made))
            return {LIB.sonde_value_set_name(made, i).decode(): to_python(LIB.sonde_value_set_value(made, i))
                    for i in range(LIB.sonde_value_set_count(made))}
        finally:
            LIB.sonde_value_set_release(made)
            for v in inputs:
                LIB.sonde_value_release(v)

    def close(self):
        LIB.sonde_session_release(self.ptr)
        self.ptr = P()
