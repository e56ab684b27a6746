# SPDX-License-Identifier: Apache-2.0
"""sonde as a backend of the package onnx (onnx.backend.base.Backend). With it you can run the official tests:

    onnx.backend.test.BackendTest(sonde.backend, __name__)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from ._errors import Error, NotImplemented
from ._options import SessionOptions
from ._session import InferenceSession

__all__ = ["SondeBackend", "SondeBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class SondeBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession, names: Sequence[str]) -> None:
        self.session = session
        self.names = list(names)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """inputs: one array, arrays in the graph's order, or a dict by name."""
        if isinstance(inputs, Mapping):
            feeds = dict(inputs)
        else:
            items = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            if len(items) > len(self.names):
                raise ValueError(f"{len(items)} inputs given, the model has {len(self.names)}")
            feeds = dict(zip(self.names, items, strict=False))
        return tuple(self.session.run(None, feeds))


class SondeBackend(Backend):
    """The functions of this module, as onnx's classes have them."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all operators of the model are supported."""
        try:
            InferenceSession(model).close()
        except NotImplemented:
            return False
        except Error:
            return True
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> SondeBackendRep:
        """model: a ModelProto, its bytes, a path, or a session."""
        if not cls.supports_device(device):
            raise RuntimeError(f"device '{device}' is not supported; the only device is CPU")
        if isinstance(model, InferenceSession):
            session = model
        else:
            options = kwargs.pop("sess_options", None)
            session = InferenceSession(model, options if isinstance(options, SessionOptions) else None)
        ports = session.get_inputs() + session.get_overridable_initializers()
        return SondeBackendRep(session, [port.name for port in ports])

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs a single node."""
        items = [inputs[name] for name in node.input if name] if isinstance(inputs, Mapping) else list(inputs)
        arrays = [np.asarray(item) for item in items]
        names = [name for name in node.input if name]
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [
                onnx.helper.make_tensor_value_info(
                    name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in zip(names, arrays, strict=True)
            ],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.partition(":")[0].upper() == "CPU"


is_compatible = SondeBackend.is_compatible
prepare = SondeBackend.prepare
run_model = SondeBackend.run_model
run_node = SondeBackend.run_node
supports_device = SondeBackend.supports_device
