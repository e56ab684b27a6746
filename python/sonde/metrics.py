# SPDX-License-Identifier: Apache-2.0
"""What a service counts, as text for Prometheus: latencies, errors and runs under way by model and session, memory, and
how the recorder is doing.

    sonde.metrics.start()            # count from now on
    body = sonde.metrics.text()      # the answer to GET /metrics

A web framework answers with text() and CONTENT_TYPE. A program without one calls serve()."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import _sonde

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

__all__ = ["CONTENT_TYPE", "OPENMETRICS_CONTENT_TYPE", "Server", "response", "serve", "start", "text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def start() -> None:
    """Counts runs that begin from now on, for as long as the process lives. text() does it, too, if nobody has."""
    _sonde.metrics_start()


def text(openmetrics: bool = False) -> str:
    """Everything counted so far, in Prometheus' text format 0.0.4 or as OpenMetrics 1.0."""
    return _sonde.metrics_text(openmetrics).decode()


def response(accept: str | None = None) -> tuple[bytes, str]:
    """The body of an answer and its content type: OpenMetrics if the request's header Accept names it."""
    openmetrics = "application/openmetrics-text" in (accept or "")
    return _sonde.metrics_text(openmetrics), OPENMETRICS_CONTENT_TYPE if openmetrics else CONTENT_TYPE


class Server:
    """Answers GET /metrics on threads of its own until close(). See serve()."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, name="sonde-metrics", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{name}:{port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(port: int = 0, host: str = "127.0.0.1") -> Server:
    """Starts counting, and a small HTTP server that answers GET /metrics. Port 0: a free one, see Server.url. It is
    reachable from this machine alone unless `host` says otherwise; it knows no passwords."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            self._answer(True)

        def do_HEAD(self) -> None:
            self._answer(False)

        def _answer(self, with_body: bool) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            body, kind = response(self.headers.get("Accept")) if found else (b"see /metrics\n", "text/plain")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # somebody closed the connection early

    start()
    return Server(Quiet((host, port), Handler))
