# SPDX-License-Identifier: Apache-2.0
"""sonde.compare: how far two models, two precisions or two runtimes are apart, tensor by tensor. The same as
`sonde compare` on the command line."""

from __future__ import annotations

import itertools
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _convert, _sonde
from ._errors import InvalidArgument
from ._options import SessionOptions, session_arguments
from ._session import InferenceSession, _source

PathLike = str | os.PathLike[str]
Sample = Mapping[str, Any]
PRECISIONS = ("file", "f32", "bf16", "f16", "auto")
FIGURES = ("max_abs", "mean_abs", "rms", "relative", "sqnr_db", "cosine")


@dataclass(frozen=True)
class ModelComparison:
    """The result of compare()."""

    summary: Mapping[str, Any]
    """labels of A and B, samples, the bound, the first tensor over it, the worst output, how many tensors are shared"""
    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    """a dict for each shared tensor, in topological order of A"""
    worst: Sequence[str]
    """nodes that add error, most first"""
    leave_in_float: Sequence[str]
    """nodes of A that are better not quantised, the most harmful first"""
    weights: Sequence[Mapping[str, Any]] = field(repr=False)
    """a dict for each constant that both have with other numbers, whether the inputs reach it or not"""
    _accuracy: _sonde.Accuracy = field(repr=False, compare=False)

    @property
    def outputs(self) -> list[Mapping[str, Any]]:
        """The rows of the outputs of the model."""
        return [row for row in self.rows if row["output"]]

    def dataframe(self) -> Any:
        """The rows as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("a DataFrame needs pandas (pip install pandas); rows work without it") from error
        return pandas.DataFrame(list(self.rows))

    def save(self, path: PathLike) -> None:
        """Writes .json (schema sonde.compare/1, which `sonde quantize --except @FILE` takes) or .csv."""
        self._accuracy.save(path)


def _put_back(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities and no NaN."""
    for name in FIGURES:
        if row[name] is None:
            row[name] = math.nan if name == "cosine" else math.inf
    return row


def _finish_figures(row: dict[str, Any]) -> dict[str, Any]:
    _put_back(row)
    inner = row.pop("local")
    own = None if inner is None else _put_back(inner)
    row["local_sqnr_db"] = math.nan if own is None else own["sqnr_db"]
    row["local_max_abs"] = math.nan if own is None else own["max_abs"]
    row["local_not_finite"] = 0 if own is None else own["not_finite"]
    for name, missing in (("added", math.inf), ("at_outputs", math.nan)):
        row[name] = missing if row[name] is None else row[name]
    return row


def _parse_bound(bound: str | float | None) -> tuple[float, float, float]:
    """(dB, largest difference, relative): "30dB", 0.001, "1%"."""
    if bound is None:
        return 0.0, 0.0, 0.0
    text = str(bound).strip()
    unit = next((unit for unit in ("dB", "%") if text.endswith(unit)), "")
    try:
        number = float(text.removesuffix(unit))
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InvalidArgument(f"bound is {bound!r}, expected '30dB', a difference such as 0.001, or '1%'")
    return {"dB": (number, 0.0, 0.0), "%": (0.0, 0.0, number / 100), "": (0.0, number, 0.0)}[unit]


# ---------------------------------------------------------------- samples
def _split(arrays: Mapping[str, Any], ranks: Mapping[str, tuple[int, Any]]) -> list[Sample]:
    """Arrays carry samples on axis 0, as those that a quantiser calibrates on. An array of the rank of its input has
    samples of batch 1, or of the batch that the model states; one of one rank more has whole inputs."""
    parts: dict[str, list[Any]] = {}
    for name, array in arrays.items():
        rank, first = ranks.get(name, (-1, None))
        data = np.asarray(array)
        each = first if isinstance(first, int) and first > 0 else 1
        if rank >= 0 and data.ndim == rank + 1:
            parts[name] = list(data)
        elif data.ndim == rank > 0:
            parts[name] = [data[i : i + each] for i in range(0, len(data) - each + 1, each)]
        else:
            parts[name] = [data]
        if not parts[name]:
            raise InvalidArgument(f"the array for input '{name}' has {len(data)} samples, but the model takes {each} at a time")
    count = max((len(each) for each in parts.values()), default=1)
    odd = [name for name, each in parts.items() if len(each) not in (1, count)]
    if odd:
        raise InvalidArgument(f"the array for input '{odd[0]}' has {len(parts[odd[0]])} samples, another one has {count}")
    return [{name: each[i if len(each) > 1 else 0] for name, each in parts.items()} for i in range(count)]


