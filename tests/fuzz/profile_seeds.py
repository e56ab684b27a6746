# SPDX-License-Identifier: Apache-2.0
"""Saved profiles that fuzzing starts from: small ones as sonde writes them, without what only viewers read, and one
of each kind that has something in every table. The first byte picks the reader."""
import json
import struct
import subprocess

PFTRACE, CHROME, PYTORCH, ONNXRUNTIME = range(4)

# Numbers of src/profile/pftrace_fields.h.
TIMESTAMP, INTERNED, FLAGS, RECORD = 8, 12, 13, 1953
CLEARED = 1  # the first packet of a trace: another one begins the next trace of a joined file
FACTS, STEP, LIFE, THREAD, SPAN, COUNTER, END, COUNTS = range(1, 9)
MODEL, ITERATION, OPERATOR, EXECUTOR, MEMORY, SLICE, USER, DEVICE = range(8)


def varint(v):
    out = b""
    v &= (1 << 64) - 1
    while v > 0x7F:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def packed(*values):
    return b"".join(map(varint, values))


def message(fields):
    """{number: value}: int, float, text, bytes (also messages), or a list of these."""
    out = b""
    for number, value in fields.items():
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, int):
                out += varint(number << 3) + varint(v)
            elif isinstance(v, float):
                out += varint(number << 3 | 1) + struct.pack("<d", v)
            else:
                v = v.encode() if isinstance(v, str) else v
                out += varint(number << 3 | 2) + varint(len(v)) + v
    return out


def packet(kind, fields, at=None):
    inner = {} if at is None else {TIMESTAMP: at}
    return message({1: message({**inner, RECORD: message({kind: message(fields)})})})


