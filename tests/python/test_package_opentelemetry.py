# SPDX-License-Identifier: Apache-2.0
"""sonde.opentelemetry: spans of runs within the caller's trace, of operators for sampled runs, threads, coroutines,
failures; and profiles that are sent without OpenTelemetry's packages."""

import ast
import asyncio
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from otlp_receiver import Receiver, attributes_of, resource_of, spans_of

sonde = pytest.importorskip("sonde")


def test_without_the_packages_the_import_says_so_in_one_sentence():
    code = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ImportError(name)
sys.meta_path.insert(0, Hide())
import sonde
try:
    import sonde.opentelemetry
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == ("sonde.opentelemetry needs OpenTelemetry's packages: "
                           "pip install opentelemetry-api opentelemetry-sdk\n"), done.stderr
    assert done.stderr == ""


# ---------------------------------------------------------------- profiles, without the packages
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_run_belongs_to_the_trace_it_is_told():
    session = sonde.InferenceSession("zoo:tiny_mlp")
    options = sonde.RunOptions()
    assert options.traceparent == ""
    options.traceparent = f"00-{TRACE}-{SPAN}-01"
    with sonde.profile(level=1) as profiler:
        session.run(None, session.random_inputs(seed=1), options)
        session.run(None, session.random_inputs(seed=1))
    columns = profiler.columns()
    runs = [i for i, cat in enumerate(columns["cat"]) if cat == "iteration"]
    assert [columns["trace_id"][i] == TRACE for i in runs] == [True, False]
    assert columns["parent_span_id"][runs[0]] == SPAN
    with Receiver() as receiver:
        result = profiler.send_otlp(receiver.url, service_name="tiny", headers={"x-key": "a,b=c"},
                                    attributes={"deployment.environment": "test"})
        ((_, headers, _),) = receiver.requests
        spans = receiver.spans()
    assert result == {"spans": len(spans), "rejected": 0, "requests": 1, "retries": 0, "message": ""}
    assert headers["x-key"] == "a,b=c"
    mine = [span for span in spans if span["traceId"] == TRACE]
    assert mine[0]["parentSpanId"] == SPAN and mine[0]["name"] == "run tiny_mlp" and len(mine) > 2


@pytest.mark.parametrize("text", ["", "x", f"00-{TRACE}-{SPAN}-01-more", "00-" + "0" * 32 + f"-{SPAN}-01", "\ud800", "a\0b", "é" * 55])
def test_texts_that_are_no_trace_are_ignored(text):
    session = sonde.InferenceSession("zoo:tiny_mlp")
    options = sonde.RunOptions()
    options.traceparent = text
    with sonde.profile(level=1) as profiler:
        session.run(None, session.random_inputs(seed=1), options)
    assert profiler.summary()["iterations"] == 1
    assert TRACE not in profiler.columns()["trace_id"]


def test_a_wrong_address_is_an_exception():
    session = sonde.InferenceSession("zoo:tiny_mlp")
    with sonde.profile(level=1) as profiler:
        session.run(None, session.random_inputs(seed=1))
    with pytest.raises(sonde.Error, match="without TLS"):
        profiler.send_otlp("https://127.0.0.1:4318")
    with pytest.raises(sonde.InvalidArgument):
        profiler.send_otlp("http://127.0.0.1:4318", timeout=0)
    with pytest.raises(sonde.Error, match="status 500"), Receiver(lambda _: (500, {}, b"")) as receiver:
        profiler.send_otlp(receiver.url)


# ---------------------------------------------------------------- with the packages
sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.resources import Resource  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF  # noqa: E402

import sonde.opentelemetry  # noqa: E402


class Traced:
    """A session with spans kept in memory."""

    def __init__(self, model="zoo:tiny_cnn", sampler=None, options=None, resource=None, **settings):
        self.exporter = InMemorySpanExporter()
        self.provider = sdk.TracerProvider(sampler=sampler, resource=resource)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")
        self.session = sonde.InferenceSession(model, options)
        self.feed = self.session.random_inputs(seed=1)
        sonde.opentelemetry.instrument(self.session, self.provider, **({"max_overhead": 1} | settings))

    def run(self, times=1):
        for _ in range(times):
            self.session.run(None, self.feed)

    def spans(self):
        return self.exporter.get_finished_spans()

    def runs(self):
        return [span for span in self.spans() if span.name.startswith("run ")]

    def operators(self, run):
        return [span for span in self.spans()
                if span.parent and span.parent.span_id == run.context.span_id and "sonde.op" in span.attributes]


