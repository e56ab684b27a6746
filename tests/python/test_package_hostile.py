# SPDX-License-Identifier: Apache-2.0
"""Whatever is handed to the package sonde, an exception is the worst that happens: objects that lie or change while
they are read, feeds and sessions that other threads change during a run, forks, wrong types everywhere."""

import ctypes
import gc
import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import small_models
from patience import PATIENCE
import sonde


X = np.arange(8, dtype=np.float32).reshape(2, 4)
Y = np.full(4, 10, np.float32)
INT64 = TensorProto.INT64


@pytest.fixture(scope="module")
def session():
    return sonde.InferenceSession(small_models.add())


def deep():
    """n = -x, y = -n: inner values can be fed."""
    return sonde.InferenceSession(small_models.model(
        [("Neg", ["x"], ["n"]), ("Neg", ["n"], ["y"])], [small_models.value("x", shape=["N"])],
        [small_models.value("y", shape=["N"])]))


# ---------------------------------------------------------------- objects that lie
def with_array(answer):
    class Lies:
        def __array__(self, dtype=None, copy=None):
            return answer() if callable(answer) else answer

    return Lies()


def with_dlpack(answer):
    class Lies:
        def __dlpack__(self, **_):
            return answer() if callable(answer) else answer

        def __dlpack_device__(self):
            return (1, 0)

    return Lies()


def fails():
    raise OSError("no")


class Unhelpful:
    """Every question is answered with an exception."""

    def __getattr__(self, name):
        raise OSError(name)

    __len__ = __iter__ = __getitem__ = __float__ = __index__ = __bool__ = __eq__ = __hash__ = fails


class Endless:
    def __len__(self):
        return 1 << 60

    def __getitem__(self, i):
        return self


def endless_list():
    inner = []
    inner.append(inner)
    return inner


LIES = {
    "array that is none": with_array(3), "array that is None": with_array(None), "array that fails": with_array(fails),
    "array of objects": with_array(np.array([object()] * 4)), "array of dates": with_array(np.zeros(4, "M8[s]")),
    "array of records": np.zeros((2, 4), [("a", np.float32), ("b", np.int8)]), "array of nothing": np.zeros(3, "V0"),
    "long doubles": np.zeros((2, 4), np.longdouble), "capsule that is none": with_dlpack(3),
    "capsule of something else": with_dlpack(lambda: sys.modules["datetime"].datetime_CAPI),
    "capsule that fails": with_dlpack(fails), "unhelpful": Unhelpful(), "endless": Endless(), "itself": endless_list(),
    "a type": np.ndarray, "a module": np, "a function": fails, "a generator": (i for i in range(3)), "a set": {1.0},
    "a dict": {"x": X}, "Ellipsis": ..., "bytes": b"abc", "bytearray": bytearray(32), "complex": 3j, "huge int": 10**400,
    "surrogates": "\ud800", "zero byte": "\0", "an exception": OSError, "float64": X.astype(float), "rank 0": np.float32(1),
    "rank 31": np.zeros((1,) * 31, np.float32), "rank 64": np.zeros((1,) * 64, np.float32),
    "big endian": X.astype(">f4")[0], "ctypes": (ctypes.c_double * 4)(), "a struct": type("S", (ctypes.Structure,), {
        "_fields_": [("a", ctypes.c_float)]})(), "closed file": open(os.devnull, "rb"),
    "masked": np.ma.zeros((3, 3), np.float32),
    "released view": memoryview(X)[:0],
}
LIES["closed file"].close()
LIES["released view"].release()


