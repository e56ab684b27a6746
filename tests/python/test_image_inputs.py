# SPDX-License-Identifier: Apache-2.0
"""Images as inputs of every type, folders with files that cannot be read, and where classes lie in an output."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import small_models
from patience import PATIENCE
from small_models import value

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

CLASSES = 4
TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f64": TensorProto.DOUBLE,
         "u8": TensorProto.UINT8, "i8": TensorProto.INT8, "u16": TensorProto.UINT16, "i16": TensorProto.INT16,
         "u32": TensorProto.UINT32, "i32": TensorProto.INT32, "u64": TensorProto.UINT64, "i64": TensorProto.INT64}


def sonde(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def write_ppm(path, rgb, size=8):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6\n%d %d\n255\n" % (size, size) + bytes(rgb) * (size * size))


def write_bad(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xff\xd8 this is no JPEG")


def as_float(onnx_type, shape, path, last="y"):
    """y: the image as f32, so that every type can be read as .npz."""
    model = small_models.model([("Cast", ["image"], [last], {"to": TensorProto.FLOAT})],
                               [value("image", onnx_type, shape)], [value(last, shape=shape)])
    save(model, path)
    return path


def image_as_read(tmp_path, name, *options, shape=(1, 3, 4, 4), rgb=(255, 100, 3)):
    write_ppm(tmp_path / "a.ppm", rgb)
    model = as_float(TYPES[name], shape, tmp_path / "m.onnx")
    sonde("run", model, "-i", tmp_path / "a.ppm", "-o", tmp_path / "out.npz", "-q", *options)
    return np.load(tmp_path / "out.npz")["y"]


# ---------------------------------------------------------------- types
@pytest.mark.parametrize("name", [n for n in TYPES if n[0] in "ui"])
def test_integers_are_the_bytes_of_the_picture(tmp_path, name):
    y = image_as_read(tmp_path, name)
    want = np.array([255, 100, 3]) - (128 if name == "i8" else 0)
    assert (y[0, :, 1, 1] == want).all()


@pytest.mark.parametrize("name, error", [("f32", 1e-6), ("f64", 1e-6), ("f16", 2e-3), ("bf16", 2e-2)])
def test_floats_are_normalised_as_for_imagenet(tmp_path, name, error):
    y = image_as_read(tmp_path, name)
    want = (np.array([255, 100, 3]) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(y[0, :, 2, 2], want, atol=error * 3, rtol=error)


@pytest.mark.parametrize("name, options, want", [
    ("f32", ["--image-scale", "1", "--image-raw"], [255, 100, 3]),
    ("f16", ["--image-scale", "1", "--image-mean", "127.5,127.5,127.5", "--image-std", "2,2,2"], [63.75, -13.75, -62.25]),
    ("u8", ["--image-scale", "0.5"], [128, 50, 2]),  # 127.5 and 1.5 to the even number
    ("u8", ["--image-mean", "10,10,10"], [245, 90, 0]),
    ("i8", ["--image-raw"], [127, -28, -125]),
    ("i8", ["--image-mean", "0,0,0"], [127, 100, 3]),
    ("u8", ["--image-bgr"], [3, 100, 255]),
])
def test_scale_mean_and_deviation_of_any_type(tmp_path, name, options, want):
    y = image_as_read(tmp_path, name, *options)
    np.testing.assert_allclose(y[0, :, 0, 0], want, rtol=1e-6)


def test_the_layout_is_that_of_the_input(tmp_path):
    y = image_as_read(tmp_path, "u8", shape=(1, 4, 4, 3))
    assert (y[0, 2, 2] == [255, 100, 3]).all()


def test_other_types_are_refused_by_name(tmp_path):
    write_ppm(tmp_path / "a.ppm", (1, 2, 3))
    model = as_float(TensorProto.BOOL, (1, 3, 4, 4), tmp_path / "m.onnx")
    said = sonde("run", model, "-i", tmp_path / "a.ppm", code=1).stderr
    assert "a.ppm' is an image, but input 'image' is bool[1, 3, 4, 4]" in said


def test_a_scale_is_a_number(tmp_path):
    write_ppm(tmp_path / "a.ppm", (1, 2, 3))
    model = as_float(TensorProto.UINT8, (1, 3, 4, 4), tmp_path / "m.onnx")
    for wrong in ("x", "0", "nan", "1,2"):
        assert "--image-scale" in sonde("run", model, "-i", tmp_path / "a.ppm", "--image-scale", wrong, code=2).stderr


# ---------------------------------------------------------------- classifiers
def classifier(tmp_path, shape, onnx_type=TensorProto.UINT8, extra=()):
    """The mean of red, green, blue and 100 are the scores of four classes, in an output of this shape."""
    nodes = [("Cast", ["image"], ["f"], {"to": TensorProto.FLOAT}), ("ReduceMean", ["f"], ["m"], {"axes": [2, 3], "keepdims": 0}),
             ("Concat", ["m", "hundred"], ["c"], {"axis": 1}), ("Reshape", ["c", "shape"], ["scores"]), *extra]
    constants = [numpy_helper.from_array(np.array([[100]], np.float32), "hundred"),
                 numpy_helper.from_array(np.array(shape, np.int64), "shape")]
    outputs = [value("scores", shape=shape)]
    for node in extra:
        outputs.insert(0, helper.make_empty_tensor_value_info(node[2][0]))
    path = tmp_path / "classifier.onnx"
    save(small_models.model(nodes, [value("image", onnx_type, [1, 3, 4, 4])], outputs, constants, opset=13), path)
    return path


COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (50, 50, 50)]


@pytest.fixture
def data(tmp_path):
    """Three right answers of four: an image of class 3 lies with class 0."""
    for label in (0, 1, 2):
        write_ppm(tmp_path / "data" / str(label) / "a.ppm", COLOURS[label])
    write_ppm(tmp_path / "data" / "0" / "b.ppm", COLOURS[3])
    return tmp_path / "data"


def bench(model, *options, code=0):
    done = sonde("bench", model, "--json", "-", "--python", sys.executable, *options, code=code)
    return (json.loads(done.stdout), done.stderr) if done.stdout else (None, done.stderr)


@pytest.mark.parametrize("shape", [[1, 4], [4], [1, 4, 1, 1], [1, 1, 1, 4], [1, 4, 1], [1, 1, 4]])
def test_accuracy_finds_the_axis_of_the_classes(tmp_path, data, shape):
    r, _ = bench(classifier(tmp_path, shape), "--mode", "accuracy", "--dataset", data)
    assert r["accuracy"]["samples"] == 4 and r["accuracy"]["top1"] == 0.75 and r["accuracy"]["top5"] == 1


@pytest.mark.parametrize("shape", [[1, 4], [4], [1, 4, 1, 1], [1, 1, 1, 4], [1, 4, 1]])
def test_top_finds_the_axis_of_the_classes(tmp_path, data, shape):
    out = sonde("run", classifier(tmp_path, shape), "-i", data / "2" / "a.ppm", "--top", "2").stdout
    assert "1. 100.00 %  class 2" in out and "2.   0.00 %  class 3" in out


@pytest.mark.parametrize("shape, why", [([1, 1, 2, 2], "segmentation"), ([1, 2, 2], "several positions"),
                                        ([4, 1], "not one score for each class")])
def test_what_is_no_classifier_is_said(tmp_path, data, shape, why):
    model = classifier(tmp_path, shape)
    r, _ = bench(model, "--mode", "accuracy", "--dataset", data, code=1)
    assert r["status"] == "unsupported" and r["accuracy"] is None
    assert "the model is not a classifier: output 'scores' is f32" in r["message"] and why in r["message"]
    out = sonde("run", model, "-i", data / "2" / "a.ppm", "--top", "1").stdout
    assert ("position 1" in out) if why == "several positions" else ("no scores of classes" in out and "max" in out)


def test_equal_and_missing_scores_are_not_right_answers(tmp_path):
    path = tmp_path / "constant.onnx"
    nodes = [("Mul", ["x", "zero"], ["scores"])]
    zero = numpy_helper.from_array(np.zeros(1, np.float32), "zero")
    save(small_models.model(nodes, [value("x", shape=[1, 3])], [value("scores", shape=[1, 3])], [zero]), path)
    folder = tmp_path / "data"
    folder.mkdir()
    for i, x in enumerate((1, np.nan)):  # 0, 0, 0 and NaN, NaN, NaN
        np.savez(folder / f"{i}.npz", x=np.full((1, 3), x, np.float32), label=np.int64(2))
    r, _ = bench(path, "--mode", "accuracy", "--dataset", folder)
    assert r["accuracy"]["samples"] == 2 and r["accuracy"]["top1"] == 0


def test_of_several_outputs_the_one_with_scores_counts(tmp_path, data):
    model = classifier(tmp_path, [1, 4, 1, 1], extra=[("ArgMax", ["c"], ["best"], {"axis": 1})])
    r, _ = bench(model, "--mode", "accuracy", "--dataset", data)
    assert r["accuracy"]["top1"] == 0.75
    r, _ = bench(model, "--mode", "accuracy", "--dataset", data, "--scores", "best", code=1)
    assert r["status"] == "unsupported" and "output 'best' is i64[1, 1]" in r["message"]
    r, _ = bench(model, "--mode", "accuracy", "--dataset", data, "--scores", "nothing", code=1)
    assert "no output 'nothing'" in r["message"]


def test_the_output_with_as_many_classes_as_labels_counts(tmp_path, data):
    model = classifier(tmp_path, [1, 4], extra=[("GlobalAveragePool", ["f"], ["pool"])])
    (tmp_path / "labels.txt").write_text("0\n1\n2\n3\n")
    r, _ = bench(model, "--mode", "accuracy", "--dataset", data, "--labels", tmp_path / "labels.txt")
    assert r["accuracy"]["top1"] == 0.75
    r, _ = bench(model, "--mode", "accuracy", "--dataset", data)  # the first: three numbers, of which 50, 50, 50
    assert r["accuracy"]["top1"] == 1


def test_a_batch_of_samples_has_a_label_each(tmp_path):
    path = tmp_path / "identity.onnx"
    save(small_models.identity(TensorProto.FLOAT, ["N", 3]), path)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "a.npz", x=np.eye(3, dtype=np.float32), label=np.array([0, 1, 1]))
    r, _ = bench(path, "--mode", "accuracy", "--dataset", folder)
    assert r["accuracy"]["samples"] == 3 and r["accuracy"]["top1"] == pytest.approx(2 / 3)
    np.savez(folder / "a.npz", x=np.eye(3, dtype=np.float32), label=np.array([0, 1]))
    r, _ = bench(path, "--mode", "accuracy", "--dataset", folder, code=1)
    assert "2 labels, but the model gave 3 answers" in r["message"]


# ---------------------------------------------------------------- files that cannot be read
@pytest.mark.parametrize("verb, more", [("run", []), ("profile", ["-n", "4"])])
def test_run_and_profile_skip_a_bad_image(tmp_path, data, verb, more):
    folder = tmp_path / "images"
    write_bad(folder / "0.jpg")
    write_ppm(folder / "1.ppm", COLOURS[1])
    write_bad(folder / "2.png")
    write_ppm(folder / "3.ppm", COLOURS[2])
    model = classifier(tmp_path, [1, 4])
    done = sonde(verb, model, "-i", folder, *more)
    assert "0.jpg'" in done.stderr and "2.png'" in done.stderr and "it is skipped" in done.stderr
    assert "images that cannot be read and were skipped: 2 of 4" in done.stdout
    if verb == "run":
        assert "1.ppm" in done.stdout and "0.jpg" not in done.stdout
        report = json.loads(sonde(verb, model, "-i", folder, "--json", "-").stdout)
        assert (report["images"], report["skipped"]) == (2, 2)
    assert sonde(verb, model, "-i", folder, "-q", *more).stderr == ""


@pytest.mark.parametrize("verb", [["run"], ["profile"], ["inspect"], ["bench"]])
def test_no_image_that_can_be_read_is_an_error(tmp_path, verb):
    for name in ("a.jpg", "b.png"):
        write_bad(tmp_path / "images" / name)
    said = sonde(*verb, classifier(tmp_path, [1, 4]), "-i", tmp_path / "images", code=1).stderr
    assert "none of the 2 images in" in said


def test_one_image_that_is_named_is_an_error(tmp_path):
    write_bad(tmp_path / "a.jpg")
    assert "a.jpg" in sonde("run", classifier(tmp_path, [1, 4]), "-i", tmp_path / "a.jpg", code=1).stderr


def test_bench_counts_images_it_skipped(tmp_path):
    write_bad(tmp_path / "images" / "0.jpg")
    write_ppm(tmp_path / "images" / "1.ppm", COLOURS[1])
    r, said = bench(classifier(tmp_path, [1, 4]), "-i", tmp_path / "images", "-n", "2", "--rounds", "1", "--no-program")
    assert r["skipped_images"] == 1 and r["latency_full_ms"] and "0.jpg'" in said
    out = sonde("bench", classifier(tmp_path, [1, 4]), "-i", tmp_path / "images", "-n", "2", "--rounds", "1", "--no-program").stdout
    assert "images that cannot be read and were skipped: 1" in out


def test_accuracy_skips_what_has_no_answer(tmp_path, data):
    write_bad(data / "1" / "bad.jpg")
    (data / "bad.npz").write_bytes(b"PK nothing")
    np.savez(data / "unlabelled.npz", image=np.zeros((1, 3, 4, 4), np.uint8))
    r, said = bench(classifier(tmp_path, [1, 4]), "--mode", "accuracy", "--dataset", data)
    assert r["accuracy"]["samples"] == 4 and r["accuracy"]["skipped"] == 3 and r["accuracy"]["top1"] == 0.75
    for name in ("bad.jpg", "bad.npz", "unlabelled.npz"):
        assert said.count(f"{name}'") == 1, said
    out = sonde("bench", classifier(tmp_path, [1, 4]), "--mode", "accuracy", "--dataset", data).stdout
    assert "samples without a label or that cannot be read, skipped: 3" in out


def dense(tmp_path):
    """A product that can be quantised, behind an image."""
    weights = np.random.default_rng(0).random((48, 8), np.float32)
    nodes = [("Cast", ["image"], ["f"], {"to": TensorProto.FLOAT}), ("Flatten", ["f"], ["rows"]), ("MatMul", ["rows", "w"], ["y"])]
    path = tmp_path / "dense.onnx"
    save(small_models.model(nodes, [value("image", TensorProto.UINT8, ["N", 3, 4, 4])], [value("y", shape=["N", 8])],
                            [numpy_helper.from_array(weights, "w")]), path)
    return path


def calibrate(tmp_path, folder, code=0):
    done = sonde("quantize", dense(tmp_path), "--calibrate", folder, "-o", tmp_path / "q.onnx", "--json", tmp_path / "q.json",
                 "--no-measure", code=code)
    return (json.loads((tmp_path / "q.json").read_text()) if code == 0 else None), done


def write_npz(path, broken):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, image=np.random.default_rng(1).integers(0, 256, (2, 3, 4, 4)).astype(np.uint8))
    if broken:
        path.write_bytes(path.read_bytes()[:100])


def write_test_data(path, broken):
    path.mkdir(parents=True)
    array = np.random.default_rng(1).integers(0, 256, (1, 3, 4, 4)).astype(np.uint8)
    data = numpy_helper.from_array(array, "image").SerializeToString()
    (path / "input_0.pb").write_bytes(b"\xff\xff\xff" if broken else data)


def write_image(path, broken):
    write_bad(path) if broken else write_ppm(path, (9, 99, 199))


@pytest.mark.parametrize("write, name, each", [(write_image, "{}.ppm", 1), (write_npz, "{}.npz", 2),
                                               (write_test_data, "test_data_set_{}", 1)])
def test_quantize_and_compare_skip_what_cannot_be_read(tmp_path, write, name, each):
    folder = tmp_path / "samples"
    for i in range(4):
        write(folder / name.format(i), i in (0, 2))
    report, done = calibrate(tmp_path, folder)
    assert report["samples"] == 2 * each and report["skipped"] == 2
    assert done.stderr.count("it is skipped") == 2 and name.format(2) in done.stderr
    assert "files that cannot be read and were skipped: 2" in done.stdout
    done = sonde("compare", dense(tmp_path), tmp_path / "q.onnx", "-i", folder)
    assert done.stderr.count("it is skipped") == 2 and "files that cannot be read and were skipped: 2 of 4" in done.stdout


@pytest.mark.parametrize("write, name", [(write_image, "{}.ppm"), (write_npz, "{}.npz"), (write_test_data, "test_data_set_{}")])
def test_a_folder_of_samples_that_cannot_be_read_is_an_error(tmp_path, write, name):
    for i in range(2):
        write(tmp_path / "samples" / name.format(i), True)
    _, done = calibrate(tmp_path, tmp_path / "samples", code=1)
    assert "none of the 2 samples in" in done.stderr
    done = sonde("compare", dense(tmp_path), dense(tmp_path), "-i", tmp_path / "samples", code=1)
    assert "none of the 2 samples in" in done.stderr


def test_quantize_reads_images_for_bytes_in_batches(tmp_path):
    for i in range(3):
        write_ppm(tmp_path / "samples" / f"{i}.ppm", COLOURS[i])
    report, _ = calibrate(tmp_path, tmp_path / "samples")
    assert report["samples"] == 3 and report["skipped"] == 0 and report["sqnr_db"] > 20
