# SPDX-License-Identifier: Apache-2.0
"""One profile in every format, each read back by a reader that is not ours: the figures are the same.

SONDE_PROGRAM names the program; without it everything here is skipped. SONDE_FULL=1 also lets LibreOffice
recalculate the workbook, where it is installed.
"""

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict

import pytest

from patience import PATIENCE

PROGRAM = os.environ.get("SONDE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="SONDE_PROGRAM is not set")

RUNS = 5
FORMATS = ["csv", "xlsx", "pb.gz", "summary.json", "json", "folded", "md", "pftrace"]
WEIGHT_TITLES = "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others".split(",")
TITLES = (
    "operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor name,output shape,"
    "output dtype,weight shape,weight sparse ratio,sparse support,operator latency (ms),aim to weight sparse ratio,"
    "sparse kernel pref ratio,aim to sparse latency(ms)"
).split(",")
STRANGE = ['quo"ted', "com,ma", "two\nlines", "größe/日本", "=SUM(A1:A9)", "@cmd", "-1+1", "+x", "semi;colon", "<&>",
           "'single'", "\ttab", " spaces ", "emoji 😀"]


def profile(model, folder, *options, formats=FORMATS, runs=RUNS):
    """The files of one run, by suffix."""
    files = {f: folder / f"a.{f}" for f in formats}
    outputs = [x for path in files.values() for x in ("-o", str(path))]
    own = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}  # no ratios that were measured earlier
    done = subprocess.run([PROGRAM, "profile", str(model), "-n", str(runs), "-q", *options, *outputs],
                          capture_output=True, text=True, timeout=PATIENCE, env=own)
    assert done.returncode == 0, done.stderr
    return files


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return profile("zoo:tiny_cnn", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """Products of every kind, most of its time in what weights could make sparse."""
    return profile("zoo:bert_mini", tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A chain of nodes whose names and values are called what nobody should call them, around a product with a
    scalar and three products with weights of 0, 75 and 0 % zeros."""
    np = pytest.importorskip("numpy")
    onnx = pytest.importorskip("onnx")
    h, nh, T = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    folder = tmp_path_factory.mktemp("strange")
    dense = np.arange(1, 257, dtype=np.float32).reshape(16, 16) / 256
    sparse = np.where(np.arange(256).reshape(16, 16) % 4, 0, dense).astype(np.float32)
    nodes, last = [], "x"
    for i, name in enumerate(STRANGE):
        out = f"{name} out"
        nodes.append(h.make_node(["Sin", "Cos", "Tan"][i % 3], [last], [out], name=name))
        last = out
    nodes += [h.make_node("Mul", [last, "scalar"], ["scaled"], name="times a scalar"),
              h.make_node("MatMul", ["scaled", "dense"], ["m0"], name="dense product"),
              h.make_node("MatMul", ["m0", "sparse"], ["m1"], name="sparse product"),
              h.make_node("Gemm", ["m1", "odd"], ["y"], name="odd product"),
              h.make_node("ReduceSum", ["y"], ["all"], name="to a scalar", keepdims=0),
              h.make_node("Sqrt", ["all"], ["root"], name="of a scalar")]
    weights = [nh.from_array(np.float32(0.5), "scalar"), nh.from_array(dense, "dense"),
               nh.from_array(sparse, "sparse"), nh.from_array(dense[:, :6], "odd")]
    graph = h.make_graph(nodes, "strange", [h.make_tensor_value_info("x", T.FLOAT, [4, 16])],
                         [h.make_tensor_value_info("root", T.FLOAT, [])], weights)
    path = folder / "strange, \"model\".onnx"
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), path)
    return profile(path, folder, "--disable-pass", "fuse-elementwise")


# ---- readers ----------------------------------------------------------------------------------------------


class Csv:
    """The three parts, and formulas by a calculator that knows only those of this format."""

    def __init__(self, path):
        with open(path, newline="", encoding="utf-8") as f:
            self.cells = list(csv.reader(f, strict=True))
        titles = self.cells.index(TITLES)
        assert self.cells[0] == WEIGHT_TITLES
        self.weights = self.cells[1:titles]
        self.rows = [dict(zip(TITLES, row, strict=True)) for row in self.cells[titles + 1:-4]]
        self.totals = self.cells[-4:-1]
        self.note = self.cells[-1]

    def cell(self, name):
        column, row = re.fullmatch(r"([A-R])(\d+)", name).groups()
        return self.value(self.cells[int(row) - 1][ord(column) - ord("A")])

    def value(self, text):
        """What a program calculates that by default takes nothing but plain numbers for numbers: TRUE and 90% are
        words to it, as they are to LibreOffice."""
        if text.startswith("=IF("):
            aim, p = re.fullmatch(
                r"=IF\((N\d+)=0\.9,B(\d+),IF\(\1=0\.8,C\2,IF\(\1=0\.7,D\2,E\2\)\)\)", text).groups()
            column = {0.9: "B", 0.8: "C", 0.7: "D"}.get(self.cell(aim), "E")
            return self.cell(column + p)
        if m := re.fullmatch(r"=SUM\(P(\d+):P(\d+)\)", text):
            return sum(self.cell(f"P{r}") for r in range(int(m[1]), int(m[2]) + 1))
        if m := re.fullmatch(r'=SUMIF\(O(\d+):O(\d+),">0",P\1:P\2\)(?:\+([\d.]+))?', text):
            rows = range(int(m[1]), int(m[2]) + 1)
            return sum((self.cell(f"P{r}") for r in rows if self.cells[r - 1][14] and self.cell(f"O{r}") > 0),
                       float(m[3] or 0))
        if m := re.fullmatch(r"=(\w+)/(\w+)", text):
            return self.cell(m[1]) / self.cell(m[2])
        assert re.fullmatch(r"\d+(\.\d+)?", text), text
        return float(text)


def pprof_classes():
    """Messages of pprof's profile.proto, described here rather than generated."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory

    kinds = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
    messages = {
        "ValueType": "type:int64=1 unit:int64=2",
        "Label": "key:int64=1 str:int64=2 num:int64=3 num_unit:int64=4",
        "Sample": "*location_id:uint64=1 *value:int64=2 *label:Label=3",
        "Mapping": "id:uint64=1 memory_start:uint64=2 memory_limit:uint64=3 file_offset:uint64=4 filename:int64=5",
        "Line": "function_id:uint64=1 line:int64=2",
        "Location": "id:uint64=1 mapping_id:uint64=2 address:uint64=3 *line:Line=4 is_folded:bool=5",
        "Function": "id:uint64=1 name:int64=2 system_name:int64=3 filename:int64=4 start_line:int64=5",
        "Profile": "*sample_type:ValueType=1 *sample:Sample=2 *mapping:Mapping=3 *location:Location=4"
                   " *function:Function=5 *string_table:string=6 drop_frames:int64=7 keep_frames:int64=8"
                   " time_nanos:int64=9 duration_nanos:int64=10 period_type:ValueType=11 period:int64=12"
                   " *comment:int64=13 default_sample_type:int64=14",
    }
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="pprof", syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            many, title, kind, number = re.fullmatch(r"(\*?)(\w+):(\w+)=(\d+)", field).groups()
            row = message.field.add(name=title, number=int(number), label=3 if many else 1,
                                    type=kinds.get(kind, 11))
            if kind not in kinds:
                row.type_name = f".pprof.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))


class Pprof:
    def __init__(self, path):
        unknown_fields = pytest.importorskip("google.protobuf.unknown_fields")
        self.profile = p = pprof_classes()()
        p.ParseFromString(gzip.decompress(path.read_bytes()))
        assert len(unknown_fields.UnknownFieldSet(p)) == 0
        functions = {f.id: (self.text(f.filename), self.text(f.name)) for f in p.function}
        self.locations = {x.id: functions[x.line[0].function_id] for x in p.location}
        assert len(self.locations) == len(p.location) and 0 not in self.locations
        self.types = [(self.text(t.type), self.text(t.unit)) for t in p.sample_type]

    def text(self, index):
        return self.profile.string_table[index]

    def stack(self, sample):
        """Kind ► name, the leaf first."""
        return dict(self.locations[i] for i in sample.location_id)


def workbook(path, values):
    return pytest.importorskip("openpyxl").load_workbook(path, data_only=values)


def table(sheet):
    rows = list(sheet.iter_rows(values_only=True))
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def by_operator(rows):
    sums = defaultdict(float)
    for name, ms in rows:
        sums[name] += ms
    return dict(sums)


def near(a, b, tolerance=1e-6):
    """Milliseconds; texts round to nanoseconds."""
    return a == pytest.approx(b, rel=1e-6, abs=tolerance)


def summary_of(files):
    return json.loads(files["summary.json"].read_text())


# ---- the same figures everywhere ----------------------------------------------------------------------------


@pytest.fixture(params=["tiny", "strange", "bert"])
def files(request):
    return request.getfixturevalue(request.param)


def test_wall_time_is_the_same_in_every_format(files):
    summary = summary_of(files)
    mean = summary["latency_ms"]["mean"]
    assert summary["iterations"] == RUNS
    sheet = Csv(files["csv"])
    assert sheet.totals[0][11] == "total latency(ms)"
    assert near(float(sheet.totals[0][12]), mean)
    assert near(sum(float(r["operator latency (ms)"]) for r in sheet.rows), mean)

    totals = {r["arguments"]: r["value"] for r in table(workbook(files["xlsx"], True)["Totals"])}
    assert near(totals["total latency(ms)"], mean)
    facts = {r[0]: r[1] for r in workbook(files["xlsx"], True)["Summary"].iter_rows(values_only=True)}
    for key, title in {"mean": "mean", "min": "min", "p50": "median", "p90": "p90", "p95": "p95", "p97": "p97",
                       "p99": "p99", "p999": "p99.9", "max": "max", "stddev": "standard deviation"}.items():
        assert near(facts[f"latency {title} (ms)"], summary["latency_ms"][key]), key

    pprof = Pprof(files["pb.gz"])
    wall = sum(s.value[0] for s in pprof.profile.sample)
    assert near(wall / RUNS / 1e6, mean, 1e-5)
    assert near(pprof.profile.duration_nanos / RUNS / 1e6, mean)

    folded = sum(int(line.rsplit(" ", 1)[1]) for line in files["folded"].read_text().splitlines())
    assert near(folded / RUNS / 1e6, mean, 1e-5)

    trace = json.loads(files["json"].read_text())
    spans = [e["dur"] for e in trace["traceEvents"]
             if e["ph"] == "X" and e["cat"] == "iteration" and not e["args"].get("warmup")]
    cost = float(trace["otherData"]["profiler_cost_ms_per_iteration"])
    assert len(spans) == RUNS
    assert near(sum(spans) / RUNS / 1000 - cost, mean, 2e-6)

    page = files["md"].read_text()
    unit = {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1e3}[re.search(r"^\| latency \| (\w+) \|$", page, re.M)[1]]
    stated = re.search(r"^\| mean \| ([\d.]+) \|$", page, re.M)[1]
    decimals = len(stated.partition(".")[2])
    assert decimals == (2 if unit == 1e-6 else 3)
    rounded = 0.5001 * (10.0**-decimals + 1e-6 / unit)  # here, and in the summary, which has whole nanoseconds
    assert float(stated) == pytest.approx(mean / unit, abs=rounded)


def test_operators_take_the_same_time_in_every_format(files):
    expected = {r["name"]: r["mean_ms"] for r in summary_of(files)["operators"]}
    sheet = Csv(files["csv"])
    book = workbook(files["xlsx"], True)
    pprof = Pprof(files["pb.gz"])
    found = {
        "csv": by_operator((r["operator type"], float(r["operator latency (ms)"])) for r in sheet.rows),
        "xlsx": by_operator((r["operator type"], r["operator latency (ms)"]) for r in table(book["Operators"])),
        "pprof": by_operator((pprof.stack(s)["operator"], s.value[0] / RUNS / 1e6) for s in pprof.profile.sample),
    }
    rows = list(book["Summary"].iter_rows(values_only=True))
    first = next(i for i, row in enumerate(rows) if row[0] == "operator")
    found["xlsx summary"] = {row[0]: row[2] for row in rows[first + 1:]}
    for name, got in found.items():
        got = {k: v for k, v in got.items() if v or k in expected}  # folded nodes took no time
        assert set(got) == set(expected), name
        for op, ms in expected.items():
            assert near(got[op], ms, 1e-5), (name, op)


def test_calls_flops_and_bytes_add_up_in_pprof(files):
    pprof = Pprof(files["pb.gz"])
    assert pprof.types == [("wall", "nanoseconds"), ("calls", "count"), ("flops", "count"), ("bytes", "bytes")]
    expected = summary_of(files)["operators"]
    for k, key in enumerate(["calls", "flops", "bytes"], 1):
        assert sum(s.value[k] for s in pprof.profile.sample) == pytest.approx(RUNS * sum(r[key] for r in expected))
    assert pprof.text(0) == ""
    assert pprof.text(pprof.profile.default_sample_type) == "wall"
    assert pprof.profile.time_nanos > 1.6e18
    assert any("measured runs" in pprof.text(c) for c in pprof.profile.comment)


# ---- the sheets -----------------------------------------------------------------------------------------


def test_workbook_and_csv_hold_the_same_rows(files):
    plain = Csv(files["csv"])
    live, values = workbook(files["xlsx"], False), workbook(files["xlsx"], True)
    assert live.sheetnames == ["Summary", "Operators", "Weights", "Totals"]
    shown = table(values["Operators"])
    assert list(shown[0]) == TITLES
    for row, other in zip(plain.rows, shown, strict=True):
        assert other["sparse support"] is (row["sparse support"] == "TRUE")
        assert near(plain.value(row["aim to sparse latency(ms)"]), other["aim to sparse latency(ms)"])
        ratio = row["sparse kernel pref ratio"]
        assert other["sparse kernel pref ratio"] == (plain.value(ratio) if ratio else None)
        for title in ["operator type", "post op", "input shape", "input dtype", "output shape", "weight shape"]:
            assert (other[title] or "") == row[title], title
    weights = [list(map(str, r)) for r in values["Weights"].iter_rows(values_only=True)]
    assert weights[0] == WEIGHT_TITLES
    assert weights[1:len(plain.weights) + 1] == plain.weights
    assert plain.note == ["note: the perf ratios are assumed, not measured"]
    assert weights[-1][0] == plain.note[0]
    for sheet in live:
        assert sheet.freeze_panes == "A2"
        assert sheet.auto_filter.ref
    assert len(live["Summary"]._charts) == 1
    assert [str(r.sqref) for r in live["Operators"].conditional_formatting] == [f"M2:M{len(shown) + 1}"]


def test_totals_follow_from_the_rows(files):
    plain = Csv(files["csv"])
    totals = {r["arguments"]: r["value"] for r in table(workbook(files["xlsx"], True)["Totals"])}
    shown = {}
    for row in plain.totals:
        for label, cell in zip(row[11::1], row[12::1]):
            if re.match(r"(total|sparse|aim)", label):
                shown[label] = plain.value(cell)
    assert list(shown) == ["total latency(ms)", "total aim to sparse latency(ms)", "sparse improve",
                           "sparse support latency(ms)", "aim to sparse support latency(ms)",
                           "sparse support latency ratio", "aim to sparse support latency ratio"]
    for label, value in shown.items():
        assert near(totals[label], value, 1e-5), label


@pytest.mark.parametrize("model", ["tiny_cnn", "tiny_loop"])
def test_both_formats_that_can_be_read_back_make_the_same_frame(model, tmp_path):
    """Also of what runs beside the operators: memory, bodies of loops, workers."""
    sonde = pytest.importorskip("sonde")
    saved = profile(f"zoo:{model}", tmp_path, "--level", "3", "-t", "2", formats=["json", "pftrace"])
    trace, perfetto = (sonde.load_profile(saved[f]).columns() for f in ("json", "pftrace"))
    assert any(cat == "memory" and iteration for cat, iteration in zip(perfetto["cat"], perfetto["iteration"]))
    for column in perfetto:
        assert list(trace[column]) == list(perfetto[column]), column


def test_strange_names_survive_in_traces_and_summaries(strange):
    trace = json.loads(strange["json"].read_text())
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "operator"]
    assert set(STRANGE) <= {e["name"] for e in steps}
    assert set(STRANGE) <= {n for e in steps for n in e["args"]["nodes"]}
    assert trace["otherData"]["model"] == 'strange, "model".onnx'
    assert set(STRANGE) <= {r["node"] for r in summary_of(strange)["nodes"]}
    stacks = {line.rsplit(" ", 1)[0].split(";")[2] for line in strange["folded"].read_text().splitlines()
              if line.count(";") >= 2}
    # One line a stack, frames between semicolons, a space before the number: a format without quotes.
    assert {"".join(":" if c == ";" else "_" if c <= " " else c for c in name) for name in STRANGE} <= stacks
    # The native format, by what is made of it again, and by Perfetto's own classes.
    again = strange["json"].parent / "again.json"
    subprocess.run([PROGRAM, "report", strange["pftrace"], "-q", "-o", again], check=True, timeout=PATIENCE)
    assert json.loads(again.read_text()) == trace
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    packets = messages.Trace.FromString(strange["pftrace"].read_bytes()).packet
    assert set(STRANGE) <= {n.name for p in packets for n in p.interned_data.event_names}


def test_strange_names_survive(strange):
    rows = {r["operator name"]: r for r in Csv(strange["csv"]).rows}
    cells = {r["operator name"] for r in table(workbook(strange["xlsx"], False)["Operators"])}
    pprof = Pprof(strange["pb.gz"])
    nodes = {pprof.stack(s).get("node") for s in pprof.profile.sample}
    for name in STRANGE:
        harmless = "'" + name if name[0] in "=+-@\t" else name
        assert harmless in rows
        assert all(not cell or cell[0] not in "+-@\t\r" for cell in rows[harmless].values())
        assert name in cells
        assert name in nodes
    for values in rows.values():
        for title, cell in values.items():
            assert not cell.startswith("=") or title in ("sparse kernel pref ratio", "aim to sparse latency(ms)")
    operators = workbook(strange["xlsx"], False)["Operators"]
    assert all(c.data_type != "f" for row in operators.iter_rows(min_row=2, max_col=10) for c in row)


def test_scalars_keep_their_column(strange):
    rows = {r["operator name"]: r for r in Csv(strange["csv"]).rows}
    scaled = rows["times a scalar"]
    assert scaled["input shape"].split(";") == ["4x16", ""]
    assert len(scaled["input dtype"].split(";")) == 2
    root = rows["of a scalar"]
    assert (root["input shape"], root["input dtype"], root["output shape"], root["output dtype"]) == (
        "", "fp32", "", "fp32")


def test_sparse_support_and_zeros_come_from_the_weights(strange):
    rows = {r["operator name"]: r for r in Csv(strange["csv"]).rows}
    dense, sparse, odd = (rows[f"{k} product"] for k in ("dense", "sparse", "odd"))
    assert [r["sparse support"] for r in (dense, sparse, odd)] == ["TRUE", "TRUE", "FALSE"]
    assert [r["weight shape"] for r in (dense, sparse, odd)] == ["16x16", "16x16", "16x6"]
    assert [r["weight sparse ratio"] for r in (dense, sparse, odd)] == ["0.00%", "75.00%", "0.00%"]
    assert dense["aim to weight sparse ratio"] == "0.9"
    assert odd["aim to weight sparse ratio"] == ""
    assert sparse["aim to weight sparse ratio"] == ""
    assert sparse["aim to sparse latency(ms)"] == sparse["operator latency (ms)"]
    assert Csv(strange["csv"]).weights == [["16x16", "4", "2.5", "2", "1"]]


def test_zeros_are_counted_in_weights_of_other_types(tmp_path):
    np = pytest.importorskip("numpy")
    onnx = pytest.importorskip("onnx")
    h, T = onnx.helper, onnx.TensorProto
    weight = np.where(np.arange(256).reshape(16, 16) % 4, -0.0, 1.0)  # -0 is a zero
    kinds = {"half": T.FLOAT16, "brain": T.BFLOAT16, "double": T.DOUBLE}
    graph = h.make_graph(
        [h.make_node("MatMul", [f"x_{k}", f"w_{k}"], [f"y_{k}"], name=k) for k in kinds], "types",
        [h.make_tensor_value_info(f"x_{k}", t, [4, 16]) for k, t in kinds.items()],
        [h.make_tensor_value_info(f"y_{k}", t, [4, 16]) for k, t in kinds.items()],
        [h.make_tensor(f"w_{k}", t, [16, 16], weight.ravel()) for k, t in kinds.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10), tmp_path / "types.onnx")
    rows = {r["operator name"]: r for r in Csv(profile(tmp_path / "types.onnx", tmp_path, formats=("csv",))["csv"]).rows
            if r["operator type"] == "MatMul"}
    assert {k: rows[k]["weight sparse ratio"] for k in kinds} == dict.fromkeys(kinds, "75.00%")
    rows = [r for r in Csv(profile("zoo:tiny_resnet_int8", tmp_path, formats=("csv",))["csv"]).rows if r["weight shape"]]
    assert len(rows) > 5 and all(re.fullmatch(r"\d+\.\d\d%", r["weight sparse ratio"]) for r in rows)


def test_folded_nodes_have_rows_only_where_they_are_asked_for(bert, tmp_path):
    again = {}
    for name, options in {"without": [], "with": ["--folded-nodes"]}.items():
        again[name] = [tmp_path / f"{name}.csv", tmp_path / f"{name}.xlsx"]
        outputs = [x for path in again[name] for x in ("-o", str(path))]
        subprocess.run([PROGRAM, "report", str(bert["pftrace"]), "-q", *options, *outputs], check=True,
                       capture_output=True)
    assert again["without"][0].read_bytes() == bert["csv"].read_bytes()
    assert len(Csv(bert["csv"]).rows) < 50
    short, whole = (Csv(again[name][0]).rows for name in ("without", "with"))
    nothing = [r for r in whole if r["operator latency (ms)"] == "0" and r not in short]
    assert len(nothing) == len(whole) - len(short) > 200
    assert near(*(sum(float(r["operator latency (ms)"]) for r in rows) for rows in (short, whole)))
    for name, rows in (("without", short), ("with", whole)):
        book = table(workbook(again[name][1], True)["Operators"])
        assert [r["operator name"] or "" for r in book] == [r["operator name"] for r in rows]


def test_ratios_and_aim_are_settable(tmp_path):
    files = profile("zoo:tiny_mlp", tmp_path, "--sparse-ratio", "90=6,80=3,others=1.5", "--sparse-aim", "80",
                    formats=["csv", "xlsx"])
    sheet = Csv(files["csv"])
    assert [w[1:] for w in sheet.weights] == [["6", "3", "2", "1.5"]]
    row = next(r for r in sheet.rows if r["sparse support"] == "TRUE")
    assert row["aim to weight sparse ratio"] == "0.8"
    assert near(sheet.value(row["aim to sparse latency(ms)"]), float(row["operator latency (ms)"]) / 3)
    shown = next(r for r in table(workbook(files["xlsx"], True)["Operators"]) if r["sparse support"])
    assert shown["sparse kernel pref ratio"] == 3
    for bad in (["--sparse-ratio", "95=2"], ["--sparse-ratio", "90=0"], ["--sparse-ratio", "90"],
                ["--sparse-aim", "100"], ["--sparse-aim", "many"]):
        done = subprocess.run([PROGRAM, "profile", "zoo:tiny_mlp", "-n", "1", *bad], capture_output=True, text=True)
        assert done.returncode == 2 and bad[0] in done.stderr, done.stderr


def needs_libreoffice(test):
    test = pytest.mark.skipif(os.environ.get("SONDE_FULL") != "1", reason="SONDE_FULL=1 asks for it")(test)
    return pytest.mark.skipif(not shutil.which("soffice"), reason="LibreOffice is not installed")(test)


def libreoffice(folder, *arguments):
    """Converts files to workbooks in folder/out; a profile of its own keeps it from what else may run."""
    subprocess.run(["soffice", f"-env:UserInstallation=file://{folder}/office", "--headless", "--convert-to", "xlsx",
                    "--outdir", str(folder / "out"), *map(str, arguments)], check=True, capture_output=True,
                   timeout=PATIENCE, env={**os.environ, "LC_ALL": "en_US.UTF-8"})


@needs_libreoffice
def test_libreoffice_calculates_the_cached_values(files, tmp_path):
    """It opens the workbook as it is, and calculates a copy whose cached values are gone."""
    whole, bare, out = tmp_path / "whole.xlsx", tmp_path / "bare.xlsx", tmp_path / "out"
    shutil.copy(files["xlsx"], whole)
    workbook(files["xlsx"], False).save(bare)  # openpyxl writes formulas without values
    libreoffice(tmp_path, whole, bare)
    live, cached = workbook(files["xlsx"], False), workbook(files["xlsx"], True)
    formulas = 0
    for name in ("whole.xlsx", "bare.xlsx"):
        theirs = workbook(out / name, True)
        assert len(workbook(out / name, False)["Summary"]._charts) == 1
        for cell in (c for sheet in live for row in sheet.iter_rows() for c in row if c.value is not None):
            where = cell.parent.title, cell.coordinate
            ours, got = (book[where[0]][where[1]].value for book in (cached, theirs))
            formulas += cell.data_type == "f"
            if isinstance(ours, (int, float)):
                assert got == pytest.approx(ours, rel=1e-6, abs=1e-8), (name, where, cell.value)
            else:
                assert got == ours, (name, where)
    assert formulas >= 2 * 9


# Nothing said: what --convert-to does. Then what the dialogue offers: comma, quotation mark, UTF-8, from line 1,
# English, and special numbers such as 90% detected or not.
IMPORTS = {"default": (), "dialogue": ("--infilter=CSV:44,34,76,1,,1033,false,false",),
           "special numbers": ("--infilter=CSV:44,34,76,1,,1033,false,true",)}


@needs_libreoffice
@pytest.mark.parametrize("way", IMPORTS)
def test_libreoffice_calculates_the_csv(files, way, tmp_path):
    """However it is opened, the formulas give what the workbook and the table say."""
    plain = Csv(files["csv"])
    libreoffice(tmp_path, *IMPORTS[way], files["csv"])
    sheet = workbook(tmp_path / "out" / "a.xlsx", True).active
    formulas = 0
    for r, row in enumerate(plain.cells, 1):
        for c, text in enumerate(row, 1):
            if text.startswith("="):
                assert sheet.cell(r, c).value == pytest.approx(plain.value(text), rel=1e-6, abs=1e-8), text
                formulas += 1
    assert formulas >= 5
    totals = {r["arguments"]: r["value"] for r in table(workbook(files["xlsx"], True)["Totals"])}
    last = len(plain.cells)
    shown = {sheet.cell(r, c).value: sheet.cell(r, c + 1).value for r in range(last - 3, last) for c in (12, 15, 17)}
    labels = [label for label, value in totals.items() if value is not None]
    assert len(labels) == 7
    for label in labels:
        assert near(shown[label], totals[label], 1e-5), label
    assert near(shown["total latency(ms)"], summary_of(files)["latency_ms"]["mean"])