def test_a_run_is_a_span_within_the_callers_trace():
    traced = Traced()
    with traced.tracer.start_as_current_span("request") as request:
        traced.run()
    (run,) = traced.runs()
    assert run.name == "run tiny_cnn" and run.kind is trace.SpanKind.INTERNAL
    assert run.parent.span_id == request.get_span_context().span_id
    assert run.context.trace_id == request.get_span_context().trace_id
    assert run.instrumentation_scope.name == "sonde" and run.instrumentation_scope.version == sonde.__version__
    assert run.attributes["sonde.model"] == "tiny_cnn" and run.attributes["sonde.batch"] == 1
    (text,) = run.attributes["sonde.inputs"]
    assert text == "input: f32[1x3x32x32]"
    assert run.status.is_ok or run.status.status_code is trace.StatusCode.UNSET


def test_results_are_those_of_a_plain_session():
    traced = Traced(sample_operators=1)
    plain = sonde.InferenceSession("zoo:tiny_cnn")
    np.testing.assert_array_equal(traced.session.run(None, traced.feed)[0], plain.run(None, traced.feed)[0])


def test_operators_of_sampled_runs_lie_in_them():
    traced = Traced(sample_operators=3)
    traced.run(7)
    runs = traced.runs()
    assert len(runs) == 7
    with_operators = [run for run in runs if traced.operators(run)]
    assert len(with_operators) == 3  # the first, fourth and seventh
    run = with_operators[1]
    operators = traced.operators(run)
    assert len(operators) == run.attributes["sonde.operators"]
    with sonde.profile(level=1) as profiler:
        sonde.InferenceSession("zoo:tiny_cnn").run(None, traced.feed)
    columns = profiler.columns()
    expected = [op for op, cat in zip(columns["op_type"], columns["cat"], strict=True) if cat == "operator"]
    assert sorted(span.name for span in operators) == sorted(expected)
    for span in operators:
        assert run.start_time <= span.start_time <= span.end_time <= run.end_time
        assert span.context.trace_id == run.context.trace_id
    conv = next(span for span in operators if span.name == "Conv")
    assert conv.attributes["sonde.nodes"] and conv.attributes["sonde.kernel"] and conv.attributes["sonde.flops"] > 0


def test_the_bound_on_overhead_is_kept():
    traced = Traced("zoo:tiny_mlp", sample_operators=1, max_overhead=0.01)  # spans cost more than the model
    traced.run(300)
    sampled = [run for run in traced.runs() if "sonde.operators" in run.attributes]
    assert len(traced.runs()) == 300 and len(sampled) < 150


def test_no_more_operators_than_allowed():
    traced = Traced(sample_operators=1, max_operators=2)
    traced.run()
    (run,) = traced.runs()
    assert run.attributes["sonde.operators"] == 2 and run.attributes["sonde.operators_left_out"] > 0
    assert len(traced.spans()) == 3


def test_a_trace_that_is_not_sampled_costs_no_spans():
    traced = Traced(sampler=ALWAYS_OFF, sample_operators=1)
    traced.run(3)
    assert traced.spans() == ()


def test_a_failure_sets_the_status():
    traced = Traced()
    with pytest.raises(sonde.Error):
        traced.session.run(None, {"input": np.zeros((1, 7, 32, 32), np.float32)})
    (run,) = traced.runs()
    assert run.status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in run.events] == ["exception"]
    traced.run()
    assert traced.runs()[1].status.status_code is not trace.StatusCode.ERROR


def test_a_cancelled_run_is_a_failure():
    traced = Traced(sample_operators=1)
    options = sonde.RunOptions()
    options.terminate = True
    with pytest.raises(sonde.Cancelled):
        traced.session.run(None, traced.feed, options)
    (run,) = traced.runs()
    assert run.status.status_code is trace.StatusCode.ERROR and traced.operators(run) == []


def test_threads_have_their_own_traces():
    traced = Traced(sample_operators=2)

    def work(number):
        with traced.tracer.start_as_current_span(f"request {number}") as request:
            traced.run(5)
            return request.get_span_context().trace_id

    with ThreadPoolExecutor(6) as pool:
        traces = list(pool.map(work, range(6)))
    assert sorted(run.context.trace_id for run in traced.runs()) == sorted(traces * 5)
    assert sum(bool(traced.operators(run)) for run in traced.runs()) == 15
    for run in traced.runs():
        for span in traced.operators(run):
            assert run.start_time <= span.start_time <= span.end_time <= run.end_time


def test_coroutines_have_their_own_traces():
    traced = Traced()

    async def request(number):
        with traced.tracer.start_as_current_span(f"request {number}") as span:
            await asyncio.sleep(0)
            await asyncio.to_thread(traced.run)
            return span.get_span_context().span_id

    async def main():
        return await asyncio.gather(*(request(number) for number in range(8)))

    parents = asyncio.run(main())
    assert sorted(run.parent.span_id for run in traced.runs()) == sorted(parents)


