# SPDX-License-Identifier: Apache-2.0
"""Whether an answer of sonde is right: it is close to another engine's, or it lies within bounds."""

import numpy as np

import bounds

from .engines import Arbiter, NodeByNode, OnnxRuntime, answer
from .runs import Outcome, producer, tell


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


class AgainstEngines:
    """ONNX Runtime's answer with tolerances, and where the two disagree the reference decides."""

    def __init__(self, model):
        self.model, self.runs = model, []
        found = answer(model.proto, model.feeds)
        if found is None:
            return
        self.engine, theirs = found
        self.runs.append((model.feeds, theirs))
        if model.again is not None and isinstance(self.engine, OnnxRuntime):  # the reference checks no sizes
            try:
                self.runs.append((model.again, self.engine.run(model.again)))
            except Exception:  # noqa: BLE001  (these sizes do not fit the model)
                pass

    @property
    def who(self):
        """Who runs what sonde refuses."""
        return "ONNX Runtime" if isinstance(self.engine, OnnxRuntime) else "the reference, in part,"

    def same(self, a, b):
        return not differences(a, b, self.model.outputs)

    def judge(self, feeds, theirs, ours):
        found = differences(ours, theirs, self.model.outputs)
        if not found:
            return None
        first = min(found)
        name, wrong = self.model.outputs[first].name, found[first]
        op = producer(self.model.proto, name)
        tell("others")
        try:
            third = Arbiter(self.model.proto).run(feeds)
            if not found.keys() & differences(ours, third, self.model.outputs).keys():
                return Outcome("onnxruntime", f"output {name}: {wrong}", op)
            said = "all three differ" if found.keys() & differences(theirs, third, self.model.outputs).keys() else \
                "the reference agrees with ONNX Runtime"
        except Exception as e:  # noqa: BLE001
            said = f"the reference cannot run it ({type(e).__name__})"
        finally:
            tell("sonde")
        if isinstance(self.engine, NodeByNode):
            said += ", which lacks a node of it"
        return Outcome("failed", f"output {name} ({op}): {wrong}; {said}", op)


class AgainstBounds:
    """The bounds of each element decide. Another engine that leaves them is counted, because the bounds might be
    what is wrong: many such cases of one operator want to be looked at."""

    def __init__(self, model):
        self.model, self.runs = model, []
        self.names = [o.name for o in model.proto.graph.output]
        found = answer(model.proto, model.feeds)
        self.engine = found and found[0]
        for feeds in (model.feeds, model.again):
            if feeds is None:
                continue
            try:
                spans = bounds.run(model.proto, feeds)
            except Exception:  # noqa: BLE001
                if feeds is model.feeds:
                    raise
                continue  # these sizes do not fit the model
            theirs = found and found[1] if feeds is model.feeds else self.other(feeds)
            if theirs is None and feeds is not model.feeds:
                continue
            self.runs.append((feeds, ([spans[n] for n in self.names], theirs)))

    def other(self, feeds):
        try:
            return self.engine.run(feeds) if self.engine else None
        except Exception:  # noqa: BLE001
            return None

    @property
    def who(self):
        return None if self.engine is None else "ONNX Runtime" if isinstance(self.engine, OnnxRuntime) else \
            "the reference, in part,"

    def same(self, a, b):
        """An inner value that is asked for is not fused away, so that inexact results may be others."""
        return True

    def leaves(self, spans, answers):
        found = {i: bounds.outside(s, a) for i, (s, a) in enumerate(zip(spans, answers))}
        return {i: wrong for i, wrong in found.items() if wrong}

    def judge(self, feeds, expected, ours):
        spans, theirs = expected
        found = self.leaves(spans, ours)
        others = self.leaves(spans, map(np.asarray, theirs)) if theirs is not None else {}
        if found:
            first = min(found)
            said = "no other engine runs it" if theirs is None else \
                "the other engine lies within the bounds" if first not in others else \
                "the other engine gives the same" if np.array_equal(ours[first], theirs[first]) else \
                f"the other engine leaves them, too: {others[first]}"
            op = producer(self.model.proto, self.names[first])
            return Outcome("failed", f"output {self.names[first]} ({op}): {found[first]}; {said}", op)
        if others:
            first = min(others)
            return Outcome("onnxruntime", f"output {self.names[first]}: {others[first]}",
                           producer(self.model.proto, self.names[first]))
        return None
