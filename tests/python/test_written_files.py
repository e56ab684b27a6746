# SPDX-License-Identifier: Apache-2.0
"""Whatever writes a file, of the program and of the package: pipes, devices and links stay what they are, a private
file stays private, and nothing is left beside it."""

import os
import stat
import subprocess
import threading

import pytest

import sonde
import sonde.zoo

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

MODEL = "zoo:tiny_mlp"
PROFILES = ["json", "summary.json", "md", "txt", "folded", "csv", "xlsx", "pb.gz", "pftrace", "page.gz"]


def program(*arguments):
    def write(path):
        done = subprocess.run([PROGRAM, *[str(path) if a == "OUT" else a for a in arguments]], capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 0, (arguments, done.stderr)

    return write


def traced(path):
    done = subprocess.run([PROGRAM, "run", MODEL, "-q"], env={**os.environ, "SONDE_TRACE": str(path)},
                          capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


def profiled(path):
    session = sonde.InferenceSession(MODEL)
    with sonde.profile() as recorded:
        session.run(None, session.random_inputs())
    recorded.export(path)


# What writes, and the suffix it goes by.
WRITERS = {
    "zoo save": (program("zoo", "save", "tiny_mlp", "OUT"), "onnx"),
    "inspect -o": (program("inspect", MODEL, "--optimized", "-o", "OUT"), "onnx"),
    "inspect --graph .dot": (program("inspect", MODEL, "--graph", "OUT"), "dot"),
    "inspect --graph .txt": (program("inspect", MODEL, "--graph", "OUT"), "txt"),
    "run -o .npy": (program("run", MODEL, "-q", "-o", "OUT"), "npy"),
    "run -o .npz": (program("run", MODEL, "-q", "-o", "OUT"), "npz"),
    "run -o .safetensors": (program("run", MODEL, "-q", "-o", "OUT"), "safetensors"),
    "run --json": (program("run", MODEL, "-q", "--json", "OUT"), "json"),
    "profile --json": (program("profile", MODEL, "-q", "-n", "10", "--json", "OUT"), "json"),
    **{f"profile -o .{s}": (program("profile", MODEL, "-q", "-n", "10", "-o", "OUT"), s) for s in PROFILES},
    "op --json": (program("op", "Relu", "--shape", "1,8", "-q", "--json", "OUT"), "json"),
    "doctor --json": (program("doctor", "-q", "--json", "OUT"), "json"),
    **{f"bench -o .{s}": (program("bench", MODEL, "-q", "-n", "3", "--rounds", "1", "--no-program", "-o", "OUT"), s)
       for s in ("json", "csv", "md", "svg")},
    "sonde.zoo.save": (lambda path: sonde.zoo.save("tiny_mlp", path), "onnx"),
    "Profile.export": (profiled, "json"),
    "SONDE_TRACE, written meanwhile": (traced, "pftrace"),
    "SONDE_TRACE, written at the end": (traced, "json"),
}


@pytest.fixture(params=WRITERS, ids=lambda name: name.replace(" ", "_"))
def writer(request):
    return WRITERS[request.param]


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(writer, tmp_path):
    write, suffix = writer
    target = tmp_path / f"target.{suffix}"
    target.write_text("old")
    target.chmod(0o600)
    link = tmp_path / f"link.{suffix}"
    link.symlink_to(target.name)
    write(link)
    assert link.is_symlink() and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.stat().st_size > 3 and target.read_bytes()[:3] != b"old"
    dangling = tmp_path / f"dangling.{suffix}"
    dangling.symlink_to(f"made.{suffix}")
    write(dangling)
    assert dangling.is_symlink() and (tmp_path / f"made.{suffix}").stat().st_size > 3
    assert sorted(os.listdir(tmp_path)) == sorted([target.name, link.name, dangling.name, f"made.{suffix}"])


def test_a_new_file_has_what_the_umask_leaves(writer, tmp_path):
    write, suffix = writer
    before = os.umask(0o027)
    try:
        write(tmp_path / f"new.{suffix}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / f"new.{suffix}").stat().st_mode) == 0o640


def test_a_pipe_stays_a_pipe_and_gets_all_of_it(writer, tmp_path):
    write, suffix = writer
    pipe = tmp_path / f"pipe.{suffix}"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.lstat().st_mode) and len(got[0]) > 3


def test_a_device_stays_a_device(writer, tmp_path):
    write, suffix = writer
    device = tmp_path / f"null.{suffix}"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.open("wb").close()
    except OSError as error:
        pytest.skip(f"no devices here: {error}")
    write(device)
    assert stat.S_ISCHR(device.lstat().st_mode) and os.listdir(tmp_path) == [device.name]
