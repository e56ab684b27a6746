# SPDX-License-Identifier: Apache-2.0
"""sonde.bench: measures the latency of a model in this process. `sonde bench` on the command line does more: other
runtimes, separate processes, interleaved rounds, whole programs."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _sonde
from ._errors import InvalidArgument
from ._options import SessionOptions
from ._session import InferenceSession
from ._sonde import RunOptions
from ._units import time_unit

PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}


@dataclass(frozen=True)
class BenchResult:
    """The result of bench(); times are in milliseconds."""

    model: str
    threads: int
    load_ms: float | None
    """None: the session was there already"""
    first_ms: float | None
    latency_ms: Mapping[str, float]
    """min, mean, p50, p90, p95, p99, p999, max and stddev over all samples"""
    throughput_per_s: float
    peak_rss_bytes: int
    """of the whole process"""
    samples_ms: Sequence[float] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """what decides how long a run takes: threads, inputs, and what is not the default"""

    @property
    def iterations(self) -> int:
        return len(self.samples_ms)

    def to_dict(self) -> dict[str, Any]:
        """The result as a dict with the schema of `sonde bench --json`."""
        return {
            "schema": "sonde.bench/1",
            "model": self.model,
            "runtime": {"name": "sonde", "version": _sonde.version},
            "threads": self.threads,
            "iterations": self.iterations,
            "load_ms": self.load_ms,
            "first_ms": self.first_ms,
            "latency_ms": dict(self.latency_ms),
            "throughput_per_s": self.throughput_per_s,
            "peak_rss_bytes": self.peak_rss_bytes,
            "samples": {"unit": "ms", "latency": list(self.samples_ms)},
        }

    def __str__(self) -> str:
        unit = time_unit(self.latency_ms["p50"] * 1e6)
        names = ("min", "p50", "mean", "p95", "p99", "max")
        figures = ", ".join(f"{name} {unit.text(self.latency_ms[name] * 1e6)}" for name in names)
        return f"{self.model}: {figures} {unit.name} over {self.iterations} runs, {self.throughput_per_s:.1f} per second"


def latency_figures(samples: Sequence[float]) -> dict[str, float]:
    """Latency statistics; percentiles are interpolated linearly between samples."""
    values = np.asarray(samples, np.float64)
    figures = {"min": values.min(), "mean": values.mean()}
    figures.update(zip(PERCENTILES, np.percentile(values, list(PERCENTILES.values())), strict=True))
    figures.update(max=values.max(), stddev=values.std(ddof=1) if values.size > 1 else 0.0)
    return {name: float(value) for name, value in figures.items()}


def bench(
    model: Any,
    feeds: Mapping[str, Any] | None = None,
    *,
    iterations: int | None = None,
    duration: float = 2.0,
    warmup: int = 3,
    sess_options: SessionOptions | None = None,
    seed: int = 0,
) -> BenchResult:
    """Measures the latency of a model: a session, or anything that InferenceSession accepts. Without feeds the inputs are
    random. Without `iterations` it runs for `duration` seconds, and at least 10 times."""
    if (iterations is not None and iterations < 1) or warmup < 0 or duration < 0:
        raise InvalidArgument("iterations must be at least 1, warmup and duration at least 0")
    load = first = None
    begin = time.perf_counter_ns()
    if isinstance(model, InferenceSession):
        session = model
    else:
        session = InferenceSession(model, sess_options)
        load = (time.perf_counter_ns() - begin) / 1e6
    inputs = dict(feeds) if feeds is not None else session.random_inputs(seed)
    options = RunOptions()
    options.warmup = True
    for _ in range(warmup):
        begin = time.perf_counter_ns()
        session.run(None, inputs, options)
        if first is None and load is not None:
            first = (time.perf_counter_ns() - begin) / 1e6
    samples: list[float] = []
    end = time.perf_counter_ns() + int(duration * 1e9)
    while len(samples) < (iterations or 10) or (iterations is None and time.perf_counter_ns() < end):
        begin = time.perf_counter_ns()
        session.run(None, inputs)
        samples.append((time.perf_counter_ns() - begin) / 1e6)
    name = model if isinstance(model, str) else session._typed_name or session.get_modelmeta().graph_name
    measured = session._measured_as()
    return BenchResult(
        model=name,
        threads=measured["threads"],
        load_ms=load,
        first_ms=first,
        latency_ms=latency_figures(samples),
        throughput_per_s=1000 * len(samples) / sum(samples),
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        samples_ms=tuple(samples),
        options=measured,
    )
