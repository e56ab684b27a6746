# SPDX-License-Identifier: Apache-2.0
"""OrtValue, IOBinding, DLPack and run_async of the package sonde: memory is shared where it can be, and kept as long
as anybody looks at it."""

import gc
import queue
import sys
import weakref

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import small_models
import sonde
OrtValue = sonde.OrtValue

X = np.arange(8, dtype=np.float32).reshape(2, 4)
Y = np.array([10, 20, 30, 40], np.float32)


@pytest.fixture(scope="module")
def session():
    return sonde.InferenceSession(small_models.add().SerializeToString())


# ---------------------------------------------------------------- OrtValue
def test_a_value_describes_itself_as_onnxruntimes_does():
    theirs = onnxruntime.OrtValue.ortvalue_from_numpy(X)
    ours = OrtValue.ortvalue_from_numpy(X)
    for ask in ("shape", "data_type", "element_type", "device_name", "has_value", "is_tensor", "is_sparse_tensor",
                "is_tensor_sequence", "tensor_size_in_bytes"):
        assert getattr(ours, ask)() == getattr(theirs, ask)(), ask
    assert np.array_equal(ours.numpy(), X)
    assert repr(ours) == "OrtValue(tensor(float), shape=[2, 4])"


def test_a_value_over_an_array_shares_its_memory_and_keeps_it():
    class Array(np.ndarray):  # can be watched
        pass

    array = X.copy().view(Array)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    array[0, 0] = 99
    assert value.numpy()[0, 0] == 99
    there = weakref.ref(array)
    view = value.numpy()
    del array, value
    gc.collect()
    assert there() is not None and view[0, 0] == 99
    del view
    gc.collect()
    assert there() is None


def test_a_value_can_be_made_empty_and_filled():
    for element_type in (np.float32, "float32", 1, np.dtype(np.float32), "tensor(float)"):
        value = OrtValue.ortvalue_from_shape_and_type([2, 4], element_type, "cpu", 0)
        assert value.numpy().tolist() == [[0] * 4] * 2
    value.update_inplace(X)
    assert np.array_equal(value.numpy(), X)
    for wrong in (X.astype(np.float64), X[0]):
        with pytest.raises(sonde.InvalidArgument, match="size"):
            value.update_inplace(wrong)
    frozen = X.copy()
    frozen.flags.writeable = False
    with pytest.raises(sonde.InvalidArgument, match="read-only"):
        OrtValue.ortvalue_from_numpy(frozen).update_inplace(X)
    assert not OrtValue.ortvalue_from_numpy(frozen).numpy().flags.writeable
    for shape, element_type in (([-1], 1), ([1 << 40, 1 << 40], 1), ([1], 0), ([1], 99), ([1], -1)):
        with pytest.raises(sonde.Error):
            OrtValue.ortvalue_from_shape_and_type(shape, element_type)
    with pytest.raises(sonde.InvalidArgument, match="cuda"):
        OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    with pytest.raises(TypeError):
        OrtValue()


def test_bits_can_be_read_as_another_type():
    bits = np.array([1, 2, 3]).astype(ml_dtypes.bfloat16)
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(bits.view(np.uint16), TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)" and value.numpy().tolist() == [1, 2, 3]
    assert OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([15, 7], np.uint8), TensorProto.INT4).numpy().astype(
        int).tolist() == [-1, 7]
    with pytest.raises(sonde.InvalidArgument, match="cannot be read"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.float32), TensorProto.BFLOAT16)


@pytest.mark.parametrize("name", ["int4", "int2"])
def test_negative_elements_of_less_than_a_byte(name):
    array = np.array([-2, -1, 0, 1]).astype(getattr(ml_dtypes, name))
    cast = sonde.InferenceSession(small_models.model(
        [("Cast", ["x"], ["y"], {"to": TensorProto.FLOAT})],
        [small_models.value("x", getattr(TensorProto, name.upper()), [None])], [small_models.value("y", shape=[None])],
        opset=25))
    assert cast.run(None, {"x": array})[0].tolist() == [-2, -1, 0, 1]


