# SPDX-License-Identifier: Apache-2.0
"""python -m sonde: runs the program that was installed with the package."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import NoReturn


def program() -> str:
    """The path of the program: the one installed with this package, else the one on PATH."""
    try:
        files = metadata.files("sonde") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.name == "sonde" and os.access(path, os.X_OK) and path.is_file():
            return str(path.resolve())
    found = shutil.which("sonde")
    if found is None:
        raise SystemExit("the program sonde is not installed with this package and not on PATH")
    return found


def main() -> NoReturn:
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
