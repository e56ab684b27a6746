# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM: the program finishes its files and shows what ran, Python raises KeyboardInterrupt out of a long
run, and both go on to work. Nothing here waits for a time: only for what the other side says or does."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
FOREVER = ["-n", "1000000000"]


class Program:
    """The program with a terminal for its standard error, so that the progress bar tells where it is."""

    def __init__(self, folder, *arguments, before=None, **environment):
        def prepare():
            # What these tests send counts, also where whoever started them ignores it (nohup).
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            if before:
                before()

        self.terminal, theirs = pty.openpty()
        self.process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=theirs,
                                        env={**os.environ, **environment}, text=True, preexec_fn=prepare)
        os.close(theirs)
        self.said = b""

    def read(self):
        try:
            got = os.read(self.terminal, 65536)
        except OSError:  # the other end was closed
            got = b""
        self.said += got
        return got

    def wait_for(self, word, times):
        """Each time the bar is shown it is another run's turn: three times mean that two runs are over."""
        while self.said.count(word) < times:
            assert self.read(), self.said

    def end(self, *numbers):
        for number in numbers:
            self.process.send_signal(number)
        out = self.process.stdout.read()
        while self.read():
            pass
        os.close(self.terminal)
        return self.process.wait(), out, self.said.decode().split("\x1b[K")[-1].replace("\r\n", "\n")


needs_program = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")


