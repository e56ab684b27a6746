# SPDX-License-Identifier: Apache-2.0
"""Asks a service again and again, from several connections at once, and prints throughput and tail latencies. It needs
nothing but Python's standard library.

    python load_test.py http://127.0.0.1:8000/classify --requests 2000 --connections 8

Every request carries a `traceparent` of its own, so that the slowest ones can be looked up where spans go. Times are
from the first byte sent to the last byte received."""

from __future__ import annotations

import argparse
import array
import asyncio
import json
import random
import secrets
import sys
import time
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    seconds: float
    trace: str
    status: int  # 0: no answer


class Broken(Exception):
    """The connection cannot be used any more."""


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status of one reply, and whether the connection stays open. Its body has a length."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise Broken from error
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines if line)}
    try:
        status, length = int(first.split()[1]), int(headers["content-length"])
        await reader.readexactly(length)
    except (IndexError, KeyError, ValueError, asyncio.IncompleteReadError, ConnectionError) as error:
        raise Broken from error
    return status, headers.get("connection", "").lower() != "close"


async def ask(url: str, bodies: list[bytes], numbers: list[int], answers: list[Answer], sampled: bool) -> None:
    """One connection: takes the next number until none is left. A broken connection is opened anew."""
    parts = urlsplit(url)
    path = parts.path or "/"
    writer = None
    while numbers:
        body = bodies[numbers.pop() % len(bodies)]
        trace, span = secrets.token_hex(16), secrets.token_hex(8)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: {len(body)}\r\ntraceparent: 00-{trace}-{span}-{'01' if sampled else '00'}\r\n\r\n"
        )
        begin = time.perf_counter()
        status = 0
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
            writer.write(head.encode() + body)
            await writer.drain()
            status, stays = await read_answer(reader)
        except (Broken, OSError):
            stays = False
        answers.append(Answer(time.perf_counter() - begin, trace, status))
        if not stays and writer:
            writer.close()
            writer = None
    if writer:
        writer.close()


def percentile(ordered: list[float], share: float) -> float:
    """Linear interpolation between the samples around it."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


async def load(arguments: argparse.Namespace) -> tuple[list[Answer], float]:
    rng = random.Random(arguments.seed)
    bodies = [array.array("f", (rng.random() for _ in range(arguments.floats))).tobytes() for _ in range(16)]

    async def ask_many(requests: int) -> list[Answer]:
        numbers, answers = list(range(requests)), list[Answer]()
        jobs = [ask(arguments.url, bodies, numbers, answers, arguments.sampled) for _ in range(arguments.connections)]
        await asyncio.gather(*jobs)
        return answers

    await ask_many(arguments.warmup)
    begin = time.perf_counter()
    answers = await ask_many(arguments.requests)
    return answers, time.perf_counter() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description="Throughput and tail latencies of a service.")
    parser.add_argument("url", help="http://127.0.0.1:8000/classify")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=20, help="requests before the measured ones")
    parser.add_argument("--floats", type=int, default=3 * 32 * 32, help="numbers in a request")
    parser.add_argument("--slowest", type=int, default=3, help="how many of the slowest are listed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--not-sampled", dest="sampled", action="store_false", help="say that nobody records the traces")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    arguments = parser.parse_args()
    if arguments.requests < 1 or arguments.connections < 1:
        parser.error("--requests and --connections are at least 1")
    answers, seconds = asyncio.run(load(arguments))
    good = sorted(answer.seconds for answer in answers if answer.status == 200)
    failed = len(answers) - len(good)
    slowest = sorted(answers, reverse=True)[: arguments.slowest]
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
    tail = {name: percentile(good, share) * 1e3 for name, share in shares.items()} if good else {}
    if arguments.json:
        found = {
            "requests": len(answers),
            "failed": failed,
            "seconds": seconds,
            "per_second": len(good) / seconds,
            "latency_ms": tail,
            "slowest": [{"ms": answer.seconds * 1e3, "trace": answer.trace, "status": answer.status} for answer in slowest],
        }
        print(json.dumps(found))
    else:
        print(f"{len(answers)} requests on {arguments.connections} connections in {seconds:.2f} s, {failed} failed")
        print(f"throughput   {len(good) / seconds:.1f} requests per second")
        for name, value in tail.items():
            print(f"{name:<12} {value:.2f} ms")
        print("slowest")
        for answer in slowest:
            print(f"  {answer.seconds * 1e3:8.2f} ms  status {answer.status}  trace {answer.trace}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
