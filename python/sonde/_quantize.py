# SPDX-License-Identifier: Apache-2.0
"""sonde.quantize: a float model becomes one of 8-bit integers, or of weights of 4 or 8 bits."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _sonde
from ._errors import InvalidArgument
from ._session import _source

_METHODS = ("", "minmax", "percentile", "entropy", "mse")
_Path = str | os.PathLike[str]


def _model(model: Any) -> Any:
    source = _source(model)
    return source.get("path") or source.get("zoo") or bytes(source["data"])


def _names(nodes: str | Sequence[str] | None) -> list[str]:
    return [nodes] if isinstance(nodes, str) else list(nodes or ())


def _check_numbers(percentile: float, block_size: int, goal: float | None, max_samples: int) -> None:
    if not 50 < percentile <= 100:
        raise InvalidArgument(f"percentile is {percentile}; it must be above 50 and at most 100")
    if not 16 <= block_size <= 1 << 20 or block_size & (block_size - 1):
        raise InvalidArgument(f"block_size is {block_size}; it must be a power of two from 16 to 1048576")
    if goal is not None and not 0 < goal < float("inf"):
        raise InvalidArgument(f"goal is {goal}; it must be a number of dB above 0")
    if max_samples < 0:
        raise InvalidArgument(f"max_samples is {max_samples}; it must be at least 1, or 0 for all")


def _samples(calibrate: Any, most: int) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    """Paths, dicts of arrays with samples on axis 0, and single samples."""
    if calibrate is None:
        return [], [], []
    if isinstance(calibrate, (str, os.PathLike)):
        return [os.fspath(calibrate)], [], []
    if isinstance(calibrate, Mapping):
        return [], [dict(calibrate)], []
    items = list(itertools.islice(calibrate, most or None))  # of an endless iterator, too
    if not items:
        raise InvalidArgument("calibrate is empty: there are no samples")
    if all(isinstance(item, (str, os.PathLike)) for item in items):
        return [os.fspath(item) for item in items], [], []
    if all(isinstance(item, Mapping) for item in items):
        return [], [], [dict(item) for item in items]
    raise InvalidArgument("calibrate takes a path, a dict of arrays, or an iterable of paths or of dicts")


def quantize(
    model: Any,
    output: _Path,
    calibrate: _Path | Mapping[str, Any] | Iterable[Any] | None = None,
    *,
    method: str = "mse",
    percentile: float = 99.999,
    per_channel: bool = True,
    activation_type: str = "u8",
    dynamic: bool = False,
    weights_only: int | None = None,
    block_size: int = 32,
    equalize: bool = False,
    bias_correction: bool = True,
    only_nodes: str | Sequence[str] | None = None,
    except_nodes: str | Sequence[str] | None = None,
    goal: float | None = None,
    max_samples: int = 0,
    force: bool = False,
    measure: bool = False,
) -> Any:
    """Writes a quantised model to `output` and returns a pandas.DataFrame with a row for each node: what was made of it and why.

    model: a path, "zoo:NAME", the bytes of a model, or an onnx.ModelProto. calibrate: a path as for
    `sonde quantize --calibrate`, a dict of arrays that carry samples on axis 0, or an iterable of dicts, one sample each.
    dynamic and weights_only (4 or 8 bits) need none. max_samples: take the first ones only; 0 takes all. except_nodes:
    names of nodes, of what they produce or of weights that stay in float; only_nodes: the products and convolutions that
    do not. Both take * and ?, commas, and "@FILE" for the names in a comparison or in the lines of a text. goal: SQNR in
    dB that the outputs should reach; if they do not, the best model is written and a RuntimeWarning is issued. The attrs
    of the DataFrame have the totals: sqnr_db, top1_agreement, weight_bytes_before, weight_bytes_after and others.
    measure: run both models a few times on the first sample at the end; before_ms and after_ms are their median times, and
    NaN otherwise or without samples.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("sonde.quantize returns a DataFrame and needs pandas (pip install pandas)") from error
    if method not in _METHODS[1:]:
        raise InvalidArgument(f"method is {method!r}; it is one of {', '.join(_METHODS[1:])}")
    if activation_type not in ("u8", "s8"):
        raise InvalidArgument(f"activation_type is {activation_type!r}; it is u8 or s8")
    if dynamic and weights_only is not None:
        raise InvalidArgument("dynamic and weights_only cannot be combined")
    if weights_only not in (None, 4, 8):
        raise InvalidArgument(f"weights_only is {weights_only!r}; it is 4 or 8 bits")
    _check_numbers(percentile, block_size, goal, max_samples)
    rows, totals = _sonde.quantize(
        _model(model),
        os.fspath(output),
        *_samples(calibrate, max_samples),
        _names(only_nodes),
        _names(except_nodes),
        1 if dynamic else 2 if weights_only is not None else 0,
        _METHODS.index(method),
        percentile,
        not per_channel,
        activation_type == "s8",
        weights_only or 0,
        block_size,
        equalize,
        not bias_correction,
        goal or 0.0,
        force,
        max_samples,
        measure,
    )
    if totals["left_over"]:
        warnings.warn(
            f"the model takes a fixed batch, which the samples do not fill: the last {totals['left_over']} rows are not used",
            RuntimeWarning,
            stacklevel=2,
        )
    if totals["skipped"]:
        warnings.warn(
            f"{totals['skipped']} of the files with samples cannot be read and were skipped",
            RuntimeWarning,
            stacklevel=2,
        )
    if totals["goal_missed"]:
        warnings.warn(
            f"the goal of {goal} dB was not met: the best model found has {totals['sqnr_db']:.1f} dB and was written",
            RuntimeWarning,
            stacklevel=2,
        )
    frame = pandas.DataFrame(rows)
    frame.attrs.update(totals)
    return frame
