# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry: a span for every run of a session within the caller's current trace, and spans of its operators for
some of them.

    import sonde.opentelemetry
    sonde.opentelemetry.instrument(session, sample_operators=100)

Spans go where the tracer provider sends them. Profiles can be sent to a collector without OpenTelemetry's packages:
Profile.send_otlp(). Both give spans the same attributes (docs/service.md)."""

from __future__ import annotations

import functools
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _convert, _sonde
from ._errors import InvalidArgument
from ._session import InferenceSession, NodeArg, _pool
from ._sonde import RunOptions
from ._sonde import version as _version
from .profiler import profile as _record

try:
    from opentelemetry import context as _context
    from opentelemetry import trace as _trace
except ImportError:
    raise ImportError(
        "sonde.opentelemetry needs OpenTelemetry's packages: pip install opentelemetry-api opentelemetry-sdk"
    ) from None

__all__ = ["instrument", "resource_attributes", "uninstrument"]

_METHODS = ("run", "_run_values", "_partial_run", "run_async")
# The library's names of element types, by ONNX's numbers.
_SHORT = (
    "? f32 u8 i8 u16 i16 i32 i64 str bool f16 f64 u32 u64 c64 c128 bf16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz "
    "u4 i4 f4e2m1 f8e8m0 u2 i2"
).split()
_MOST = 64  # items of a list


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


class _Thread(threading.local):
    """The id and the name that the system has for a thread, asked once for each."""

    def __init__(self) -> None:
        name = threading.current_thread().name
        try:
            with open("/proc/thread-self/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().rstrip("\n")
        except OSError:
            pass
        self.attributes: dict[str, Any] = {"thread.id": threading.get_native_id(), "thread.name": name}


_thread = _Thread()


def _forget_thread() -> None:
    """Called in a forked child, whose thread has another id."""
    global _thread
    _thread = _Thread()


os.register_at_fork(after_in_child=_forget_thread)


@functools.lru_cache(maxsize=64)
def _short(dtype: Any) -> str:
    """ "f32" of numpy's type of elements."""
    return _SHORT[_convert.number_of(np.dtype(dtype))]


def _describe_value(value: Any, arg: NodeArg | None) -> tuple[str, list[int]] | None:
    """("f32", [1, 3, 224, 224]) of a tensor; None of what is none, or not known to be one."""
    try:
        if isinstance(value, _sonde.OrtValue):
            number = value.element_type() if value.is_tensor() else 0
            return (_SHORT[number], list(value.shape())) if number else None
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return _short(value.dtype), [int(size) for size in value.shape]
        if arg is not None and arg.type.startswith("tensor(") and isinstance(value, (list, tuple, int, float)):
            return _SHORT[_convert.element_number(arg.type)], list(np.shape(value))
    except Exception:
        pass  # the run says what is wrong with it, if anything is
    return None


def _describe(feeds: Mapping[str, Any], args: Mapping[str, NodeArg]) -> dict[str, Any]:
    """Attributes of a run that follow from what it is fed, in the order of the model's inputs."""
    names = [name for name in args if name in feeds]
    names += [name for name in feeds if isinstance(name, str) and name not in args]
    texts, first = [], None
    for name in names:
        found = _describe_value(feeds[name], args.get(name))
        if found is None:
            continue
        first = found[1] if first is None else first
        texts.append(f"{name}: {found[0]}[{'x'.join(map(str, found[1]))}]")
    if not texts:
        return {}
    batch = {"sonde.batch": first[0]} if first and first[0] > 0 else {}
    return {"sonde.inputs": texts[:_MOST], **batch}


def _plain(value: dict[str, Any]) -> Any:
    """A value in the JSON of OTLP as Python has it."""
    ((kind, inside),) = value.items()
    if kind == "arrayValue":
        return [_plain(item) for item in inside["values"]]
    return int(inside) if kind == "intValue" else inside


def _attributes(thing: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: _plain(item["value"]) for item in thing["attributes"]}


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
        precision = options._entries.get("sonde.precision") or "file"
        if precision != "auto":  # what that is here, the first recorded run says
            self._fixed["sonde.precision"] = precision
        self._fixed["sonde.threads"] = session.placement()["threads"]
        self._fixed["sonde.session"] = int(options._entries.get("sonde.instance", "0"))
        args = {arg.name: arg for arg in session.get_inputs() + session.get_overridable_initializers()}
        self._args = {port[0]: args[port[0]] for port in session._inputs()}

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
            attributes = self._fixed | _thread.attributes
            if isinstance(feeds, Mapping):
                attributes.update(_describe(feeds, self._args))
            span.set_attributes(attributes)
            sink: list[Any] = []
            wanted = span.get_span_context().trace_flags.sampled and self._budget.wants()
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
        request = json.loads(profile.write(".otlp.json", "iteration,operator,executor", False, -1))
        spans: dict[str, Any] = {}
        left_out = own_ns = 0
        for found in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            began, ended = int(found["startTimeUnixNano"]), int(found["endTimeUnixNano"])
            attributes = _attributes(found)
            if "sonde.run" in attributes:
                own_ns = ended - began
                self._take_precision(run, attributes)
                continue
            if len(spans) >= self._most:
                left_out += 1
                continue
            start = min(max(began, begin_ns), end_ns)
            span = self._tracer.start_span(
                found["name"],
                context=_trace.set_span_in_context(spans.get(found.get("parentSpanId"), run)),
                start_time=start,
                attributes=attributes,
            )
            span.end(end_time=min(max(ended, start), end_ns))
            spans[found["spanId"]] = span
        run.set_attribute("sonde.operators", len(spans))
        if left_out:
            run.set_attribute("sonde.operators_left_out", left_out)
        return own_ns

    def _take_precision(self, run: Any, recorded: dict[str, Any]) -> None:
        if "sonde.precision" in self._fixed or "sonde.precision" not in recorded:
            return
        found = {"sonde.precision": recorded["sonde.precision"]}
        run.set_attributes(found)
        self._fixed = self._fixed | found  # another thread may be reading it

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
            _in_context,
            _context.get_current(),
            tell,
            _sonde.open_record(),
            output_names,
            input_feed,
            callback,
            user_data,
            run_options,
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


def resource_attributes() -> dict[str, Any]:
    """Attributes of this process for the resource of a tracer provider, as profiles have them that are sent without
    OpenTelemetry's packages: host.name, process.pid, labels of SONDE_LABELS as sonde.label.NAME, and more. What the
    service is called is not among them:

    Resource.create({"service.name": "classifier"} | sonde.opentelemetry.resource_attributes())
    """
    with _record(level=1) as nothing:
        pass
    request = json.loads(nothing.to_bytes(".otlp.json"))
    attributes = _attributes(request["resourceSpans"][0]["resource"])
    attributes.pop("service.name")
    return attributes
