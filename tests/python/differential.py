# SPDX-License-Identifier: Apache-2.0
"""Random small models, run by sonde and by ONNX Runtime; the onnx reference evaluator stands in where
ONNX Runtime refuses a model and decides where the two disagree.

    differential.py --seed 1 --count 1000        model i of seed 1 has the seed 1000000 + i
    differential.py --only 1000042 --minimize    one model again, made as small as it still fails

A child process runs the models, so that one that crashes or hangs is named and counted like any other.
SONDE_LIBRARY names the library. The exit status is 1 when anything failed."""

import argparse
import collections
import json
import os
import pathlib
import random
import select
import subprocess
import sys

import numpy as np
import onnx
import onnx.inliner
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import exact_onnxruntime  # noqa: F401
import libsonde
from random_models import Model, build
from random_models.builder import Value

SECONDS_PER_MODEL = 60
MODELS_PER_CHILD = 500
LEVELS = ("baseline", "avx2", "avx512", "neon")

onnxruntime.set_default_logger_severity(4)


# ---- engines


OF_BYTES = {"MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "QGemm", "MatMulIntegerToFloat",
            "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QAttention"}


class OnnxRuntime:
    """Without its rewrites: what is compared is the operators' meaning."""

    def __init__(self, proto):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        make = onnxruntime.InferenceSession
        if any(node.op_type in OF_BYTES for node in proto.graph.node):
            make = exact_onnxruntime.plain_session
        self.session = make(proto.SerializeToString(), options)

    def run(self, feeds):
        return self.session.run(None, feeds)


class Reference:
    def __init__(self, proto):
        if goes_backward(proto.graph.node):
            raise NotImplementedError("the reference computes direction='reverse' as 'forward'")
        self.evaluator = ReferenceEvaluator(proto)

    def run(self, feeds):
        with np.errstate(all="ignore"):
            return self.evaluator.run(None, feeds)


class NodeByNode:
    """For models with a node that ONNX Runtime has no kernel for: that node alone by the reference."""

    engines = (OnnxRuntime, Reference)

    def __init__(self, proto):
        self.proto = onnx.inliner.inline_local_functions(proto) if proto.functions else proto

    def run(self, feeds):
        known = {t.name: numpy_helper.to_array(t) for t in self.proto.graph.initializer} | feeds
        for node in self.proto.graph.node:
            names = sorted({n for n in reads([node]) if n in known})
            g = helper.make_graph([node], "node", [info(n, known[n]) for n in names],
                                  [helper.make_empty_tensor_value_info(o) for o in node.output if o])
            one = onnx.ModelProto()
            one.CopyFrom(self.proto)
            one.graph.CopyFrom(g)
            given = {n: known[n] for n in names}
            first, second = self.engines
            try:
                results = first(one).run(given)
            except Exception:  # noqa: BLE001
                if node.op_type == "Loop" and second is Reference:
                    raise  # the reference joins what iterations give instead of stacking it
                results = second(one).run(given)
            known.update(zip([o for o in node.output if o], results))
        return [known[o.name] for o in self.proto.graph.output]


class Arbiter(NodeByNode):
    """The reference, and ONNX Runtime for nodes that it does not know."""

    engines = (Reference, OnnxRuntime)


def info(name, data):
    if isinstance(data, list):
        return helper.make_tensor_sequence_value_info(name, element_type(data[0]), None)
    return helper.make_tensor_value_info(name, element_type(data), np.shape(data))


def element_type(data):
    dtype = np.asarray(data).dtype
    return onnx.TensorProto.STRING if dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(dtype)


def goes_backward(nodes):
    """Is there a recurrent layer with another direction than forward among nodes and their bodies?"""
    return any(a.name == "direction" and a.s != b"forward" if n.op_type in ("RNN", "GRU", "LSTM")
               else a.HasField("g") and goes_backward(a.g.node) for n in nodes for a in n.attribute)


def reads(nodes):
    """Every name that nodes and their bodies read."""
    found = set()
    for n in nodes:
        found.update(i for i in n.input if i)
        for a in n.attribute:
            if a.HasField("g"):
                found |= reads(a.g.node)
    return found


def answer(proto, feeds):
    """(engine, its outputs): ONNX Runtime's, with the reference's help where it has no kernel; None where
    both refuse."""
    for engine in (OnnxRuntime, NodeByNode):
        try:
            made = engine(proto)
            return made, made.run(feeds)
        except Exception:  # noqa: BLE001  (engines raise whatever they like)
            continue
    return None


CONTEXTS = {}


def context(threads, cpu):
    key = (threads, cpu)
    if key not in CONTEXTS:
        CONTEXTS[key] = libsonde.Context(threads, cpu)
    return CONTEXTS[key]