def everything(worker="1", format=1):
    """A trace with every kind of record and nearly every field."""
    hw = message({1: 2.0, 2: 3e6, 3: 9e6, 4: 11.0, 5: 12.0})
    weight = message({1: "w", 2: "f32", 3: packed(8, 4), 5: 1, 6: 0.25})
    filters = message({1: "w", 2: "f32", 3: packed(8, 4, 1, 1), 5: 1, 6: 0.75})
    image = message({1: "x", 2: "f32", 3: packed(1, 4, -1, 5)})
    label = [message({1: "host", 2: "box"}), message({1: "worker", 2: worker}), message({1: "version", 2: "3"})]
    trace = message({1: message({FLAGS: CLEARED})}) + packet(FACTS, {
        1: format, 2: "tiny", 3: "0.1.0", 4: "CPU", 5: "avx2", 6: 4, 7: 2, 8: 3, 9: 77, 10: 1700000000000000000, 11: 40.5,
        12: 1, 13: 1, 14: 100.5, 15: 20.5, 16: packed(*range(1, 13)), 17: 1e6, 18: 400.0, 19: 3e7, 20: 100.0,
        21: packed(10**6, 5, 1, 7, 2), 22: "no counters", 26: label, 27: 10**15 + int(worker), 28: "boot", 29: 5000,
        30: "it was cut" if format == 2 else ""})
    trace += message({1: message({INTERNED: message({2: [message({1: 1, 2: "decode"}), message({1: 2, 2: "bytes"})]})})})
    for k in range(3):
        trace += packet(THREAD, {1: k, 2: 4242 + k, 3: ["main", "worker 1", ""][k]})
    steps = [{1: 1, 2: 0, 3: "Conv", 4: "conv1", 5: "Add+Relu", 6: [message({1: "conv1", 2: "Conv"}), message({1: "add"})],
              7: [image, filters, b""], 8: message({1: "y", 2: "f16", 3: packed(1, 8, 5, 5)}), 9: "f32_conv", 10: "group=1",
              11: 10**6, 12: 2000, 13: 4000, 15: hw},
             {1: 1, 2: 1, 3: "Gemm", 4: "fc", 7: [message({1: "y", 2: "f32", 3: packed(1, 4)}), weight], 10: "transB=1",
              11: 64, 12: 128},
             {1: 2, 2: 0, 3: "MatMul", 7: [message({1: "n", 2: "i64", 3: b""}), weight], 9: "f32_gemm", 14: 2},
             {1: 1, 2: 2, 3: "Loop", 4: "loop", 7: message({1: "s", 4: "seq(f32[?])"}), 14: 4},
             {1: 1, 2: 3, 3: "Constant", 4: "c0", 6: message({1: "c0", 2: "Constant"}), 14: 1}]
    for step in steps:
        trace += packet(STEP, step)
    for table, first, last, place in ((1, 0, 1, 0), (1, 1, 2, 1), (1, 1, 1, 2), (2, 0, 3, 3), (2, 0, 0, 0)):
        trace += packet(LIFE, {1: table, 2: first, 3: last, 4: f"v{first}{last}", 5: 64 * first, 6: 4096, 7: place})
    ms = 1000000
    spans = [{1: 1, 3: MODEL, 5: 60 * ms}]
    for k in range(7):  # enough for a comparison
        base = 2 + 6 * k
        spans += [{1: base, 2: 1, 3: ITERATION, 5: 7 * ms + k, 7: k + 1, 8: max(k - 1, 0), 9: int(k == 0), 11: f"Iteration{k}"},
                  {1: base + 1, 2: base, 3: OPERATOR, 5: 4 * ms + k, 6: 0, 7: k + 1, 8: max(k - 1, 0), 9: int(k == 0)},
                  {1: base + 2, 2: base + 1, 3: SLICE, 4: 1, 5: 2 * ms, 6: 0, 7: k + 1},
                  {1: base + 3, 2: base, 3: OPERATOR, 5: ms, 6: 1 + k % 3, 7: k + 1, 9: int(k == 0)}]
        spans += [[{1: base + 4, 2: base, 3: MEMORY, 5: 1000, 7: k + 1, 11: "alloc"},
                   {1: base + 4, 3: USER, 5: 8 * ms, 10: 1, 12: "token=5"},
                   {1: base + 4, 2: base, 3: EXECUTOR, 5: ms // 2, 11: "body"}][k % 3]]
        spans += [{1: base + 5, 2: base + 4 if k > 2 else 0, 3: DEVICE, 4: 2, 5: ms, 11: "execution"}]
    for k, span in enumerate(spans):
        trace += packet(SPAN, span, at=k * ms)
    trace += packet(COUNTER, {1: 2, 3: 4096.0, 4: 0}, at=5 * ms) + packet(COUNTER, {2: "used bytes", 3: 1.5}, at=9 * ms)
    return trace + packet(COUNTS, {1: 1, 2: hw}) + packet(END, {})


def fields_of(data):
    """[(number, wire type, bytes of the field, its content)]"""
    at = 0

    def number():
        nonlocal at
        v = shift = 0
        while True:
            byte = data[at]
            at += 1
            v |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return v

    out = []
    while at < len(data):
        start = at
        tag = number()
        if tag & 7 == 0:
            number()
            content = b""
        else:
            size = {1: 8, 2: None, 5: 4}[tag & 7]
            size = number() if size is None else size
            content = data[at:at + size]
            at += size
        out.append((tag >> 3, tag & 7, data[start:at], content))
    return out


def without_views(trace):
    """The packets with what a reader of ours looks at."""
    out = b""
    for _, _, _, body in fields_of(trace):
        kept = b"".join(f[2] for f in fields_of(body) if f[0] in (TIMESTAMP, INTERNED, FLAGS, RECORD))
        out += message({1: kept})
    return out


def add_events(text):
    """The kinds of events that a run of a model does not have, into a Chrome trace."""
    trace = json.loads(text)
    for k, (cat, name) in enumerate((("device", "execution"), ("device", "kernel"), ("user", "decode"), ("thread", "slice"))):
        trace["traceEvents"].append({"ph": "X", "name": name, "cat": cat, "pid": 7, "tid": 100, "ts": 5.5 + k, "dur": 2,
                                     "args": {"span_id": 900 + k, "parent_span_id": 900 if k == 1 else 1, "run": 1, "args": "a=b"}})
    trace["traceEvents"].append({"ph": "C", "name": "used bytes", "pid": 7, "tid": 0, "ts": 7, "args": {"value": 12.5}})
    trace["otherData"]["usage"] = {"cpu_ns": 5, "minor_faults": 2}
    trace["otherData"]["peaks"] = {"gflops": 100.5, "gbps": 20, "l2_bytes": 1e6, "l2_gbps": 400, "i8_tiles": 5000}
    trace["otherData"]["folded_nodes"] = [{"name": "c1", "op": "Constant"}]
    return json.dumps(trace, separators=(",", ":")).encode()


def torch():
    spans = []
    for k in range(5):
        spans += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{k}", "tid": 5, "ts": 10.5 + 100 * k, "dur": 90},
                  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "tid": 5, "ts": 20 + 100 * k, "dur": 50 + k,
                   "args": {"Input Dims": [[1, 3], [3, 4], []], "Input type": ["float", "c10::Half", ""]}},
                  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "tid": 5, "ts": 22 + 100 * k, "dur": 40}]
    spans += [{"ph": "X", "cat": "user_annotation", "name": "my scope", "tid": "stream 7", "ts": 10, "dur": 5},
              {"ph": "X", "cat": "Operator", "name": "Optimizer.step#SGD.step", "tid": 6, "ts": 10, "dur": 5}]
    return json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": spans}).encode()