def _samples(
    inputs: Any, ports: InferenceSession, count: int | None, seed: int, sizes: Mapping[str, int] | None
) -> Callable[[], Iterable[Sample]]:
    """A function that goes through the samples, again and again."""
    ranks = {arg.name: (len(arg.shape), arg.shape[0] if arg.shape else None) for arg in ports.get_inputs()}
    if count is not None and count < 1:
        raise InvalidArgument(f"samples is {count}: nothing would be compared")
    if inputs is None:
        return lambda: (ports.random_inputs(seed + i, sizes) for i in range(count or 1))
    if callable(inputs):
        return lambda: itertools.islice(inputs(), count)
    if isinstance(inputs, (str, os.PathLike)):
        with np.load(inputs, allow_pickle=False) as file:
            inputs = {name: file[name] for name in file.files}
    if isinstance(inputs, Mapping) and not inputs and ranks:
        raise InvalidArgument("the inputs contain no arrays: nothing would be compared")
    if isinstance(inputs, Mapping):
        pieces = _split(inputs, ranks) if all(isinstance(a, np.ndarray) for a in inputs.values()) else [inputs]
        return lambda: pieces[:count]
    if isinstance(inputs, Sequence):
        return lambda: inputs[:count]
    raise InvalidArgument(
        f"inputs is {type(inputs).__name__}, expected a dict, a sequence of dicts, the path of an .npz file, or a "
        "function that returns an iterator of dicts"
    )


def _values(ports: InferenceSession, sample: Sample) -> dict[str, _sonde.OrtValue]:
    types = {arg.name: arg.type for arg in ports.get_inputs() + ports.get_overridable_initializers()}
    unknown = [name for name in sample if name not in types]
    if unknown:
        raise InvalidArgument(f"the model has no input '{unknown[0]}'; its inputs are {', '.join(types)}")
    return {name: _convert.as_value(value, types[name], name) for name, value in sample.items()}


# ---------------------------------------------------------------- another runtime
class _OnnxRuntime:
    """Runs the models that the library writes to `path`."""

    def __init__(self, path: str, variant: str, threads: int) -> None:
        import onnxruntime

        levels = onnxruntime.GraphOptimizationLevel
        known = {"": levels.ORT_ENABLE_ALL, "opt=all": levels.ORT_ENABLE_ALL, "opt=off": levels.ORT_DISABLE_ALL,
                 "opt=basic": levels.ORT_ENABLE_BASIC, "opt=extended": levels.ORT_ENABLE_EXTENDED}
        if variant not in known:
            raise InvalidArgument(f"onnxruntime has no variant '{variant}'; its variants are {', '.join(known)[2:]}")
        self._module, self._path, self._session = onnxruntime, path, None
        self._options = onnxruntime.SessionOptions()
        self._options.graph_optimization_level = known[variant]
        self._options.intra_op_num_threads = threads
        self._options.log_severity_level = 3

    def __call__(self, fresh: bool, feeds: dict[str, _sonde.OrtValue]) -> list[Any]:
        if fresh:
            self._session = self._module.InferenceSession(
                self._path, self._options, providers=["CPUExecutionProvider"]
            )
        assert self._session is not None
        arrays = {name: value.numpy() for name, value in feeds.items()}
        return [
            _convert.tensor(np.asarray(value, order="C")) if isinstance(value, np.ndarray) else None
            for value in self._session.run(None, arrays)
        ]


def _other_runtime(against: str | None, path: str, threads: int) -> Any:
    if against is None:
        return None
    name, _, variant = against.partition(":")
    if name != "onnxruntime":
        raise InvalidArgument(f"cannot compare with '{against}', only with onnxruntime; `sonde compare` knows others")
    return _OnnxRuntime(path, variant, threads)


# ---------------------------------------------------------------- all of it
def _label(model: Any, precision: int, against: str | None) -> str:
    name = os.fspath(model) if isinstance(model, (str, os.PathLike)) else "model"
    parts = [os.fsdecode(name)] + ([PRECISIONS[precision]] if precision else []) + ([against] if against else [])
    return ", ".join(parts).encode("utf-8", "replace").decode()


def _precisions(precision: str | Sequence[str] | None) -> list[int | None]:
    said = precision.split(",") if isinstance(precision, str) else list(precision or [])
    if len(said) > 2 or any(name not in PRECISIONS for name in said):
        raise InvalidArgument(f"precision is {precision!r}, expected one or two of {', '.join(PRECISIONS)}")
    numbers: list[int | None] = [PRECISIONS.index(name) for name in said]
    return (numbers * 2)[:2] if numbers else [None, None]