def levels_here():
    """None (the best) and every instruction level this machine has."""
    found = [None]
    for level in LEVELS:
        try:
            context(1, level)
            found.append(level)
        except libsonde.Failure:
            pass
    return found


def ways(seed):
    """Two ways to run a model: as users do, and with switches that the seed picks."""
    rng = random.Random(seed ^ 0x5eed)
    levels = levels_here()
    first = {"threads": rng.choice((1, 1, 2)), "cpu": None, "buffers": rng.random() < 0.2}
    second = {"threads": rng.choice((1, 1, 2)), "cpu": rng.choice(levels), "buffers": rng.random() < 0.3,
              "no_optimize": int(rng.random() < 0.4), "no_prepack": int(rng.random() < 0.3)}
    if not second["no_optimize"]:
        second["without"] = [p for p in libsonde.pass_names() if rng.random() < 0.3]
    second["cut"] = rng.choice((None, None, None, "inner", "partial"))
    return [first, second]


# ---- comparing


def difference(a, b, value):
    """What is wrong with a, or None."""
    if isinstance(b, (list, tuple)) or isinstance(a, list):
        if not isinstance(a, list) or not isinstance(b, (list, tuple)) or len(a) != len(b):
            return "not the same sequence"
        return next((d for d in map(lambda p: difference(*p, value), zip(a, b)) if d), None)
    if b is None or a is None:
        return None if a is b else "one holds nothing"
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"shape {a.shape}, expected {b.shape}"
    if b.dtype.kind in "OUS":
        return None if all(str(x) == str(y) for x, y in zip(a.ravel(), b.ravel())) else f"{a} expected {b}"
    if a.dtype != b.dtype:
        return f"type {a.dtype}, expected {b.dtype}"
    if a.size == 0 or a.tobytes() == b.tobytes():
        return None
    if a.dtype.kind != "f":
        worst = int(np.abs(a.astype(np.int64) - b.astype(np.int64)).max())
        return None if worst <= value.tol else f"integers differ by {worst}: {head(a, b)}"
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isnan(a), np.isnan(b)) or not np.array_equal(a[~finite & ~np.isnan(b)],
                                                                          b[~finite & ~np.isnan(b)]):
        return f"NaN or infinity elsewhere: {head(a, b)}"
    if not finite.any():
        return None
    top = float(np.abs(b[finite]).max())
    with np.errstate(all="ignore"):
        worst = float(np.abs(a[finite] - b[finite]).max())
    if worst <= max(value.coarse * max(1.0, top), value.tol):
        return None
    return f"off by {worst:.3g} of {top:.3g}: {head(a, b)}"


def head(a, b):
    where = np.flatnonzero(~np.isclose(a.ravel().astype(float), b.ravel().astype(float), 1e-5, 1e-6, equal_nan=True))
    i = int(where[0]) if where.size else 0
    return f"element {i} of {a.size} is {a.ravel()[i]}, expected {b.ravel()[i]} ({where.size} differ)"


def differences(ours, theirs, outputs):
    """{index of an output: what is wrong with it}."""
    found = {i: difference(a, b, value) for i, (a, b, value) in enumerate(zip(ours, theirs, outputs))}
    return {i: wrong for i, wrong in found.items() if wrong}


# ---- one model


def tell(who):
    """A child says whose code runs next, so that a crash is blamed on the right one."""
    if "--worker" in sys.argv:
        print("in", who, flush=True)


class Outcome:
    """kind: agree, skipped, onnxruntime (differs from us and from the reference), failed."""

    def __init__(self, kind, text="", op=""):
        self.kind, self.text, self.op = kind, text, op


def producer(proto, name):
    return next((n.op_type for n in proto.graph.node if name in n.output), "input")


def garbage(array):
    """Memory of an output's shape that holds something else."""
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OUS":
        return None
    return np.frombuffer(bytearray(b"\x5a" * array.nbytes), array.dtype).reshape(array.shape).copy()


def run_sonde(session, feeds, buffered):
    ours = session.run(feeds)
    if not buffered:
        return ours
    buffers = [garbage(np.asarray(o)) if not isinstance(o, list) and o is not None else None for o in ours]
    again = session.run(feeds, buffers)
    return [o if b is None else b for o, b in zip(again, buffers)]


def run_cut(session, model, feeds, ours, cut):
    """The same outputs through an inner value (asked for, then fed) or through a partial run."""
    rng = random.Random(model.seed)
    graph = model.proto.graph
    if cut == "partial":
        first = {n: v for n, v in feeds.items() if rng.random() < 0.6}
        rest = {n: v for n, v in feeds.items() if n not in first}
        return session.run({**session.partial_run(first), **rest})
    names = [o for n in graph.node for o in n.output if o and n.op_type not in SPLITTING]
    if not names:
        return ours
    inner = rng.choice(names)
    outputs = [o.name for o in graph.output]
    *again, value = session.run(feeds, wanted=[*outputs, inner])
    if differences(again, ours, model.outputs) or not isinstance(value, np.ndarray):
        return again
    return session.run({**feeds, inner: value})


