# SPDX-License-Identifier: Apache-2.0
"""The replica of sonde.ray.deployment. Ray Serve gathers the requests of a batch; here they become columns, run on a
thread of their own, so that the replica goes on taking requests, and become answers again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

from ._errors import Error, InvalidArgument
from ._worker import Columns, Job, Worker
from .ray import assigned_threads


def _plain(value: Any) -> Any:
    """A value of an answer for JSON."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _of_request(error: Exception) -> bool:
    """Is it the request that is wrong, and not the model, `post`, or their results?"""
    return isinstance(error, ValueError) and not getattr(error, "sonde_after_run", False)


def _sample(request: Any) -> dict[str, Any]:
    if not isinstance(request, Mapping):
        raise InvalidArgument(f"a request is an object with a value for every input, not {type(request).__name__}")
    try:
        return {str(name): np.asarray(value) for name, value in request.items()}
    except ValueError as error:
        raise InvalidArgument(f"a value of the request is no array: {error}") from None


def run_together(worker: Worker, samples: Sequence[Mapping[str, Any]]) -> list[Columns | Exception]:
    """The answer of every sample. Those of equal shapes are one batch; where a batch fails, its samples run one by one,
    so that a wrong request spoils no other."""
    answers: list[Columns | Exception] = [InvalidArgument("not run")] * len(samples)
    alike: dict[Any, list[int]] = {}
    for i, sample in enumerate(samples):
        kind = tuple(sorted((name, value.shape, value.dtype.str) for name, value in sample.items()))
        alike.setdefault(kind, []).append(i)

    def run(places: Sequence[int]) -> None:
        first = samples[places[0]]
        try:
            made = worker({name: np.stack([samples[i][name] for i in places]) for name in first}, len(places))
            results = {name: np.asarray(column) for name, column in made.items()}
            for row, i in enumerate(places):
                answers[i] = {name: column[row] for name, column in results.items()}
        except Exception as error:
            if len(places) == 1:
                answers[places[0]] = error
                return
            for i in places:
                run([i])

    for places in alike.values():
        run(places)
    return answers


class Replica:
    """See sonde.ray.deployment."""

    def __init__(self, job: Job, max_batch_size: int, batch_wait_timeout_s: float) -> None:
        self._worker = Worker(job, assigned_threads())
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sonde")
        self._batch.set_max_batch_size(max_batch_size)
        self._batch.set_batch_wait_timeout_s(batch_wait_timeout_s)

    @serve.batch  # type: ignore[untyped-decorator]
    async def _batch(self, samples: list[Mapping[str, Any]]) -> list[Columns | Exception]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, run_together, self._worker, samples)

    async def predict(self, request: Any) -> Columns:
        """The answer to one sample."""
        answer = await self._batch(_sample(request))
        if isinstance(answer, Exception):
            raise answer
        result: Columns = answer
        return result

    async def __call__(self, request: Any) -> Any:
        if not isinstance(request, Request):
            return await self.predict(request)
        try:
            answer = await self.predict(await request.json())
        except Exception as error:
            told = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            return JSONResponse({"error": told}, status_code=400 if _of_request(error) else 500)
        try:
            return JSONResponse({name: _plain(value) for name, value in answer.items()})
        except (TypeError, ValueError) as error:  # such as NaN, or an object
            return JSONResponse({"error": f"the answer cannot be written as JSON: {error}"}, status_code=500)

    async def check_health(self) -> None:
        """The thread that runs batches still answers and has its session. One that hangs fails by Serve's time
        limit."""
        closed = await asyncio.get_running_loop().run_in_executor(self._thread, lambda: self._worker.session.closed)
        if closed:
            raise RuntimeError("the session is closed")
