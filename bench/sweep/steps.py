# SPDX-License-Identifier: Apache-2.0
"""The processes of the sweep: export, agreement, measurement, profiles. Each returns plain data or raises Failed."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("torch", "torchvision", "timm", "transformers", "onnx", "onnxscript", "onnxruntime", "openvino", "numpy")
EXPORTING = PACKAGES[:6]
RIVALS = ("onnxruntime", "openvino:precision=f32")


class Failed(Exception):
    """A step that did not work; the text is what a reader of the page needs."""


def call(command, seconds, cpu_seconds=None, memory=None, **environment):
    """The standard output of a command. It and all it started end after so many seconds, or seconds of the processor; its
    data stay below `memory` bytes."""
    def bound():
        os.setsid()
        if cpu_seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    command = list(map(str, command))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          env={**os.environ, **environment}, preexec_fn=bound) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"took more than {seconds} s") from None
            raise
    if cpu_seconds and process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Failed(f"took more than {cpu_seconds} s of the processor, or was killed")
    if process.returncode:
        raise Failed(f"ended by signal {-process.returncode}" if process.returncode < 0 else
                     reason(err.strip() or out.strip()) or f"status {process.returncode}")
    return out


def reason(text):
    """The line of a program's messages that says why it failed: the last exception, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Unsupported\w*)\b", line)]
    return (named or lines or [""])[-1][:300]


def versions(python):
    """The versions of the packages that are installed for this interpreter."""
    code = ("import importlib.metadata as m, json\nfound = {}\n"
            f"for name in {PACKAGES!r}:\n    try:\n        found[name] = m.version(name)\n"
            "    except m.PackageNotFoundError:\n        pass\nprint(json.dumps(found))")
    return json.loads(call([python, "-c", code], 60))


def export(case, key, given):
    """The folder with model.onnx and inputs.npz of a case. What was exported with this key is not exported again, and
    what failed with it fails at once, unless it is to be tried again."""
    models = given.models
    folder = models / case.name
    note = folder / "export.json"
    try:
        known = json.loads(note.read_text())
    except (OSError, ValueError):
        known = {}
    if known.get("key") == key:
        if known["error"] and not given.again:
            raise Failed(known["error"])
        if (folder / "model.onnx").exists():
            return folder
    shutil.rmtree(folder, ignore_errors=True)
    models.mkdir(parents=True, exist_ok=True)
    work, error = pathlib.Path(tempfile.mkdtemp(prefix=".export-", dir=models)), None
    try:
        call([given.python, HERE / "export.py", case.name, work], 20 * given.export_seconds, given.export_seconds,
             given.export_memory << 30, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    except Failed as failure:
        error = str(failure)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    (work / "export.json").write_text(json.dumps({"key": key, "error": error}))
    work.chmod(0o755)
    work.rename(folder)
    if error:
        raise Failed(error)
    return folder


def agreement(sonde, python, folder, threads, seconds):
    """How far sonde's outputs are from ONNX Runtime's: the largest difference as a share of the largest value."""
    net, inputs = folder / "model.onnx", folder / "inputs.npz"
    with tempfile.TemporaryDirectory(prefix="sonde-sweep-") as work:
        ours, failures = pathlib.Path(work) / "sonde.npz", []
        try:
            call([sonde, "run", net, "-i", inputs, "-t", threads, "-q", "-o", ours], seconds)
        except Failed as failure:
            failures.append(str(failure))
        try:
            text = call([python, HERE / "peer_run.py", "compare", net, inputs, ours], seconds)
        except Failed as failure:
            failures.append(f"ONNX Runtime: {failure}")
    if failures:
        raise Failed("; ".join(failures))
    return json.loads(text.splitlines()[-1])


def measure(given, folder):
    """The results of `sonde bench`: the runtimes in turns, in rounds, pinned to the same cores."""
    with tempfile.TemporaryDirectory(prefix="sonde-sweep-") as work:
        out = pathlib.Path(work) / "results.json"
        call([given.sonde, "bench", folder / "model.onnx", "-i", folder / "inputs.npz", "--threads", given.threads,
              "--against", ",".join(("sonde", *RIVALS)), "--rounds", given.rounds, "--turns", given.turns, "--duration",
              given.seconds, "-w", "2", "--no-program", "--timeout", "300", "--python", given.python, "--json", out, "-q"], 3600)
        results = json.loads(out.read_text())
    return results.get("results", [results])


def profiles(given, folder, peer):
    """Sonde's trace, and the steps of the peer with their mean times."""
    with tempfile.TemporaryDirectory(prefix="sonde-sweep-") as work:
        trace = pathlib.Path(work) / "trace.json"
        call([given.sonde, "profile", folder / "model.onnx", "-i", folder / "inputs.npz", "-t", given.threads,
              "--duration", "1", "--level", "1", "-q", "-o", trace], 600)
        own = json.loads(trace.read_text())
        text = call([given.python, HERE / "peer_run.py", "profile", folder / "model.onnx", folder / "inputs.npz",
                     peer.split(":")[0], given.threads], 600)
    return own, json.loads(text.splitlines()[-1])
