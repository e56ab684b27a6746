# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry: a span for every run of a session within the caller's current trace, and spans of its operators for
some of them.

    import sonde.opentelemetry
    sonde.opentelemetry.instrument(session, sample_operators=100)

Spans go where the tracer provider sends them. Profiles can be sent to a collector without OpenTelemetry's packages:
Profile.send_otlp()."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _sonde
from ._errors import InvalidArgument
from ._session import InferenceSession, _pool
from ._sonde import RunOptions
from ._sonde import version as _version

try:
    from opentelemetry import context as _context
    from opentelemetry import trace as _trace
except ImportError:
    raise ImportError(
        "sonde.opentelemetry needs OpenTelemetry's packages: pip install opentelemetry-api opentelemetry-sdk"
    ) from None

__all__ = ["instrument", "uninstrument"]

_METHODS = ("run", "_run_values", "_partial_run", "run_async")
_SHORT = {"f": "f", "i": "i", "u": "u", "c": "c"}


class _Budget:
    """Which runs have their operators recorded: one in `every`, unless recording would take more than `share` of the
    time of runs. What a recorded run costs is measured: its profile is read and its spans are made after it."""

    WINDOW_NS = 60e9  # sums are halved then, so that the last minute or so of running counts

    def __init__(self, every: int, share: float) -> None:
        self._every, self._share = every, share
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._run_ns = self._cost_ns = self._last_ns = 0.0

    def wants(self) -> bool:
        if not self._every or next(self._numbers) % self._every:
            return False
        with self._lock:
            return self._share >= 1 or self._cost_ns + self._last_ns <= self._share * self._run_ns

    def ran(self, run_ns: float, cost_ns: float | None) -> None:
        with self._lock:
            self._run_ns += run_ns
            if cost_ns is not None:
                self._cost_ns += cost_ns
                self._last_ns = cost_ns
            if self._run_ns > self.WINDOW_NS:
                self._run_ns /= 2
                self._cost_ns /= 2


def _type_text(value: Any) -> str | None:
    """ "f32[1x3x224x224]" of an array, or of what has a shape and a type of elements; None of others."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(value, _sonde.OrtValue):
        try:
            shape, dtype = value.shape(), np.dtype(value.numpy().dtype)
        except Exception:
            return None
    try:
        kind = np.dtype(dtype) if dtype is not None else None
        sizes = "x".join(str(int(size)) for size in shape) if shape is not None else None
    except (TypeError, ValueError):
        return None
    if kind is None or sizes is None:
        return None
    short = _SHORT.get(kind.kind)
    return f"{short}{kind.itemsize * 8}[{sizes}]" if short else f"{kind.name}[{sizes}]"


def _batch(value: Any) -> int | None:
    try:
        shape = value.shape() if callable(value.shape) else value.shape
        return int(shape[0])
    except (AttributeError, IndexError, TypeError, ValueError):
        return None


def _describe(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of a run that follow from what it is fed."""
    found: dict[str, Any] = {}
    texts = []
    for name, value in feeds.items():
        if not isinstance(name, str):
            continue
        text = _type_text(value)
        texts.append(f"{name}: {text or type(value).__name__}")
        batch = _batch(value)
        if batch is not None:
            found.setdefault("sonde.batch", batch)
    found["sonde.inputs"] = texts[:64]
    return found


def _operator_attributes(columns: Mapping[str, Any], i: int) -> dict[str, Any]:
    found: dict[str, Any] = {"sonde.op": columns["op_type"][i]}
    for key in ("post_op", "kernel", "input_shapes", "input_types", "output_shapes", "output_types"):
        if columns[key][i]:
            found[f"sonde.{key}"] = columns[key][i]
    if columns["node"][i]:
        found["sonde.nodes"] = columns["node"][i].split(";")[:64]
    for key in ("flops", "bytes"):
        if columns[key][i] > 0:
            found[f"sonde.{key}"] = int(columns[key][i])
    return found


