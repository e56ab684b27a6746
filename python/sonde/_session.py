# SPDX-License-Identifier: Apache-2.0
"""InferenceSession: a model that is ready to run, with the names, arguments and behaviour of onnxruntime's class."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from . import _convert, _html, _sonde
from ._binding import IOBinding
from ._errors import InvalidArgument
from ._options import SessionOptions, precision_name, session_arguments
from ._random import rand
from ._session_profiling import SessionProfiling
from ._sonde import OrtValue, RunOptions

PROVIDERS = ["CPUExecutionProvider"]


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: its name, its type in ONNX notation, and its shape. Symbolic dimensions are names or None.
    Tensors of unknown rank, and values that are not tensors, have no shape."""

    name: str
    type: str
    shape: list[int | str | None]
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    """Sensible sizes of free dimensions, where the model suggests some."""
    symbols: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Names of the symbolic dimensions of all inputs of the model."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements."""
        kind, inner = _convert.parse_type(self.type)
        while kind in ("seq", "optional"):
            kind, inner = _convert.parse_type(inner)
        return _convert.numpy_dtype(_convert.NUMBERS.get(inner, 0))


class ModelMetadata(NamedTuple):
    """The metadata of the model file."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]
    producer_version: str
    ir_version: int


_workers: ThreadPoolExecutor | None = None
_workers_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """The thread pool of run_async, created at first use."""
    global _workers
    with _workers_lock:
        if _workers is None:
            _workers = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="sonde-run-async")
        return _workers


def _forget_pool() -> None:
    """Called in a forked child, which does not have the threads of the pool."""
    global _workers
    _workers = None


os.register_at_fork(after_in_child=_forget_pool)


def _provider_names(providers: Any, options: Any) -> list[str]:
    """Provider names from what onnxruntime accepts: names, or pairs of a name and a dict. Unknown providers are ignored
    with a warning, as in onnxruntime."""
    if providers is None:
        return list(PROVIDERS)
    if isinstance(providers, (str, bytes)) or not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if options is not None and len(options) != len(providers):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    names = []
    for provider in providers:
        if isinstance(provider, (tuple, list)) and len(provider) == 2 and isinstance(provider[0], str):
            provider = provider[0]
        if not isinstance(provider, str):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        if provider in PROVIDERS:
            names.append(provider)
        else:
            warnings.warn(
                f"Specified provider '{provider}' is not in available provider names."
                f"Available providers: '{', '.join(PROVIDERS)}'",
                stacklevel=4,
            )
    return list(dict.fromkeys(names)) or list(PROVIDERS)


def _source(model: Any) -> dict[str, Any]:
    """The extension's keyword arguments for what was given as a model."""
    if isinstance(model, str) and model.startswith("zoo:"):
        return {"zoo": model}
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if "\0" in path:
            raise InvalidArgument("the path contains a zero byte")
        return {"path": path}
    if isinstance(model, (bytes, bytearray, memoryview)):
        return {"data": model}
    if hasattr(model, "SerializeToString"):
        return {"data": model.SerializeToString()}
    raise TypeError(f"Unable to load from type '{type(model)}'")


def _is_size(key: str, prefix: str, text: str) -> bool:
    return key.startswith(prefix) and text.isdecimal()


