# SPDX-License-Identifier: Apache-2.0
"""sonde.numa: sessions on a made-up machine of two memory nodes, each with one CPU that this process may use."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sonde

CPUS = sorted(os.sched_getaffinity(0))[:2]
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="this process may use one CPU only")


@pytest.fixture
def two_nodes(tmp_path: Path) -> Path:
    files = {
        "sys/devices/system/cpu/online": ",".join(map(str, CPUS)),
        "sys/devices/system/node/online": "0-1",
        "proc/self/status": f"Cpus_allowed_list:\t{','.join(map(str, CPUS))}\nMems_allowed_list:\t0-1",
    }
    for node, cpu in enumerate(CPUS):
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"] = str(node)
        files[f"sys/devices/system/node/node{node}/cpulist"] = str(cpu)
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return tmp_path / "root"


def run(code: str, root: Path, warns: bool = False, **env: str) -> str:
    """What the code prints, or what it is warned of. The machine is looked at once in a process, so each has its own."""
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "SONDE_SYSTEM_ROOT": str(root), **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr if warns else done.stdout


OPEN = """
import os, sonde
def session(**entries):
    options = sonde.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry("sonde." + key, value)
    return sonde.InferenceSession("zoo:tiny_cnn", options)
"""


@needs_two
def test_a_session_is_bound_and_its_caller_only_while_it_runs(two_nodes):
    code = OPEN + """
before = os.sched_getaffinity(0)
s = session(numa="1")
outputs = s.run(None, s.random_inputs(3))
assert os.sched_getaffinity(0) == before
p = s.placement()
print(p["nodes"], p["cpus"], p["memory"], p["threads"], p["threads_refused"])
plain = session(numa="off")
assert (plain.run(None, s.random_inputs(3))[0] == outputs[0]).all()
print(repr(plain.placement()["nodes"]))
"""
    assert run(code, two_nodes) == f"1 {CPUS[1]} 1 1 0\n''\n"


@needs_two
def test_instances_are_on_nodes_in_turn(two_nodes):
    code = OPEN + """
for i in range(4):
    print(session(numa="auto", instance=str(i), instances="4").placement()["nodes"], end=" ")
"""
    assert run(code, two_nodes) == "0 1 0 1 "


@needs_two
def test_the_environment_binds_sessions_that_say_nothing(two_nodes):
    code = OPEN + """print(session().placement()["nodes"], session(numa="off").placement()["nodes"] == "")"""
    assert run(code, two_nodes, SONDE_NUMA="0") == "0 True\n"
    assert "there is no memory node 9" in run(code, two_nodes, warns=True, SONDE_NUMA="9")


@needs_two
def test_threads_of_python_run_bound_sessions_side_by_side(two_nodes):
    code = OPEN + """
import threading
sessions = [session(numa="auto", instance=str(i), instances="2") for i in range(2)]
feeds = sessions[0].random_inputs(1)
expected = sessions[0].run(None, feeds)[0]
wrong = []
def work(s):
    own = os.sched_getaffinity(0)
    for _ in range(50):
        if not (s.run(None, feeds)[0] == expected).all() or os.sched_getaffinity(0) != own:
            wrong.append(s)
threads = [threading.Thread(target=work, args=(sessions[i % 2],)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(wrong))
"""
    assert run(code, two_nodes) == "0\n"


def test_what_is_no_node_is_refused():
    for value in ("both", "", "-1", "0,", "9999", "\u00b2", "0;1"):
        options = sonde.SessionOptions()
        options.add_session_config_entry("sonde.numa", value)
        with pytest.raises(sonde.InvalidArgument, match="expected auto, off, or memory nodes"):
            sonde.InferenceSession("zoo:tiny_cnn", options)
    options.add_session_config_entry("sonde.numa", "8000")
    with pytest.raises(sonde.InvalidArgument, match="there is no memory node 8000 on this machine; the nodes are 0"):
        sonde.InferenceSession("zoo:tiny_cnn", options)
    options.add_session_config_entry("sonde.numa", "off")
    options.add_session_config_entry("sonde.instances", "x")
    with pytest.raises(sonde.InvalidArgument, match="sonde.instances is 'x'"):
        sonde.InferenceSession("zoo:tiny_cnn", options)
    options.add_session_config_entry("sonde.instances", "2")
    options.add_session_config_entry("sonde.instance", "2")
    with pytest.raises(sonde.InvalidArgument, match="instances is 2"):
        sonde.InferenceSession("zoo:tiny_cnn", options)


def test_this_machine_can_be_asked_for_by_name():
    session = sonde.InferenceSession("zoo:tiny_cnn")
    feeds = session.random_inputs(5)
    expected = session.run(None, feeds)[0]
    options = sonde.SessionOptions()
    options.add_session_config_entry("sonde.numa", "auto")
    before = os.sched_getaffinity(0)
    bound = sonde.InferenceSession("zoo:tiny_cnn", options)
    np.testing.assert_array_equal(bound.run(None, feeds)[0], expected)
    assert os.sched_getaffinity(0) == before
    assert bound.placement()["weight_bytes"] > 0