@pytest.mark.parametrize("lie", LIES)
def test_what_cannot_be_fed_raises(session, lie):
    for feed in ({"x": LIES[lie], "y": Y}, {"x": X, "y": Y, "z": LIES[lie]}):
        with pytest.raises(Exception) as caught:  # noqa: B017
            session.run(None, feed)
        assert str(caught.value) and not isinstance(caught.value, (SystemError, MemoryError))
    for ask in (lambda: session.partial_run({"x": LIES[lie]}), lambda: session.run_with_ort_values(None, {"x": LIES[lie], "y": Y}),
                lambda: session.io_binding().bind_ortvalue_output("z", LIES[lie]) or session.run(None, LIES[lie])):
        with pytest.raises(Exception) as caught:  # noqa: B017
            ask()
        assert not isinstance(caught.value, (SystemError, MemoryError))
    assert np.array_equal(session.run(None, {"x": X, "y": Y})[0], X + Y)


WRONG = [None, 3, -1, "x", b"x", 1.5, [], {}, (), object(), [None], {1: 2}, {"x": None}, X, Unhelpful(), 1 << 70, "\0", "\ud800"]


def places():
    """Every function that users meet, with one argument left open."""
    made = sonde.InferenceSession(small_models.add())
    value, options, run_options = sonde.OrtValue.ortvalue_from_numpy(X), sonde.SessionOptions(), sonde.RunOptions()
    feed = {"x": X, "y": Y}
    yield lambda w: sonde.InferenceSession(w)
    yield lambda w: sonde.InferenceSession(small_models.add(), w)
    yield lambda w: sonde.InferenceSession(small_models.add(), None, w)
    yield lambda w: sonde.InferenceSession(small_models.add(), None, ["CPUExecutionProvider"], w)
    yield lambda w: made.run(w, feed)
    yield lambda w: made.run([w], feed)
    yield lambda w: made.run(None, w)
    yield lambda w: made.run(None, feed, w)
    yield lambda w: made.run(None, feed | {"x": w})
    yield lambda w: made.run(None, {"x": X, "y": Y, w: X})
    yield lambda w: made.partial_run(w)
    yield lambda w: made.partial_run({"x": w})
    yield lambda w: made.partial_run({"x": X}, w)
    yield lambda w: made.run_async(None, feed, w, None)
    yield lambda w: made.run_with_ort_values(w, {"x": value, "y": value})
    yield lambda w: made.run_with_ort_values(None, w)
    yield lambda w: made.run_with_iobinding(w)
    yield lambda w: made.io_binding().bind_cpu_input(w, X)
    yield lambda w: made.io_binding().bind_cpu_input("x", w)
    yield lambda w: made.io_binding().bind_output(w)
    yield lambda w: made.io_binding().bind_output("z", "cpu", 0, w, (2, 4), X.ctypes.data)
    yield lambda w: made.io_binding().bind_output("z", "cpu", 0, np.float32, w, X.ctypes.data)
    yield lambda w: made.io_binding().bind_ortvalue_input("x", w)
    yield lambda w: made.input(w)
    yield lambda w: sonde.OrtValue.ortvalue_from_numpy(w)
    yield lambda w: sonde.OrtValue.ortvalue_from_numpy(X, w)
    yield lambda w: sonde.OrtValue.ortvalue_from_numpy_with_onnx_type(w, 1)
    yield lambda w: sonde.OrtValue.ortvalue_from_numpy_with_onnx_type(X, w)
    yield lambda w: sonde.OrtValue.ortvalue_from_shape_and_type(w, np.float32)
    yield lambda w: sonde.OrtValue.ortvalue_from_shape_and_type([2], w)
    yield lambda w: sonde.OrtValue.from_dlpack(w)
    yield lambda w: value.update_inplace(w)
    yield lambda w: value.__dlpack__(max_version=w)
    yield lambda w: value.__dlpack__(dl_device=w)
    yield lambda w: value.__array__(w)
    yield lambda w: sonde._sonde.tensor(w, (1,), X)
    yield lambda w: sonde._sonde.tensor(1, w, X)
    yield lambda w: sonde._sonde.tensor(1, (8,), w)
    yield lambda w: sonde._sonde.zeros(1, (w,))
    yield lambda w: sonde._sonde.string_tensor((1,), [w])
    yield lambda w: sonde._sonde.sequence([w])
    yield lambda w: sonde._sonde.map(w, w)
    yield lambda w: options.add_session_config_entry(w, "1")
    yield lambda w: options.add_free_dimension_override_by_name(w, 3)
    yield lambda w: options.add_free_dimension_override_by_name("N", w)
    yield lambda w: setattr(run_options, "timing_filter", w)
    yield lambda w: setattr(run_options, "terminate", w)
    yield lambda w: setattr(run_options, "log_severity_level", w)
    yield lambda w: run_options.add_run_config_entry(w, w)
    yield lambda w: run_options.get_run_config_entry(w)