def report(folder, name):
    done = subprocess.run([PROGRAM, "report", name, "-q", "--json", "-"], cwd=folder, capture_output=True, text=True,
                          timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


# ---- the program ------------------------------------------------------------------------------------------


@needs_program
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_profile_is_written_and_its_table_shown(tmp_path, number, code):
    program = Program(tmp_path, "profile", "zoo:tiny_cnn", *FOREVER, "-o", "t.pftrace", "-o", "t.json", "--json", "s.json")
    program.wait_for(b"measuring", 3)
    status, out, said = program.end(number)
    assert status == code
    words = said.split()
    assert said.startswith("sonde: interrupted after ") and words[4:] in (["measured", "run"], ["measured", "runs"])
    runs = int(words[3])
    assert out.startswith("Graph run of ") and f"mean of {runs} run" in out
    assert sorted(os.listdir(tmp_path)) == ["s.json", "t.json", "t.pftrace"]
    # The run that was cut is in no figure.
    for name in ("t.pftrace", "t.json"):
        assert report(tmp_path, name)["iterations"] == runs
    assert json.loads((tmp_path / "s.json").read_text())["iterations"] == runs


@needs_program
def test_interrupted_before_anything_was_measured_there_is_no_file(tmp_path):
    program = Program(tmp_path, "profile", "zoo:tiny_cnn", "-w", "1000000000", "-o", "t.pftrace")
    program.wait_for(b"warming", 1)
    assert program.end(signal.SIGTERM) == (143, "", "sonde: interrupted before the first measured run\n")
    assert os.listdir(tmp_path) == []


@needs_program
def test_interrupted_while_it_loads_it_says_so_and_ends(tmp_path):
    """The model comes out of a pipe that nobody closes: it is never whole."""
    os.mkfifo(tmp_path / "m.onnx")
    program = Program(tmp_path, "profile", "m.onnx", "-o", "t.pftrace")
    with (tmp_path / "m.onnx").open("wb"):  # opens when the program has opened it
        assert program.end(signal.SIGINT) == (130, "", "sonde: interrupted\n")
    assert os.listdir(tmp_path) == ["m.onnx"]


@needs_program
def test_a_second_signal_ends_at_once(tmp_path):
    """The table goes into a pipe that nobody reads: the program cannot end by itself any more."""
    os.mkfifo(tmp_path / "t.json")
    program = Program(tmp_path, "profile", "zoo:tiny_cnn", *FOREVER, "-o", "t.json")
    program.wait_for(b"measuring", 3)
    program.process.send_signal(signal.SIGINT)
    program.wait_for(b"interrupted after", 1)
    status, _, _ = program.end(signal.SIGTERM)
    assert status == -signal.SIGTERM


@needs_program
def test_an_interrupted_run_shows_how_long_runs_took_and_writes_no_outputs(tmp_path):
    program = Program(tmp_path, "run", "zoo:tiny_cnn", *FOREVER, "-p", "-o", "out.npz")
    program.wait_for(b"measuring", 3)
    status, out, said = program.end(signal.SIGINT)
    assert status == 130 and said.startswith("sonde: interrupted after ")
    assert " runs: mean " in out and "Graph run of " in out and "f32[" not in out
    assert os.listdir(tmp_path) == []


@needs_program
def test_an_interrupted_op_shows_the_nodes_that_were_measured(tmp_path):
    program = Program(tmp_path, "op", "zoo:tiny_cnn", "--op-type", "Conv", "--exec", "1000000", "--json", "op.json")
    program.wait_for(b"measuring", 1)
    status, _, said = program.end(signal.SIGINT)
    assert status == 130 and said.startswith("sonde: interrupted")


@needs_program
def test_an_interrupted_whatif_shows_and_saves_the_scenarios_that_were_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    batches = ",".join(f"batch={n}" for n in range(2, 60))
    program = Program(tmp_path, "whatif", "zoo:tiny_cnn", "--scenarios", f"sparse90,{batches}", "-n", "5000", "-o", "w.json")
    program.wait_for(b"batch=2", 1)
    status, out, said = program.end(signal.SIGINT)
    assert status == 130 and said.startswith("sonde: interrupted; these are the results so far")
    shown = {line.split()[0]: line for line in out.splitlines() if line}
    assert "interrupted" not in shown["sparse90"] and "interrupted before" in shown["batch=59"]
    scenarios = json.loads((tmp_path / "w.json").read_text())["scenarios"]
    assert scenarios[0]["total_ms"] > 0 and scenarios[1]["total_ms"] > 0 and scenarios[-1]["total_ms"] is None


@needs_program
def test_an_interrupted_whatif_without_results_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = Program(tmp_path, "whatif", "zoo:tiny_cnn", "--scenarios", "sparse90", "-n", "1000000", "-o", "w.json")
    program.wait_for(b"sparse90", 3)
    assert program.end(signal.SIGINT) == (130, "", "sonde: interrupted before anything was measured\n")
    assert not (tmp_path / "w.json").exists()


@needs_program
def test_an_interrupted_compare_shows_and_saves_what_was_compared(tmp_path):
    program = Program(tmp_path, "compare", "zoo:tiny_resnet", "zoo:tiny_resnet_int8", "--samples", "1000000", "--json", "c.json",
                      "--csv", "c.csv", "--fail-above", "100dB")
    program.wait_for(b"comparing", 3)
    status, out, said = program.end(signal.SIGINT)
    assert status == 130 and said == "sonde: interrupted; these are the results so far\n"
    assert "interrupted before all were compared" in out and "outputs" in out
    found = json.loads((tmp_path / "c.json").read_text())
    assert not found["complete"] and 0 < found["samples"] < 1000000
    assert sorted(os.listdir(tmp_path)) == ["c.csv", "c.json"]


@needs_program
def test_a_signal_that_was_ignored_stays_ignored(tmp_path):
    """As under nohup."""
    program = Program(tmp_path, "profile", "zoo:tiny_cnn", *FOREVER, before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    program.wait_for(b"measuring", 3)
    program.process.send_signal(signal.SIGHUP)
    program.wait_for(b"measuring", program.said.count(b"measuring") + 3)
    status, _, said = program.end(signal.SIGINT)
    assert status == 130 and said.startswith("sonde: interrupted after ")


@needs_program
def test_a_trace_that_is_written_meanwhile_is_whole_after_an_interrupt(tmp_path):
    program = Program(tmp_path, "run", "zoo:tiny_cnn", *FOREVER, SONDE_TRACE="t.pftrace")
    program.wait_for(b"measuring", 3)
    status, _, said = program.end(signal.SIGINT)
    assert status == 130
    assert report(tmp_path, "t.pftrace")["iterations"] == int(said.split()[3])


# ---- Python -----------------------------------------------------------------------------------------------

ENDLESS = """
import json, os, signal, sys, threading
import numpy as np, onnx, sonde
from onnx import TensorProto, helper

number = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
flag = lambda name: helper.make_tensor_value_info(name, TensorProto.BOOL, [])
body = helper.make_graph(
    [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Sin", ["v"], ["w"])], "body",
    [helper.make_tensor_value_info("i", TensorProto.INT64, []), flag("going"),
     helper.make_tensor_value_info("v", TensorProto.FLOAT, [4])],
    [flag("on"), helper.make_tensor_value_info("w", TensorProto.FLOAT, [4])])
graph = helper.make_graph(
    [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "endless",
    [helper.make_tensor_value_info("n", TensorProto.INT64, []), number],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
session = sonde.InferenceSession(model.SerializeToString())
feeds = {"n": np.array(2**62), "x": np.ones(4, np.float32)}
few = {**feeds, "n": np.array(3)}
before = session.run(None, few)[0]

# Another thread sends signals whose handler returns, each when the one before was answered: a run that does not answer
# in the middle does not answer at all. The last one is Ctrl-C.
answered = threading.Semaphore(0)
signal.signal(signal.SIGUSR1, lambda *_: answered.release())

def press():
    for _ in range(5):
        os.kill(os.getpid(), signal.SIGUSR1)
        answered.acquire()
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(run):
    presser = threading.Thread(target=press)
    presser.start()
    try:
        run()
    except KeyboardInterrupt:
        presser.join()
        assert np.array_equal(session.run(None, few)[0], before)
        print("interrupted", flush=True)
"""


def python(code):
    pytest.importorskip("onnx")
    done = subprocess.run([sys.executable, "-c", ENDLESS + code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ctrl_c_interrupts_a_long_run_and_the_session_goes_on():
    assert python("interrupted(lambda: session.run(None, feeds))") == "interrupted\n"


def test_ctrl_c_interrupts_runs_on_values_and_partial_runs():
    assert python("""
values = {k: sonde.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
interrupted(lambda: session.run_with_ort_values(None, values))
interrupted(lambda: session.partial_run(feeds))
""") == "interrupted\n" * 2


def test_a_profiler_around_an_interrupted_run_has_the_whole_ones(tmp_path):
    path = str(tmp_path / "p.pftrace")
    assert python(f"""
def profiled():
    with sonde.profile({path!r}, level=1):
        session.run(None, few)
        session.run(None, few)
        session.run(None, feeds)

interrupted(profiled)
print(sonde.load_profile({path!r}).summary()["iterations"])
""") == "interrupted\n2\n"


def test_a_run_on_another_thread_is_stopped_by_its_options_and_ctrl_c_reaches_the_main_thread():
    assert python("""
options = sonde.RunOptions()
ended = threading.Event()
said = []
session.run_async(None, feeds, lambda results, data, error: (said.append(error), ended.set()), None, options)

def wait():  # in short steps: a signal that comes just before Python sleeps does not wake it
    while not ended.wait(0.05):
        pass

interrupted(wait)
options.terminate = True
ended.wait()
print(said[0])
""") == "interrupted\nthe run was cancelled\n"
