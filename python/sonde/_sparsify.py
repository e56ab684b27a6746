# SPDX-License-Identifier: Apache-2.0
"""sonde.sparsify: magnitude pruning of a model's weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _sonde
from ._session import _source


def _names(nodes: str | Sequence[str] | None) -> tuple[str, ...]:
    return (nodes,) if isinstance(nodes, str) else tuple(nodes or ())


def sparsify(
    model: Any,
    out: str | os.PathLike[str] | None = None,
    ratio: float | None = None,
    pattern: str = "4x1",
    only: str | Sequence[str] | None = None,
    except_: str | Sequence[str] | None = None,
    *,
    global_: bool = False,
    sparse_initializers: bool = False,
    external_data: bool | str = False,
    inline_limit: int = 0,
) -> Any:
    """Makes the blocks of weights with the smallest norm zero, saves the model as `out`, and returns a
    pandas.DataFrame with a row for each weight.

    model: a path, "zoo:NAME", the bytes of a model, or an onnx.ModelProto. out: a path, which may be that of the model;
    None saves nothing. ratio: the share of blocks that become zero, 0.9 unless it is given; with pattern "2:4" it is 0.5.
    pattern: OUTPUTSxK ("4x1", "1x16", "16x4", "1x1") or "2:4". only, except_: names of nodes or weights; * and ? are
    wildcards, "@FILE" takes the names in a file. global_: one threshold for all weights. external_data: weights go to a second file, whose name may be
    given; models above inline_limit bytes (2 GiB) have one anyway.

    Columns: node, op, weight, shape, pattern, dtype, elements, zeros_before, zeros_after, norm_kept (the share of the L2
    norm that stayed) and skipped (why a weight was left as it is, else ""). The attrs of the frame contain the total.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("sparsify returns a DataFrame and needs pandas (pip install pandas)") from error
    source = _source(model)
    rows, total = _sonde.sparsify(
        source.get("path"),
        source.get("data"),
        source.get("zoo"),
        None if out is None else os.fspath(out),
        (0.5 if pattern == "2:4" else 0.9) if ratio is None else float(ratio),
        pattern,
        _names(only),
        _names(except_),
        global_,
        sparse_initializers,
        external_data is not False,
        external_data if isinstance(external_data, str) else None,
        inline_limit,
    )
    frame = pandas.DataFrame(rows)
    frame.attrs["total"] = {key: total[key] for key in ("elements", "zeros_before", "zeros_after", "norm_kept")}
    return frame