def _side(model: Any, options: SessionOptions, precision: int | None, against: str | None) -> tuple[Any, ...]:
    arguments = session_arguments(options)
    chosen = arguments["precision"] if precision is None else precision
    label = _label(model, chosen, against)
    return (label, arguments["no_optimize"], arguments["no_prepack"], arguments["flush_denormals"], chosen,
            arguments["threads"], arguments["disabled"])


class _Ports(InferenceSession):
    """A model whose inputs are known and that does not run: nothing is packed."""

    def __init__(self, model: Any, options: SessionOptions) -> None:
        self._sess_options = options
        self._profiling = None
        arguments = session_arguments(options)
        files = {name: arguments[name] for name in ("no_mmap", "external_dir")}
        _sonde.Session.__init__(self, **_source(model), **files, plan_only=True)
        self._find_ports()


def _run(accuracy: _sonde.Accuracy, ports: InferenceSession, samples: Callable[[], Iterable[Sample]]) -> None:
    for number in range(accuracy.passes()):
        for sample in samples():
            accuracy.add(number, _values(ports, sample))


def _first(samples: Callable[[], Iterable[Sample]]) -> Sample:
    each: Iterator[Sample] = iter(samples())
    try:
        return next(each)
    except StopIteration:
        raise InvalidArgument("there are no samples to compare on") from None


def _result(accuracy: _sonde.Accuracy) -> ModelComparison:
    found = json.loads(accuracy.write(".json"))
    rows = [_finish_figures(row) for row in found.pop("tensors")]
    worst, leave = found.pop("worst"), found.pop("leave_in_float")
    weights = [_put_back(row) for row in found.pop("weights")]
    if not found["compared"]:
        outputs = [row for row in rows if row["output"]] or rows
        if any(row["elements"] for row in outputs):
            raise InvalidArgument("nothing was compared: every element of the outputs is NaN or infinite in A and in B")
        raise InvalidArgument("nothing was compared: the outputs have no elements, or B does not return them")
    return ModelComparison(found, rows, worst, leave, weights, accuracy)


def compare(
    a: Any,
    b: Any = None,
    inputs: Any = None,
    *,
    precision: str | Sequence[str] | None = None,
    against: str | None = None,
    options: SessionOptions | None = None,
    options_b: SessionOptions | None = None,
    bound: str | float | None = None,
    samples: int | None = None,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    local: bool = True,
    layers: bool = True,
    group_bytes: int = 0,
    output: PathLike | Sequence[PathLike] = (),
) -> ModelComparison:
    """Compares every tensor that two models share, on the same inputs. A is the reference.

    a, b: what InferenceSession takes. Without b it is a, in another precision ("f32,bf16"), with other options
    (options_b), or in another runtime (against="onnxruntime", "onnxruntime:opt=off"). inputs: a dict of arrays, which
    may carry samples on axis 0; a sequence of dicts; the path of an .npz file; a function that returns an iterator of
    dicts; None for random ones. samples: at most so many of them, by default all, or one random sample. bound: which tensors are reported as over it, "30dB",
    0.001 or "1%". local: find the error each operator adds alone. layers: try each layer of a quantised b alone.
    group_bytes: memory for the tensors that are compared at a time. output: files to write, .json or .csv.
    """
    precisions = _precisions(precision)
    if b is None and against is None and options_b is None and precisions[0] == precisions[1]:
        raise InvalidArgument("compare needs a second model, two precisions, options_b, or another runtime (against)")
    first = options if options is not None else SessionOptions()
    second = options_b if options_b is not None else first
    other = a if b is None else b
    sides = (_side(a, first, precisions[0], None), _side(other, second, precisions[1], against))
    ports, ports_b = _Ports(a, first), _Ports(other, second)
    each = _samples(inputs, ports, samples, seed, sizes)
    with tempfile.TemporaryDirectory(prefix="sonde-compare-") as folder:
        path = os.path.join(folder, "model.onnx")
        accuracy = _sonde.Accuracy(
            ports, ports_b, *sides, _parse_bound(bound), group_bytes, not local, not layers,
            _values(ports, _first(each)), _other_runtime(against, path, sides[1][5]), os.fsencode(path),
        )
        _run(accuracy, ports, each)
    result = _result(accuracy)
    for name in [output] if isinstance(output, (str, os.PathLike)) else output:
        result.save(name)
    return result