def test_run_async_runs_in_the_trace_of_its_caller():
    traced = Traced()
    done = threading.Event()
    with traced.tracer.start_as_current_span("request") as request:
        traced.session.run_async(None, traced.feed, lambda *_: done.set(), None)
    assert done.wait(60)
    (run,) = traced.runs()
    assert run.parent.span_id == request.get_span_context().span_id


def test_bindings_values_and_partial_runs_are_spans_too():
    traced = Traced(sample_operators=1)
    session = traced.session
    binding = session.io_binding()
    binding.bind_cpu_input("input", traced.feed["input"])
    binding.bind_output(session.get_outputs()[0].name)
    session.run_with_iobinding(binding)
    session.run_with_ort_values(None, {"input": sonde.OrtValue.ortvalue_from_numpy(traced.feed["input"])})
    session.partial_run(traced.feed)
    runs = traced.runs()
    assert len(runs) == 3 and all(traced.operators(run) for run in runs[:2])
    assert runs[0].attributes["sonde.inputs"] == ("input: f32[1x3x32x32]",)


def test_instrumenting_again_replaces_and_uninstrumenting_takes_back():
    traced = Traced()
    sonde.opentelemetry.instrument(traced.session, traced.provider, sample_operators=0)
    traced.run()
    assert len(traced.spans()) == 1
    sonde.opentelemetry.uninstrument(traced.session)
    sonde.opentelemetry.uninstrument(traced.session)
    traced.run()
    assert len(traced.spans()) == 1


def test_arguments_are_checked():
    session = sonde.InferenceSession("zoo:tiny_mlp")
    with pytest.raises(TypeError):
        sonde.opentelemetry.instrument("model.onnx")
    for bad in ({"sample_operators": -1}, {"sample_operators": 1.5}, {"max_overhead": 0}, {"max_operators": 0}):
        with pytest.raises(sonde.InvalidArgument):
            sonde.opentelemetry.instrument(session, **bad)


def test_sondes_own_profile_knows_the_span_of_the_run():
    traced = Traced(sample_operators=0)
    with sonde.profile(level=1) as profiler, traced.tracer.start_as_current_span("request") as request:
        traced.run()
    (run,) = traced.runs()
    columns = profiler.columns()
    (at,) = [i for i, cat in enumerate(columns["cat"]) if cat == "iteration"]
    assert columns["trace_id"][at] == f"{request.get_span_context().trace_id:032x}"
    assert columns["parent_span_id"][at] == f"{run.context.span_id:016x}"


def test_the_sdks_exporter_and_sonde_send_one_trace():
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    traced = Traced(sample_operators=1)
    with Receiver() as receiver:
        traced.provider.add_span_processor(
            SimpleSpanProcessor(exporters.OTLPSpanExporter(f"{receiver.url}/v1/traces")))
        with sonde.profile(level=1) as profiler:
            traced.run()
        bodies = [body for _, _, body in receiver.requests]
        profiler.send_otlp(receiver.url)
        own = receiver.requests[-1][2]
    theirs = [span for body in bodies for resource in ExportTraceServiceRequest.FromString(body).resource_spans
              for scope in resource.scope_spans for span in scope.spans]
    assert {span.name for span in theirs} >= {"run tiny_cnn", "Conv"}
    (run,) = [span for span in spans_of(own) if span["name"] == "run tiny_cnn"]
    (outer,) = [span for span in theirs if span.name == "run tiny_cnn"]
    assert run["traceId"] == outer.trace_id.hex() and run["parentSpanId"] == outer.span_id.hex()
    assert attributes_of(run)["sonde.batch"] == 1


# ---------------------------------------------------------------- one set of attributes
def plain(attributes):
    return {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()}


def sent_twice(traced, path):
    """The spans of one run as the SDK has them, and as its profile has them: run first, then operators in order."""
    with sonde.profile(level=1) as profiler:
        traced.run()
    profiler.export(path)
    *operators, run = traced.spans()
    return [run, *operators], spans_of(path.read_bytes())


# Numbers within a profile: a span of the SDK belongs to none.
OF_PROFILES = {"sonde.run", "sonde.iteration"}


@pytest.mark.parametrize("model", ["tiny_cnn", "tiny_cnn_int8", "tiny_attention", "tiny_bert", "tiny_gpt2", "tiny_vad", "tiny_loop",
                                   "tiny_if", "tiny_sequence", "tiny_text", "tiny_dynamic", "tiny_bert_train"])
