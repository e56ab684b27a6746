# SPDX-License-Identifier: Apache-2.0
"""IOBinding: reuses the memory of inputs and outputs for several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _convert, _sonde
from ._errors import InvalidArgument
from ._sonde import OrtValue, RunOptions

if TYPE_CHECKING:
    from ._session import InferenceSession


def _check_device(device_type: str) -> None:
    if device_type.lower() != "cpu":
        raise InvalidArgument(f"device '{device_type}' is not supported; the only device is cpu")


def _over_pointer(element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
    """A tensor that refers to memory owned by the caller."""
    number = _convert.element_number(element_type)
    dims = tuple(int(dim) for dim in shape)
    size = int(np.prod(dims, dtype=np.int64)) * _sonde.dtype_bytes(number)
    return _sonde.pointer(number, dims, int(address), size)


class IOBinding:
    """Created by InferenceSession.io_binding(). Bound inputs are used without a copy. Outputs are written to the bound
    memory, or to new memory, which get_outputs() returns."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []
        self._types = {arg.name: arg.type for arg in session._input_args + session._initializer_args}

    # ---------------------------------------------------------------- inputs
    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array, or anything else that run() accepts, to an input."""
        self._inputs[name] = _convert.as_value(arr_on_cpu, self._types.get(name), name)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds memory at an address to an input. The memory must stay valid while it is bound."""
        _check_device(device_type)
        self._inputs[name] = _over_pointer(element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[name] = _convert.to_value(ortvalue, self._types.get(name), name)

    # ---------------------------------------------------------------- outputs
    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Asks for an output. With a buffer it is written there, else into memory made by the run."""
        _check_device(device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
        elif element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        else:
            self._outputs[name] = _over_pointer(element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value to an output; runs write the output into it."""
        self._outputs[name] = _convert.to_value(ortvalue, None, name)

    # ---------------------------------------------------------------- running
    def _run(self, session: InferenceSession, run_options: RunOptions | None) -> None:
        if session is not self._session:
            raise InvalidArgument("the binding belongs to another session")
        outputs = dict(self._outputs)  # at once: other threads may bind meanwhile
        if not outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        self._results = session._run_values(dict(self._inputs), list(outputs), list(outputs.values()), run_options)

    def synchronize_inputs(self) -> None:
        """Does nothing: all memory is CPU memory."""

    def synchronize_outputs(self) -> None:
        """Does nothing: a run has finished when it returns."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[NDArray[Any]]:
        """The outputs of the last run, copied to new arrays."""
        return [_copy(value.numpy()) for value in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