def test_a_value_is_a_buffer_and_an_array():
    value = OrtValue.ortvalue_from_numpy(X)
    view = memoryview(value)
    assert (view.format, view.shape, view.tolist()) == ("f", (2, 4), X.tolist())
    assert np.asarray(value).ctypes.data == value.data_ptr()
    assert np.asarray(value, dtype=np.float64).dtype == np.float64
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        copy = np.array(value, copy=True)
        assert copy.ctypes.data != value.data_ptr()
    small = OrtValue.ortvalue_from_numpy(X.astype(ml_dtypes.bfloat16))
    assert np.asarray(small).dtype == ml_dtypes.bfloat16
    with pytest.raises(BufferError):
        memoryview(small)
    with pytest.raises(BufferError):
        memoryview(OrtValue.ortvalue_from_numpy(np.array(["text"])))
    empty = OrtValue.ortvalue_from_numpy(np.zeros((0, 4), np.float32))
    assert empty.numpy().shape == (0, 4) and memoryview(empty).nbytes == 0


def test_values_of_other_kinds(session):
    texts = OrtValue.ortvalue_from_numpy(np.array(["a", "b"]))
    assert texts.data_type() == "tensor(string)" and texts.numpy().tolist() == ["a", "b"]
    sequence = sonde.InferenceSession(small_models.model(
        [("SequenceConstruct", ["x", "x"], ["s"])], [small_models.value("x", shape=[2])],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)]))
    (value,) = sequence.run_with_ort_values(None, {"x": OrtValue.ortvalue_from_numpy(Y[:2])})
    assert value.is_tensor_sequence() and not value.is_tensor() and value.data_type() == "seq(tensor(float))"
    assert [a.tolist() for a in value.numpy()] == [[10, 20]] * 2
    for wrong in (lambda: memoryview(value), lambda: value.__dlpack__()):
        with pytest.raises(BufferError):
            wrong()


def test_values_in_values_out(session):
    feeds = {"x": OrtValue.ortvalue_from_numpy(X), "y": OrtValue.ortvalue_from_numpy(Y)}
    for names in (None, ["z"], []):
        (value,) = session.run_with_ort_values(names, feeds)
        assert np.array_equal(value.numpy(), X + Y)
    with pytest.raises(sonde.InvalidArgument, match="no value named 'q'"):
        session.run_with_ort_values(["q"], feeds)
    with pytest.raises(sonde.InvalidArgument, match="'y'"):
        session.run_with_ort_values(None, {"x": feeds["x"]})


# ---------------------------------------------------------------- IOBinding
def test_bound_inputs_and_outputs_keep_their_memory(session):
    binding = session.io_binding()
    x, z = X.copy(), np.zeros((2, 4), np.float32)
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_input("y", OrtValue.ortvalue_from_numpy(Y))
    with pytest.raises(RuntimeError, match="At least one output"):
        session.run_with_iobinding(binding)
    target = OrtValue.ortvalue_from_numpy(z)
    binding.bind_ortvalue_output("z", target)
    session.run_with_iobinding(binding)
    assert np.array_equal(z, X + Y) and binding.get_outputs() == [target]
    x *= 2
    session.run_with_iobinding(binding, sonde.RunOptions())
    assert np.array_equal(z, 2 * X + Y)
    (copy,) = binding.copy_outputs_to_cpu()
    assert copy.ctypes.data != z.ctypes.data and np.array_equal(copy, z)

    binding.bind_output("z")
    session.run_with_iobinding(binding)
    first = binding.get_outputs()[0]
    session.run_with_iobinding(binding)
    assert first.data_ptr() != binding.get_outputs()[0].data_ptr() and np.array_equal(first.numpy(), z)

    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("z", "cpu", 0, np.float32, z.shape, z.ctypes.data)
    z[:] = 0
    session.run_with_iobinding(binding)
    binding.synchronize_inputs()
    binding.synchronize_outputs()
    assert np.array_equal(z, 2 * X + Y)
    binding.clear_binding_inputs()
    with pytest.raises(sonde.InvalidArgument):
        session.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []


