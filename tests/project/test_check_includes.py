#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include checker must see what it is there to see: each case is a tiny tree with one mistake."""

import subprocess
import sys
import tempfile
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "script" / "check_includes.py"
LAW = """# x
<!-- law:begin -->
| room | may include |
| --- | --- |
| include/sonde | itself |
| `base` | libc |
| kernels | `base/cpu.h` |
| graph | base |
| ops/low | base |
| ops/high | base, ops/low |
| ops | base, ops/low, ops/high |
| api | include/sonde, base, graph, ops |
| tools/sonde | include/sonde |
<!-- law:end -->
<!-- arrows:begin -->
| from | to | why |
| --- | --- | --- |
<!-- arrows:end -->
"""
GOOD = {
    "src/base/a.c": '#include "base/a.h"\n#include <stdio.h>\n#include "sonde/types.h"\n',
    "src/kernels/k.c": '#include "base/cpu.h"\n#include "kernels/k.h"\n',
    "src/graph/g.c": "  #  include \"base/a.h\"\n",
    "src/ops/list.c": '#include "ops/list.inc"\n#include "ops/high/h.h"\n',
    "src/ops/low/l.c": '#include "ops/low/l.h"\n#include "base/a.h"\n',
    "src/ops/high/h.c": '#include "ops/high/h.h"\n#include "ops/low/l.h"\n',
    "src/api/p.c": '#include "sonde/sonde.h"\n#include "graph/g.h"\n#include "ops/high/h.h"\n#include "ops/list.inc"\n',
    "tools/sonde/main.c": '#include "sonde/sonde.h"\n#include "command.h"\n',
    "include/sonde/sonde.h": '#include "sonde/types.h"\n',
    "docs/architecture.md": LAW,
    "CMakeLists.txt": "sonde_room(base)\nsonde_room(kernels base)\nsonde_room(graph base)\nsonde_room(ops base)\n"
                      "sonde_room(api base graph ops)\n",
}


def naming(a, b):
    row = f"| `{a}` | `{b}` | a reason |\n"
    return {"docs/architecture.md": LAW.replace("| --- | --- | --- |\n", "| --- | --- | --- |\n" + row)}


# name: (files changed, what the checker must say, or None when it must be content)
CASES = {
    "a lawful tree passes": ({}, None),
    "a backwards include is found": ({"src/base/a.c": '#include "graph/g.h"\n'}, 'src/base/a.c:1: includes "graph/g.h"'),
    "a single allowed file does not open its room": ({"src/kernels/k.c": '#include "base/pool.h"\n'}, "base/pool.h"),
    "a room in angle brackets is found too": ({"src/base/a.c": "#include <graph/g.h>\n"}, "graph/g.h"),
    "a room may not use the public API": ({"src/graph/g.c": '#include "sonde/sonde.h"\n'}, "may not include the public API"),
    "the Python extension may not reach inside": ({"python/src/m.c": '#include "graph/g.h"\n'}, "the Python extension"),
    "the program may not reach inside": ({"tools/sonde/main.c": '#include "graph/g.h"\n'}, "the program"),
    "public headers stand alone": ({"include/sonde/sonde.h": '#include "base/a.h"\n'}, "public headers"),
    "an include without its room is found": ({"src/graph/g.c": '#include "g.h"\n'}, 'write "graph/g.h"'),
    "a path that climbs out is found": ({"src/graph/g.c": '#include "graph/../base/a.h"\n'}, "leaves its room"),
    "an include in a list file is found": ({"src/base/list.inc": '#include "graph/g.h"\n'}, "list.inc:1"),
    "a folder missing in the law is found": ({"src/attic/x.c": ""}, "src/attic/ is missing"),
    "a room of the law without a folder is found": (
        {"docs/architecture.md": LAW.replace("| graph |", "| cellar | base |\n| graph |")},
        "room cellar is not a folder",
    ),
    "a backwards include between folders of a room is found": (
        {"src/ops/low/l.c": '#include "ops/high/h.h"\n'}, "ops/low may include base"),
    "a folder of a room may not include what only the room may": (
        {"src/ops/high/h.c": '#include "ops/list.inc"\n'}, "ops/high may include base, ops/low"),
    "a folder of a room that is missing in the law is found": ({"src/ops/attic/x.c": ""}, "src/ops/attic/ is missing"),
    "a row that is no folder of its room is found": (
        {"docs/architecture.md": LAW.replace("| ops |", "| ops/cellar | base |\n| ops |")},
        "room ops/cellar is not a folder",
    ),
    "an include without its folder is found": ({"src/ops/low/l.c": '#include "l.h"\n'}, 'write "ops/low/l.h"'),
    "a named include passes": (
        {"src/ops/low/l.c": '#include "ops/list.inc"\n', **naming("ops/low/l.c", "ops/list.inc")}, None),
    "a named include excuses no other file": (
        {"src/ops/low/m.c": '#include "ops/list.inc"\n', "src/ops/low/l.c": '#include "ops/list.inc"\n',
         **naming("ops/low/l.c", "ops/list.inc")},
        "src/ops/low/m.c:1",
    ),
    "a named include that does not exist is found": (
        naming("ops/low/l.c", "ops/list.inc"), "names an arrow from ops/low/l.c to ops/list.inc"),
    "a named call is not its business": (naming("ops/low/l.c", "ops/list.c"), None),
    "a row that grants a room below it is found": (
        {"docs/architecture.md": LAW.replace("| `base` | libc |", "| `base` | graph |")},
        "base may include graph, which is no row above it",
    ),
    "links that differ from the law are found": (
        {"CMakeLists.txt": GOOD["CMakeLists.txt"].replace("graph base", "graph base kernels", 1)},
        "sonde_room(graph)",
    ),
}


def run(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**GOOD, **files}.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return subprocess.run([sys.executable, str(CHECKER), root], capture_output=True, text=True, check=False)


def main():
    failed = 0
    for name, (files, expected) in CASES.items():
        result = run(files)
        ok = result.returncode == 0 if expected is None else result.returncode == 1 and expected in result.stdout
        if not ok:
            failed += 1
            print(f"FAILED {name}: exit {result.returncode}, expected {expected!r} in:\n{result.stdout}{result.stderr}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
