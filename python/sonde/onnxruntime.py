# SPDX-License-Identifier: Apache-2.0
"""Runs programs written for onnxruntime without changes: `import onnxruntime` imports sonde.

    import sonde.onnxruntime
    sonde.onnxruntime.install()
    import a_package_that_imports_onnxruntime

or, for a whole program:

    python -m sonde.onnxruntime program.py arguments…
    python -m sonde.onnxruntime -m package arguments…
"""

from __future__ import annotations

import runpy
import sys
from types import ModuleType

import sonde

from . import _binding, _errors, _session

# A version that programs which ask for a minimal one are content with: the one whose interface this is.
INTERFACE_VERSION = "1.31.1"


def _module(name: str, doc: str, *sources: ModuleType) -> ModuleType:
    module = ModuleType(name, doc)
    module.__package__ = name.rpartition(".")[0] if "." in name else name
    for source in sources:
        for key, thing in vars(source).items():
            if not key.startswith("__"):
                setattr(module, key, thing)
    return module


def modules() -> dict[str, ModuleType]:
    """The replacements for onnxruntime's modules, by name."""
    top = _module("onnxruntime", "sonde in the place of onnxruntime", sonde)
    top.__dict__.update(__version__=INTERFACE_VERSION, __path__=[])
    capi = _module("onnxruntime.capi", "sonde in the place of onnxruntime")
    capi.__dict__["__path__"] = []
    names = ("onnxruntime_pybind11_state", "_pybind_state", "onnxruntime_inference_collection")
    made = {"onnxruntime": top, "onnxruntime.capi": capi}
    for name in names:
        module = _module(f"onnxruntime.capi.{name}", "sonde in the place of onnxruntime", _binding, _session, _errors, sonde)
        setattr(capi, name, module)
        made[f"onnxruntime.capi.{name}"] = module
    top.__dict__["capi"] = capi
    return made


def install() -> None:
    """Makes `import onnxruntime` import sonde. Call it before anything imports the real onnxruntime."""
    if "onnxruntime" in sys.modules and not hasattr(sys.modules["onnxruntime"], "_sonde"):
        raise RuntimeError("onnxruntime is already imported; call install() before")
    sys.modules.update(modules())


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        raise SystemExit("usage: python -m sonde.onnxruntime PROGRAM.py|-m MODULE [arguments…]")
    install()
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