# Their outputs may be sequences or optionals, which lose what they are on the way through numpy.
SPLITTING = {"SequenceConstruct", "SequenceInsert", "SequenceErase", "SplitToSequence", "Optional", "Constant"}


def judge(model, proto, feeds, theirs, engine, ours):
    """Compares one run; where the two disagree the reference decides."""
    found = differences(ours, theirs, model.outputs)
    if not found:
        return None
    first = min(found)
    name, wrong = model.outputs[first].name, found[first]
    op = producer(proto, name)
    tell("others")
    try:
        third = Arbiter(proto).run(feeds)
        if not found.keys() & differences(ours, third, model.outputs).keys():
            return Outcome("onnxruntime", f"output {name}: {wrong}", op)
        said = "all three differ" if found.keys() & differences(theirs, third, model.outputs).keys() else \
            "the reference agrees with ONNX Runtime"
    except Exception as e:  # noqa: BLE001
        said = f"the reference cannot run it ({type(e).__name__})"
    finally:
        tell("sonde")
    if isinstance(engine, NodeByNode):
        said += ", which lacks a node of it"
    return Outcome("failed", f"output {name} ({op}): {wrong}; {said}", op)


def check(model):
    proto, feeds = model.proto, model.feeds
    found = answer(proto, feeds)
    if found is None:
        return Outcome("skipped")
    engine, theirs = found
    runs = [(feeds, theirs)]
    if model.again is not None and isinstance(engine, OnnxRuntime):  # the reference checks no sizes
        try:
            runs.append((model.again, engine.run(model.again)))
        except Exception:  # noqa: BLE001  (these sizes do not fit the model)
            pass
    tell("sonde")
    data = proto.SerializeToString()
    worst = Outcome("agree")
    for way in ways(model.seed):
        way = dict(way)
        where = context(way.pop("threads"), way.pop("cpu"))
        buffered, cut = way.pop("buffers"), way.pop("cut", None)
        session = None
        try:
            session = libsonde.Session(where, data, **way)
            for i, (some, expected) in enumerate(runs):
                try:
                    ours = run_sonde(session, some, buffered)
                    if cut is not None:
                        ours = run_cut(session, model, some, ours, cut)
                except libsonde.Failure:
                    if i and refuses(where, concrete(proto, some), some):
                        continue  # not for being symbolic: these sizes do not fit, and others do not mind
                    raise
                outcome = judge(model, proto, some, expected, engine, ours)
                if outcome is not None:
                    outcome.text += f" [{describe(model.seed, way)}{', other sizes' if i else ''}]"
                    if outcome.kind == "failed":
                        return outcome
                    worst = outcome
        except libsonde.Failure as e:
            who = "ONNX Runtime" if isinstance(engine, OnnxRuntime) else "the reference, in part,"
            return Outcome("failed", f"refused, {who} runs it: {e} [{describe(model.seed, way)}]")
        finally:
            if session is not None:
                session.close()
    return worst


def concrete(proto, feeds):
    """The model with the sizes of these feeds in place of names."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for i in made.graph.input:
        if i.name in feeds:
            i.CopyFrom(info(i.name, feeds[i.name]))
    return made


def refuses(where, proto, feeds):
    session = None
    try:
        # Without passes: a node that does not fit may be taken away once its shape is known.
        session = libsonde.Session(where, proto.SerializeToString(), no_optimize=1)
        session.run(feeds)
        return False
    except libsonde.Failure:
        return True
    finally:
        if session is not None:
            session.close()


def describe(seed, way):
    first, second = ways(seed)
    full = second if "no_optimize" in way else first
    return ", ".join(f"{k}={v}" for k, v in full.items())


# ---- making a failing model small


def values_of(proto, feeds):
    """Every tensor of the main graph, by name."""
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    del wide.graph.output[:]
    names = [o for n in proto.graph.node for o in n.output if o]
    wide.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names)
    _, found = answer(wide, feeds)
    return dict(zip(names, found))


def submodel(model, nodes, known, outputs):
    """The model with these nodes only: what they read and nobody makes becomes an input."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    g = proto.graph
    made = {o for n in nodes for o in n.output}
    read = reads(nodes)
    del g.node[:], g.output[:], g.input[:]
    g.node.extend(nodes)
    constants = {t.name for t in g.initializer}
    initializers = [t for t in g.initializer if t.name in read]
    del g.initializer[:]
    g.initializer.extend(initializers)
    feeds = {}
    for name in sorted(read - made - constants):
        if name not in known:
            continue
        data = np.asarray(known[name])
        g.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape))
        feeds[name] = data
    kept = [v for v in outputs if v.name in made and isinstance(known.get(v.name), np.ndarray)]
    for v in kept:
        data = np.asarray(known[v.name])
        g.output.append(helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(data.dtype), None))
    return Model(model.seed, proto, feeds, None, kept)


