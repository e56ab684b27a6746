# SPDX-License-Identifier: Apache-2.0
"""sonde.from_torch: creates a session from a PyTorch module, with PyTorch's export to ONNX."""

from __future__ import annotations

import importlib.util
import tempfile
import warnings
from pathlib import Path
from typing import Any

from ._errors import NotImplemented
from ._options import SessionOptions
from ._session import InferenceSession


def from_torch(
    module: Any,
    args: Any,
    kwargs: dict[str, Any] | None = None,
    *,
    sess_options: SessionOptions | None = None,
    **export_options: Any,
) -> InferenceSession:
    """A session that computes what module(*args, **kwargs) does. Shapes are those of the arguments unless
    you set `dynamic_shapes` (or other options of torch.onnx.export). The new exporter of torch.onnx.export is used if the
    package onnxscript is installed, otherwise the older one."""
    try:
        import torch
    except ImportError:
        raise NotImplemented("from_torch needs PyTorch: pip install torch") from None
    arguments = args if isinstance(args, tuple) else (args,)
    export_options.setdefault("dynamo", importlib.util.find_spec("onnxscript") is not None)
    if export_options["dynamo"]:
        export_options.setdefault("verbose", False)
    with tempfile.TemporaryDirectory(prefix="sonde-") as folder, torch.no_grad():
        path = Path(folder) / "model.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.onnx.export(module, arguments, str(path), kwargs=kwargs, **export_options)
        session = InferenceSession(path, sess_options)
    session._model_path = None  # the file is gone; what was mapped of it stays
    return session