def test_bindings_that_do_not_fit_are_refused(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_cpu_input("y", Y.tolist())
    frozen = np.zeros((2, 4), np.float32)
    frozen.flags.writeable = False
    for wrong, words in ((np.zeros((3, 4), np.float32), "output 'z'"), (np.zeros((2, 4)), "output 'z'"),
                         (frozen, "read-only")):
        binding.bind_ortvalue_output("z", OrtValue.ortvalue_from_numpy(wrong))
        with pytest.raises(sonde.InvalidArgument, match=words):
            session.run_with_iobinding(binding)
    assert not frozen.any()
    with pytest.raises(ValueError, match="element_type"):
        binding.bind_output("z", buffer_ptr=frozen.ctypes.data)
    with pytest.raises(sonde.InvalidArgument, match="cuda"):
        binding.bind_output("z", "cuda")
    with pytest.raises(sonde.InvalidArgument, match="cuda"):
        binding.bind_input("x", "cuda", 0, np.float32, [2, 4], 1)
    with pytest.raises(sonde.InvalidArgument, match="another session"):
        sonde.InferenceSession(small_models.add()).run_with_iobinding(binding)


# ---------------------------------------------------------------- DLPack
def test_dlpack_out_shares_memory(session):
    (value,) = session.run_with_ort_values(None, {"x": OrtValue.ortvalue_from_numpy(X), "y": OrtValue.ortvalue_from_numpy(Y)})
    array = np.from_dlpack(value)
    assert array.ctypes.data == value.data_ptr() and value.__dlpack_device__() == (1, 0)
    del value
    gc.collect()
    assert np.array_equal(array, X + Y)
    value = OrtValue.ortvalue_from_numpy(X)
    for capsule in (value.__dlpack__(), value.to_dlpack(), value.__dlpack__(max_version=(1, 0)),
                    value.__dlpack__(copy=True)):
        del capsule  # nobody took it
    again = OrtValue.from_dlpack(value.__dlpack__())
    assert again.data_ptr() == value.data_ptr()
    copied = OrtValue.from_dlpack(value.__dlpack__(copy=True))
    assert copied.data_ptr() != value.data_ptr() and np.array_equal(copied.numpy(), X)
    with pytest.raises(BufferError, match="CPU"):
        value.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        OrtValue.ortvalue_from_numpy(np.array(["text"])).__dlpack__()


def test_dlpack_in_shares_memory_and_gives_it_back():
    array = X.copy()
    before = sys.getrefcount(array)
    value = OrtValue.from_dlpack(array)
    assert value.data_ptr() == array.ctypes.data and sys.getrefcount(array) > before
    del value
    gc.collect()
    assert sys.getrefcount(array) == before
    for view in (X.T, X[:, ::2], X[::-1], X[:0].T, X[:, ::2][:, :0], np.zeros((3, 0, 2), np.float32)[::-1]):
        assert np.array_equal(OrtValue.from_dlpack(view).numpy(), view)
    frozen = X.copy()
    frozen.flags.writeable = False
    value = OrtValue.from_dlpack(frozen)
    assert not value.numpy().flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        value.__dlpack__()
    assert not np.from_dlpack(value).flags.writeable
    capsule = array.__dlpack__()
    OrtValue.from_dlpack(capsule)
    with pytest.raises(ValueError):
        OrtValue.from_dlpack(capsule)  # taken
    with pytest.raises(AttributeError):
        OrtValue.from_dlpack(3)


def test_tensors_of_other_libraries_can_be_fed(session):
    class Tensor:  # as torch's: no buffer, no array
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    assert np.array_equal(session.run(None, {"x": Tensor(X), "y": Tensor(Y)})[0], X + Y)


def test_torch_tensors_can_be_fed(session):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy()).requires_grad_()
    assert np.array_equal(session.run(None, {"x": x, "y": torch.from_numpy(Y)})[0], X + Y)
    half = torch.tensor([1, 2], dtype=torch.bfloat16)
    small = sonde.InferenceSession(small_models.identity(TensorProto.BFLOAT16))
    (value,) = small.run_with_ort_values(None, {"x": OrtValue.from_dlpack(half)})
    assert torch.equal(torch.from_dlpack(value), half)


# ---------------------------------------------------------------- run_async
def test_run_async_calls_back_with_results_or_a_sentence(session):
    answers = queue.Queue()

    def back(results, user_data, error):
        answers.put((results, user_data, error))

    session.run_async(None, {"x": X, "y": Y}, back, "mine")
    results, user_data, error = answers.get()
    assert np.array_equal(results[0], X + Y) and user_data == "mine" and error == ""
    session.run_async(["z"], {"x": X}, back, None, sonde.RunOptions())
    results, user_data, error = answers.get()
    assert results == [] and user_data is None and "Required inputs" in error
    for k in range(50):
        session.run_async(None, {"x": X + k, "y": Y}, back, k)
    for _ in range(50):
        results, k, error = answers.get()
        assert error == "" and np.array_equal(results[0], X + k + Y)
    with pytest.raises(TypeError):
        session.run_async(None, {"x": X, "y": Y}, None, None)


def test_an_exception_in_the_callback_is_reported_not_lost(session, monkeypatch):
    reported = queue.Queue()
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: reported.put(error))

    def back(results, user_data, error):
        raise KeyError("in the callback")

    session.run_async(None, {"x": X, "y": Y}, back, None)
    assert str(reported.get()) == "'in the callback'"
