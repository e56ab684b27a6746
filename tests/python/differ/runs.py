# SPDX-License-Identifier: Apache-2.0
"""sonde's side: instruction levels, threads and switches, and one run in each of them."""

import pathlib
import random
import re
import sys

import numpy as np
import onnx

import libsonde

from .engines import info

SETS = pathlib.Path(__file__).parents[3] / "src" / "base" / "instruction_sets.inc"
LEVELS = ("baseline", *re.findall(r'SN_INSTRUCTION_SET\(\w+, \d+, "(\w+)"', SETS.read_text()))

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


def ways(seed, bounded, everywhere):
    """How to run a model: as users do, and with switches that the seed picks; models with bounds at one more level.
    `everywhere`: also at each instruction level with one thread and with two, and unoptimised at each level."""
    rng = random.Random(seed ^ 0x5eed)
    levels = levels_here()
    first = {"threads": rng.choice((1, 1, 2)), "cpu": None, "buffers": rng.random() < 0.2}
    second = {"threads": rng.choice((1, 1, 2)), "cpu": rng.choice(levels), "buffers": rng.random() < 0.3,
              "no_optimize": int(rng.random() < 0.4), "no_prepack": int(rng.random() < 0.3)}
    if not second["no_optimize"]:
        second["without"] = [p for p in libsonde.pass_names() if rng.random() < 0.3]
    second["cut"] = rng.choice((None, None, None, "inner", "partial"))
    if everywhere:
        more = [{"threads": t, "cpu": level} for level in levels for t in (1, 2)]
        more += [{"threads": rng.choice((1, 2)), "cpu": level, "no_optimize": 1} for level in levels]
    else:
        more = [{"threads": rng.choice((1, 2)), "cpu": rng.choice(levels)}] if bounded else []
    return [first, second, *more]


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


def run_cut(session, model, feeds, ours, cut, same):
    """The same outputs through an inner value (asked for, then fed) or through a partial run. same(a, b): may both
    be the outputs?"""
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
    if not same(again, ours) or not isinstance(value, np.ndarray):
        return again
    return session.run({**feeds, inner: value})


# Their outputs may be sequences or optionals, which lose what they are on the way through numpy.
SPLITTING = {"SequenceConstruct", "SequenceInsert", "SequenceErase", "SplitToSequence", "Optional", "Constant"}


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
