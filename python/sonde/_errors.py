# SPDX-License-Identifier: Apache-2.0
"""Exceptions. They have the names of onnxruntime's exceptions, so that programs that catch those catch these. Each is a
subclass of sonde.Error and of a built-in exception."""

from collections.abc import Iterable, Sequence
from typing import NoReturn


class Error(Exception):
    """Base class of all exceptions of this package."""


class Fail(Error, RuntimeError):
    """A failure that has no more specific class."""


class InvalidArgument(Error, ValueError):
    """A wrong name, type, shape or option."""


class NoSuchFile(Error, FileNotFoundError):
    """The file, a model or a profile, does not exist."""


class NoModel(Error, RuntimeError):
    """A session without a model."""


class EngineError(Error, RuntimeError):
    """An internal error of the library."""


class RuntimeException(Error, RuntimeError):
    """An operator failed while the model ran."""


class InvalidGraph(Error, ValueError):
    """The model is not valid."""


class InvalidProtobuf(InvalidGraph):
    """The file or the bytes are not an ONNX model, or are cut short."""


class ModelLoaded(Error, RuntimeError):
    """The session already has a model."""


class NotImplemented(Error, NotImplementedError):
    """An operator, a type or an option that is not supported."""


class EPFail(Error, RuntimeError):
    """An execution provider failed."""


class NotFound(Error, LookupError):
    """A named object does not exist."""


class ModelLoadCanceled(Fail):
    """Loading was cancelled."""


class Cancelled(Fail):
    """The run was stopped through RunOptions.terminate."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory, or the memory limit was reached."""


def raise_missing(required: Sequence[str], feed: Iterable[str]) -> NoReturn:
    """Inputs without a default that were not fed."""
    given = list(feed)
    missing = [name for name in required if name not in given]
    if missing:
        raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({given}).")
    raise InvalidArgument(f"Required inputs of {list(required)} were fed None.")
