# SPDX-License-Identifier: Apache-2.0
"""What can go wrong. The names are onnxruntime's, so that programs that catch its exceptions catch these; each is
also the built-in exception that Python people would expect. All are sonde.Error."""

from collections.abc import Iterable, Sequence
from typing import NoReturn


class Error(Exception):
    """Everything the library reports."""


class Fail(Error, RuntimeError):
    """Something failed that has no class of its own."""


class InvalidArgument(Error, ValueError):
    """A name, a type, a shape or an option that does not fit."""


class NoSuchFile(Error, FileNotFoundError):
    """There is no such model file."""


class NoModel(Error, RuntimeError):
    """A session without a model."""


class EngineError(Error, RuntimeError):
    """A mistake of the library itself."""


class RuntimeException(Error, RuntimeError):
    """An operator failed while the model ran."""


class InvalidGraph(Error, ValueError):
    """The model is not valid."""


class InvalidProtobuf(InvalidGraph):
    """The bytes are not an ONNX model."""


class ModelLoaded(Error, RuntimeError):
    """The session has a model already."""


class NotImplemented(Error, NotImplementedError):
    """An operator, a type or an option that is not supported."""


class EPFail(Error, RuntimeError):
    """An execution provider failed."""


class NotFound(Error, LookupError):
    """Something that was named does not exist."""


class ModelLoadCanceled(Fail):
    """Loading was stopped."""


class Cancelled(Fail):
    """The run was stopped through RunOptions.terminate."""


class OutOfMemory(Error, MemoryError):
    """Memory, or what the library may take of it, is not enough."""


def raise_missing(required: Sequence[str], feed: Iterable[str]) -> NoReturn:
    """Inputs without a default that were not fed."""
    given = list(feed)
    missing = [name for name in required if name not in given]
    if missing:
        raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({given}).")
    raise InvalidArgument(f"Required inputs of {list(required)} were fed None.")
