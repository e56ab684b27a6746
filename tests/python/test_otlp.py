# SPDX-License-Identifier: Apache-2.0
"""sonde profile --otlp and files of OTLP: what a receiver gets, and what the program says of receivers that are busy,
refuse or are not there."""

import importlib.util
import json
import os
import socket
import subprocess

import pytest
from otlp_receiver import Receiver, attributes_of, parse_with_proto, resource_of, spans_of

PROGRAM = os.environ.get("SONDE_PROGRAM", "sonde")
RUN = ("profile", "zoo:tiny_mlp", "-n", "3", "-w", "1", "-t", "1")


def sonde(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=clean | environment)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A saved profile of four runs."""
    path = tmp_path_factory.mktemp("otlp") / "tiny.pftrace"
    done = sonde(*RUN, "-q", "-o", str(path))
    assert done.returncode == 0, done.stderr
    return str(path)


def check_tree(spans):
    """Operators lie in their runs, in the trace of their run and in its time. Returns the runs."""
    by_id = {(span["traceId"], span["spanId"]): span for span in spans}
    assert len(by_id) == len(spans)
    runs = [span for span in spans if "parentSpanId" not in span]
    for span in spans:
        if "parentSpanId" not in span:
            continue
        parent = by_id[span["traceId"], span["parentSpanId"]]
        assert int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(parent["endTimeUnixNano"])
    assert len({run["traceId"] for run in runs}) == len(runs)
    return runs


def test_a_receiver_gets_a_span_for_each_run_and_operator():
    with Receiver() as receiver:
        done = sonde(*RUN, "--otlp", receiver.url)
        assert done.returncode == 0, done.stderr
        ((path, headers, body),) = receiver.requests
    assert path == "/v1/traces" and headers["Content-Type"] == "application/json"
    spans = spans_of(body)
    assert f"sent {len(spans)} spans in 1 request" in done.stdout
    runs = [run for run in check_tree(spans) if run["name"] == "run tiny_mlp"]
    assert len(runs) == 4
    first = attributes_of(runs[0])
    assert first["sonde.model"] == "tiny_mlp" and first["sonde.batch"] == 1 and first["sonde.threads"] == 1
    assert first["sonde.warmup"] is True and "sonde.warmup" not in attributes_of(runs[1])
    (text,) = first["sonde.inputs"]
    assert text.endswith(": f32[1x16]")
    operators = [span for span in spans if span.get("parentSpanId") == runs[1]["spanId"]]
    assert operators and all("sonde.op" in attributes_of(span) for span in operators if not span["name"].startswith("body"))
    assert resource_of(body)["service.name"] == "sonde"


def test_a_file_has_the_same_spans_as_a_request(trace, tmp_path):
    path = tmp_path / "x.otlp.json"
    done = sonde("report", trace, "-q", "-o", str(path))
    assert done.returncode == 0, done.stderr
    with Receiver() as receiver:
        assert sonde("report", trace, "-q", "--otlp", receiver.url).returncode == 0
        assert receiver.spans() == spans_of(path.read_bytes())


@pytest.mark.skipif(importlib.util.find_spec("opentelemetry") is None
                    or importlib.util.find_spec("opentelemetry.proto") is None,
                    reason="opentelemetry-proto is not installed")
def test_opentelemetrys_own_definitions_read_it(trace, tmp_path):
    path = tmp_path / "x.otlp.json"
    assert sonde("report", trace, "-q", "-o", str(path)).returncode == 0
    request = parse_with_proto(path.read_bytes())
    (scope,) = request.resource_spans[0].scope_spans
    spans = spans_of(path.read_bytes())
    assert [span.name for span in scope.spans] == [span["name"] for span in spans]
    assert [span.trace_id.hex() for span in scope.spans] == [span["traceId"] for span in spans]
    assert [span.start_time_unix_nano for span in scope.spans] == [int(span["startTimeUnixNano"]) for span in spans]
    assert scope.spans[0].kind == scope.spans[0].SPAN_KIND_INTERNAL


def test_categories_choose_the_spans(trace, tmp_path):
    path = tmp_path / "runs.otlp.json"
    assert sonde("report", trace, "-q", "-o", str(path), "--categories", "iteration").returncode == 0
    assert {span["name"] for span in spans_of(path.read_bytes())} == {"run tiny_mlp"}


def test_the_environment_says_where_to_and_as_whom(trace):
    with Receiver() as receiver:
        done = sonde("report", trace, "-q", "--otlp", "", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url + "/base/",
                     OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b", OTEL_SERVICE_NAME="søn\"de",
                     OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test,host.name=%22h%22")
        assert done.returncode == 0, done.stderr
        ((path, headers, body),) = receiver.requests
    assert path == "/base/v1/traces" and headers["x-key"] == "a b"
    resource = resource_of(body)
    assert resource["service.name"] == 'søn"de'
    assert resource["deployment.environment"] == "test" and resource["host.name"] == '"h"'


def test_a_busy_receiver_is_asked_again(trace):
    def answer(number):
        return (200, {}, b"{}") if number == 2 else (503, {"Retry-After": "0"}, b"")

    with Receiver(answer) as receiver:
        done = sonde("report", trace, "--otlp", receiver.url)
        assert done.returncode == 0, done.stderr
        assert len(receiver.requests) == 3 and len({body for _, _, body in receiver.requests}) == 1


def test_spans_that_were_not_taken_are_a_warning(trace):
    reply = json.dumps({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "out of\nspace"}}).encode()
    with Receiver(lambda _: (200, {}, reply)) as receiver:
        done = sonde("report", trace, "-q", "--otlp", receiver.url)
    assert done.returncode == 0
    assert "warning: the collector did not take 2 of " in done.stderr and "out of?space" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("status", "headers", "words"), [
    (500, {}, "status 500: oh no"),
    (400, {}, "status 400: oh no"),
    (404, {}, "address of a collector?"),
    (302, {"Location": "http://else.where/"}, "redirects to 'http://else.where/'"),
])
def test_a_refusal_is_an_error_of_one_line(trace, status, headers, words):
    with Receiver(lambda _: (status, headers, b"oh no")) as receiver:
        done = sonde("report", trace, "-q", "--otlp", receiver.url)
        assert len(receiver.requests) == 1
    assert done.returncode == 1 and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_nobody_there_is_said_and_the_files_are_written(trace, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = sonde("report", trace, "-q", "-o", str(tmp_path / "x.json"), "--otlp", url)
    assert done.returncode == 1 and "nobody listens there; is the collector running?" in done.stderr
    assert (tmp_path / "x.json").exists()


@pytest.mark.parametrize(("url", "words"), [
    ("https://collector:4318", "sonde speaks http without TLS only"),
    ("collector:4318", "takes the address of a collector"),
    ("ftp://x", "takes the address of a collector"),
])
def test_wrong_addresses_are_refused_before_anything_runs(url, words):
    done = sonde("profile", "no such model", "--otlp", url)
    assert done.returncode == 2 and words in done.stderr