def profiler_places():
    """The same of what measures and records."""
    made = sonde.InferenceSession(small_models.add())
    feed = {"x": X, "y": Y}
    with sonde.profile() as profiler:
        made.run(None, feed)

    def profiled(**options):
        with sonde.profile(**options):
            made.run(None, feed)

    def recorded(*arguments):
        with sonde.record(*arguments):
            made.run(None, feed)

    yield lambda w: profiled(file=w)
    yield lambda w: profiled(format=w)
    yield lambda w: profiled(level=w)
    yield lambda w: profiled(categories=w)
    yield recorded
    yield lambda w: recorded("label", w)
    yield lambda w: profiler.rows(w)
    yield lambda w: profiler.report(w)
    yield lambda w: profiler.table(sort=w)
    yield lambda w: profiler.table(filter_op=w)
    yield lambda w: profiler.table(width=w)
    yield lambda w: profiler.to_bytes(w)
    yield lambda w: profiler.to_bytes(".json", w)
    yield lambda w: profiler.export(w)
    yield lambda w: profiler.export("x.json", format=w)
    yield lambda w: profiler.print_summary(file=w)
    yield lambda w: sonde.load_profile(w)
    yield lambda w: sonde.profile_op(w, [(2, 2)])
    yield lambda w: sonde.profile_op("Relu", w, exec=1, warmup=0)
    yield lambda w: sonde.profile_op("Relu", [w], exec=1, warmup=0)
    yield lambda w: sonde.profile_op("LeakyRelu", [(2, 2)], {"alpha": w}, exec=1, warmup=0)
    yield lambda w: sonde.profile_op("Relu", [(2, 2)], w, exec=1, warmup=0)
    yield lambda w: sonde.memory_profiler.get_max_memory_info(w)
    yield lambda w: sonde.bench(w, iterations=1)
    yield lambda w: sonde.bench(made, w, iterations=1)
    yield lambda w: sonde.bench(made, feed, iterations=1, warmup=w if isinstance(w, str) else 0)
    yield lambda w: sonde.rand(w)
    yield lambda w: made.random_inputs(1, w)