def minimize(model):
    """Takes away node after node while the model still fails."""
    known = {**model.feeds, **values_of(model.proto, model.feeds)}
    nodes = list(model.proto.graph.node)
    outputs = list(model.outputs)
    names = {v.name for v in outputs}
    # Inner values become outputs only once everything behind them is gone.
    extra = [Value(o, np.asarray(known[o]).dtype, None, coarse=1e-4) for n in nodes for o in n.output
             if o in known and o not in names and isinstance(known[o], np.ndarray)]
    best = model
    again = True
    while again:
        again = False
        for i in range(len(nodes) - 1, -1, -1):
            less = nodes[:i] + nodes[i + 1:]
            read = {x for n in less for x in n.input}
            ends = [v for v in outputs + extra if v.name in {o for n in less for o in n.output} and
                    (v in outputs or v.name not in read)]
            try:
                tried = submodel(model, less, known, ends)
                if tried.outputs and check(tried).kind == "failed":
                    nodes, best, again = less, tried, True
                    break
            except Exception:  # noqa: BLE001  (a cut that makes no model)
                continue
    return best


# ---- many models


def worker(first, count):
    """Writes 'begin SEED', 'in ENGINE' and 'end SEED {…}' per model."""
    for seed in range(first, first + count):
        print("begin", seed, flush=True)
        outcome = check(build(seed))
        print("end", seed, json.dumps(outcome.__dict__), flush=True)


def lines_of(process):
    """The child's lines; None when it is silent for too long."""
    rest = b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], SECONDS_PER_MODEL)
        if not ready:
            yield None
            return
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode() for line in lines)


def run_child(first, count, report):
    """Runs models from `first`; gives the seed to go on with."""
    command = [sys.executable, __file__, "--worker", str(first), str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    current, done, who = None, first, "others"
    for line in lines_of(process):
        if line is None:
            process.kill()
            break
        word, _, rest = line.partition(" ")
        if word == "begin":
            current, who = int(rest), "others"
        elif word == "in":
            who = rest
        elif word == "end":
            report(current, Outcome(**json.loads(rest.partition(" ")[2])))
            current, done = None, current + 1
    status = process.wait()
    if done == first + count and status == 0:
        return done
    if current is None:
        raise SystemExit(f"the child ended with {status} before a model began")
    how = "hangs" if line is None else f"ended the process with {status}"
    # Another engine's crash says nothing about ours.
    report(current, Outcome("failed" if who == "sonde" else "skipped", f"{who}: {how}"))
    return current + 1


def save(folder, model):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{model.seed}.onnx").write_bytes(model.proto.SerializeToString())
    np.savez(folder / f"{model.seed}.npz", **{k: v for k, v in model.feeds.items() if v.dtype.kind != "O"})


def replay(options):
    """One model in this process, with everything there is to know about it."""
    model = build(options.only)
    print(onnx.printer.to_text(model.proto))
    outcome = check(model)
    if outcome.kind == "failed" and options.minimize:
        if "other sizes" in outcome.text:
            model.feeds, model.again = model.again, None
        model = minimize(model)
        outcome = check(model)
        print("made small:")
        print(onnx.printer.to_text(model.proto))
    if options.keep:
        save(options.keep, model)
    print(f"{outcome.kind} {outcome.text}")
    return outcome.kind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--only", type=int, metavar="SEED", help="one model, by its own seed")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="save the models that fail")
    parser.add_argument("--minimize", action="store_true", help="make a failing model small (with --only)")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker)
        return 0
    if options.only is not None:
        return int(replay(options) == "failed")
    counts, differ = collections.Counter(), collections.defaultdict(list)

    def report(seed, outcome):
        counts[outcome.kind] += 1
        if outcome.kind == "failed":
            print(f"seed {seed}: {outcome.text}\n    replay: {sys.argv[0]} --only {seed} --minimize", flush=True)
            if options.keep:
                save(options.keep, build(seed))
        elif outcome.kind == "skipped" and outcome.text:
            print(f"seed {seed}: {outcome.text}", flush=True)
        elif outcome.kind == "onnxruntime":
            differ[outcome.op].append(seed)

    at = options.seed * 1_000_000
    end = at + options.count
    while at < end:
        at = run_child(at, min(MODELS_PER_CHILD, end - at), report)
    for op, seeds in sorted(differ.items()):
        print(f"onnxruntime differs from sonde and the reference: {op} {len(seeds)}, e.g. seed {seeds[0]}")
    print(f"{options.count} models, {counts['skipped']} skipped, {counts['agree']} agree, "
          f"{counts['onnxruntime']} onnxruntime differs, {counts['failed']} failed")
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
