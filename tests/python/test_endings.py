# SPDX-License-Identifier: Apache-2.0
"""SONDE_TRACE and SONDE_PROFILE are written however a program ends, except by os._exit and SIGKILL. Nothing here waits
for a time: a signal is sent when the program has said that it ran a model."""

import json
import os
import signal
import subprocess
import sys

import pytest

from patience import PATIENCE

ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

RAN = """
import os, signal, sys, threading, time
import sonde

def infer(times=2):
    session = sonde.InferenceSession("zoo:tiny_mlp")
    for _ in range(times):
        session.run(None, session.random_inputs(seed=1))
    return os.getpid()

def ready():
    print("ran", flush=True)
    while True:
        time.sleep(3600)
"""


def start(folder, code, **environment):
    (folder / "program.py").write_text(code)
    default = lambda: [signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
                       for number in ENDS]
    return subprocess.Popen([sys.executable, "program.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, **environment}, preexec_fn=default)


def finish(process):
    out, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, out, errors


def runs(path):
    return sum(event.get("cat") == "iteration" for event in json.loads(path.read_text())["traceEvents"])


def interrupt(process, number):
    assert process.stdout.readline() == "ran\n", process.communicate()[1]
    process.send_signal(number)
    status, _, errors = finish(process)
    assert status == -number, errors
    return errors


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_does_not_lose_the_trace(tmp_path, number):
    errors = interrupt(start(tmp_path, RAN + "infer()\nready()", SONDE_TRACE="t.json"), number)
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    assert runs(tmp_path / "t.json") == 2


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_does_not_lose_the_profile(tmp_path, number):
    interrupt(start(tmp_path, RAN + "infer()\nready()", SONDE_PROFILE="prof"), number)
    traces = list((tmp_path / "prof" / "profiling_trace").glob("*.json"))
    assert [runs(path) for path in traces] == [2]
    assert len(list((tmp_path / "prof" / "profiling_csv").glob("*.csv"))) == 1


def test_a_signal_ends_a_streamed_trace_properly(tmp_path):
    interrupt(start(tmp_path, RAN + "infer()\nready()", SONDE_TRACE="t.pftrace"), signal.SIGTERM)
    code = "import sonde; print(sonde.load_profile('t.pftrace').summary()['iterations'])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "2\n", done.stderr


def test_what_a_program_does_about_a_signal_is_what_happens(tmp_path):
    """Its handler is left alone, whether it is installed before the first session or after."""
    for place in ("before", "after"):
        handler = "signal.signal(signal.SIGTERM, lambda *_: (print('mine', flush=True), sys.exit(7)))\n"
        code = RAN + (handler if place == "before" else "") + "infer()\n" + (handler if place == "after" else "") + "ready()"
        process = start(tmp_path, code, SONDE_TRACE=f"{place}.json")
        assert process.stdout.readline() == "ran\n"
        process.send_signal(signal.SIGTERM)
        assert finish(process) == (7, "mine\n", "")
        assert runs(tmp_path / f"{place}.json") == 2


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    code = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + RAN + """
infer()
os.kill(os.getpid(), signal.SIGHUP)
infer(3)
ready()
"""
    interrupt(start(tmp_path, code, SONDE_TRACE="t.json"), signal.SIGTERM)
    assert runs(tmp_path / "t.json") == 5


def test_without_these_variables_no_handler_is_installed(tmp_path):
    code = RAN + """
import re
infer()
def caught(): return int(re.search("SigCgt:\\\\s*(\\\\w+)", open("/proc/self/status").read())[1], 16)
print([bool(caught() >> (n - 1) & 1) for n in (signal.SIGTERM, signal.SIGHUP)])
"""
    quiet = {name: "" for name in ("SONDE_TRACE", "SONDE_PROFILE")}
    assert finish(start(tmp_path, code, **quiet))[:2] == (0, "[False, False]\n")
    assert finish(start(tmp_path, code, SONDE_TRACE="t.json"))[:2] == (0, "[True, True]\n")


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise ValueError", "threading.Thread(target=lambda: (infer(), sys.exit(4))).start()"])
def test_other_ends_of_a_program_lose_nothing(tmp_path, end):
    finish(start(tmp_path, RAN + f"infer()\n{end}", SONDE_TRACE="t.json"))
    assert runs(tmp_path / "t.json") == (4 if "Thread" in end else 2)


def test_what_runs_at_exit_is_in_the_trace(tmp_path):
    finish(start(tmp_path, RAN + "import atexit\natexit.register(infer, 3)\ninfer()", SONDE_TRACE="t.json"))
    assert runs(tmp_path / "t.json") == 5


@pytest.mark.parametrize("finished", [False, True])
def test_os_exit_writes_what_was_finished_before(tmp_path, finished):
    call = "sonde.profiler.finish_environment()\n" if finished else ""
    finish(start(tmp_path, RAN + f"infer()\n{call}os._exit(0)", SONDE_TRACE="t.json"))
    assert (tmp_path / "t.json").exists() == finished


# ---- processes of multiprocessing -------------------------------------------------------------------------

WORKERS = RAN + """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
"""
# Whether the parent has used the library before its children are there.
PARENT = {"fork": ["", "infer(); "], "forkserver": [""], "spawn": [""]}
CASES = [(method, before) for method, befores in PARENT.items() for before in befores]


def traces_of_children(folder, parent):
    """What every child wrote: under a name of its own."""
    assert (folder / "t.json").exists() == parent
    if parent:
        assert runs(folder / "t.json") == 2
    return {int(path.name.split(".")[1]): runs(path) for path in folder.glob("t.*.json")}


@pytest.mark.parametrize("method, before", CASES)
def test_processes_write_traces_of_their_own(tmp_path, method, before):
    code = WORKERS.format(method=method) + f"""
    {before}
    workers = [context.Process(target=infer, args=(n,)) for n in (3, 4)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print(*(worker.pid for worker in workers), *(worker.exitcode for worker in workers))
"""
    status, out, errors = finish(start(tmp_path, code, SONDE_TRACE="t.json"))
    assert status == 0, errors
    one, two, *codes = map(int, out.split())
    assert codes == [0, 0], errors
    assert traces_of_children(tmp_path, bool(before)) == {one: 3, two: 4}


@pytest.mark.parametrize("method, before", CASES)
def test_pools_write_traces_of_their_own(tmp_path, method, before):
    """multiprocessing.Pool ends its processes with SIGTERM, an executor lets them end."""
    code = WORKERS.format(method=method) + f"""
    {before}
    with context.Pool(1) as pool:
        print(*pool.map(infer, [3, 4]))
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        print(*pool.map(infer, [5, 6]))
"""
    status, out, errors = finish(start(tmp_path, code, SONDE_TRACE="t.json"))
    assert status == 0, errors
    pool, _, executor, _ = map(int, out.split())
    assert traces_of_children(tmp_path, bool(before)) == {pool: 7, executor: 11}


def test_a_process_that_imports_the_package_itself_writes_its_trace(tmp_path):
    code = """
import multiprocessing, os
def work():
    import sonde
    session = sonde.InferenceSession("zoo:tiny_mlp")
    session.run(None, session.random_inputs())
if __name__ == "__main__":
    for method in ("fork", "forkserver", "spawn"):
        worker = multiprocessing.get_context(method).Process(target=work)
        worker.start()
        worker.join()
        print(worker.pid)
"""
    status, out, errors = finish(start(tmp_path, code, SONDE_TRACE="t.json"))
    assert status == 0, errors
    assert traces_of_children(tmp_path, False) == dict.fromkeys(map(int, out.split()), 1)


def test_a_child_without_inferences_dies_of_a_signal_and_writes_nothing(tmp_path):
    code = RAN + """
infer()
child = os.fork()
if child == 0:
    while True:
        time.sleep(3600)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert finish(start(tmp_path, code, SONDE_TRACE="t.json"))[:2] == (0, "-15\n")
    assert traces_of_children(tmp_path, True) == {}