def test_wrong_types_raise_or_do_no_harm(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    for number, place in enumerate(itertools.chain(places(), profiler_places())):
        for wrong in WRONG:
            try:
                place(wrong)
            except (SystemError, MemoryError) as error:
                raise AssertionError(f"place {number}, {wrong!r}") from error
            except Exception:
                continue


def test_options_of_the_wrong_type_are_refused_when_a_session_is_made():
    for name, wrong in itertools.product(["intra_op_num_threads", "graph_optimization_level", "optimized_model_filepath"],
                                         ["x", object(), [1], 1 << 70, -5]):
        options = sonde.SessionOptions()
        try:
            setattr(options, name, wrong)
            sonde.InferenceSession(small_models.add(), options)
        except (SystemError, MemoryError):
            raise
        except Exception:
            continue


def test_a_session_that_was_never_opened_says_so():
    bare = sonde.InferenceSession.__new__(sonde.InferenceSession)
    with pytest.raises(sonde.Error, match="never opened"):
        bare.run(None, {"x": X})
    with pytest.raises(sonde.Error, match="never opened"):
        bare._partial_run({}, None)
    sonde._sonde.Session.close(bare)
    repr(bare)


# ---------------------------------------------------------------- things that change while they are read
def test_a_feed_that_grows_while_it_is_read_is_noticed():
    ours = deep()
    feed = {}

    class Grows:
        def __array__(self, dtype=None, copy=None):
            feed.update({f"more{i}": np.ones(2, np.float32) for i in range(1000)})
            return np.ones(2, np.float32)

    feed.update(x=Grows(), n=np.ones(2, np.float32), other=np.ones(2, np.float32))
    with pytest.raises((RuntimeError, sonde.Error)):
        ours.run(None, feed)


def test_names_made_up_on_the_way_live_long_enough(session):
    class Names:
        def __len__(self):
            return 1

        def __getitem__(self, i):
            if i:
                raise IndexError
            return "".join(["no", "_such_", "value"])

    with pytest.raises(sonde.InvalidArgument, match="'no_such_value'"):
        session.run(Names(), {"x": X, "y": Y})
    own = deep()
    names = ["".join(["", "n"]), "y"]
    inner, outer = own.run(names, {"x": [1, 2]})
    assert inner.tolist() == [-1, -2] and outer.tolist() == [1, 2]


def test_a_length_that_is_not_true_is_refused(session):
    class Claims(Endless):
        def __init__(self, length):
            self.length = length

        def __len__(self):
            return self.length

    for length in (1 << 30, 1 << 33, 1 << 60, 1 << 61, sys.maxsize):
        with pytest.raises(ValueError, match="output_names"):
            session.run(Claims(length), {"x": X, "y": Y})
    with pytest.raises(TypeError):
        session.run(Claims(3), {"x": X, "y": Y})


def keep_changing(change, work, rounds):
    """work() again and again while another thread calls change(k)."""
    over = threading.Event()

    def change_on():
        for k in itertools.count():
            if over.is_set():
                return
            change(k)

    other = threading.Thread(target=change_on)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other.start()
    try:
        for _ in range(rounds):
            work()
    finally:
        over.set()
        other.join()
        sys.setswitchinterval(usual)


def test_dicts_and_lists_may_change_during_a_run():
    ours = deep()
    feed, names = {"x": np.ones(4096, np.float32)}, ["y"]

    def change(k):
        feed[f"n{k % 50}" if k % 3 else "n"] = np.ones(4096, np.float32)
        if k % 20 == 19:
            for key in list(feed):
                if key != "x":
                    feed.pop(key, None)
        names[:] = ["y", "n", f"y{k}"][: 1 + k % 3]

    def work():
        try:
            ours.run(names, feed)
        except (sonde.Error, RuntimeError):
            pass

    keep_changing(change, work, 3000)


def test_outputs_of_a_binding_are_read_at_once():
    class Vanishing(dict):
        """Another thread clears the binding between its names and its values."""

        def values(self):
            self.clear()
            return super().values()

    ours = deep()
    binding = ours.io_binding()
    binding.bind_cpu_input("x", np.ones(10, np.float32))
    binding._outputs = Vanishing(y=None)
    ours.run_with_iobinding(binding)
    assert binding.get_outputs()[0].numpy().shape == (10,)


def test_bindings_may_change_during_a_run():
    ours = deep()
    binding = ours.io_binding()
    kinds = itertools.cycle([np.float32, np.float64, np.int64])

    def change(k):
        binding.bind_cpu_input("x", np.ones(1 + k % 5000, next(kinds)))
        binding.bind_cpu_input(f"x{k % 7}" if k % 4 == 0 else "n", np.ones(10, np.float32))
        binding.bind_ortvalue_output("y", sonde.OrtValue.ortvalue_from_shape_and_type([1 + k % 5000], np.float32))
        if k % 3 == 0:
            binding.clear_binding_inputs()
        if k % 5 == 0:
            binding.clear_binding_outputs()

    def work():
        try:
            ours.run_with_iobinding(binding)
        except (sonde.Error, RuntimeError):
            pass

    keep_changing(change, work, 2000)


CHANGING = {
    "Gather": ([("Gather", ["x", "i"], ["y"])], [64], 64),
    "GatherElements": ([("GatherElements", ["x", "i"], ["y"])], [64], 64),
    "Reshape": ([("Reshape", ["x", "i"], ["y"])], [2], 64),
    "Expand": ([("Unsqueeze", ["x", "zero"], ["u"]), ("Expand", ["u", "i"], ["y"])], [2], 64),
    "Tile": ([("Tile", ["x", "i"], ["y"])], [1], 8),
    "ScatterElements": ([("ScatterElements", ["x", "i", "x"], ["y"])], [64], 64),
    "OneHot": ([("OneHot", ["i", "depth", "pair"], ["y"])], [64], 64),
    "Pad": ([("Pad", ["x", "i"], ["y"])], [2], 64),
    "TopK": ([("TopK", ["x", "i"], ["y", "k"])], [1], 64),
    "Slice": ([("Slice", ["x", "zero", "i"], ["y"])], [1], 64),
    "ConstantOfShape": ([("ConstantOfShape", ["i"], ["y"])], [1], 64),
    "Range": ([("Squeeze", ["i"], ["s"]), ("Range", ["nil", "s", "one"], ["y"])], [1], 64),
}


@pytest.mark.parametrize("name", CHANGING)
def test_arrays_may_change_during_a_run(name):
    """Indices and shapes that another thread overwrites while they are read: results may be anything, memory is not
    left."""
    nodes, shape, limit = CHANGING[name]
    constants = [numpy_helper.from_array(array, key) for key, array in {
        "zero": np.zeros(1, np.int64), "depth": np.int64(64), "pair": np.float32([0, 1]), "nil": np.int64(0),
        "one": np.int64(1)}.items()]
    used = {key for node in nodes for key in node[1]}
    output = small_models.value("y", INT64 if name == "Range" else TensorProto.FLOAT)
    inputs = [small_models.value(key, kind, dims) for key, kind, dims in
              (("x", TensorProto.FLOAT, [64]), ("i", INT64, shape)) if key in used]
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    ours = sonde.InferenceSession(
        small_models.model(nodes, inputs, [output], [c for c in constants if c.name in used]), options)
    x, i = np.ones(64, np.float32), np.ones(shape, np.int64)
    choices = [np.ones(shape, np.int64), np.full(shape, limit - 1), np.full(shape, -1), np.full(shape, 5_000),
               np.zeros(shape, np.int64), np.full(shape, -(1 << 40))]

    def work():
        try:
            ours.run(None, {key: array for key, array in (("x", x), ("i", i)) if key in used})
        except sonde.Error:
            pass

    def change(k):
        np.copyto(i, choices[k % len(choices)])

    keep_changing(change, work, 2000)


FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL
# Nodes; inputs as name: (type, dims, what is written there in turn). These arrays are read where they lie.
READ_IN_PLACE = {
    "NonZero": ([("NonZero", ["x"], ["y"])], {"x": (FLOAT, [5000], (0, 1))}),
    "NonZero of bool": ([("NonZero", ["x"], ["y"])], {"x": (BOOL, [50, 100], (False, True))}),
    "Compress": ([("Compress", ["x", "c"], ["y"])],
                 {"x": (FLOAT, [5000], (1,)), "c": (BOOL, [5000], (False, True))}),
    "Unique": ([("Unique", ["x"], ["y", "i", "j", "n"])], {"x": (FLOAT, [500], (0, "count", np.nan))}),
    "TopK": ([("TopK", ["x", "k"], ["y", "i"])], {"x": (FLOAT, [2000], (0, "count", np.nan, -1))}),
    "NonMaxSuppression": ([("NonMaxSuppression", ["b", "x", "k", "half", "half"], ["y"])],
                          {"b": (FLOAT, [1, 200, 4], (0, "count")), "x": (FLOAT, [1, 1, 200], (0, "count", np.nan))}),
    "MaxRoiPool": ([("MaxRoiPool", ["x", "r"], ["y"], {"pooled_shape": [2, 2]})],
                   {"x": (FLOAT, [1, 1, 4, 4], (1,)), "r": (FLOAT, [300, 5], (0, 1 << 40, -5, np.nan))}),
    "Multinomial": ([("Multinomial", ["x"], ["y"], {"sample_size": 50})],
                    {"x": (FLOAT, [4, 100], (0, "count", np.nan, -np.inf))}),
    "Range": ([("Range", ["nil", "x", "unit"], ["y"])], {"x": (FLOAT, [], (1, 5000, 0))}),
    "Resize": ([("Resize", ["x", "", "s"], ["y"], {"mode": "nearest"})],
               {"x": (FLOAT, [64], (1,)), "s": (FLOAT, [1], (1, 4, 0.1))}),
    "OneHot": ([("OneHot", ["x", "d", "pair"], ["y"])],
               {"x": (FLOAT, [500], (0, 40, -1e30)), "d": (FLOAT, [], (4, 64))}),
    "GridSample": ([("GridSample", ["x", "g"], ["y"])],
                   {"x": (FLOAT, [1, 1, 5, 5], (1,)), "g": (FLOAT, [1, 30, 30, 2], (0, 1e30, np.nan, -1))}),
}


def written(what, shape):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape) if what == "count" else np.full(shape, what)