def onnxruntime():
    args = {"op_name": "Conv", "provider": "CPUExecutionProvider", "input_type_shape": [{"float": [1, 3, 8, 8]}, {"int64": []}],
            "output_type_shape": [{"float16": [1, 4]}]}
    spans = [{"cat": "Session", "tid": 9, "dur": 3, "ts": 1, "ph": "X", "name": "session_initialization", "args": {}}]
    for k in range(5):
        spans += [{"cat": "Node", "tid": 9, "dur": 30 + k, "ts": 10 + 100 * k, "ph": "X", "name": "a_kernel_time", "args": args},
                  {"cat": "Node", "tid": 9 + k % 2, "dur": 9, "ts": 45 + 100 * k, "ph": "X", "name": "b_kernel_time",
                   "args": {"op_name": "Relu"}},
                  {"cat": "Session", "tid": 9, "dur": 80, "ts": 5 + 100 * k, "ph": "X", "name": "model_run", "args": {}}]
    return json.dumps(spans).encode()


def profile_seeds(program, folder):
    def add(name, reader, data):
        (folder / name).write_bytes(bytes([reader]) + data)

    def run(name, model, *options):
        path = folder / name
        subprocess.run([program, "profile", f"zoo:{model}", "-q", "-n", "1", "-w", "0", *options, "-o", path], check=True,
                       capture_output=True)
        return path.read_bytes()

    # Small ones: what a run costs follows the size of its input.
    lanes = ("tiny_mlp", "--level", "3", "--counters", "-t", "2")
    add("as_written.pftrace", 7, run("as_written.pftrace", *lanes))  # the content says what it is
    add("lanes.pftrace", PFTRACE, without_views(run("lanes.pftrace", *lanes)))
    add("loop.pftrace", PFTRACE, without_views(run("loop.pftrace", "tiny_loop", "--memory")))
    add("lanes.json", CHROME, add_events(run("lanes.json", *lanes)))
    add("everything.pftrace", PFTRACE, everything())
    add("joined.pftrace", PFTRACE, everything("1", 2) + everything("2", 2) + everything("3", 2)[:-2000])
    add("torch.json", PYTORCH, torch())
    add("onnxruntime.json", ONNXRUNTIME, onnxruntime())
