# SPDX-License-Identifier: Apache-2.0
"""sonde in Ray: Ray Data and Ray Serve distribute, restart and batch; the workers are sonde's.

    import sonde.ray
    scores = sonde.ray.map_batches(dataset, "model.onnx", inputs="image", actors=4)
    serve.run(sonde.ray.deployment("model.onnx", max_batch_size=16))
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

try:
    import ray
    import ray.data
except ImportError as error:
    raise ImportError("sonde.ray needs Ray: pip install 'ray[data,serve]'") from error

from ._arguments import whole_number
from ._errors import InvalidArgument
from ._worker import Columns, Job, Worker

__all__ = ["Predictor", "deployment", "map_batches"]


def assigned_threads() -> int:
    """Cores that Ray gave to this actor."""
    return max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))


class Predictor:
    """The class for Dataset.map_batches: an actor makes it once, which loads the model, and calls it for every batch.
    The arguments are those of sonde._worker.Job. A session has as many threads as the actor has CPUs."""

    def __init__(self, model: Any, **arguments: Any) -> None:
        job = model if isinstance(model, Job) else Job(model, **arguments)
        self._worker = Worker(job, assigned_threads())

    def __call__(self, batch: Mapping[str, Any]) -> Columns:
        results = self._worker(batch)
        return {
            name: column if isinstance(column, (np.ndarray, list)) else np.asarray(column)
            for name, column in results.items()
        }


def _least_and_most(actors: Any) -> tuple[int, int]:
    pair = actors if isinstance(actors, (tuple, list)) else (actors, actors)
    if len(pair) != 2:
        raise InvalidArgument(f"actors is {actors!r}, expected a number or the least and the most")
    least, most = (whole_number("actors", number) for number in pair)
    if least > most:
        raise InvalidArgument(f"actors is {actors!r}, but the least is more than the most")
    return least, most


def map_batches(
    dataset: Any,
    model: Any,
    *,
    actors: int | tuple[int, int] = 1,
    num_cpus: float = 1,
    batch_size: int = 64,
    ray_remote_args: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """The dataset with the model run on its batches, in order, by so many actors (or at least and at most so many).

    num_cpus: CPUs of an actor, which are the threads of its session. arguments: options, inputs, outputs, keep, pre,
    post, rows, share_weights, profile_to, labels of a job (docs/fleets.md). ray_remote_args: further arguments of
    Dataset.map_batches. Ray restarts an actor that dies and repeats the batches it had not finished.
    """
    if not isinstance(dataset, ray.data.Dataset):
        raise InvalidArgument(f"map_batches takes a dataset of Ray, not a value of type {type(dataset).__name__}")
    least, most = _least_and_most(actors)
    cpus = ray.cluster_resources().get("CPU", 0) if ray.is_initialized() else 0
    if 0 < cpus <= least * num_cpus:
        warnings.warn(
            f"the actors take all {cpus:g} CPUs of the cluster, so tasks that read and prepare data may wait for ever; "
            "use fewer actors or fewer num_cpus",
            RuntimeWarning,
            stacklevel=2,
        )
    result = dataset.map_batches(
        Predictor,
        fn_constructor_args=(Job(model, **arguments),),
        batch_size=batch_size,
        batch_format="numpy",
        compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
        num_cpus=num_cpus,
        **dict(ray_remote_args or {}),
    )
    result.context.execution_options.preserve_order = True
    return result


def deployment(
    model: Any,
    *,
    name: str = "sonde",
    replicas: int | str = 1,
    num_cpus: float = 1,
    max_batch_size: int = 16,
    batch_wait_timeout_s: float = 0.005,
    serve_options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Any:
    """An application for serve.run. A request is one sample: a dict with a value without the batch dimension for every
    input column, as JSON by HTTP or as an argument of handle.remote(); the answer is a dict of output columns. Requests
    that wait at the same time are run together, at most max_batch_size; the first waits batch_wait_timeout_s for
    others.

    replicas: a number or "auto". num_cpus: as in map_batches. serve_options: further arguments of serve.deployment.
    """
    try:
        from ray import serve
    except ImportError as error:
        raise ImportError("sonde.ray.deployment needs Ray Serve: pip install 'ray[serve]'") from error
    from ._ray_serve import Replica

    max_batch_size = whole_number("max_batch_size", max_batch_size)
    options = dict(serve_options or {})
    options["ray_actor_options"] = {"num_cpus": num_cpus, **options.get("ray_actor_options", {})}
    options.setdefault("max_ongoing_requests", 4 * max_batch_size)
    made = serve.deployment(name=name, num_replicas=replicas, **options)(Replica)
    return made.bind(Job(model, **arguments), max_batch_size, batch_wait_timeout_s)