@pytest.mark.parametrize("name", READ_IN_PLACE)
def test_numbers_that_decide_sizes_may_change_during_a_run(name):
    """Floats and booleans are not copied: what is read the second time does not lead out of what the first reading
    made room for."""
    nodes, fed = READ_IN_PLACE[name]
    constants = {"k": np.int64([7]), "half": np.float32([0.5]), "nil": np.float32(0), "unit": np.float32(1),
                 "pair": np.float32([0, 1])}
    used = {key for node in nodes for key in node[1]}
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    outputs = [small_models.value("y", INT64 if name.startswith(("NonZero", "NonMax")) else
                                  TensorProto.INT32 if name == "Multinomial" else FLOAT)]
    ours = sonde.InferenceSession(small_models.model(
        nodes, [small_models.value(key, kind, dims) for key, (kind, dims, _) in fed.items()], outputs,
        [numpy_helper.from_array(array, key) for key, array in constants.items() if key in used]), options)
    feed = {key: np.zeros(dims, bool if kind == BOOL else np.float32) for key, (kind, dims, _) in fed.items()}
    turns = {key: [written(what, dims).astype(feed[key].dtype) for what in turns]
             for key, (_, dims, turns) in fed.items()}

    def work():
        try:
            ours.run(None, feed)
        except sonde.Error:
            pass

    def change(k):
        for key, array in feed.items():
            np.copyto(array, turns[key][k % len(turns[key])])

    keep_changing(change, work, 1500)


