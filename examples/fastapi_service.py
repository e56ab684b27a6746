# SPDX-License-Identifier: Apache-2.0
"""A service that classifies images: FastAPI and uvicorn in front, a sonde session behind, on the loopback interface.

    pip install fastapi uvicorn opentelemetry-sdk
    python fastapi_service.py --port 8000

    POST /classify   3*32*32 float32 numbers as bytes ► {"class": 7, "trace": "4bf9…"}
    GET  /metrics    Prometheus text
    GET  /healthz    "ok"

With --batch N, requests that arrive within --wait-ms of each other run as one batch. With --otlp URL, spans go to an
OpenTelemetry collector, with --spans FILE to a file, a line each: one for each request, one for each run within it, and
for one run in --sample-operators also one for each operator. With --trace FILE.pftrace, sonde's own recorder keeps one run in --sample-every and writes them to a file
when the service ends; its runs carry the trace ids of their requests. docs/service.md walks through it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import sonde
import sonde.opentelemetry
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from opentelemetry import context, propagate, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

SHAPE = (3, 32, 32)
BYTES = 4 * 3 * 32 * 32


def tracer_provider(endpoint: str | None, spans: str | None) -> TracerProvider:
    """Spans of the process; to the collector or the file, where there is one."""
    attributes = {"service.name": "classifier"} | sonde.opentelemetry.resource_attributes()
    provider = TracerProvider(resource=Resource.create(attributes))
    if spans:
        lines = ConsoleSpanExporter(out=open(spans, "w"), formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(BatchSpanProcessor(lines))
    if endpoint:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ImportError:
            raise SystemExit("--otlp needs: pip install opentelemetry-exporter-otlp-proto-http") from None
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    return provider


class Batcher:
    """Requests that arrive close to each other run together. The run's span belongs to the trace of the first of them;
    the spans of the others say which one that is."""

    def __init__(self, run: Any, most: int, wait_s: float) -> None:
        self._run, self._most, self._wait_s = run, most, wait_s
        self._waiting: asyncio.Queue[tuple[np.ndarray, Any, asyncio.Future[int]]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def classify(self, image: np.ndarray) -> int:
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        await self._waiting.put((image, context.get_current(), answer))
        return await answer

    async def _serve(self) -> None:
        while True:
            group = [await self._waiting.get()]
            deadline = asyncio.get_running_loop().time() + self._wait_s
            while len(group) < self._most:
                left = deadline - asyncio.get_running_loop().time()
                try:
                    group.append(await asyncio.wait_for(self._waiting.get(), max(left, 0)))
                except TimeoutError:
                    break
            first = trace.get_current_span(group[0][1]).get_span_context()
            for _, other, _ in group[1:]:
                trace.get_current_span(other).add_link(first)
            try:
                classes = await self._run(np.stack([image for image, _, _ in group]), group[0][1])
            except Exception as error:
                for _, _, answer in group:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, _, answer), number in zip(group, classes, strict=True):
                if not answer.done():  # whoever asked may have gone
                    answer.set_result(number)


def make_app(arguments: argparse.Namespace) -> FastAPI:
    provider = tracer_provider(arguments.otlp, arguments.spans)
    tracer = trace.get_tracer("classifier", tracer_provider=provider)

    # Requests run side by side, each on one thread.
    options = sonde.SessionOptions()
    options.intra_op_num_threads = 1
    session = sonde.InferenceSession(arguments.model, options)
    session.run(None, session.random_inputs(seed=1))  # the first run plans memory; it is not to be in the histogram
    name = session.get_inputs()[0].name
    sonde.metrics.start()
    sonde.opentelemetry.instrument(session, provider, sample_operators=arguments.sample_operators)
    workers = ThreadPoolExecutor(arguments.workers, thread_name_prefix="inference")

    async def run(images: np.ndarray, within: Any) -> list[int]:
        def work() -> list[int]:
            token = context.attach(within)
            try:
                (scores,) = session.run(None, {name: images})
            finally:
                context.detach(token)
            return [int(number) for number in scores.reshape(len(images), -1).argmax(1)]

        return await asyncio.get_running_loop().run_in_executor(workers, work)

    batcher = Batcher(run, arguments.batch, arguments.wait_ms / 1000) if arguments.batch > 1 else None

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        with contextlib.ExitStack() as stack:
            if arguments.trace:
                profiler = sonde.profile(arguments.trace, sample_every=arguments.sample_every)
                stack.enter_context(profiler)
            if batcher:
                batcher.start()
            yield
            if batcher:
                await batcher.stop()
        workers.shutdown()
        provider.shutdown()  # sends what is left

    app = FastAPI(title="classifier", lifespan=life)

    @app.post("/classify")
    async def classify(request: Request) -> dict[str, Any]:
        caller = propagate.extract(request.headers)
        with tracer.start_as_current_span("POST /classify", context=caller, kind=trace.SpanKind.SERVER) as span:
            body = await request.body()
            if len(body) != BYTES:
                raise HTTPException(400, f"expected {BYTES} bytes, got {len(body)}")
            image = np.frombuffer(body, np.float32).reshape(SHAPE)
            if batcher:
                number = await batcher.classify(image)
            else:
                (number,) = await run(image[np.newaxis], context.get_current())
            return {"class": number, "trace": f"{span.get_span_context().trace_id:032x}"}

    @app.get("/metrics")
    def metrics(request: Request) -> Response:
        body, kind = sonde.metrics.response(request.headers.get("accept"))
        return Response(body, media_type=kind)

    @app.get("/healthz")
    def health() -> str:
        return "ok"

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="Classifies images on the loopback interface.")
    parser.add_argument("--model", default="zoo:tiny_cnn")
    parser.add_argument("--port", type=int, default=8000, help="0: a free one")
    parser.add_argument("--workers", type=int, default=2, help="runs at the same time")
    parser.add_argument("--batch", type=int, default=1, help="most requests that run together")
    parser.add_argument("--wait-ms", type=float, default=2.0, help="how long a batch waits for more")
    parser.add_argument("--otlp", help="a collector, such as http://127.0.0.1:4318")
    parser.add_argument("--spans", help="a file for spans, one a line")
    parser.add_argument("--sample-operators", type=int, default=100, help="operator spans of one run in so many")
    parser.add_argument("--trace", help="a file for sonde's own recorder")
    parser.add_argument("--sample-every", type=int, default=100, help="for --trace: one run in so many")
    arguments = parser.parse_args()
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)
    listener = socket.create_server(("127.0.0.1", arguments.port))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server = uvicorn.Server(uvicorn.Config(make_app(arguments), log_level="warning"))
    with contextlib.suppress(KeyboardInterrupt):  # how Ctrl-C ends it
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
