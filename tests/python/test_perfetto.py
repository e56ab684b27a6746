# SPDX-License-Identifier: Apache-2.0
"""The .pftrace read by Perfetto's own message classes, held against the other formats of the same profile; and
what `sonde report` makes of profiles that other programs wrote. Perfetto's trace processor is not used: it would
be downloaded."""

import json
import os
import subprocess
from collections import Counter, defaultdict

import pytest

messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
REALTIME = 1


def sonde(*arguments, **kw):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True, **kw).stdout


class Trace:
    """Interned ids replaced by their texts, begins paired with the ends a viewer would give them."""

    def __init__(self, data):
        trace = messages.Trace.FromString(data)
        self.packets, self.tracks, self.slices, self.counters = trace.packet, {}, [], []
        names, categories, notes, strings = {}, {}, {}, {}
        events = []
        for packet in trace.packet:
            for table, entries in ((names, packet.interned_data.event_names),
                                   (categories, packet.interned_data.event_categories),
                                   (notes, packet.interned_data.debug_annotation_names)):
                table.update((e.iid, e.name) for e in entries)
            strings.update((e.iid, e.str.decode()) for e in packet.interned_data.debug_annotation_string_values)
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            assert event.track_uuid in self.tracks
            if event.type == COUNTER:
                self.counters.append((event.track_uuid, packet.timestamp, event.double_counter_value))
                continue
            args = {}
            for note in event.debug_annotations:
                kind = note.WhichOneof("value")
                value = strings[note.string_value_iid] if kind == "string_value_iid" else (
                    getattr(note, kind) if kind else [a.string_value for a in note.array_values])
                args[notes[note.name_iid] if note.name_iid else note.name] = value
            name = event.name or (names[event.name_iid] if event.name_iid else None)
            category = categories[event.category_iids[0]] if event.category_iids else None
            events.append((packet.timestamp, len(events), event, name, category, args))
        open_slices = defaultdict(list)
        for at, _, event, name, category, args in sorted(events, key=lambda e: e[:2]):
            if event.type == BEGIN:
                one = {"ts": at, "name": name, "cat": category, "args": args, "track": event.track_uuid,
                       "flows": list(event.flow_ids)}
                open_slices[event.track_uuid].append(one)
                self.slices.append(one)
            elif event.type == END:
                one = open_slices[event.track_uuid].pop()
                one["dur"] = at - one["ts"]
        assert not any(open_slices.values())


@pytest.fixture(scope="module", params=[("tiny_cnn", 1), ("tiny_loop", 2), ("tiny_cnn", 3)], ids=str)
def profile(request, tmp_path_factory):
    model, level = request.param
    folder = tmp_path_factory.mktemp("profile")
    sonde("profile", f"zoo:{model}", "-n", 10, "-q", "-t", 2, "--level", level, "-o", folder / "x.pftrace",
          "-o", folder / "x.json", "-o", folder / "x.summary.json")
    data = (folder / "x.pftrace").read_bytes()
    return folder, data, Trace(data), json.loads((folder / "x.json").read_text()), json.loads(
        (folder / "x.summary.json").read_text())


def test_first_packet_sets_clock_and_state(profile):
    _, _, trace, chrome, _ = profile
    first = trace.packets[0]
    assert first.sequence_flags & 1 and first.first_packet_on_sequence
    assert first.trace_packet_defaults.timestamp_clock_id == 64
    clocks = {c.clock_id: c.timestamp for c in first.clock_snapshot.clocks}
    assert clocks == {64: 0, REALTIME: int(chrome["otherData"]["start_time_ns"])}
    for packet in trace.packets:
        assert packet.trusted_packet_sequence_id == first.trusted_packet_sequence_id


def test_slices_are_those_of_the_chrome_trace(profile):
    """Same names, categories, times to the nanosecond and arguments."""
    _, _, trace, chrome, _ = profile
    ours = {s["args"]["span_id"]: s for s in trace.slices if "span_id" in s["args"]}
    theirs = {e["args"]["span_id"]: e for e in chrome["traceEvents"] if e["ph"] == "X" and "span_id" in e["args"]}
    assert ours.keys() == theirs.keys() and len(ours) > 10
    for key, event in theirs.items():
        one = ours[key]
        assert (one["name"], one["cat"]) == (event["name"], event["cat"])
        assert (one["ts"], one["dur"]) == (round(event["ts"] * 1000), round(event["dur"] * 1000))
        assert one["args"] == event["args"]


def test_totals_are_those_of_the_summary(profile):
    _, _, trace, _, summary = profile
    runs = [s for s in trace.slices if s["cat"] == "iteration" and "warmup" not in s["args"]]
    assert len(runs) == summary["iterations"] == 10
    steps = [s for s in trace.slices if s["cat"] == "operator" and "warmup" not in s["args"]]
    calls = Counter(s["args"]["op"] for s in steps)
    for row in summary["operators"]:
        if not row["name"].startswith("["):
            assert calls[row["name"]] == pytest.approx(row["calls"] * 10)
    # The trace shows time stamps as they were taken; the summary has the recorder's cost taken off.
    wall = sum(s["dur"] for s in runs) / len(runs) / 1e6
    cost = summary["profiler_cost_ms"]
    assert wall == pytest.approx(summary["latency_ms"]["mean"] + cost, rel=1e-3, abs=1e-5)