# ---------------------------------------------------------------- DLPack by hand
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def capsule(keep, dims, strides=None, data=None, rank=None, device=1, code=2, bits=32, lanes=1, name=b"dltensor"):
    """A capsule around what is given; `keep` receives what must live as long."""
    dims_array = (ctypes.c_int64 * len(dims))(*dims) if dims is not None else None
    strides_array = (ctypes.c_int64 * len(strides))(*strides) if strides is not None else None
    managed = Managed()
    managed.tensor = Tensor(X.ctypes.data if data is None else data, device, 0, len(dims) if rank is None else rank, code,
                            bits, lanes, dims_array and ctypes.cast(dims_array, ctypes.POINTER(ctypes.c_int64)),
                            strides_array and ctypes.cast(strides_array, ctypes.POINTER(ctypes.c_int64)), 0)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    keep += [managed, dims_array, strides_array, name]
    return new(ctypes.addressof(managed), name, None)


BAD_CAPSULES = {
    "negative dim": {"dims": [2, -4]}, "overflowing dims": {"dims": [1 << 62, 4, 4]}, "negative rank": {"dims": [2], "rank": -1},
    "large rank": {"dims": [1] * 40}, "no dims": {"dims": None, "rank": 2}, "no data": {"dims": [2, 4], "data": 0},
    "on a GPU": {"dims": [2], "device": 2}, "unknown type": {"dims": [2], "code": 99}, "odd bits": {"dims": [2], "bits": 24},
    "lanes": {"dims": [2], "lanes": 4}, "another name": {"dims": [2], "name": b"something"},
    "taken": {"dims": [2], "name": b"used_dltensor"},
}


