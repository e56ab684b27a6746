# SPDX-License-Identifier: Apache-2.0
"""bench/sweep.py with results that were made up: the catalogue, ratios, the results file, what loses, the page.

Nothing is exported here, and no other runtime is asked: neither torch nor the runtimes are needed."""

import json
import pathlib
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = [str(ROOT / "bench"), str(ROOT / "bench" / "sweep")]
NAMES = ("sweep", "catalogue", "losers", "models", "page", "rows", "steps")


@pytest.fixture
def sweep(monkeypatch):
    """The modules of the sweep, which other tests do not see."""
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [*FOLDERS, *sys.path])
    import sweep as module

    yield module
    for name in NAMES:
        sys.modules.pop(name, None)


def result(name, rounds, status="ok", outputs="agrees"):
    values = [value for value in rounds for _ in range(3)]
    numbers = [k for k in range(len(rounds)) for _ in range(3)]
    return {"runtime": {"name": name, "version": "1"}, "status": status, "message": "it crashed", "outputs": outputs,
            "latency_ms": {"p50": sorted(rounds)[len(rounds) // 2]} if status == "ok" else None, "load_ms": 1, "first_ms": 2,
            "peak_rss_bytes": 3e6, "machine": {"cpu": "a processor", "cores": 2},
            "samples": {"latency": {"values": values, "rounds": numbers}}}


def row(model, ratio, threads=1, **more):
    values = {"value": ratio, "low": ratio * 0.9, "high": ratio * 1.1, "error": 0.05}
    return {"model": model, "family": "CNN", "exporter": "script", "threads": threads, "key": "k", "status": "ok",
            "message": None, "date": "2026-01-02T03:04:05+00:00", "versions": {"onnxruntime": "1.2"},
            "machine": {"cpu": "a processor", "cores": 2}, "ms": {"sonde": 10.0 * ratio, "onnxruntime": 10.0},
            "better": "onnxruntime", "ratio": values, "ratios": {"onnxruntime": values}, "left_out": {},
            "agreement": {"error": 1e-6, "output": "y", "message": None}, **more}


# ---------------------------------------------------------------- the catalogue
def test_the_catalogue_has_models_of_every_kind_and_both_exporters(sweep):
    cases = sweep.catalogue.cases()
    names = [case.name for case in cases]
    assert len(names) == len(set(names)) >= 70
    assert {case.exporter for case in cases} == {"script", "dynamo"}
    assert {case.source.split(":")[0] for case in cases} == {"torchvision", "timm", "transformers", "own"}
    for case in cases:
        assert case.inputs and all(min(given.shape) >= 1 for given in case.inputs), case.name


def test_own_networks_exist(sweep):
    text = "".join(path.read_text() for path in (ROOT / "bench" / "sweep").glob("nets_*.py"))
    for case in sweep.catalogue.cases():
        if case.source.startswith("own:"):
            assert f"\ndef {case.source.removeprefix('own:')}(" in text, case.source


def test_a_key_changes_with_what_is_exported(sweep):
    first, second, *_ = sweep.catalogue.cases()
    key = first.key({"torch": "1"})
    assert key == first.key({"torch": "1"})
    assert len({key, first.key({"torch": "2"}), second.key({"torch": "1"})}) == 3


def test_parts_cover_everything_once(sweep):
    items = list(range(11))
    parts = [sweep.rows.part(items, f"{k}/3") for k in (1, 2, 3)]
    assert sorted(sum(parts, [])) == items
    for wrong in ("0/3", "4/3", "x", "1"):
        with pytest.raises(ValueError):
            sweep.rows.part(items, wrong)


# ---------------------------------------------------------------- rows
def test_the_ratio_is_to_the_better_peer_with_its_interval(sweep):
    line = sweep.rows.summary([result("sonde", [8, 9, 10]), result("onnxruntime", [10, 10, 10]),
                               result("openvino:precision=f32", [20, 20, 20], outputs="differs")])
    assert line["better"] == "onnxruntime" and line["ratio"]["value"] == pytest.approx((0.8 * 0.9 * 1.0) ** (1 / 3))
    assert line["ratio"]["low"] < line["ratio"]["value"] < line["ratio"]["high"]
    assert line["ratios"]["openvino:precision=f32"]["value"] == pytest.approx(line["ratio"]["value"] / 2)
    assert line["differ"] == ["openvino:precision=f32"] and line["ms"]["sonde"] == 9


def in_turns(name, *rounds):
    """A result whose rounds have turns, of three samples each."""
    made = result(name, [1])
    made["samples"]["latency"] = {
        "values": [value for turns in rounds for value in turns for _ in range(3)],
        "rounds": [k for k, turns in enumerate(rounds) for _ in turns for _ in range(3)],
        "turns": [k for turns in rounds for k in range(len(turns)) for _ in range(3)]}
    return made


def test_ratios_are_those_of_turns(sweep):
    ours, theirs = [[4, 40, 12, 8], [400, 4]], [[5, 50, 15, 10], [500, 5]]  # the clock changes, for both alike
    line = sweep.rows.summary([in_turns("sonde", *ours), in_turns("onnxruntime", *theirs),
                               in_turns("openvino:precision=f32", *([x / 2 for x in y] for y in theirs))])
    assert line["better"] == "openvino:precision=f32" and line["ratio"]["value"] == pytest.approx(1.6)
    assert [line["ratios"]["onnxruntime"][k] for k in ("value", "low", "high")] == pytest.approx([0.8] * 3)
    odd = in_turns("onnxruntime", [5, 50, 15, 10], [500, 500])
    assert sweep.bench.ratio(in_turns("sonde", *ours), odd)["value"] == pytest.approx(0.8 * 0.1**0.5)


def test_a_model_is_measured_in_turns(sweep, monkeypatch, tmp_path):
    commands = []

    def call(command, *_):
        commands.append(list(map(str, command)))
        pathlib.Path(command[command.index("--json") + 1]).write_text(json.dumps(result("sonde", [1])))

    monkeypatch.setattr(sweep.steps, "call", call)
    given = types.SimpleNamespace(sonde="sonde", python="python", threads=2, rounds=3, turns=7, seconds=0.5)
    assert sweep.steps.measure(given, tmp_path)[0]["runtime"]["name"] == "sonde"
    (command,) = commands
    for option, value in (("--threads", "2"), ("--rounds", "3"), ("--turns", "7"), ("--duration", "0.5")):
        assert command[command.index(option) + 1] == value
    assert "--no-program" in command


def test_a_peer_that_fails_is_left_out(sweep):
    line = sweep.rows.summary([result("sonde", [8]), result("onnxruntime", [10], status="crashed"),
                               result("openvino:precision=f32", [16])])
    assert line["better"] == "openvino:precision=f32" and line["left_out"] == {"onnxruntime": "it crashed"}
    assert sweep.rows.summary([result("sonde", [8])])["ratio"] is None


def test_a_row_replaces_that_of_the_same_model_and_threads(sweep, tmp_path):
    path = tmp_path / "deep" / "sweep.json"
    for ratio, threads in ((1.0, 1), (2.0, 2), (0.5, 1)):
        sweep.rows.put(path, row("a", ratio, threads))
    sweep.rows.put(path, row("b", 1.0))
    found = sweep.rows.read(path)
    assert [(r["model"], r["threads"], r["ratio"]["value"]) for r in found] == [("a", 1, 0.5), ("a", 2, 2.0), ("b", 1, 1.0)]
    assert sweep.rows.known(found, "a", 1, "k") and not sweep.rows.known(found, "a", 1, "other")
    assert not sweep.rows.known(found, "a", 4, "k")


def test_another_file_is_not_overwritten(sweep, tmp_path):
    path = tmp_path / "notes.json"
    path.write_text('{"schema": "something else"}')
    with pytest.raises(ValueError, match="choose another name"):
        sweep.rows.put(path, row("a", 1.0))
    assert path.read_text() == '{"schema": "something else"}'


def test_the_key_of_a_row_follows_model_build_runtimes_and_threads(sweep, tmp_path):
    program = tmp_path / "sonde"
    program.write_bytes(b"one")
    build = sweep.rows.build_of(program)
    (tmp_path / "libsonde.so.0").write_bytes(b"library")
    assert build != sweep.rows.build_of(program)
    keys = {sweep.rows.key_of(model, b, {"onnxruntime": v}, t)
            for model, b, v, t in (("m", "b", "1", 1), ("n", "b", "1", 1), ("m", "c", "1", 1), ("m", "b", "2", 1),
                                   ("m", "b", "1", 2))}
    assert len(keys) == 5


# ---------------------------------------------------------------- the command
class Steps:
    """What stands for the processes: exports that work or fail, and the same results for every model."""

    def __init__(self, module, monkeypatch, bad=()):
        self.exported, self.measured, self.bad, self.failed = [], [], bad, module.Failed
        monkeypatch.setattr(module, "versions", lambda python: dict.fromkeys(module.PACKAGES, "1"))
        monkeypatch.setattr(module, "export", self.export)
        monkeypatch.setattr(module, "agreement", lambda *_: {"error": 2e-7, "output": "y", "message": None})
        monkeypatch.setattr(module, "measure", self.measure)
        monkeypatch.setattr(module, "profiles", lambda *_: (TRACE, {"steps": PEER, "producers": PRODUCERS}))

    def export(self, case, key, given):
        self.exported.append(case.name)
        if case.name in self.bad:
            raise self.failed("no such operator")
        return given.models / case.name

    def measure(self, given, folder):
        self.measured.append(folder.name)
        return [result("sonde", [12, 12]), result("onnxruntime", [10, 10]), result("openvino:precision=f32", [20, 20])]


def command(sweep, monkeypatch, tmp_path, *words):
    program = tmp_path / "sonde"
    program.touch()
    monkeypatch.setattr(sys, "argv", ["sweep.py", "--sonde", str(program), "--json", str(tmp_path / "sweep.json"), *words])
    return sweep.main()


def test_a_sweep_goes_on_where_it_was_and_failures_are_rows(sweep, monkeypatch, tmp_path, capsys):
    fake = Steps(sweep.steps, monkeypatch, bad=("alexnet",))
    page = tmp_path / "page.md"
    words = ("--only", "alexnet,resnet18*", "--page", str(page))
    assert command(sweep, monkeypatch, tmp_path, *words) == 1
    assert fake.measured == ["resnet18", "resnet18-dynamo"]
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "[1/3] alexnet (script): export failed: no such operator"
    assert "1.200 (1.200…1.200) of ONNX Runtime, error 2e-07" in said[1]
    assert "alexnet (script), export failed: no such operator" in page.read_text()
    fake.exported.clear()
    assert command(sweep, monkeypatch, tmp_path, *words) == 0 and fake.exported == []
    assert capsys.readouterr().err == "3 of 3 models were known\n"
    command(sweep, monkeypatch, tmp_path, *words, "-t", "2")
    assert len(fake.exported) == 3 and len(sweep.rows.read(tmp_path / "sweep.json")) == 6
    fake.exported.clear()
    command(sweep, monkeypatch, tmp_path, *words, "--again", "--part", "2/3")
    assert fake.exported == ["resnet18"]
    (tmp_path / "sonde").write_text("another build")
    fake.exported.clear()
    assert command(sweep, monkeypatch, tmp_path, "--only", "resnet18") == 0 and fake.exported == ["resnet18"]


def test_export_only_and_check_measure_nothing_and_keep_nothing(sweep, monkeypatch, tmp_path):
    fake = Steps(sweep.steps, monkeypatch)
    for word in ("--export-only", "--check"):
        assert command(sweep, monkeypatch, tmp_path, "--only", "resnet18", word) == 0
    assert fake.exported == ["resnet18"] * 2 and fake.measured == [] and not (tmp_path / "sweep.json").exists()


def test_the_list_needs_no_packages(tmp_path):
    done = subprocess.run([sys.executable, "-S", "-B", ROOT / "bench" / "sweep.py", "--list", "--only", "swin*"],
                          capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [line.split()[:2] for line in done.stdout.splitlines()][0] == ["swin_tiny", "script"]


def test_a_process_that_fails_or_takes_too_long_is_named(sweep):
    assert sweep.steps.call([sys.executable, "-c", "print(7)"], 600) == "7\n"
    with pytest.raises(sweep.steps.Failed, match="^ValueError: no$"):
        sweep.steps.call([sys.executable, "-c", "raise ValueError('no')"], 600)
    assert sweep.steps.reason("Traceback\n  x()\na.b.SomeError: bad\n  )  (type 'Tensor')\n") == "a.b.SomeError: bad"
    with pytest.raises(sweep.steps.Failed, match="ended by signal 9"):
        sweep.steps.call([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], 600)
    with pytest.raises(sweep.steps.Failed, match="took more than 0.1 s"):
        sweep.steps.call([sys.executable, "-c", "import time; time.sleep(86400)"], 0.1)
    with pytest.raises(sweep.steps.Failed, match="took more than 1 s of the processor"):
        sweep.steps.call([sys.executable, "-c", "while True: pass"], 6000, 1)
    with pytest.raises(sweep.steps.Failed, match="MemoryError"):
        sweep.steps.call([sys.executable, "-c", "x = bytearray(1 << 30)"], 600, memory=256 << 20)


def test_what_was_exported_is_not_exported_again(sweep, tmp_path, monkeypatch):
    case, calls = sweep.catalogue.cases()[0], []

    def call(command, *_, **__):
        calls.append(command)
        if len(calls) == 3:
            raise sweep.steps.Failed("too large")
        (pathlib.Path(command[3]) / "model.onnx").touch()

    monkeypatch.setattr(sweep.steps, "call", call)
    given = types.SimpleNamespace(models=tmp_path, python="python", export_seconds=1, export_memory=1, again=False)
    for key in ("a", "a", "b"):
        assert (sweep.steps.export(case, key, given) / "model.onnx").exists()
    for _ in range(2):
        with pytest.raises(sweep.steps.Failed, match="too large"):
            sweep.steps.export(case, "c", given)
    assert len(calls) == 3
    given.again = True
    for _ in range(2):
        assert (sweep.steps.export(case, "c", given) / "model.onnx").exists()
    assert len(calls) == 4 and [path.name for path in tmp_path.iterdir()] == [case.name]


# ---------------------------------------------------------------- what loses
def event(name, dur, op, nodes, warmup=False, iteration=1, **about):
    return {"ph": "X", "cat": "operator", "name": name, "dur": dur,
            "args": {"op": op, "nodes": nodes, "iteration": iteration, "warmup": warmup, **about}}


CONV = {"post_op": "Relu", "kernel": "f32_conv", "input_shape": "1*8*9,16*4*3", "flops": 4e6,
        "attributes": "dilations=1,1;group=2;strides=2,2"}
TRACE = {"traceEvents": [
    event("a", 9000, "Conv", ["/a/Conv", "/a/Relu"], warmup=True, iteration=0, **CONV),
    *(event("a", 4000, "Conv", ["/a/Conv", "/a/Relu"], iteration=i, **CONV) for i in (1, 2)),
    *(event("b", 2000, "Conv", ["/b/Conv", "/b/Relu"], iteration=i, **CONV) for i in (1, 2)),
    *(event("t", 1000, "Transpose", ["/t"], iteration=i) for i in (1, 2)),
    {"ph": "X", "cat": "iteration", "name": "run", "dur": 1}]}
PEER = [{"name": "/a/Relu_output_0_nchwc", "op": "Conv", "ms": 1.0}, {"name": "fused /b/Conv", "op": "FusedConv", "ms": 1.5},
        {"name": "ReorderInput", "op": "ReorderInput", "ms": 0.25}]
PRODUCERS = {"/a/Relu_output_0": "/a/Relu"}


def test_steps_are_matched_by_node_and_grouped_by_shape(sweep):
    lost = sweep.losers.report(sweep.losers.own_steps(TRACE), PEER, PRODUCERS)
    first, second = lost["steps"]
    assert (first["op"], first["steps"], first["ms"], first["peer_ms"]) == ("Conv+Relu", 2, 6.0, 2.5)
    assert first["what"] == "groups 2, stride 2,2" and first["gflops"] == pytest.approx(8e6 / 6e-3 / 1e9)
    assert (second["op"], second["ms"], second["peer_ms"]) == ("Transpose", 1.0, None)
    assert lost["own_ms"] == 7.0 and lost["peer_ms"] == 2.75
    assert lost["classes"] == [("convolution", 6.0, 2.5), ("layout and copies", 1.0, 0.25)]
    assert sweep.losers.class_of({"op": "MatMul", "post": "Softmax+MatMul"}) == "attention"


# ---------------------------------------------------------------- the page
def test_the_page_has_means_the_worst_first_and_what_loses(sweep):
    lost = sweep.losers.report(sweep.losers.own_steps(TRACE), PEER, PRODUCERS)
    bad = row("odd", 1.0, agreement={"error": 0.5, "output": "y", "message": None})
    rows = [row("fast", 0.5), row("slow", 1.5, losers=lost), bad,
            {**row("none", 1.0), "status": "failed", "message": "unknown operator", "ratio": None}]
    text = sweep.page.write(json.loads(json.dumps(rows)))
    assert "Measured 2026-01-02 on 2 cores of a processor, with onnxruntime 1.2." in text
    assert f"3 models. sonde takes {(0.5 * 1.5) ** (1 / 3):.3f}" in text
    assert "2 models ahead, 1 behind, 1 of them by more than 10 %." in text
    assert text.index("| slow |") < text.index("| odd |") < text.index("| fast |")
    assert "### slow: 1.500 (1.350…1.650) of ONNX Runtime" in text and "### odd" in text and "### fast" not in text
    assert "| Conv+Relu | 1*8*9,16*4*3 (groups 2, stride 2,2) | 2 | 6.00 | 2.50 | 1.33 | `f32_conv` |" in text
    assert "- none (script), failed: unknown operator" in text
    assert "- odd (script): output y differs from ONNX Runtime's: 5.0e-01" in text


def test_an_empty_page_says_so(sweep):
    assert "0 rows, nothing measured." in sweep.page.write([])


@pytest.mark.parametrize("value, text", [(0, "0"), (None, ""), (0.01234, "0.0123"), (1.5, "1.50"), (8e-6, "<0.001"),
                                         (1234.5, "1234")])
def test_numbers_have_three_digits_and_no_exponent(sweep, value, text):
    assert sweep.page.number(value) == text


def test_a_name_that_no_model_has_is_an_error_and_leaves_the_page_alone(sweep, monkeypatch, tmp_path):
    Steps(sweep.steps, monkeypatch)
    page = tmp_path / "page.md"
    page.write_text("as it was")
    with pytest.raises(SystemExit, match="no model has such a name"):
        command(sweep, monkeypatch, tmp_path, "--only", "nosuch", "--page", str(page))
    assert page.read_text() == "as it was"
