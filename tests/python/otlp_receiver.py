# SPDX-License-Identifier: Apache-2.0
"""A receiver of OTLP on the loopback interface for tests, and a look at what it got: strict about every field that a
collector is strict about."""

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """Keeps the requests. `answer` says how each is answered: a function of its number that returns a status, headers
    and a body."""

    def __init__(self, answer=lambda number: (200, {}, b"{}")):
        self.requests = []  # (path, headers, body)
        lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    number = len(receiver.requests)
                    receiver.requests.append((self.path, dict(self.headers), body))
                status, headers, reply = answer(number)
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self):
        return [span for _, _, body in self.requests for span in spans_of(body)]


def value_of(value):
    """An attribute's value as Python has it; each states exactly one type."""
    assert len(value) == 1, value
    ((kind, inside),) = value.items()
    if kind == "stringValue":
        assert isinstance(inside, str)
        return inside
    if kind == "intValue":
        assert isinstance(inside, str) and re.fullmatch(r"-?\d+", inside), "64-bit integers are strings"
        return int(inside)
    if kind == "boolValue":
        assert isinstance(inside, bool)
        return inside
    assert kind == "arrayValue" and list(inside) == ["values"], kind
    return [value_of(item) for item in inside["values"]]


def attributes_of(thing):
    pairs = [(item["key"], value_of(item["value"])) for item in thing["attributes"]]
    assert len(dict(pairs)) == len(pairs), "keys are unique"
    return dict(pairs)


KEYS = {"traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes"}


def check_span(span):
    assert KEYS <= set(span) <= KEYS | {"parentSpanId", "status"}, set(span)
    assert re.fullmatch(r"[0-9a-f]{32}", span["traceId"]) and int(span["traceId"], 16)
    assert re.fullmatch(r"[0-9a-f]{16}", span["spanId"]) and int(span["spanId"], 16)
    assert "parentSpanId" not in span or re.fullmatch(r"[0-9a-f]{16}", span["parentSpanId"])
    assert isinstance(span["name"], str) and span["name"]
    assert span["kind"] == 1  # internal
    for key in ("startTimeUnixNano", "endTimeUnixNano"):
        assert isinstance(span[key], str) and re.fullmatch(r"[1-9]\d{18}", span[key]), "nanoseconds since 1970"
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    attributes_of(span)
    return span


def entries_of(body):
    """The attributes of each resource of a request, with its spans, each of which is checked."""
    request = json.loads(body)
    assert list(request) == ["resourceSpans"]
    found = []
    for entry in request["resourceSpans"]:
        assert set(entry) == {"resource", "scopeSpans"}
        spans = []
        for scope in entry["scopeSpans"]:
            assert scope["scope"]["name"] == "sonde"
            spans += [check_span(span) for span in scope["spans"]]
        found.append((attributes_of(entry["resource"]), spans))
    return found


def resource_of(body):
    ((resource, _),) = entries_of(body)
    return resource


def spans_of(body):
    return [span for _, spans in entries_of(body) for span in spans]


def parse_with_proto(body):
    """The same with OpenTelemetry's own definitions. Its JSON has ids in hexadecimal, protobuf's in base64."""
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = json.loads(body)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(request, ExportTraceServiceRequest())
