# SPDX-License-Identifier: Apache-2.0
"""Files that have no end, and files that someone cuts short while they are in use: a sentence and an exit status, never
all of the machine's memory and never a signal."""

import os
import subprocess

import numpy as np
import pytest

import sonde
import sonde.zoo

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

LIMIT = 40 << 20


def run(*arguments, **kw):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE, **kw)


@pytest.fixture
def endless(tmp_path):
    """A file of any suffix that has no end."""
    def make(name):
        (tmp_path / name).symlink_to("/dev/zero")
        return tmp_path / name

    return make


# ---- files without an end ---------------------------------------------------------------------------------


def test_labels_without_an_end_respect_max_memory():
    done = run("run", "zoo:tiny_mlp", "--top", "1", "--labels", "/dev/zero", "--max-memory", LIMIT)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("sonde: cannot read the labels: cannot read '/dev/zero': it has more than ")
    assert done.stderr.endswith(f" bytes, and the memory limit is {LIMIT}\n")


def test_labels_have_a_bound_of_their_own():
    done = run("run", "zoo:tiny_mlp", "--top", "1", "--labels", "/dev/zero")
    assert done.returncode == 1 and f"more than the {64 << 20} bytes such a file may have" in done.stderr


def test_a_device_has_a_bound_where_nobody_sets_one():
    done = run("report", "/dev/zero")
    assert done.returncode == 1
    assert done.stderr == f"sonde: cannot read '/dev/zero': it has more than the {256 << 20} bytes such a file may have\n"


@pytest.mark.parametrize("verb", [
    ["run", "END.onnx"], ["profile", "END.onnx"], ["inspect", "END.onnx"], ["doctor", "END.onnx"],
    ["op", "END.onnx", "--op-type", "Relu"],
    ["run", "zoo:tiny_mlp", "-i", "END.npy"], ["run", "zoo:tiny_mlp", "-i", "END.npz"],
    ["run", "zoo:tiny_mlp", "-i", "END.safetensors"], ["run", "zoo:tiny_mlp", "-i", "END.pb"],
    ["run", "zoo:tiny_cnn", "-i", "END.ppm"], ["run", "zoo:tiny_cnn", "-i", "END.jpg"],
    ["run", "zoo:tiny_mlp", "--check", "END.npz"],
    ["report", "END.pftrace"], ["diff", "END.pftrace", "END.pftrace"],
], ids=lambda verb: "_".join(verb))
def test_every_file_without_an_end_respects_max_memory(verb, endless):
    paths = {a: endless(a) for a in set(verb) if a.startswith("END")}
    done = run(*[paths.get(a, a) for a in verb], "--max-memory", LIMIT)
    assert done.returncode == 1, done.stderr
    path = next(iter(paths.values()))
    assert f"cannot read '{path}': it has more than " in done.stderr
    assert f"the memory limit is {LIMIT}" in done.stderr


def test_labels_of_a_bench_respect_max_memory(tmp_path):
    (tmp_path / "cat").mkdir()
    done = run("bench", "zoo:tiny_cnn", "--mode", "accuracy", "--dataset", tmp_path, "--labels", "/dev/zero",
               "--max-memory", LIMIT)
    assert done.returncode == 1 and f"the memory limit is {LIMIT}" in done.stderr


# ---- files that shrink ------------------------------------------------------------------------------------


def saved_profile(folder):
    path = folder / "p.pftrace"
    assert run("profile", "zoo:tiny_cnn", "-n", "10", "-q", "-o", path).returncode == 0
    return path


def test_a_model_that_was_read_is_used_after_its_file_was_cut_short(tmp_path):
    path = tmp_path / "m.onnx"
    sonde.zoo.save("tiny_cnn", path)
    options = sonde.SessionOptions()
    options.add_session_config_entry("sonde.no_mmap", "1")
    session = sonde.InferenceSession(path, options)
    feeds = session.random_inputs()
    before = session.run(None, feeds)
    os.truncate(path, 0)
    for a, b in zip(before, session.run(None, feeds)):
        assert np.array_equal(a, b)
    again = sonde.InferenceSession("zoo:tiny_cnn").run(None, feeds)
    assert all(np.array_equal(a, b) for a, b in zip(before, again))


def test_a_profile_is_used_after_its_file_was_cut_short(tmp_path):
    path = saved_profile(tmp_path)
    for no_mmap in (False, True):
        profile = sonde.load_profile(path, no_mmap=no_mmap)
        size = path.stat().st_size
        data = path.read_bytes()
        os.truncate(path, 0)
        assert "Conv" in profile.table()
        path.write_bytes(data)
        assert path.stat().st_size == size


def is_mapped_by(path, arguments, tmp_path):
    """Whether a run of the program maps the file, as the system saw it."""
    log = tmp_path / "calls"
    done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat,mmap", "-y", "-o", log, PROGRAM, *map(str, arguments)],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return any("mmap(" in line and str(path) in line for line in log.read_text().splitlines())


@pytest.mark.skipif(subprocess.run(["sh", "-c", "command -v strace"], capture_output=True).returncode != 0,
                    reason="strace is not installed")
def test_the_program_maps_models_and_reads_everything_else(tmp_path):
    profile, model = saved_profile(tmp_path), tmp_path / "m.onnx"
    sonde.zoo.save("tiny_mlp", model)
    session = sonde.InferenceSession(model)
    np.save(tmp_path / "x.npy", next(iter(session.random_inputs().values())))
    (tmp_path / "labels").write_text("one\ntwo\n" * 4096)
    assert is_mapped_by(model, ["run", model], tmp_path)
    assert not is_mapped_by(model, ["run", model, "--no-mmap"], tmp_path)
    assert not is_mapped_by(profile, ["report", profile], tmp_path)
    assert not is_mapped_by(profile, ["diff", profile, profile], tmp_path)
    assert not is_mapped_by(tmp_path / "x.npy", ["run", model, "-i", tmp_path / "x.npy"], tmp_path)
    assert not is_mapped_by(tmp_path / "labels", ["run", model, "--top", "1", "--labels", tmp_path / "labels"], tmp_path)