def test_both_ways_give_spans_the_same_names_and_attributes(model, tmp_path):
    traced = Traced(f"zoo:{model}", sample_operators=1, max_operators=100_000)
    ours, theirs = sent_twice(traced, tmp_path / "x.otlp.json")
    assert len(ours) == len(theirs) > 1
    run = attributes_of(theirs[0])
    assert OF_PROFILES <= set(run) and run["sonde.operators"] == len(ours) - 1
    places = {span.context.span_id: i for i, span in enumerate(ours)}
    other_places = {span["spanId"]: i for i, span in enumerate(theirs)}
    for i, (span, other) in enumerate(zip(ours, theirs, strict=True)):
        expected = {key: value for key, value in attributes_of(other).items() if key not in OF_PROFILES}
        assert (span.name, plain(span.attributes)) == (other["name"], expected)
        assert {key: type(value) for key, value in plain(span.attributes).items()} == {
            key: type(value) for key, value in expected.items()}
        assert span.kind is trace.SpanKind.INTERNAL and other["kind"] == 1
        assert span.status.status_code is trace.StatusCode.UNSET and "status" not in other
        if i:
            assert places[span.parent.span_id] == other_places[other["parentSpanId"]]
    assert theirs[0]["parentSpanId"] == f"{ours[0].context.span_id:016x}"  # a profile of the run lies in the SDK's span


def test_both_ways_know_the_options_of_the_session(tmp_path):
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 3
    options.add_session_config_entry("sonde.precision", "bf16")
    options.add_session_config_entry("sonde.instance", "7")
    ours, theirs = sent_twice(Traced(options=options, sample_operators=1), tmp_path / "x.otlp.json")
    for attributes in (ours[0].attributes, attributes_of(theirs[0])):
        assert (attributes["sonde.threads"], attributes["sonde.precision"], attributes["sonde.session"]) == (3, "bf16", 7)


def test_what_the_precision_auto_is_here_is_known_from_the_first_recorded_run(tmp_path):
    options = sonde.SessionOptions()
    options.add_session_config_entry("sonde.precision", "auto")
    traced = Traced(options=options, sample_operators=2)
    ours, theirs = sent_twice(traced, tmp_path / "x.otlp.json")
    traced.run()
    found = {run.attributes["sonde.precision"] for run in traced.runs()}
    assert found == {attributes_of(theirs[0])["sonde.precision"]} and found < {"f32", "bf16"}


def test_both_ways_name_the_scope_and_the_resource_alike(tmp_path):
    path = tmp_path / "x.otlp.json"
    attributes = sonde.opentelemetry.resource_attributes()
    traced = Traced(sample_operators=1, resource=Resource.create({"service.name": "sonde"} | attributes))
    ours, _ = sent_twice(traced, path)
    written = resource_of(path.read_bytes())
    assert {"host.name", "process.pid", "sonde.version", "sonde.label.worker"} <= set(written)
    for span in ours:
        known = {key: value for key, value in span.resource.attributes.items()
                 if not key.startswith("telemetry.sdk.") and key != "service.instance.id"}  # the SDK's own
        assert known == written
        assert (span.instrumentation_scope.name, span.instrumentation_scope.version) == ("sonde", written["sonde.version"])
    (entry,) = json.loads(path.read_bytes())["resourceSpans"]
    assert [scope["scope"] for scope in entry["scopeSpans"]] == [{"name": "sonde", "version": sonde.__version__}]


def test_labels_of_the_environment_are_attributes_of_the_resource():
    code = "import sonde.opentelemetry; print(sonde.opentelemetry.resource_attributes())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | {"SONDE_LABELS": "host=blue-7,version=12,worker=,team=a b"})
    found = ast.literal_eval(done.stdout)
    assert found["host.name"] == "blue-7" and found["sonde.label.version"] == "12" and found["sonde.label.team"] == "a b"
    assert "sonde.label.worker" not in found and "sonde.label.host" not in found and "service.name" not in found


def test_inputs_that_are_no_arrays_are_described_where_their_shape_is_plain():
    traced = Traced("zoo:tiny_mlp", sample_operators=0)
    (arg,) = traced.session.get_inputs()
    traced.session.run(None, {arg.name: np.zeros((2, 16), np.float32).tolist()})
    with pytest.raises(sonde.Error):
        traced.session.run(None, {arg.name: np.zeros((2, 16), "datetime64[s]")})
    described = [run.attributes.get("sonde.inputs") for run in traced.runs()]
    assert described == [(f"{arg.name}: f32[2x16]",), None]
    assert [run.attributes.get("sonde.batch") for run in traced.runs()] == [2, None]


def test_threads_are_named_as_the_system_names_them():
    traced = Traced(sample_operators=0)
    with ThreadPoolExecutor(1) as pool:
        own = pool.submit(lambda: (traced.run(), threading.get_native_id())[1]).result()
    traced.run()
    first, second = (run.attributes for run in traced.runs())
    assert (first["thread.id"], second["thread.id"]) == (own, threading.get_native_id())
    assert first["thread.name"] and second["thread.name"]