@pytest.mark.parametrize("case", BAD_CAPSULES)
def test_bad_capsules_are_refused(session, case):
    keep = []
    made = capsule(keep, **BAD_CAPSULES[case])
    with pytest.raises((BufferError, ValueError)):
        sonde.OrtValue.from_dlpack(made)
    with pytest.raises((BufferError, ValueError)):
        session.run(None, {"x": with_dlpack(lambda: made), "y": Y})


def test_capsules_of_every_layout_are_read():
    keep = []
    read = sonde.OrtValue.from_dlpack
    assert np.array_equal(read(capsule(keep, [2, 4])).numpy(), X)
    assert np.array_equal(read(capsule(keep, [4, 2], [1, 4])).numpy(), X.T)
    assert np.array_equal(read(capsule(keep, [2, 2], [4, 2])).numpy(), X[:, ::2])
    assert np.array_equal(read(capsule(keep, [3, 4], [0, 1])).numpy(), np.broadcast_to(X[0], (3, 4)))
    for dims, strides in (([0, 4], [7, 3]), ([4, 0], [5, 9]), ([0], None), ([3, 0, 2], [1, 2, 3])):
        assert read(capsule(keep, dims, strides)).shape() == dims
    assert read(capsule(keep, [0], data=0)).shape() == [0]
    assert read(capsule(keep, [])).numpy().tolist() == 0.0


# ---------------------------------------------------------------- threads, forks, ends
def test_opening_one_object_on_many_threads_opens_it_once():
    data = small_models.add().SerializeToString()
    for _ in range(30):
        bare = sonde.InferenceSession.__new__(sonde.InferenceSession)
        answers = []

        def work():
            try:
                bare.__init__(data)
                answers.append("open")
            except sonde.InvalidArgument as error:
                answers.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == ["open"] + ["the session is already open"] * 3
        assert np.array_equal(bare.run(None, {"x": X, "y": Y})[0], X + Y)


def test_results_of_a_partial_run_own_their_memory():
    ours = deep()
    x = np.arange(1 << 12, dtype=np.float32)
    for feed in ({"x": x.copy()}, {"n": x.copy()}):
        kept = ours.partial_run(feed)
        for array in kept.values():
            assert not any(np.shares_memory(array, fed) for fed in feed.values())
        feed.clear()
        gc.collect()
        assert all(np.array_equal(np.abs(array), x) for array in kept.values())
        if kept:
            assert np.array_equal(np.abs(ours.run(None, kept)[0]), x)


def test_a_forked_child_goes_on():
    code = """
import os, sys, threading
import numpy as np, sonde
session = sonde.InferenceSession("zoo:tiny_cnn")
feed = session.random_inputs(1)
expected = session.run(None, feed)[0]
stop = threading.Event()
def work():
    while not stop.is_set():
        session.run(None, feed)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
status = 0
for _ in range(10):
    child = os.fork()
    if child == 0:
        fresh = sonde.InferenceSession("zoo:tiny_cnn").run(None, feed)[0]
        os._exit(0 if np.array_equal(fresh, expected) else 3)
    status |= os.waitpid(child, 0)[1]
stop.set()
for thread in threads: thread.join()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(session.run(None, feed)[0], expected) else 3)
status |= os.waitpid(child, 0)[1]
sys.exit(status != 0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_the_interpreter_may_end_in_the_middle_of_a_run():
    code = """
import threading
import numpy as np, sonde
session = sonde.InferenceSession("zoo:tiny_cnn")
feed = session.random_inputs(1)
value = sonde.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))
kept = np.from_dlpack(value), session.run(None, feed), session.io_binding()
def work():
    while True:
        session.run(None, feed)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(20):
    session.run_async(None, feed, lambda *_: None, None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