class _Instrument:
    """What instrument() puts before a session's methods."""

    def __init__(
        self, session: InferenceSession, tracer: Any, sample_operators: int, max_overhead: float, max_operators: int
    ) -> None:
        self._session, self._tracer = session, tracer
        self._budget = _Budget(sample_operators, max_overhead)
        self._most = max_operators
        self._name = f"run {session._model_name}"
        options = session.get_session_options()
        self._fixed: dict[str, Any] = {"sonde.model": session._model_name}
        if options.intra_op_num_threads:
            self._fixed["sonde.threads"] = options.intra_op_num_threads
        inputs = [arg.name for arg in session.get_inputs()]
        self._fixed["sonde.model_inputs"] = inputs[:64]

    # ---------------------------------------------------------------- around a run
    def _within(
        self,
        feeds: Any,
        options: RunOptions | None,
        plain: Callable[[RunOptions | None], Any],
        recorded: Callable[[RunOptions | None, list[Any]], Any],
    ) -> Any:
        with self._tracer.start_as_current_span(self._name) as span:
            if options is None and span.get_span_context().is_valid:
                options = RunOptions()  # those of a caller may be in use on other threads: they stay as they are
                options.traceparent = _traceparent(span)
            if not span.is_recording():
                return plain(options)
            attributes = dict(self._fixed)
            if isinstance(feeds, Mapping):
                attributes.update(_describe(feeds))
            span.set_attributes(attributes)
            sink: list[Any] = []
            wanted = self._budget.wants()
            begin_ns, begin = time.time_ns(), time.perf_counter_ns()
            result = recorded(options, sink) if wanted else plain(options)
            run_ns = time.perf_counter_ns() - begin
            if not wanted:
                self._budget.ran(run_ns, None)
                return result
            if sink and sink[0] is not None:
                run_ns = self._add_operators(span, sink[0], begin_ns, begin_ns + run_ns) or run_ns
            self._budget.ran(run_ns, time.perf_counter_ns() - begin - run_ns)
            return result

    def _add_operators(self, run: Any, profile: _sonde.Profile, begin_ns: int, end_ns: int) -> int:
        """Spans of operators, and of the bodies of control flow between them, inside the run's own. Returns how long the
        run took by itself, without what was done to record it."""
        from ._profile import Profile

        columns = Profile(profile).columns()
        spans: dict[str, Any] = {}
        left_out = own_ns = 0
        for i, category in enumerate(columns["cat"]):
            if category == "iteration":
                own_ns = int(columns["dur"][i])
            if category not in ("operator", "executor"):
                continue
            if len(spans) >= self._most:
                left_out += 1
                continue
            start = min(max(int(columns["start"][i]), begin_ns), end_ns)
            parent = spans.get(columns["parent_span_id"][i], run)
            operator = category == "operator"
            span = self._tracer.start_span(
                columns["op_type"][i] if operator else columns["name"][i],
                context=_trace.set_span_in_context(parent),
                start_time=start,
                attributes=_operator_attributes(columns, i) if operator else None,
            )
            span.end(end_time=min(max(int(columns["end"][i]), start), end_ns))
            spans[columns["span_id"][i]] = span
        run.set_attribute("sonde.operators", len(spans))
        if left_out:
            run.set_attribute("sonde.operators_left_out", left_out)
        return own_ns

    # ---------------------------------------------------------------- the methods
    def run(
        self, output_names: Sequence[str] | None, input_feed: Any, run_options: RunOptions | None = None
    ) -> list[Any]:
        session = self._session
        result: list[Any] = self._within(
            input_feed,
            run_options,
            lambda options: type(session).run(session, output_names, input_feed, options),
            lambda options, sink: session._run_recorded(sink, output_names, input_feed, options),
        )
        return result

    def _run_values(self, inputs: Any, names: Any, buffers: Any, options: RunOptions | None) -> Any:
        bound = functools.partial(_sonde.Session._run_values, self._session, inputs, names, buffers)
        return self._within(inputs, options, bound, bound)

    def _partial_run(self, feeds: Any, options: RunOptions | None) -> Any:
        bound = functools.partial(_sonde.Session._partial_run, self._session, feeds)
        return self._within(feeds, options, bound, bound)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Any,
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        if not callable(callback):
            raise TypeError("callback must be callable")
        tell = self._session._run_and_tell
        _pool().submit(
            _in_context, _context.get_current(), tell, output_names, input_feed, callback, user_data, run_options
        )


def _in_context(context: Any, function: Callable[..., Any], *arguments: Any) -> None:
    """On a thread of the pool, within the trace of whoever called run_async()."""
    token = _context.attach(context)
    try:
        function(*arguments)
    finally:
        _context.detach(token)


def _traceparent(span: Any) -> str:
    """The run's span as the library takes it, for profiles that are recorded meanwhile."""
    own = span.get_span_context()
    return f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"


def instrument(
    session: InferenceSession,
    tracer_provider: Any = None,
    sample_operators: int = 100,
    max_overhead: float = 0.01,
    max_operators: int = 1000,
) -> None:
    """Every run of the session becomes a span within the current trace: run(), run_async(), run_with_ort_values(),
    run_with_iobinding() and partial_run(), on any thread. A run that fails sets the span's status.

    tracer_provider: None is OpenTelemetry's global one.
    sample_operators: one run of so many also has a span for each operator; 0: none has.
    max_overhead: operators are left out where recording them would take more than this share of the time of runs; 1: no
    bound. max_operators: the most spans of operators of one run.

    Calling it again replaces the settings. Not for use while other threads are in a run of the session for the first
    time: call it before the service starts.
    """
    if not isinstance(session, InferenceSession):
        raise TypeError(f"session must be a sonde.InferenceSession, not {type(session).__name__}")
    if isinstance(sample_operators, bool) or not isinstance(sample_operators, int) or sample_operators < 0:
        raise InvalidArgument(f"sample_operators is {sample_operators}, expected a number from 0 on")
    if not max_overhead > 0:
        raise InvalidArgument(f"max_overhead is {max_overhead}, expected a share such as 0.01")
    if max_operators < 1:
        raise InvalidArgument(f"max_operators is {max_operators}, expected a number from 1 on")
    tracer = _trace.get_tracer("sonde", _version, tracer_provider)
    made = _Instrument(session, tracer, sample_operators, max_overhead, max_operators)
    for name in _METHODS:
        session.__dict__[name] = getattr(made, name)


def uninstrument(session: InferenceSession) -> None:
    """Takes back what instrument() did; without effect otherwise."""
    for name in _METHODS:
        session.__dict__.pop(name, None)