def test_tracks_are_a_process_with_threads_and_lanes(profile):
    _, _, trace, chrome, _ = profile
    processes = [t for t in trace.tracks.values() if t.HasField("process")]
    assert len(processes) == 1
    pid = processes[0].process.pid
    names = {e["args"]["name"] for e in chrome["traceEvents"] if e["name"] == "thread_name" and e["tid"] >= 100}
    threads = {t.thread.thread_name for t in trace.tracks.values() if t.HasField("thread")}
    assert threads == names and all(t.thread.pid == pid for t in trace.tracks.values() if t.HasField("thread"))
    lanes = {trace.tracks[s["track"]].name for s in trace.slices if s["cat"] in ("model", "iteration")}
    assert lanes == {"model", "iteration"}


def test_arrows_lead_from_operators_to_worker_slices(profile):
    _, _, trace, _, _ = profile
    starts = {f: s for s in trace.slices if s["cat"] == "operator" for f in s["flows"]}
    for one in trace.slices:
        if one["cat"] == "thread" and one["flows"]:
            step = starts[one["flows"][0]]
            assert step["args"]["span_id"] == one["args"]["parent_span_id"]
            assert step["track"] != one["track"] and step["ts"] <= one["ts"]


def test_cut_anywhere_it_opens(profile):
    folder, data, trace, _, _ = profile
    cut = folder / "cut.pftrace"
    for share in (0.5, 0.77, 0.99):
        cut.write_bytes(data[: int(len(data) * share)])
        done = subprocess.run([PROGRAM, "report", cut], capture_output=True, text=True)
        assert done.returncode == 0 and "truncated" in done.stderr
        assert done.stdout.startswith(("Graph run of", "No measured run"))


def test_report_of_onnxruntime(tmp_path):
    """A profile that ONNX Runtime itself writes: its own numbers, added up by Python."""
    ort = pytest.importorskip("onnxruntime")
    np = pytest.importorskip("numpy")
    sonde("zoo", "save", "tiny_cnn", tmp_path / "m.onnx")
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "ort")
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), options, providers=["CPUExecutionProvider"])
    feed = session.get_inputs()[0]
    x = np.ones([d if isinstance(d, int) else 1 for d in feed.shape], np.float32)
    for _ in range(7):
        session.run(None, {feed.name: x})
    path = session.end_profiling()
    sonde("report", path, "-q", "-o", tmp_path / "x.summary.json")
    summary = json.loads((tmp_path / "x.summary.json").read_text())
    events = json.load(open(path))
    runs = [e["dur"] for e in events if e["name"] == "model_run"]
    assert summary["iterations"] == 7
    assert summary["latency_ms"]["mean"] == pytest.approx(sum(runs) / 7 / 1e3, abs=1e-6)
    total = defaultdict(float)
    for e in events:
        if e["cat"] == "Node" and e["name"].endswith("_kernel_time"):
            total[e["args"]["op_name"]] += e["dur"] / 7 / 1e3
    rows = {row["name"]: row["mean_ms"] for row in summary["operators"] if not row["name"].startswith("[")}
    assert rows == pytest.approx(dict(total), abs=1e-6)


def test_diff_against_onnxruntime_and_itself(profile, tmp_path):
    folder, *_ = profile
    done = subprocess.run([PROGRAM, "diff", folder / "x.pftrace", folder / "x.json", "--json", tmp_path / "d.json",
                           "-q", "--fail-above", "1"])
    assert done.returncode == 0
    diff = json.loads((tmp_path / "d.json").read_text())
    assert diff["failed"] is False and diff["total"]["ratio"] == pytest.approx(1, abs=1e-3)


def test_report_of_pytorch(tmp_path):
    """PyTorch's form: absolute microseconds with fractions, operators inside operators."""
    base = 1_700_000_000_000_000
    events = [{"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "args": {"name": "python"}}]
    for step in range(4):
        t = base + step * 1000
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 5, "tid": 5, "ts": t,
             "dur": 900.5},
            {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 5, "tid": 5, "ts": t + 10.125, "dur": 500.0,
             "args": {"Input Dims": [[1, 8], [8, 4], []], "Input type": ["float", "float", ""]}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::addmm \"é\"", "pid": 5, "tid": 5, "ts": t + 20.25,
             "dur": 300.0, "args": {}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": t + 30, "dur": 100.0},
        ]
    path = tmp_path / "torch.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    sonde("report", path, "-q", "-o", tmp_path / "x.summary.json", "-o", tmp_path / "x.pftrace")
    summary = json.loads((tmp_path / "x.summary.json").read_text())
    rows = {row["name"]: row["mean_ms"] for row in summary["operators"]}
    assert summary["iterations"] == 4
    assert summary["latency_ms"]["mean"] == pytest.approx(0.9005)
    assert rows["aten::linear"] == pytest.approx(0.2)
    assert rows["aten::addmm \"é\""] == pytest.approx(0.3)
    assert rows["[Other]"] == pytest.approx(0.4005)
    assert len(Trace((tmp_path / "x.pftrace").read_bytes()).slices) == 12