class InferenceSession(_sonde.Session):
    """A model that is ready to run.

    path_or_bytes: a path, "zoo:NAME", the bytes of a model, or an onnx.ModelProto. One session may run on many
    threads at once. It is a context manager; without `with`, calling close() is optional.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options must be a sonde.SessionOptions, not {type(sess_options)}")
        options = sess_options if sess_options is not None else SessionOptions()
        self._sess_options = options
        self._providers = _provider_names(providers, provider_options)
        source = _source(path_or_bytes)
        self._disabled = kwargs.get("disabled_optimizers")
        arguments = session_arguments(options, self._disabled)
        self._enable_fallback = True
        self._profiling = SessionProfiling(options) if options.enable_profiling else None
        try:
            super().__init__(**source, **arguments)
        except BaseException:
            if self._profiling:
                self._profiling.drop()
            raise
        if self._profiling:
            self._profiling.tie(self)
        self._model_path = source.get("path")
        self._zoo_name = source.get("zoo", "").removeprefix("zoo:").partition("?")[0]
        self._zoo = source.get("zoo")
        self._find_ports()
        if options.optimized_model_filepath:
            self._save(os.fspath(options.optimized_model_filepath), True)

    def _find_ports(self) -> None:
        self._sizes = self._default_sizes()
        ports = self._inputs()
        self._symbols = frozenset(dim for port in ports for dim in port[2] or [] if isinstance(dim, str))
        self._input_args = [self._node_arg(port) for port in ports if not port[4]]
        self._initializer_args = [self._node_arg(port) for port in ports if port[4]]
        self._output_args = [self._node_arg(port) for port in self._outputs()]

    def _node_arg(self, port: tuple[str, str, list[int | str | None] | None, int, int]) -> NodeArg:
        name, onnx_type, shape, _, _ = port
        fixed = self._sess_options._dims
        dims = [fixed.get(dim, dim) if isinstance(dim, str) else dim for dim in shape or []]
        return NodeArg(name, onnx_type, dims, self._sizes, self._symbols)

    def _default_sizes(self) -> dict[str, int]:
        """The default sizes of symbolic dimensions, which "zoo:NAME?batch=8&seq=384" sets in the model's metadata."""
        prefix = "sonde.default."
        metadata = self._model_info()["custom_metadata_map"]
        return {key[len(prefix) :]: int(text) for key, text in metadata.items() if _is_size(key, prefix, text)}

    # ---------------------------------------------------------------- asking
    def get_inputs(self) -> list[NodeArg]:
        """The inputs without a default value."""
        return list(self._input_args)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._output_args)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs with a default value."""
        return list(self._initializer_args)

    def input(self, index: int) -> NodeArg:
        """One of get_inputs()."""
        return self._input_args[index]

    def output(self, index: int) -> NodeArg:
        """One of get_outputs()."""
        return self._output_args[index]

    def placement(self) -> dict[str, Any]:
        """Where the session runs: threads, and as lists such as "0,2-3" the nodes and cpus they are bound to and the
        nodes that memory is asked from ("" where nothing is bound); weight_bytes of packed weights, and of a sample of
        their pages how many were found and how many lie elsewhere. threads_refused and memory_refused are errno values
        of the system's refusal, or 0."""
        return self._placement()

    def _measured_as(self) -> dict[str, Any]:
        """What decides how long a run takes, in the words of `sonde profile --save`: the inputs of the last run, and
        options that are not the default."""
        asked = session_arguments(self._sess_options, self._disabled)
        where = self._placement()
        said: dict[str, Any] = {"threads": where["threads"], "precision": precision_name(asked["precision"])}
        if cpu := os.environ.get("SONDE_CPU"):
            said["cpu"] = cpu
        if inputs := self._bound_inputs():
            said["inputs"] = inputs
        for option, key, value in (
            ("no_optimize", "optimize", False),
            ("no_prepack", "prepack", False),
            ("flush_denormals", "flush_denormals", True),
        ):
            if asked[option]:
                said[key] = value
        if asked["tune"] is not None:
            said["tune"] = True
        if asked["disabled"]:
            said["disabled"] = list(asked["disabled"])
        if where["nodes"]:
            said["nodes"] = where["nodes"]
        if asked["instances"] > 1:
            said["instances"] = asked["instances"]
        return said

    @property
    def _typed_name(self) -> str | None:
        """What people typed for the model, without the folder; None: it came as bytes."""
        return os.path.basename(self._model_path) if self._model_path is not None else self._zoo

    def random_inputs(self, seed: int | None = None, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Random arrays for all inputs, as a dict for run(): see sonde.rand."""
        return {
            arg.name: rand(arg, None if seed is None else seed + i, sizes) for i, arg in enumerate(self._input_args)
        }

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(**self._model_info())

    @property
    def _model_name(self) -> str:
        """What spans call the model: its file or its name in the zoo, as profiles do, else that of its graph."""
        if self._model_path is not None:
            return str(os.path.basename(self._model_path))
        name: str = self._zoo_name or self.get_modelmeta().graph_name
        return name or "model"

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._providers}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        self._providers = _provider_names(providers, provider_options)

    def enable_fallback(self) -> None:
        self._enable_fallback = True

    def disable_fallback(self) -> None:
        self._enable_fallback = False

    # ---------------------------------------------------------------- running
    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs the model on another thread, which then calls callback(results, user_data, error). If the run failed,
        results is [] and error is a message; otherwise error is "". In a profile the inference belongs to a record with
        the label of the one that is open here."""
        if not callable(callback):
            raise TypeError("callback must be callable")
        _pool().submit(
            self._run_and_tell, _sonde.open_record(), output_names, input_feed, callback, user_data, run_options
        )

    def _run_and_tell(
        self,
        around: tuple[str, bool] | None,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None,
    ) -> None:
        results: list[Any] = []
        message = ""
        try:
            with contextlib.nullcontext() if around is None else _sonde.Record(*around):
                results = self.run(output_names, input_feed, run_options)
        except Exception as error:
            message = str(error) or type(error).__name__
        try:
            callback(results, user_data, message)
        except Exception:
            sys.excepthook(*sys.exc_info())

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Like run(), but with OrtValues as inputs and outputs."""
        names = list(output_names) if output_names else [arg.name for arg in self._output_args]
        feeds = {name: _convert.to_value(value, None, name) for name, value in input_dict_ort_values.items()}
        return self._run_values(feeds, names, [None] * len(names), run_options)

    def io_binding(self) -> IOBinding:
        """An IOBinding, which reuses the memory of inputs and outputs for several runs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding._run(self, run_options)

    def partial_run(self, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> dict[str, Any]:
        """Computes everything that depends only on these feeds, and returns the values that the rest of the model needs,
        by name. Feed them to run(), together with the missing inputs."""
        return self._partial_run(dict(input_feed), run_options)

    # ---------------------------------------------------------------- profiling
    def end_profiling(self) -> str:
        """Ends SessionOptions.enable_profiling, writes a Chrome trace and returns its path; "" if there is none."""
        return self._profiling.end() if self._profiling else ""

    def get_profiling_start_time_ns(self) -> int:
        """The time when profiling began, in nanoseconds since 1970; 0 if it did not."""
        return self._profiling.start_ns if self._profiling else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives back memory and file; runs afterwards raise."""
        super().close()
        self.end_profiling()

    def __repr__(self) -> str:
        if self.closed:
            return "<sonde.InferenceSession, closed>"
        inputs = ", ".join(f"{arg.name}: {arg.type}{arg.shape}" for arg in self._input_args)
        outputs = ", ".join(f"{arg.name}: {arg.type}{arg.shape}" for arg in self._output_args)
        return f"<sonde.InferenceSession ({inputs}) -> ({outputs})>"

    def _repr_html_(self) -> str:
        return _html.session(self)

    def _model_bytes(self) -> bytes:
        """The model as a file would have it. It is not kept for this: sessions that are never pickled would pay."""
        with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
            path = os.path.join(folder, "model.onnx")
            self._save(path)
            if len(os.listdir(folder)) > 1:
                raise InvalidArgument("a model above 2 GiB can only be pickled if it was loaded from a file")
            with open(path, "rb") as file:
                return file.read()

    def __reduce__(self) -> Any:
        """Its description: the path, the built-in name or the bytes of the model, and the options. It is loaded
        where it arrives."""
        model: Any = self._zoo
        if self._model_path is not None:
            model = os.path.abspath(self._model_path)
        elif model is None:
            model = self._model_bytes()
        make: Any = type(self)
        if self._disabled is not None:
            make = functools.partial(make, disabled_optimizers=list(self._disabled))
        return make, (model, self._sess_options, self._providers)
