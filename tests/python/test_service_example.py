# SPDX-License-Identifier: Apache-2.0
"""The service of examples/ and its load test, as docs/service.md walks through them: started on a free port, asked,
scraped, and a slow request found by its trace."""

import contextlib
import importlib.util
import json
import pathlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from otlp_receiver import Receiver

sonde = pytest.importorskip("sonde")
for name in ("fastapi", "uvicorn", "opentelemetry.sdk"):
    with contextlib.suppress(ModuleNotFoundError):
        if importlib.util.find_spec(name):
            continue
    pytest.skip(f"{name} is not installed", allow_module_level=True)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@contextlib.contextmanager
def service(*arguments):
    """Its address, once it accepts connections; it ends with the block."""
    process = subprocess.Popen([sys.executable, EXAMPLES / "fastapi_service.py", "--port", "0", *map(str, arguments)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), process.stderr.read()
        yield url
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGINT, 130), errors
        assert "Traceback" not in errors, errors
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def load_test(url, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / "load_test.py", f"{url}/classify", "--json", *map(str, arguments)],
                          capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def get(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def counted(url):
    (line,) = [line for line in get(f"{url}/metrics").splitlines()
               if line.startswith('sonde_run_duration_seconds_count{model="tiny_cnn"')]
    return int(line.split()[-1])


def test_every_request_is_answered_and_counted():
    with service() as url:
        assert json.loads(get(f"{url}/healthz")) == "ok"
        code, found = load_test(url, "--requests", 200, "--connections", 4, "--warmup", 10)
        assert code == 0 and found["requests"] == 200 and found["failed"] == 0 and found["per_second"] > 0
        tail = found["latency_ms"]
        assert 0 < tail["p50"] <= tail["p95"] <= tail["p99"] <= tail["p99.9"] == pytest.approx(tail["p99.9"])
        assert counted(url) == 210
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/classify", data=b"too short")
        assert refused.value.code == 400
        code, found = load_test(url, "--requests", 3, "--connections", 1, "--warmup", 0, "--floats", 5)
        assert code == 1 and found["failed"] == 3 and {slow["status"] for slow in found["slowest"]} == {400}


def test_requests_that_run_as_a_batch_get_their_own_answers():
    with service("--batch", 8, "--wait-ms", 5) as url:
        code, found = load_test(url, "--requests", 200, "--connections", 8, "--warmup", 0)
        assert code == 0 and found["failed"] == 0
        assert counted(url) <= 200


def test_runs_in_the_recorders_trace_carry_the_traces_of_their_requests(tmp_path):
    path = tmp_path / "service.pftrace"
    with service("--trace", path, "--sample-every", 1, "--sample-operators", 1) as url:
        _, found = load_test(url, "--requests", 300, "--connections", 2, "--warmup", 0, "--slowest", 300)
        assert found["failed"] == 0
    profile = sonde.load_profile(path)
    columns = profile.columns()
    traces = {trace for trace, cat in zip(columns["trace_id"], columns["cat"], strict=True) if cat == "iteration"}
    # What the bound on overhead allowed was recorded, each run under the trace of its request.
    assert traces and traces <= {slow["trace"] for slow in found["slowest"]}


def test_the_spans_of_the_slowest_request_say_where_its_time_went(tmp_path):
    path = tmp_path / "spans.jsonl"
    with service("--spans", path, "--sample-operators", 1, "--workers", 1) as url:
        _, found = load_test(url, "--requests", 100, "--connections", 4, "--warmup", 0)
        assert found["failed"] == 0
    spans = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = found["slowest"][0]["trace"]
    mine = [span for span in spans if span["context"]["trace_id"] == "0x" + wanted]
    request, run = (next(span for span in mine if span["name"] == name) for name in ("POST /classify", "run tiny_cnn"))
    assert run["parent_id"] == request["context"]["span_id"]
    assert request["start_time"] <= run["start_time"] <= run["end_time"] <= request["end_time"]


def test_traces_that_the_caller_does_not_sample_leave_nothing(tmp_path):
    path = tmp_path / "service.pftrace"
    with service("--trace", path, "--sample-every", 1) as url:
        _, found = load_test(url, "--requests", 50, "--warmup", 0, "--not-sampled")
        assert found["failed"] == 0
    assert sonde.load_profile(path).summary()["iterations"] == 0


@pytest.mark.skipif(importlib.util.find_spec("opentelemetry.exporter") is None, reason="no OTLP exporter is installed")
def test_spans_of_requests_runs_and_operators_reach_a_collector():
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with Receiver() as receiver:
        with service("--otlp", receiver.url, "--sample-operators", 1) as url:
            _, found = load_test(url, "--requests", 40, "--connections", 2, "--warmup", 0, "--slowest", 40)
            assert found["failed"] == 0
        spans = [span for _, _, body in receiver.requests
                 for resource in ExportTraceServiceRequest.FromString(body).resource_spans
                 for scope in resource.scope_spans for span in scope.spans]
    requests = [span for span in spans if span.name == "POST /classify"]
    runs = [span for span in spans if span.name == "run tiny_cnn"]
    assert len(requests) == 40
    assert {span.trace_id.hex() for span in requests} == {slow["trace"] for slow in found["slowest"]}
    inner = {span.span_id: span for span in requests}
    mine = [span for span in runs if span.parent_span_id in inner]
    assert len(mine) == 40 and all(span.trace_id == inner[span.parent_span_id].trace_id for span in mine)


